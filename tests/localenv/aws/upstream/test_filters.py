"""Filters of equal names, and filters that moto refuses."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.localenv.aws.world import World, instance_ids


def test_filters_of_the_same_name_are_anded(world: World) -> None:
    first, second = list(world.subnets.values())[:2]
    world.ec2.create_tags(Resources=[first, second], Tags=[{"Key": "both", "Value": "1"}])
    world.ec2.create_tags(Resources=[first], Tags=[{"Key": "one", "Value": "1"}])
    filters = [{"Name": "tag-key", "Values": ["one"]}, {"Name": "tag-key", "Values": ["both"]}]
    assert [s["SubnetId"] for s in world.ec2.describe_subnets(Filters=filters)["Subnets"]] == [first]


def test_filters_of_the_same_name_are_anded_for_instances(world: World) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    ours, foreign = (instance_ids(world.fleet(config))[0] for _ in range(2))
    world.ec2.create_tags(Resources=[ours, foreign], Tags=[{"Key": "pool", "Value": "a"}])
    world.ec2.create_tags(Resources=[ours], Tags=[{"Key": "kubernetes.io/cluster/demo", "Value": "owned"}])
    filters = [
        {"Name": "tag-key", "Values": ["kubernetes.io/cluster/demo"]},
        {"Name": "tag-key", "Values": ["pool"]},
    ]
    found = world.ec2.describe_instances(Filters=filters)["Reservations"]
    assert [i["InstanceId"] for r in found for i in r["Instances"]] == [ours]


def test_an_unknown_filter_is_named(world: World) -> None:
    world.fleet(world.config(world.launch_template(), ["m5.large"]))
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        world.ec2.describe_instances(Filters=[{"Name": "color", "Values": ["blue"]}])


def test_instances_are_found_by_their_lifecycle_and_the_token_of_their_launch(world: World) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    (launched,) = instance_ids(world.fleet(config, ClientToken="once"))
    (spot,) = instance_ids(world.fleet(config, spot=True))

    def found(name: str, value: str) -> list[str]:
        answer = world.ec2.describe_instances(Filters=[{"Name": name, "Values": [value]}])["Reservations"]
        return [i["InstanceId"] for r in answer for i in r["Instances"]]

    assert found("instance-lifecycle", "spot") == [spot]
    assert found("client-token", "once") == [launched]
