"""Placement groups, hosts of one account, and labels that say where a node stands."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import InsufficientCapacity, NodeClassUnresolved
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.launch.unavailable import UNAVAILABLE_SECONDS
from nodeless.model.labels import (
    INSTANCE_TENANCY,
    LAUNCH_GROUP,
    LAUNCH_GROUP_SIZE,
    ON_DEMAND,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    ZONE,
    ZONE_ID,
)
from nodeless.model.nodes import Instance
from nodeless.model.pools import NodeClass, Pool
from nodeless.model.requirements import Requirement, Requirements
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import made_by, the_claim, the_pool
from tests.cloudprovider.test_reservations import class_with


def group(aws: LocalAws, strategy: str = "partition", **more: Any) -> str:
    answer = aws.client("ec2").create_placement_group(GroupName="own", Strategy=strategy, **more)
    return str(answer["PlacementGroup"]["GroupId"])


def wanting(pool: Pool, key: str, *values: str) -> Pool:
    wanted = Requirement.of(key, "In", values)
    return replace(pool, requirements=Requirements([*pool.requirements.values(), wanted]))


def placement(aws: LocalAws) -> Any:
    (call,) = made_by(aws, "CreateLaunchTemplate")
    return call["parameters"]["LaunchTemplateData"].get("Placement")


async def both_ways(provider: AwsProvider, pool: Pool, group: str) -> tuple[Instance, Instance]:
    """The instance as its launch tells of it, and as EC2 describes it."""
    node_class = class_with(placement_group=group)
    instance = await provider.launch(the_claim(pool=pool), pool, node_class)
    described = await provider.find(instance.id)
    assert described is not None
    return instance, described


@pytest.mark.parametrize("by_name", [True, False])
async def test_aws_6_2_instances_go_into_the_group_that_the_class_names(
    aws: LocalAws, world: World, by_name: bool
) -> None:
    identifier = group(aws, "spread")
    async with a_provider() as provider:
        for way in await both_ways(provider, the_pool(), "own" if by_name else identifier):
            assert way.labels[PLACEMENT_GROUP_ID] == identifier
            assert PLACEMENT_GROUP_PARTITION not in way.labels
    assert placement(aws) == {"GroupId": identifier}


async def test_a_partition_that_is_asked_for_is_named_to_ec2(aws: LocalAws, world: World) -> None:
    identifier = group(aws, PartitionCount=5)
    async with a_provider() as provider:
        pool = wanting(the_pool(), PLACEMENT_GROUP_PARTITION, "3", "4", "7")
        for way in await both_ways(provider, pool, "own"):
            assert way.labels[PLACEMENT_GROUP_PARTITION] == "3"
    assert placement(aws) == {"GroupId": identifier, "PartitionNumber": 3}


async def test_a_partition_that_ec2_chooses_is_known_from_the_launch_on(aws: LocalAws, world: World) -> None:
    group(aws, PartitionCount=5)
    async with a_provider() as provider:
        instance, described = await both_ways(provider, the_pool(), "own")
        (kind, _) = await provider.catalog(the_pool(), class_with(placement_group="own"))
    assert instance.labels[PLACEMENT_GROUP_PARTITION] == "1"
    assert described.labels[PLACEMENT_GROUP_PARTITION] == "1"
    assert kind.requirements[PLACEMENT_GROUP_PARTITION].values == set("12345")


async def test_each_instance_of_a_group_launch_gets_the_partition_of_its_own(
    aws: LocalAws, world: World
) -> None:
    group(aws, PartitionCount=5)
    pool, node_class = the_pool(), class_with(placement_group="own")
    together = {LAUNCH_GROUP: "together", LAUNCH_GROUP_SIZE: "3"}
    claims = [
        replace(the_claim(name, pool=pool), annotations=together)
        for name in ("default-1", "default-2", "default-3")
    ]
    async with a_provider() as provider:
        found = await asyncio.gather(*(provider.launch(claim, pool, node_class) for claim in claims))
        for instance in found:
            described = await provider.find(instance.id)
            assert described is not None
            assert instance.labels[PLACEMENT_GROUP_PARTITION] == described.labels[PLACEMENT_GROUP_PARTITION]
    assert len(made_by(aws, "CreateFleet")) == 1
    assert {each.labels[PLACEMENT_GROUP_PARTITION] for each in found} == {"1", "2", "3"}


@pytest.mark.parametrize(
    "fault",
    [
        {"consistency": 60.0},
        {"errors": {"DescribeInstances": {"code": "UnauthorizedOperation", "status": 403}}},
        {"errors": {"DescribeInstances": {"code": "InternalError", "status": 500}}},
    ],
)
async def test_an_instance_whose_partition_is_not_shown_in_time_is_launched_without_the_label(
    aws: LocalAws, world: World, fault: dict[str, Any]
) -> None:
    group(aws, PartitionCount=5)
    pool, node_class = the_pool(), class_with(placement_group="own")
    async with a_provider() as provider:
        await provider.catalog(pool, node_class)
        aws.set_faults(**fault)
        instance = await provider.launch(the_claim(pool=pool), pool, node_class, first=True)
    assert PLACEMENT_GROUP_PARTITION not in instance.labels


async def for_sale(provider: AwsProvider, pool: Pool, node_class: NodeClass) -> set[tuple[str, str]]:
    """Types and zones in which on-demand can be had."""
    types = await provider.catalog(pool, node_class)
    return {
        (type_.name, offering.zone)
        for type_ in types
        for offering in type_.offerings
        if offering.available and offering.capacity_type == ON_DEMAND
    }


async def test_aws_2_8_a_spread_group_that_is_full_in_a_zone_takes_no_type_there_and_changes_nothing_else(
    aws: LocalAws, world: World
) -> None:
    group(aws, "spread")
    both = the_pool("m5.large", "m5.xlarge", capacity_types=("on-demand",))
    pool, inside, now = wanting(both, ZONE, "us-east-1a"), class_with(placement_group="own"), [1.8e9]
    async with a_provider(clock=lambda: now[0]) as provider:
        made = [
            await provider.launch(the_claim(f"default-{number:05}", pool), pool, inside)
            for number in range(7)
        ]
        with pytest.raises(InsufficientCapacity, match="limit of instances in this spread placement group"):
            await provider.launch(the_claim("default-00007", pool), pool, inside)
        assert {zone for _, zone in await for_sale(provider, both, inside)} == {"us-east-1b", "us-east-1c"}
        assert {zone for _, zone in await for_sale(provider, both, class_with())} == {
            *("us-east-1a", "us-east-1b", "us-east-1c")
        }
        await provider.terminate(made[0].id)
        now[0] += UNAVAILABLE_SECONDS + 1
        assert await provider.launch(the_claim("default-00008", pool), pool, inside)


async def test_aws_2_8_what_a_partition_cannot_hold_other_partitions_and_nodes_elsewhere_may(
    aws: LocalAws, world: World
) -> None:
    group(aws, PartitionCount=5)
    inside = class_with(placement_group="own")
    anywhere = the_pool(capacity_types=("on-demand",))
    first, second = (wanting(anywhere, PLACEMENT_GROUP_PARTITION, number) for number in "12")
    aws.set_faults(capacity=[{}])
    async with a_provider() as provider:
        with pytest.raises(InsufficientCapacity):
            await provider.launch(the_claim("default-00000", first), first, inside)
        assert await for_sale(provider, first, inside) == set()
        assert await for_sale(provider, second, inside)
        assert await for_sale(provider, anywhere, class_with())


async def test_a_group_that_is_not_there_is_named(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved, match="there is no placement group own") as caught:
            await provider.resolve(class_with(placement_group="own"))
    assert caught.value.what == "placementGroupSelector"


async def test_aws_2_7_burstable_types_do_not_stand_close_together(aws: LocalAws, world: World) -> None:
    group(aws, "cluster")
    pool = the_pool("m5.large", "t3.large")
    async with a_provider() as provider:
        everywhere = await provider.catalog(pool, class_with())
        close = await provider.catalog(pool, class_with(placement_group="own"))
    assert [each.name for each in everywhere] == ["m5.large", "t3.large"]
    assert [each.name for each in close] == ["m5.large"]


@pytest.mark.parametrize(
    ("allowed", "given", "reported"),
    [
        pytest.param((), None, "default", id="nothing-said"),
        pytest.param(("default", "dedicated"), None, "default", id="both"),
        pytest.param(("dedicated",), {"Tenancy": "dedicated"}, "dedicated", id="dedicated"),
    ],
)
async def test_aws_6_2_hosts_are_shared_unless_that_is_not_allowed(
    aws: LocalAws, world: World, allowed: tuple[str, ...], given: Any, reported: str
) -> None:
    pool = wanting(the_pool(), INSTANCE_TENANCY, *allowed) if allowed else the_pool()
    async with a_provider() as provider:
        for way in await both_ways(provider, pool, ""):
            assert way.labels[INSTANCE_TENANCY] == reported
    assert placement(aws) == given


async def test_aws_7_7_a_node_says_the_id_of_its_zone_also_after_a_crash(aws: LocalAws, world: World) -> None:
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    ids = {zone["ZoneName"]: zone["ZoneId"] for zone in zones}
    async with a_provider() as provider:
        first = await provider.launch(the_claim(), the_pool(), class_with())
    async with a_provider() as provider:
        again = await provider.launch(the_claim(), the_pool(), class_with())
    assert first.id == again.id
    assert first.labels[ZONE_ID] == again.labels[ZONE_ID] == ids[first.zone]


@pytest.mark.parametrize("operator", ["In", "NotIn"])
async def test_a_claim_that_asks_for_a_zone_by_its_id_is_launched_there(
    aws: LocalAws, world: World, operator: str
) -> None:
    """A standalone NodeClaim is launched as it stands: no plan has read the id as a name before."""
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    ids = {zone["ZoneName"]: zone["ZoneId"] for zone in zones}
    async with a_provider() as provider:
        for number, zone in enumerate(("us-east-1a", "us-east-1b", "us-east-1c")):
            named = [ids[zone]] if operator == "In" else [ids[each] for each in ids if each != zone]
            wanted = Requirement.of(ZONE_ID, operator, named)
            pool = replace(the_pool(), requirements=Requirements([*the_pool().requirements.values(), wanted]))
            made = await provider.launch(the_claim(f"claim-{number}", pool), pool, class_with())
            assert made.zone == zone
