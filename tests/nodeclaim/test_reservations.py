"""What is done when the reservation of a node ends, and when there is nothing to do."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import format_time
from nodeless.model.instructions import AnnotateClaim, DeleteClaim, LabelClaim, UpdateClaimStatus, UpdateNode
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_TYPE,
    CHECKPOINT_GRACE,
    INSTANCE_ENDS,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    RESERVATION_LABELS,
    RESERVED,
)
from nodeless.model.nodes import LAUNCHED, Condition, Instance
from nodeless.model.placement import CAPACITY_BLOCK, DRAIN_AHEAD, END_AHEAD, CapacityReservation
from nodeless.nodeclaim.drift import DriftView, Selected, step_drift
from nodeless.nodeclaim.reservations import ReservationView, is_concerned, step_reservation
from tests.factories import NOW, a_claim, a_node, a_pod, a_pool

LABELS = {CAPACITY_TYPE: RESERVED, CAPACITY_RESERVATION_ID: "cr-1"}
CLAIM = a_claim(labels=LABELS, conditions=(Condition(LAUNCHED, "True"),), provider_id="aws:///a/i-1")
INSTANCE = Instance("i-1", "aws:///a/i-1", "m5.large", "a", RESERVED, "running", NOW, labels=LABELS)
ON_DEMAND = replace(INSTANCE, capacity_type="on-demand", labels={CAPACITY_TYPE: "on-demand"})
RESERVATION = CapacityReservation("cr-1", "m5.large", "a", 0)
NOTED = replace(CLAIM, annotations={INSTANCE_ENDS: format_time(NOW + DRAIN_AHEAD - END_AHEAD)})
BLOCK = replace(RESERVATION, type=CAPACITY_BLOCK, ends=NOW + DRAIN_AHEAD)


def steps(claim=CLAIM, instance=INSTANCE, reservation=RESERVATION, now=NOW, node=None, pods=()):
    known = {} if reservation is None else {reservation.id: reservation}
    return step_reservation(ReservationView(claim, node or a_node(), instance, known, tuple(pods)), now)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param({}, id="in-its-reservation"),
        pytest.param({"reservation": None}, id="reservation-not-known"),
        pytest.param({"instance": None}, id="instance-not-known"),
        pytest.param({"claim": replace(CLAIM, deletion_timestamp=NOW), "instance": ON_DEMAND}, id="ending"),
        pytest.param({"claim": replace(CLAIM, conditions=()), "instance": ON_DEMAND}, id="not-launched"),
        pytest.param({"claim": replace(CLAIM, labels={}), "instance": ON_DEMAND}, id="not-reserved"),
        pytest.param({"claim": NOTED, "reservation": BLOCK, "now": NOW - 1}, id="block-goes-on"),
        pytest.param({"reservation": replace(RESERVATION, ends=NOW + 60)}, id="instances-outlive-this-end"),
    ],
)
def test_nothing_is_done_while_nothing_ends(seen):
    assert steps(**seen) == ()


def test_what_is_not_reserved_any_more_is_on_demand_on_claim_and_node():
    node, claim = steps(instance=ON_DEMAND)
    wanted = {CAPACITY_TYPE: "on-demand", **dict.fromkeys(RESERVATION_LABELS)}
    assert isinstance(node, UpdateNode)
    assert isinstance(claim, LabelClaim)
    assert node.labels == claim.labels == wanted


def test_a_capacity_block_is_left_forty_minutes_before_its_end():
    told, end = steps(NOTED, reservation=BLOCK)
    assert told.reason == "CapacityReservationExpiring"
    assert isinstance(end, DeleteClaim)
    assert end.name == CLAIM.name


def noted(found):
    return [each.annotations[INSTANCE_ENDS] for each in found if isinstance(each, AnnotateClaim)]


def test_a_claim_says_when_its_block_ends_also_after_the_block_was_extended():
    assert noted(steps(reservation=BLOCK, now=NOW - 1)) == [format_time(BLOCK.ends - 30 * 60)]
    longer = replace(BLOCK, ends=BLOCK.ends + 86400)
    assert noted(steps(NOTED, reservation=longer)) == [format_time(longer.ends - 30 * 60)]
    assert noted(steps(reservation=replace(RESERVATION, ends=NOW + 60))) == [], "its instances outlive it"


@given(
    st.integers(0, 4 * 3600),
    st.lists(st.tuples(st.integers(0, 3600), st.integers(0, 900)), max_size=4),
)
def test_pods_that_save_their_work_get_their_time_before_ec2_ends_the_block(left, needs):
    """Whatever they need, the drain begins so early that it is over when the instances end."""
    pods = [
        a_pod(f"p{number}", annotations={CHECKPOINT_GRACE: f"{grace}s"}, grace_period_seconds=leaves)
        for number, (grace, leaves) in enumerate(needs)
    ]
    block = replace(BLOCK, ends=NOW + 30 * 60 + left)
    ended = [each for each in steps(reservation=block, pods=pods) if isinstance(each, DeleteClaim)]
    needed = max([600, *(grace + leaves for grace, leaves in needs if grace)])
    assert bool(ended) == (left <= needed)


def test_a_partition_is_noted_once():
    claim = replace(CLAIM, labels={PLACEMENT_GROUP_ID: "pg-1"})
    instance = replace(INSTANCE, labels={PLACEMENT_GROUP_ID: "pg-1", PLACEMENT_GROUP_PARTITION: "2"})
    assert is_concerned(claim)
    assert [step.labels for step in steps(claim, instance)] == [{PLACEMENT_GROUP_PARTITION: "2"}] * 2
    assert not is_concerned(replace(claim, labels=instance.labels))


def drifted(instance, **selected):
    whole = Selected(frozenset(), frozenset(), (), **selected)
    step = step_drift(DriftView(CLAIM, a_pool(), None, whole, instance), NOW)
    return [
        instruction.conditions[0].reason
        for instruction in step.instructions
        if isinstance(instruction, UpdateClaimStatus)
    ]


def test_aws_9_2_a_node_drifts_from_a_reservation_that_is_not_selected_any_more():
    assert drifted(INSTANCE, reservations=frozenset({"cr-1"})) == []
    assert drifted(INSTANCE, reservations=frozenset({"cr-2"})) == ["CapacityReservationDrift"]
    assert drifted(ON_DEMAND, reservations=frozenset()) == []


@pytest.mark.parametrize(
    ("has", "selects", "reasons"),
    [
        ("pg-1", "pg-1", []),
        ("", "", []),
        ("pg-1", None, []),
        ("pg-1", "pg-2", ["PlacementGroupDrift"]),
        ("pg-1", "", ["PlacementGroupDrift"]),
        ("", "pg-1", ["PlacementGroupDrift"]),
    ],
)
def test_aws_9_2_a_node_drifts_from_another_placement_group(has, selects, reasons):
    labels = {PLACEMENT_GROUP_ID: has} if has else {}
    assert drifted(replace(ON_DEMAND, labels=labels), placement_group=selects) == reasons
