"""Given a pod whose resize in place waits, what would let it grow?"""

import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.explain.answers import answer
from nodeless.explain.decisions import Situation, write
from nodeless.explain.resizes import advise_resize
from nodeless.model.labels import DO_NOT_DISRUPT
from nodeless.model.pods import Owner, PendingResize
from nodeless.scheduling import Policy
from tests.disruption.world import a_budget
from tests.scheduling.factories import FAMILY, NOW, node, pods, pool, running, snapshot

POLICY = Policy(time_box=0.0)
WHAT_IF = "nodeless plan --what-if without-node=n1"


def growing(wanted, granted="1", on="n1", reason="Deferred", memory=("0", "0")):
    """A running pod that asks for more than its node has granted."""
    (big,), (small,) = pods(1, wanted, memory[0], name="db"), pods(1, granted, memory[1], name="db")
    counted = small if reason == "Infeasible" else big
    resize = PendingResize(reason, big.shape.requests, small.shape.requests)
    return replace(running(counted, on), resize=resize)


def running_on(name, *sizes, app="web", **fields):
    return [
        replace(running(pods(1, f"{size}m", name=f"{app}{number}")[0], name), **fields)
        for number, size in enumerate(sizes)
    ]


def situation(*things, types=FAMILY):
    seen = snapshot(pool(), *things)
    return Situation(seen, dict.fromkeys(seen.pools, types), POLICY, NOW)


def advised(*things, **more):
    seen = situation(*things, **more)
    return advise_resize(seen, seen.snapshot.pods["default/db-0"])


def test_it_says_what_is_missing_which_pod_makes_room_and_where_that_goes():
    others = running_on("n1", 500, 1500, 2000)
    found = advised(growing("3"), others, node("n1", "6"), node("n2", "2"), running_on("n2", 400, app="x"))
    assert found.lines() == (
        "its resize from cpu 1 to cpu 3 waits (Deferred): node n1 lacks cpu 1",
        "there is room for it without default/web1-0, with room for it on n2",
        "a pod of that size gets a new node of Provisioner/default: large, spot in z1, 1.0590 USD/h",
        "hint: nodeless plan --what-if without-node=n1",
    )


def test_a_node_that_has_room_for_the_whole_pod_is_named():
    found = advised(growing("3"), running_on("n1", 3000), node("n1", "4"), node("n2", "4"))
    assert "a pod of that size has room on n2" in found.lines()


def test_what_a_node_can_never_hold_needs_another_node():
    found = advised(growing("12", reason="Infeasible"), running_on("n1", 500), node("n1", "4"))
    assert found.lines() == (
        "its resize from cpu 1 to cpu 12 waits (Infeasible): node n1 lacks cpu 8500m",
        "no pods that may leave the node make room enough for it",
        "a pod of that size gets a new node of Provisioner/default: 2xlarge, spot in z1, 4.2360 USD/h",
        "hint: nodeless plan --what-if without-node=n1",
    )


OWNED = {"owners": (Owner("apps/v1", "ReplicaSet", "web", controller=True),)}


def test_the_command_that_makes_the_room_is_named_where_the_pods_are_made_anew():
    found = advised(growing("3"), running_on("n1", 1500, **OWNED), node("n1", "4"))
    assert found.lines()[-1] == (
        "hint: kubectl delete pod -n default web0-0, or nodeless plan --what-if without-node=n1"
    )
    others = running_on("n1", 1100, **OWNED) + running_on("n1", 1200, app="api", namespace="shop", **OWNED)
    both = advised(growing("3"), others, node("n1", "4"))
    assert both.commands[0] == "kubectl delete pod -n default web0-0 && kubectl delete pod -n shop api0-0"


def test_a_pod_that_nobody_makes_anew_is_not_to_be_deleted_and_many_are_not_listed():
    bare = running_on("n1", 1100, **OWNED) + running_on("n1", 1200, app="api")
    assert advised(growing("3"), bare, node("n1", "4")).commands == (WHAT_IF,)
    many = running_on("n1", *[300] * 6, **OWNED)
    found = advised(growing("3"), many, node("n1", "3"))
    assert len(found.leaving) == 6
    assert found.commands == (WHAT_IF,)


