"""Which pods a pass considers, and which it leaves alone."""

from dataclasses import replace

import pytest

from nodeless.model.disruption import PodDisruptionBudget
from nodeless.model.labels import DISRUPTED_TAINT, DO_NOT_DISRUPT, DO_NOT_EVICT, NODE_POOL, PROVISIONER_NAME
from nodeless.model.pods import Owner
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling import Policy, pods_to_place
from nodeless.scheduling.pods.eligibility import held_pods
from nodeless.scheduling.same_cluster import SameCluster
from tests.scheduling.factories import (
    claim,
    needs,
    node,
    plan,
    pods,
    running,
    selecting,
    snapshot,
    term,
)

(POD,) = pods(1)


def considered(*things, now=0.0):
    return [pod.name for pod in pods_to_place(snapshot(*things), now)]


def test_a_pod_that_the_scheduler_could_not_place_is_considered():
    assert considered(POD) == ["web-0"]


@pytest.mark.parametrize(
    "change",
    [
        {"unschedulable": False},
        {"nominated_node_name": "one"},
        {"owners": (Owner("apps/v1", "DaemonSet", "agent"),)},
        {"owners": (Owner("v1", "Node", "one"),)},
        {"mirror": True},
        {"deletion_timestamp": 1.0},
        {"phase": "Failed"},
        {"scheduler_name": "fargate-scheduler"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_pods_that_new_nodes_would_not_help_are_left_alone(change):
    assert considered(replace(POD, **change)) == []


@pytest.mark.parametrize("key", [PROVISIONER_NAME, NODE_POOL])
def test_a_pod_that_asks_not_to_run_on_our_nodes_is_left_alone_without_a_word(key):
    shy = pods(1, required_terms=(term(needs(key, "DoesNotExist")),))
    result = plan(shy)
    assert (result.new_nodes, result.refusals) == ((), ())


def test_a_pod_that_offers_another_way_is_considered():
    terms = (term(needs(PROVISIONER_NAME, "DoesNotExist")), term(needs(PROVISIONER_NAME, "Exists")))
    result = plan(pods(1, required_terms=terms))
    assert len(result.new_nodes) == 1


@pytest.mark.parametrize(
    "leaving",
    [
        [node("one", deletion_timestamp=1.0)],
        [node("one", taints=(Taint(DISRUPTED_TAINT, "NoSchedule"),))],
        [node("one"), claim("default-aaaaa", provider_id="aws:///z1/i-one", deletion_timestamp=1.0)],
    ],
    ids=["node-deleting", "node-disrupted", "claim-deleting"],
)
def test_pods_on_nodes_of_ours_that_are_leaving_join_the_pass(leaving):
    there = running(POD, "one")
    agent = replace(
        running(pods(1, name="agent")[0], "one"), owners=(Owner("apps/v1", "DaemonSet", "agent"),)
    )
    ending = replace(running(pods(1, name="ending")[0], "one"), deletion_timestamp=1.0)
    done = replace(running(pods(1, name="done")[0], "one"), phase="Succeeded")
    assert considered(leaving, there, agent, ending, done) == ["web-0"]


def test_pods_on_nodes_that_stay_or_are_not_ours_do_not_join():
    foreign = node("two", labels={}, deletion_timestamp=1.0)
    other = running(pods(1, name="other")[0], "two")
    assert considered(node("one"), running(POD, "one"), foreign, other) == []


#: A node of a NodePool that is being removed.
DRAINING = node("one", labels={NODE_POOL: "default"}, deletion_timestamp=1.0)
NEVER = PodDisruptionBudget("default", "never", selecting(app="web"), fully_blocking=True)


def protected(value="true", key=DO_NOT_DISRUPT, **fields):
    return replace(running(POD, "one"), annotations={key: value}, started_at=100.0, **fields)


@pytest.mark.parametrize("key", [DO_NOT_DISRUPT, DO_NOT_EVICT])
def test_no_node_is_launched_for_a_pod_that_is_protected_on_a_draining_node(key):
    assert considered(DRAINING, protected(key=key)) == []
    result = plan(DRAINING, protected(key=key))
    assert (result.new_nodes, result.refusals) == ((), ())


def test_a_pod_that_is_protected_for_ten_minutes_is_planned_once_they_are_over():
    for now, names in ((699.0, []), (700.0, ["web-0"])):
        assert considered(DRAINING, protected("10m"), now=now) == names
        result = plan(DRAINING, protected("10m"), policy=Policy(now=now))
        assert [name.removeprefix("default/") for new in result.new_nodes for name in new.pods] == names


def test_a_cluster_is_another_one_once_a_protection_is_over():
    """What searches found in it is looked for anew then, and not a moment sooner."""
    seen = snapshot(DRAINING, protected("10m"))
    begun, later, over = (SameCluster(seen, {}, Policy(now=now)) for now in (101.0, 699.0, 700.0))
    assert begun == later
    assert hash(begun) == hash(later)
    assert later != over


@pytest.mark.parametrize("value", ["false", "soon"])
def test_a_value_that_protects_nothing_holds_no_pod(value):
    assert considered(DRAINING, protected(value)) == ["web-0"]


def test_on_a_node_of_a_provisioner_annotations_and_budgets_hold_no_pod():
    """Its drain evicts them all the same."""
    own = claim("default-aaaaa", provider_id="aws:///z1/i-one", deletion_timestamp=1.0)
    assert considered(node("one", deletion_timestamp=1.0), protected(), NEVER) == ["web-0"]
    assert considered(node("one"), own, protected(), NEVER) == ["web-0"]


def test_a_pod_that_a_budget_never_lets_go_is_held():
    assert considered(DRAINING, running(POD, "one"), NEVER) == []
    assert considered(DRAINING, running(POD, "one"), replace(NEVER, namespace="other")) == ["web-0"]
    assert considered(DRAINING, running(POD, "one"), replace(NEVER, fully_blocking=False)) == ["web-0"]


def test_a_pod_that_is_not_ready_is_held_unless_the_budget_always_lets_such_pods_go():
    unwell = replace(running(POD, "one"), ready=False)
    assert considered(DRAINING, unwell, NEVER) == []
    assert considered(DRAINING, unwell, replace(NEVER, always_evicts_unhealthy=True)) == ["web-0"]


def test_a_pod_of_several_budgets_is_held_for_the_api_server_evicts_none():
    several = [replace(NEVER, name=name, fully_blocking=False, disruptions_allowed=1) for name in ("a", "b")]
    assert considered(DRAINING, running(POD, "one"), several) == []


def test_a_budget_does_not_hold_a_pod_that_the_drain_leaves_alone():
    patient = replace(POD, shape=replace(POD.shape, tolerations=(Toleration(operator="Exists"),)))
    assert considered(DRAINING, running(patient, "one"), NEVER) == ["web-0"]


def test_a_protected_pod_of_a_stateful_set_that_terminates_needs_a_place_for_its_successor():
    owners = (Owner("apps/v1", "StatefulSet", "web"),)
    assert considered(DRAINING, protected(owners=owners, deletion_timestamp=1.0), NEVER) == ["web-0"]


def test_the_pods_that_are_held_are_those_that_do_not_join():
    ordinary = running(pods(1, name="ordinary")[0], "one")
    assert held_pods(snapshot(DRAINING, protected(), ordinary), 0.0) == {"default/web-0"}
