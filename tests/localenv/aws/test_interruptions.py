"""Warnings about instances: sent to whom the rules say, and followed by what they warn of."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from localenv.aws import LocalAws
from tests.localenv.aws.world import World, instance_ids


def launched(world: World, *, spot: bool = False) -> str:
    """The id of a new instance."""
    (instance_id,) = instance_ids(world.fleet(world.config(world.launch_template(), ["m5.large"]), spot=spot))
    return instance_id


def test_a_spot_instance_is_warned_of_and_then_goes(aws: LocalAws, world: World, received: Any) -> None:
    instance = launched(world, spot=True)
    aws.interrupt(instance, after=0.2)
    warning = received()
    assert (warning["version"], warning["source"], warning["detail-type"], warning["detail"]) == (
        "0",
        "aws.ec2",
        "EC2 Spot Instance Interruption Warning",
        {"instance-id": instance, "instance-action": "terminate"},
    )
    assert [received()["detail"]["state"] for _ in range(2)] == ["shutting-down", "terminated"]
    assert world.instance(instance)["State"]["Name"] == "terminated"


def test_whoever_stops_an_instance_has_eventbridge_hear_of_it(world: World, received: Any) -> None:
    instance = launched(world)
    world.ec2.stop_instances(InstanceIds=[instance], Force=True)
    told = [received() for _ in range(2)]
    assert {each["detail-type"] for each in told} == {"EC2 Instance State-change Notification"}
    assert [each["detail"] for each in told] == [
        {"instance-id": instance, "state": "stopping"},
        {"instance-id": instance, "state": "stopped"},
    ]
    assert world.instance(instance)["State"]["Name"] == "stopped"


@pytest.mark.parametrize(
    ("kind", "detail_type"),
    [
        ("rebalance", "EC2 Instance Rebalance Recommendation"),
        ("state-change", "EC2 Instance State-change Notification"),
        ("reservation", "EC2 Capacity Reservation Instance Interruption Warning"),
        ("scheduled-change", "AWS Health Event"),
    ],
)
def test_other_warnings_are_sent_and_end_nothing(
    aws: LocalAws, world: World, received: Any, kind: str, detail_type: str
) -> None:
    instance = launched(world)
    aws.interrupt(instance, kind)
    event = received()
    assert event["detail-type"] == detail_type
    assert instance in json.dumps(event["detail"])
    assert world.instance(instance)["State"]["Name"] == "running"


def test_only_what_exists_and_is_spot_can_be_interrupted(aws: LocalAws, world: World) -> None:
    instance = launched(world)
    with pytest.raises(ValueError, match="is not a spot instance"):
        aws.interrupt(instance)
    with pytest.raises(ValueError, match="no instance i-0123456789abcdef0"):
        aws.interrupt("i-0123456789abcdef0")
    with pytest.raises(ValueError, match="unknown kind 'storm'"):
        aws.interrupt(instance, "storm")


def test_a_reset_calls_off_what_was_to_come(aws: LocalAws, world: World) -> None:
    aws.interrupt(launched(world, spot=True), after=0.2)
    aws.reset()
    again = World.make(aws)
    survivor = launched(again, spot=True)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        assert again.instance(survivor)["State"]["Name"] == "running"
