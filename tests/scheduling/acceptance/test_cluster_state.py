"""What is known of nodes, claims and what runs on them: rows ST-01 to ST-11 and ST-14."""

from dataclasses import replace

import pytest

from nodeless.model import events
from nodeless.model.labels import HOSTNAME, INSTANCE_TYPE, PROVISIONER_NAME, ZONE
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint
from nodeless.scheduling import Policy, solve
from nodeless.state import apply
from tests.scheduling.factories import (
    FAMILY,
    NOW,
    beside,
    claim,
    daemon,
    node,
    plan,
    pods,
    pool,
    running,
)

BOOTING = {PROVISIONER_NAME: "default", INSTANCE_TYPE: "medium", ZONE: "z1"}
MEDIUM = next(kind for kind in FAMILY if kind.name == "medium")


def placed(*things, **fields):
    """How many pods a plan puts on what exists."""
    return len(plan(*things, **fields).placements)


def after(*history):
    """The snapshot after pods, nodes and claims were seen, in this order."""
    snapshot = Snapshot()
    for one in history:
        snapshot = apply(snapshot, one)
    return snapshot


def booting(name="one", **fields):
    """A node of ours that is not initialized, of the type with 2 CPU and 8 Gi, 1.9 of them allocatable."""
    fields.setdefault("allocatable", {})
    fields.setdefault("capacity", {})
    return node(name, labels=BOOTING, **fields)


def test_st_01_a_booting_node_that_reports_nothing_has_what_its_type_has():
    assert placed(booting(), pods(19, "100m")) == 19
    assert placed(booting(), pods(1, "1910m")) == 0
    limited = pool("default", limits={"cpu": "3"})
    result = plan(limited, booting(), pods(19, "100m"), pods(1, "1910m", name="large"))
    assert [refusal.code for refusal in result.refusals] == ["LimitsExceeded"]


def test_st_02_what_a_booting_node_reports_wins_and_the_rest_is_the_types():
    partial = booting(
        allocatable={"memory": 100 * 2**20, "cpu": 0}, capacity={"ephemeral-storage": 100 * 2**30}
    )
    assert placed(partial, pods(1, "1", "90Mi")) == 1
    assert placed(partial, pods(1, "100m", "110Mi")) == 0


def test_st_03_a_launched_claim_without_a_node_is_capacity_with_its_labels_and_taints():
    coming = claim(
        "coming",
        provider_id="aws:///z1/i-1",
        labels=BOOTING,
        taints=(Taint("team", "NoSchedule"),),
        capacity=MEDIUM.capacity,
        allocatable=MEDIUM.allocatable,
    )
    assert placed(coming, pods(1, selector={ZONE: "z1"})) == 0
    assert placed(replace(coming, taints=()), pods(1, selector={ZONE: "z1"})) == 1
    assert placed(replace(coming, taints=()), pods(1, selector={ZONE: "z2"})) == 0
    assert placed(replace(coming, taints=()), pods(1, "2")) == 0


def test_st_03_a_claim_and_its_node_are_one():
    there = node("one", labels=BOOTING, provider_id="aws:///z1/i-1", allocatable={})
    coming = claim("coming", provider_id="aws:///z1/i-1", labels=BOOTING, allocatable=MEDIUM.allocatable)
    assert plan(there, coming, pods(19, "100m")).placements == {f"default/web-{i}": "one" for i in range(19)}
    assert placed(there, coming, pods(38, "100m")) == 19


def test_st_04_an_initialized_node_has_what_it_reports():
    assert placed(node("one", "500m"), pods(4, "250m")) == 2
    zero = node("one", allocatable={"cpu": 4000, "memory": 0, "pods": 10})
    assert placed(zero, pods(1, "1", "1Mi")) == 0


def usage(snapshot):
    """CPU that is taken of the four that node `one` has."""
    seen = apply(snapshot, events.PoolSeen(pool()))
    for pod in pods(40, "100m", name="probe"):
        seen = apply(seen, events.PodSeen(pod))
    result = solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy())
    return 4.0 - len(result.placements) / 10


