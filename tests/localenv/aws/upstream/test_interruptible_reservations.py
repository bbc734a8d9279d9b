"""Interruptible capacity reservations of the local AWS: lent by a source, and taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.localenv.aws.upstream.test_capacity_reservations import left, reserve, target
from tests.localenv.aws.world import World, instance_ids


def allocation_of(world: World, source: str) -> dict[str, Any]:
    (found,) = world.ec2.describe_capacity_reservations(CapacityReservationIds=[source])[
        "CapacityReservations"
    ]
    return dict(found["InterruptibleCapacityAllocation"])


def lend(world: World, source: str, count: int, **more: Any) -> str:
    world.ec2.create_interruptible_capacity_reservation_allocation(
        CapacityReservationId=source, InstanceCount=count, **more
    )
    return str(allocation_of(world, source)["InterruptibleCapacityReservationId"])


def take_back(world: World, source: str, target: int, **more: Any) -> dict[str, Any]:
    answer = world.ec2.update_interruptible_capacity_reservation_allocation(
        CapacityReservationId=source, TargetInstanceCount=target, **more
    )
    return dict(answer)


def launch_into(world: World, reservation: str, count: int, **more: Any) -> dict[str, Any]:
    market = {"MarketType": "interruptible-capacity-reservation"}
    data = {"CapacityReservationSpecification": target(reservation), "InstanceMarketOptions": market, **more}
    template = world.launch_template(**{name: value for name, value in data.items() if value})
    answer = world.fleet(
        world.config(template, ["m5.large"], ("us-east-1a",)),
        OnDemandOptions={},
        TargetCapacitySpecification={
            "TotalTargetCapacity": count,
            "DefaultTargetCapacityType": "reserved-capacity",
        },
    )
    return dict(answer)


@pytest.mark.parametrize(("total", "lent"), [(2, 1), (5, 5), (7, 3)])
def test_what_is_lent_to_an_interruptible_reservation_is_missing_from_its_source(
    world: World, total: int, lent: int
) -> None:
    source = reserve(world, total, InstanceMatchCriteria="targeted")
    interruptible = lend(world, source, lent)

    assert left(world, source) == ("active", total - lent)
    assert left(world, interruptible) == ("active", lent)
    (found,) = world.ec2.describe_capacity_reservations(CapacityReservationIds=[interruptible])[
        "CapacityReservations"
    ]
    assert (found["Interruptible"], found["InstanceMatchCriteria"]) == (True, "targeted")
    assert found["InterruptionInfo"] == {"SourceCapacityReservationId": source, "InterruptionType": "adhoc"}
    answer = launch_into(world, interruptible, lent + 1)
    ids = instance_ids(answer)
    assert {world.instance(each)["InstanceLifecycle"] for each in ids} == {
        "interruptible-capacity-reservation"
    }
    assert [error["ErrorCode"] for error in answer["Errors"]] == ["ReservationCapacityExceeded"]
    assert len(ids) == lent


def test_an_interruptible_reservation_serves_no_launch_that_does_not_ask_for_one(world: World) -> None:
    interruptible = lend(world, reserve(world, 1), 1)
    answer = launch_into(world, interruptible, 1, InstanceMarketOptions=None)
    assert instance_ids(answer) == []


@pytest.mark.parametrize(
    ("count", "code"), [(0, "InvalidParameterValue"), (1001, "InvalidParameterValue"), (4, "Insufficient")]
)
def test_no_more_is_lent_than_is_unused(world: World, count: int, code: str) -> None:
    source = reserve(world, 3)
    with pytest.raises(ClientError, match=code):
        lend(world, source, count)
    assert left(world, source) == ("active", 3)


def test_a_reservation_lends_once_without_an_end_and_never_what_is_lent_to_it(world: World) -> None:
    source = reserve(world, 3)
    interruptible = lend(world, source, 1)
    ending = reserve(world, 1, EndDate=datetime.now(UTC) + timedelta(hours=1))
    cancelled = reserve(world)
    world.ec2.cancel_capacity_reservation(CapacityReservationId=cancelled)

    for refused in (source, interruptible, ending, cancelled):
        with pytest.raises(ClientError, match="InvalidCapacityReservationState"):
            lend(world, refused, 1)
    with pytest.raises(ClientError, match="doesn't have an active interruptible capacity allocation"):
        take_back(world, ending, 0)
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        lend(world, "cr-none", 1)


def test_a_source_stays_as_long_as_it_lends(world: World) -> None:
    source = reserve(world, 3)
    interruptible = lend(world, source, 2)
    for identifier in (source, interruptible):
        with pytest.raises(ClientError, match="InvalidCapacityReservationState"):
            world.ec2.cancel_capacity_reservation(CapacityReservationId=identifier)
    with pytest.raises(ClientError, match="has an active interruptible capacity allocation"):
        world.ec2.modify_capacity_reservation(CapacityReservationId=source, InstanceCount=1)

    assert take_back(world, source, 0)["Status"] == "canceled"

    assert left(world, source) == ("active", 3)
    assert left(world, interruptible)[0] == "cancelled"
    world.ec2.cancel_capacity_reservation(CapacityReservationId=source)


def test_a_retained_interruptible_reservation_is_lent_to_again(world: World) -> None:
    source = reserve(world, 3)
    interruptible = lend(world, source, 2, ZeroSizePreference="retain")
    assert take_back(world, source, 0)["Status"] == "active"
    assert left(world, interruptible) == ("active", 0)
    take_back(world, source, 3)
    assert (left(world, interruptible), left(world, source)) == (("active", 3), ("active", 0))
    with pytest.raises(ClientError, match="Insufficient"):
        take_back(world, source, 4)


@pytest.mark.parametrize(("used", "kept"), [(1, 0), (3, 1)])
def test_instances_that_are_taken_back_are_warned_of_before_they_end(
    world: World, received: Any, used: int, kept: int
) -> None:
    source = reserve(world, 4)
    interruptible = lend(world, source, 4)
    ids = instance_ids(launch_into(world, interruptible, used))

    answer = take_back(world, source, kept)

    # What nobody used is back at once.
    assert (answer["Status"], answer["InstanceCount"], left(world, source)[1]) == ("updating", used, 4 - used)
    warned = [received() for _ in range(used - kept)]
    assert {each["detail-type"] for each in warned} == {
        "EC2 Capacity Reservation Instance Interruption Warning"
    }
    surplus = [each["detail"]["instance-id"] for each in warned]
    assert set(surplus) < set(ids) or kept == 0
    assert {world.instance(each)["State"]["Name"] for each in ids} == {"running"}
    with pytest.raises(ClientError, match="doesn't have an active"):
        take_back(world, source, 0)

    world.ec2.terminate_instances(InstanceIds=surplus)

    assert allocation_of(world, source)["Status"] == ("active" if kept else "canceled")
    assert left(world, source) == ("active", 4 - kept)
