"""Booked room is kept until it is used or the booking is over; then its nodes go as empty ones do."""

from dataclasses import replace

from nodeless.model import events
from nodeless.model.buffers import PodSource
from nodeless.model.conditions import Condition
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND
from nodeless.model.provisioning_requests import ATOMIC_SCALE_UP, ProvisioningRequest, RequestedPods
from nodeless.model.requirements import Requirements
from nodeless.state import apply
from tests.disruption.world import a_provisioner, cluster, decide, node_of, only_command
from tests.scheduling.factories import needs, pods

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
CHUNK = PodSource("PodTemplate", "default", "chunk", pods(1, "1")[0].shape)
BOOKED = Condition("Provisioned", "True")


def with_request(*conditions, count=1):
    request = ProvisioningRequest(
        "default",
        "job",
        "uid",
        provisioning_class=ATOMIC_SCALE_UP,
        pod_sets=(RequestedPods(CHUNK.key, count),),
        conditions=conditions,
    )
    seen = cluster(POOL, node_of(POOL, "a", "medium"))
    for event in (events.PodSourceSeen(CHUNK), events.ProvisioningRequestSeen(request)):
        seen = apply(seen, event)
    return seen


def test_a_node_with_booked_room_is_not_emptied_until_the_booking_is_over():
    assert not decide(with_request(BOOKED)).commands
    assert only_command(decide(with_request(BOOKED, Condition("BookingExpired", "True")))).reason == "Empty"
    gone = apply(with_request(BOOKED), events.ProvisioningRequestGone("default/job"))
    assert only_command(decide(gone)).reason == "Empty"


def test_nodes_of_a_launch_that_is_under_way_are_kept_and_those_of_one_that_failed_are_not():
    assert not decide(with_request()).commands
    assert only_command(decide(with_request(Condition("Failed", "True")))).reason == "Empty"


def test_what_no_plan_holds_whole_keeps_no_node():
    seen = with_request(count=500)
    tight = replace(seen.pools[POOL.key], limits={"cpu": 4000})
    seen = replace(seen, pools=seen.pools.set(POOL.key, tight))
    assert only_command(decide(seen)).reason == "Empty"
