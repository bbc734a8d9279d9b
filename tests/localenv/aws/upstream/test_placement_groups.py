"""Placement groups."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws
from tests.localenv.aws.world import World, instance_ids


def test_instances_are_put_where_their_template_says(world: World) -> None:
    group = world.ec2.create_placement_group(GroupName="apart", Strategy="partition", PartitionCount=3)
    identifier = group["PlacementGroup"]["GroupId"]
    template = world.launch_template(Placement={"GroupId": identifier, "Tenancy": "dedicated"})

    ids = instance_ids(world.fleet(world.config(template, ["m5.large"], ("us-east-1a",)), capacity=3))

    placements = [world.instance(each)["Placement"] for each in ids]
    assert {(each["GroupName"], each["GroupId"]) for each in placements} == {("apart", identifier)}
    assert sorted(each["PartitionNumber"] for each in placements) == [1, 2, 3]
    assert {each["Tenancy"] for each in placements} == {"dedicated"}


def test_a_placement_group_that_is_gone_is_told_of_each_offering(aws: LocalAws, world: World) -> None:
    world.ec2.create_placement_group(GroupName="apart", Strategy="spread")
    template = world.launch_template(Placement={"GroupName": "apart"})
    world.ec2.delete_placement_group(GroupName="apart")

    answer = world.fleet(world.config(template, ["m5.large"], ("us-east-1a",)))

    assert [error["ErrorCode"] for error in answer["Errors"]] == ["InvalidPlacementGroup.Unknown"]
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.Unknown"):
        world.ec2.describe_placement_groups(GroupNames=["apart"])
