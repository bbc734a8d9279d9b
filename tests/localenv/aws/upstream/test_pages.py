"""Pages of subnets."""

from __future__ import annotations

from tests.localenv.aws.world import World


def test_subnets_come_in_pages_when_asked(world: World) -> None:
    filters = [{"Name": "vpc-id", "Values": [world.vpc]}]
    first = world.ec2.describe_subnets(Filters=filters, MaxResults=5)
    assert len(first["Subnets"]) == 3
    for number in range(5):
        world.ec2.create_subnet(VpcId=world.vpc, CidrBlock=f"10.0.10{number}.0/24")
    pages = world.ec2.get_paginator("describe_subnets").paginate(
        Filters=filters, PaginationConfig={"PageSize": 5}
    )
    assert [len(page["Subnets"]) for page in pages] == [5, 3]
