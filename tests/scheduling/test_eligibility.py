"""Which pods a pass considers, and which it leaves alone."""

from dataclasses import replace

import pytest

from nodeless.model.labels import DISRUPTED_TAINT, NODE_POOL, PROVISIONER_NAME
from nodeless.model.pods import Owner
from nodeless.model.taints import Taint
from nodeless.scheduling import pods_to_place
from tests.scheduling.factories import claim, needs, node, plan, pods, running, snapshot, term

(POD,) = pods(1)


def considered(*things):
    return [pod.name for pod in pods_to_place(snapshot(*things))]


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
