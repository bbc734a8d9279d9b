"""Nodes that were launched for provisioning requests: ended when these never get their capacity."""

from dataclasses import replace

import pytest

from nodeless.disruption.request_nodes import request_node_steps
from nodeless.model import events
from nodeless.model.conditions import Condition
from nodeless.model.instructions import AnnotateClaim, DeleteClaim
from nodeless.model.labels import DO_NOT_DISRUPT, LAUNCHED_FOR_REQUEST, PAUSE, PLANNED_PODS
from nodeless.model.provisioning_requests import ATOMIC_SCALE_UP, ProvisioningRequest
from nodeless.state import apply
from nodeless.state.expected import uid_digest
from tests.disruption.world import a_node_pool, cluster, node_of, on
from tests.scheduling.factories import NOW, pods

POOL = a_node_pool(consolidate_after=None)
JOB = "default/job"
FAILED = Condition("Failed", "True", "LaunchTookTooLong", "not all nodes were ready 900 s after the first")
PROVISIONED = Condition("Provisioned", "True")
EXPIRED = Condition("BookingExpired", "True")


def a_request(*conditions, name="job", **fields):
    fields = {"provisioning_class": ATOMIC_SCALE_UP, "conditions": conditions, **fields}
    return ProvisioningRequest("default", name, "uid", **fields)


def launched(name, *requests, annotations=None, **fields):
    marks = {LAUNCHED_FOR_REQUEST: ",".join(requests), **(annotations or {})}
    return node_of(POOL, name, annotations=marks, **fields)


def steps(*things, requests=(), seen=()):
    snapshot = cluster(POOL, *things)
    for event in (*map(events.ProvisioningRequestSeen, requests), *seen):
        snapshot = apply(snapshot, event)
    return request_node_steps(snapshot, NOW)


def ended(found):
    return {name for name, each in found.items() if any(isinstance(one, DeleteClaim) for one in each)}


def left_on(found):
    return {
        name: one.annotations[LAUNCHED_FOR_REQUEST]
        for name, each in found.items()
        for one in each
        if isinstance(one, AnnotateClaim)
    }


def test_the_empty_nodes_of_a_request_that_failed_end_whatever_the_pool_does_with_empty_nodes():
    found = steps(launched("a", JOB), launched("b", JOB), node_of(POOL, "c"), requests=[a_request(FAILED)])
    assert ended(found) == {"a", "b"}
    event = found["a"][0]
    assert (event.reason, event.kind, event.name) == ("RequestNodesReleased", "NodeClaim", "a")
    assert event.message.startswith(f"released: ProvisioningRequest {JOB} failed: not all nodes were ready")


@pytest.mark.parametrize("requests", [(), (a_request(deletion_timestamp=NOW),)])
def test_so_do_those_of_a_request_that_is_deleted_while_it_is_launched_for(requests):
    found = steps(launched("a", JOB), requests=requests)
    assert ended(found) == {"a"}
    assert found["a"][0].message == f"released: ProvisioningRequest {JOB} is gone"


@pytest.mark.parametrize("conditions", [(), (Condition("Provisioned", "False", "CapacityIsNotFound"),)])
def test_as_long_as_a_request_may_get_its_capacity_its_nodes_are_left_to_the_plans(conditions):
    assert not steps(launched("a", JOB), launched("b", JOB), requests=[a_request(*conditions)])


@pytest.mark.parametrize(
    "conditions",
    [(PROVISIONED,), (PROVISIONED, EXPIRED), (PROVISIONED, Condition("CapacityRevoked", "True"))],
)
def test_nodes_of_a_request_that_had_its_capacity_are_nodes_like_any_other(conditions):
    found = steps(launched("a", JOB), requests=[a_request(*conditions)])
    assert not ended(found)
    assert left_on(found) == {"a": None}


def test_nodes_with_pods_stay_and_are_nodes_like_any_other():
    found = steps(launched("a", JOB), launched("b", JOB), on("a"), requests=[a_request(FAILED)])
    assert ended(found) == {"b"}
    assert left_on(found) == {"a": None}


@pytest.mark.parametrize("mark", [PAUSE, DO_NOT_DISRUPT])
def test_nodes_that_somebody_protects_stay(mark):
    claim, node = launched("a", JOB)
    protected = replace(node, annotations={**node.annotations, mark: "true"})
    assert not ended(steps((claim, protected), requests=[a_request(FAILED)]))


def test_a_node_for_two_requests_ends_once_both_have_failed():
    both = launched("a", JOB, "default/more")
    found = steps(both, requests=[a_request(FAILED), a_request(name="more")])
    assert not ended(found)
    assert left_on(found) == {"a": "default/more"}
    assert ended(steps(both, requests=[a_request(FAILED), a_request(FAILED, name="more")])) == {"a"}
    found = steps(both, requests=[a_request(FAILED), a_request(PROVISIONED, name="more")])
    assert not ended(found)
    assert left_on(found) == {"a": None}


def test_a_node_for_which_a_pod_waits_or_another_request_is_planned_stays_until_they_are_there():
    (web,) = pods(1, "1")
    planned = launched("a", JOB, annotations={PLANNED_PODS: uid_digest(web.uid)})
    failed = [a_request(FAILED)]
    assert not steps(planned, web, requests=failed)
    assert ended(steps(planned, requests=failed)) == {"a"}
    assert not steps(launched("a", JOB), requests=failed, seen=[events.BuffersPlaced(("node-a",))])
    until = events.Nominated("node-a", NOW + 10)
    assert not steps(launched("a", JOB), requests=failed, seen=[until])


def test_claims_that_go_already_and_clusters_that_are_torn_down_are_left_alone():
    going = launched("a", JOB, deletion_timestamp=NOW)
    assert not steps(going, requests=[a_request(FAILED)])
    torn_down = events.GuardSeen(deleting=True)
    assert not steps(launched("a", JOB), requests=[a_request(FAILED)], seen=[torn_down])
