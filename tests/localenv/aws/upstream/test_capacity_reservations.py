"""Capacity reservations."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.localenv.aws.world import World, instance_ids


def target(identifier: str) -> dict[str, Any]:
    return {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": identifier},
    }


def reserve(world: World, count: int = 1, zone: str = "us-east-1a", **more: Any) -> str:
    answer = world.ec2.create_capacity_reservation(
        InstanceType="m5.large",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=zone,
        InstanceCount=count,
        **more,
    )
    return str(answer["CapacityReservation"]["CapacityReservationId"])


def left(world: World, identifier: str) -> tuple[str, int]:
    (found,) = world.ec2.describe_capacity_reservations(CapacityReservationIds=[identifier])[
        "CapacityReservations"
    ]
    return found["State"], found["AvailableInstanceCount"]


def test_a_targeted_reservation_gives_what_it_holds_and_no_more(world: World) -> None:
    reservation = reserve(world, 2, InstanceMatchCriteria="targeted")
    template = world.launch_template(CapacityReservationSpecification=target(reservation))

    answer = world.fleet(world.config(template, ["m5.large"], ("us-east-1a",)), capacity=3)

    (first, _) = ids = instance_ids(answer)
    assert [error["ErrorCode"] for error in answer["Errors"]] == ["ReservationCapacityExceeded"]
    assert left(world, reservation) == ("active", 0)
    record = world.instance(first)
    assert record["CapacityReservationId"] == reservation
    assert record["CapacityReservationSpecification"] == target(reservation)
    world.ec2.terminate_instances(InstanceIds=ids)
    assert left(world, reservation) == ("active", 2)


def test_a_reservation_is_of_one_type_in_one_zone(world: World) -> None:
    reservation = reserve(world)
    template = world.launch_template(CapacityReservationSpecification=target(reservation))

    answer = world.fleet(world.config(template, ["m5.large", "c5.large"], ("us-east-1b",)))

    assert instance_ids(answer) == []
    assert {error["ErrorCode"] for error in answer["Errors"]} == {"ReservationCapacityExceeded"}


@pytest.mark.parametrize(("preference", "taken"), [("open", True), ("none", False)])
def test_an_open_reservation_is_taken_by_whoever_does_not_refuse_it(
    world: World, preference: str, taken: bool
) -> None:
    reservation = reserve(world)
    template = world.launch_template(
        CapacityReservationSpecification={"CapacityReservationPreference": preference}
    )
    (launched,) = instance_ids(world.fleet(world.config(template, ["m5.large"], ("us-east-1a",))))
    assert world.instance(launched).get("CapacityReservationId") == (reservation if taken else None)


def test_instances_of_a_cancelled_reservation_run_on_without_it(world: World) -> None:
    reservation = reserve(world)
    template = world.launch_template(CapacityReservationSpecification=target(reservation))
    (launched,) = instance_ids(world.fleet(world.config(template, ["m5.large"], ("us-east-1a",))))

    world.ec2.cancel_capacity_reservation(CapacityReservationId=reservation)

    record = world.instance(launched)
    assert (record["State"]["Name"], record.get("CapacityReservationId")) == ("running", None)
    assert left(world, reservation)[0] == "cancelled"


def test_instances_of_a_capacity_block_are_ended_half_an_hour_before_it_ends(world: World) -> None:
    block = world.aws.reserve("p5.48xlarge", "us-east-1a", endsIn=30 * 60 + 2)
    template = world.launch_template(
        CapacityReservationSpecification=target(block), InstanceMarketOptions={"MarketType": "capacity-block"}
    )
    answer = world.fleet(
        world.config(template, ["p5.48xlarge"], ("us-east-1a",)),
        OnDemandOptions={},
        TargetCapacitySpecification={
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": "capacity-block",
        },
    )
    (launched,) = instance_ids(answer)
    assert world.instance(launched)["InstanceLifecycle"] == "capacity-block"
    waiter = world.ec2.get_waiter("instance_terminated")
    waiter.wait(InstanceIds=[launched], WaiterConfig={"Delay": 1, "MaxAttempts": 60})


def test_reservations_are_found_by_tag_owner_and_criteria(world: World) -> None:
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "team", "Value": "search"}]}]
    tagged = reserve(world, TagSpecifications=tags)
    other = world.aws.reserve("m5.large", "us-east-1b", kind="default", owner="999999999999")

    def found(name: str, value: str) -> list[str]:
        answer = world.ec2.describe_capacity_reservations(Filters=[{"Name": name, "Values": [value]}])
        return [each["CapacityReservationId"] for each in answer["CapacityReservations"]]

    assert found("tag:team", "sea*") == [tagged]
    assert found("owner-id", "999999999999") == [other]
    assert found("instance-match-criteria", "open") == [tagged]
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        world.ec2.describe_capacity_reservations(CapacityReservationIds=["cr-none"])