def test_the_command_that_shows_what_it_costs_is_one_that_there_is(tmp_path):
    seen = situation(growing("3"), running_on("n1", 3000, **OWNED), node("n1", "4"))
    path = tmp_path / "cluster.json"
    path.write_bytes(write(seen, "1"))
    program, *arguments = shlex.split(advise_resize(seen, seen.snapshot.pods["default/db-0"]).commands[-1])
    result = CliRunner().invoke(app, [*arguments, "--snapshot", str(path)])
    assert program == "nodeless"
    assert result.exit_code == 0, result.output
    assert "Launch 1 node" in result.output


@pytest.mark.parametrize(
    "pod",
    [growing("99", reason="Infeasible"), growing("1500m")],
    ids=["no-node-holds-it", "the-kubelet-has-a-reason"],
)
def test_where_nothing_that_one_runs_would_help_nothing_is_named(pod):
    assert advised(pod, node("n1", "4")).commands == ()


def test_a_size_that_no_type_has_is_refused_with_the_reason():
    found = advised(growing("99", reason="Infeasible"), node("n1", "4"))
    assert found.home.startswith("has no place: ")


def test_where_there_is_room_the_kubelet_has_the_reason():
    found = advised(growing("3"), node("n1", "8"))
    assert found.missing == {}
    assert "node n1 has room for it; its condition PodResizePending has the reason" in found.lines()[0]


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(running_on("n1", 3000, annotations={DO_NOT_DISRUPT: "true"}), id="protected"),
        pytest.param([*running_on("n1", 3000), a_budget("web0")], id="budget"),
        pytest.param(running_on("n1", 3000, deletion_timestamp=NOW), id="leaving-already"),
        pytest.param([running(pods(1, "3", name="agent")[0], "n1", daemon_set="agent")], id="daemon"),
    ],
)
def test_pods_that_something_holds_on_the_node_are_not_named(held):
    assert advised(growing("3"), held, node("n1", "4")).leaving == ()


@given(
    allocatable=st.integers(1000, 20_000),
    wanted=st.integers(100, 20_000),
    others=st.lists(st.integers(50, 4000), max_size=8),
    held=st.sets(st.integers(0, 7)),
    infeasible=st.booleans(),
)
def test_the_pods_that_are_named_make_room_and_each_of_them_is_needed(
    allocatable, wanted, others, held, infeasible
):
    there = running_on("n1", *others)
    pods_there = [
        replace(pod, annotations={DO_NOT_DISRUPT: "true"}) if number in held else pod
        for number, pod in enumerate(there)
    ]
    grown = growing(f"{wanted}m", "100m", reason="Infeasible" if infeasible else "Deferred")
    found = advised(grown, pods_there, node("n1", f"{allocatable}m"), types=())
    lacks = wanted - (allocatable - sum(others))
    assert dict(found.missing) == ({"cpu": lacks} if lacks > 0 else {})
    size = {pod.key: amount for pod, amount in zip(there, others, strict=True)}
    movable = [amount for number, amount in enumerate(others) if number not in held]
    if lacks <= 0 or sum(movable) < lacks:
        assert found.leaving == ()
        return
    freed = [size[key] for key in found.leaving]
    assert sum(freed) >= lacks
    assert all(sum(freed) - amount < lacks for amount in freed)


def test_why_of_the_pod_says_it_in_words_and_as_data():
    seen = situation(growing("3"), running_on("n1", 3000), node("n1", "4"), node("n2", "4"))
    said = answer(seen, seen.plan(), "pod/db-0")
    assert said.lines[:2] == (
        "runs on n1",
        "its resize from cpu 1 to cpu 3 waits (Deferred): node n1 lacks cpu 2",
    )
    document = said.to_json()["resize"]
    assert (document["missing"], document["leaving"]) == ({"cpu": 2000}, ["default/web0-0"])


def test_why_of_a_pod_that_holds_its_node_says_until_when():
    (pod,) = running_on("n1", 1000, annotations={DO_NOT_DISRUPT: "1h"}, started_at=NOW)
    seen = situation(pod, node("n1", "4"))
    said = answer(seen, seen.plan(), "pod/web0-0")
    assert said.lines[1].startswith(
        "its node is not disrupted: it has karpenter.sh/do-not-disrupt=1h, until 20"
    )


def test_pods_whose_resize_does_not_wait_have_no_such_advice():
    assert advised(replace(growing("3"), resize=None), node("n1", "4")) is None
    assert advised(growing("3", on="gone")) is None