FIRST, SECOND = pods(1, "1500m", name="first")[0], pods(1, "2", name="second")[0]
ONE = events.NodeSeen(node("one"))


def test_st_05_pods_take_room_while_they_are_bound_and_have_not_ended():
    history = [ONE]
    assert usage(after(*history)) == 0
    history.append(events.PodSeen(running(FIRST, "one")))
    assert usage(after(*history)) == pytest.approx(1.5)
    history.append(events.PodSeen(running(SECOND, "one")))
    assert usage(after(*history)) == pytest.approx(3.5)
    for end in ("Succeeded", "Failed"):
        ended = events.PodSeen(replace(running(SECOND, "one"), phase=end))
        assert usage(after(*history, ended)) == pytest.approx(1.5)
    assert usage(after(*history, events.PodGone(FIRST.key))) == pytest.approx(2.0)


def test_st_06_a_pod_that_comes_again_elsewhere_under_its_name_takes_room_there_only():
    moved = [
        ONE,
        events.NodeSeen(node("two", unschedulable=True)),
        events.PodSeen(running(FIRST, "one")),
        events.PodSeen(replace(running(FIRST, "two"), uid="anew")),
    ]
    assert usage(after(*moved)) == 0
    assert usage(after(*reversed(moved))) == pytest.approx(1.5)


def test_st_07_a_node_that_is_gone_is_not_used():
    seen = after(ONE, events.NodeGone("one"))
    assert not seen.nodes
    assert usage(seen) == pytest.approx(4.0)


def test_st_08_a_nomination_outlasts_the_arrival_of_the_node():
    """The claim was nominated before its node came; the node is not taken for empty meanwhile."""
    made = claim("made", provider_id="aws:///z1/i-1")
    seen = after(
        events.ClaimSeen(made),
        events.Nominated("made", NOW + 20),
        events.NodeSeen(node("one", provider_id="aws:///z1/i-1")),
    )
    assert seen.is_nominated("made", NOW)
    assert seen.node_of(made).name == "one"


def test_st_08_a_claim_that_is_leaving_stays_so_once_its_node_comes():
    made = claim("made", provider_id="aws:///z1/i-1", deletion_timestamp=NOW)
    assert placed(made, node("one", provider_id="aws:///z1/i-1"), pods(1)) == 0


def test_st_09_a_node_that_gets_its_provider_id_later_stays_one_node():
    early = node("one", provider_id="")
    seen = after(events.NodeSeen(early), events.NodeSeen(replace(early, provider_id="aws:///z1/i-1")))
    assert list(seen.nodes) == ["one"]
    assert dict(seen.node_names) == {"aws:///z1/i-1": "one"}


@pytest.mark.parametrize(("weight", "shared"), [(None, False), (1, True)], ids=["required", "preferred"])
def test_st_10_required_anti_affinity_of_running_pods_counts_and_preferred_does_not(weight, shared):
    shy = pods(1, "100m", name="shy", anti_affinity=(beside(HOSTNAME, weight=weight),))[0]
    assert bool(placed(node("one", labels={HOSTNAME: "one"}), running(shy, "one"), pods(1))) is shared


@pytest.mark.parametrize("pod_first", [True, False])
def test_st_10_a_pod_that_is_gone_repels_nobody_whatever_went_first(pod_first):
    shy = pods(1, "100m", name="shy", anti_affinity=(beside(ZONE),))[0]
    gone = [events.PodGone(shy.key), events.NodeGone("one")]
    seen = after(ONE, events.PodSeen(running(shy, "one")), *(gone if pod_first else reversed(gone)))
    assert (dict(seen.pods), dict(seen.pods_of_node), dict(seen.nodes)) == ({}, {}, {})


def test_st_14_a_daemons_pod_counts_among_the_pods_and_is_not_expected_again():
    agent = daemon("agent", "1")
    there = running(pods(1, "1", name="agent-x")[0], "one", daemon_set="agent")
    assert placed(agent, node("one"), pods(4)) == 3
    assert placed(agent, node("one"), there, pods(4)) == 3
