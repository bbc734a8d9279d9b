"""A static pool that holds too many nodes gives up those that are missed least."""

from dataclasses import replace

import pytest

from nodeless.api.reading import read_pool
from nodeless.model import events
from nodeless.model.labels import DO_NOT_DISRUPT, REPLACES, TERMINATION_FINALIZER
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim import step_pool
from nodeless.state import apply
from nodeless.state.last_pod_event_time import consolidates_after
from tests.api.manifests import node_pool
from tests.factories import NOW, a_claim, a_node, a_pod, a_pool, an_initialized_claim

GUARDED = {DO_NOT_DISRUPT: "true"}


def cluster():
    """A claim without instance, an empty node, one with a pod, one with two, one with a guarded pod."""
    snapshot = Snapshot()
    seen = [events.ClaimSeen(a_claim("waiting"))]
    pods = {"empty": [], "one": [{}], "two": [{}, {}], "guarded": [{"annotations": GUARDED}]}
    for name, fields in pods.items():
        seen += [events.ClaimSeen(an_initialized_claim(name)), events.NodeSeen(a_node(name))]
        seen += [
            events.PodSeen(a_pod(f"{name}-{i}", node_name=f"node-{name}", phase="Running", **field))
            for i, field in enumerate(fields)
        ]
    for event in seen:
        snapshot = apply(snapshot, event)
    return snapshot


def given_up(replicas, snapshot=None):
    pool = a_pool(replicas=replicas)
    assert TERMINATION_FINALIZER in pool.finalizers
    return [instruction.name for instruction in step_pool(snapshot or cluster(), pool, NOW)]


@pytest.mark.parametrize("replicas", range(7))
def test_dn_23_nodes_are_given_up_in_the_order_in_which_they_are_missed(replicas):
    order = ["waiting", "empty", "one", "two", "guarded"]
    assert given_up(replicas) == order[: max(5 - replicas, 0)]


def test_dn_23_cheap_pods_go_before_dear_ones_however_many_they_are():
    dear = a_pod("one-0", node_name="node-one", phase="Running", priority=2**30)
    assert given_up(2, apply(cluster(), events.PodSeen(dear))) == ["waiting", "empty", "two"]


def test_dn_23_a_pod_is_guarded_for_as_long_as_its_annotation_says():
    pod = a_pod("guarded-0", node_name="node-guarded", phase="Running", annotations={DO_NOT_DISRUPT: "10m"})
    over = apply(cluster(), events.PodSeen(replace(pod, started_at=NOW - 601)))
    assert given_up(2, over) == ["waiting", "empty", "guarded"]
    assert given_up(2, apply(over, events.PodSeen(replace(pod, started_at=NOW - 599)))) == [
        "waiting",
        "empty",
        "one",
    ]


def test_what_is_leaving_already_counts_no_more():
    leaving = apply(cluster(), events.ClaimSeen(replace(a_claim("waiting"), deletion_timestamp=1.0)))
    assert given_up(4, leaving) == []
    assert given_up(3, leaving) == ["empty"]


def test_a_node_that_is_being_replaced_counts_once_with_its_replacement():
    replacement = a_claim("new", annotations={REPLACES: "two"})
    replacing = apply(cluster(), events.ClaimSeen(replacement))
    assert given_up(5, replacing) == []
    assert given_up(4, replacing) == ["waiting"]
    ending = replace(replacing.claims["two"], deletion_timestamp=1.0)
    assert given_up(5, apply(replacing, events.ClaimSeen(ending))) == []


def test_other_pools_give_up_nothing():
    assert given_up(None) == []


def test_dn_23_a_static_pool_is_never_consolidated():
    """Its nodes have no pods, and its policy says to end such nodes at once."""
    pool, _ = read_pool(node_pool(replicas=3, disruption={"consolidateAfter": "0s", "budgets": []}))
    assert consolidates_after(pool) is None
    assert not pool.consolidation_enabled
