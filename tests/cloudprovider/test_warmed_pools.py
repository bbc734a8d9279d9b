"""A pool that is kept warm: whatever its usual launch comes to depend on, its launch template is there first.

Warming looks through the pool's catalog only where it is another one. Each test here has one thing change
that a launch follows, and warming has to follow it before the launch does.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.cloudprovider.aws.launch_requests import LatestCandidates
from nodeless.launch.unavailable import EVERY_SPOT, UNAVAILABLE_SECONDS
from nodeless.model.labels import CAPACITY_TYPE
from nodeless.model.overlays import NodeOverlay, PriceChange
from nodeless.model.pools import Kubelet, NodeClass, Pool, SelectorTerm
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.taints import Taint
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_fleet_errors import Clock
from tests.cloudprovider.test_provider import DISCOVERY, NODE_CLASS, made_by, the_claim, the_pool
from tests.cloudprovider.test_reservations import EVERYTHING, TEAM, class_with, reserve, tagged

SPOT_FIRST = the_pool("m5.large", capacity_types=("spot", "on-demand"))
RESERVED_FIRST = the_pool("m5.large", capacity_types=EVERYTHING)
RESERVING = class_with(*TEAM)
#: Seconds after which no old answer of EC2 on subnets, security groups and images is used any more.
OUTDATED = 601


class Warm:
    """A provider with one warmed pool, and what a test may change."""

    def __init__(self, aws: LocalAws, world: World, provider: AwsProvider, clock: Clock) -> None:
        self.aws, self.world, self.provider, self.clock = aws, world, provider, clock
        self.pool, self.node_class = SPOT_FIRST, NODE_CLASS

    async def warm(self) -> list[str]:
        """Warm the pool; gives back what the launch templates made meanwhile are for, as capacity types."""
        self.aws.forget_calls()
        await self.provider.warm(self.pool, self.node_class)
        return [_capacity_type(call) for call in made_by(self.aws, "CreateLaunchTemplate")]

    async def launch(self, name: str) -> Any:
        """Launch a node; EC2 is asked for no launch template meanwhile."""
        self.aws.forget_calls()
        instance = await self.provider.launch(the_claim(name, self.pool), self.pool, self.node_class)
        assert made_by(self.aws, "CreateLaunchTemplate") == []
        return instance


def _capacity_type(call: dict[str, Any]) -> str:
    """Launch templates of spot instances tag spot requests, those of a reservation target it."""
    data = call["parameters"]["LaunchTemplateData"]
    if "CapacityReservationTarget" in data.get("CapacityReservationSpecification", {}):
        return "reserved"
    tagged_kinds = {specification["ResourceType"] for specification in data["TagSpecifications"]}
    return "spot" if "spot-instances-request" in tagged_kinds else "on-demand"


def allow_on_demand_alone(warm: Warm) -> None:
    warm.pool = the_pool("m5.large")


def label_nodes(warm: Warm) -> None:
    warm.pool = replace(warm.pool, labels={"team": "search"})


def taint_nodes(warm: Warm) -> None:
    warm.pool = replace(warm.pool, taints=(Taint("team", "NoSchedule", "search"),))


def taint_starting_nodes(warm: Warm) -> None:
    warm.pool = replace(warm.pool, startup_taints=(Taint("starting", "NoSchedule"),))


def limit_pods(warm: Warm) -> None:
    warm.pool = replace(warm.pool, kubelet=Kubelet(max_pods=20))


def change_user_data(warm: Warm) -> None:
    warm.node_class = replace(warm.node_class, user_data="echo hello")


def change_the_settings(warm: Warm) -> None:
    warm.provider.use(replace(SETTINGS, tags={"cost-center": "7"}))


def add_a_security_group(warm: Warm) -> None:
    ec2 = warm.aws.client("ec2")
    (vpc,) = {each["VpcId"] for each in ec2.describe_subnets(SubnetIds=warm.world.subnets)["Subnets"]}
    tags = [{"Key": "karpenter.sh/discovery", "Value": "demo"}]
    specification = {"ResourceType": "security-group", "Tags": tags}
    ec2.create_security_group(
        GroupName="more", Description="more", VpcId=vpc, TagSpecifications=[specification]
    )
    warm.clock.now += OUTDATED


def sell_spot_out(warm: Warm) -> None:
    warm.provider.mark_unavailable([EVERY_SPOT])


def make_spot_dear(warm: Warm) -> None:
    prices = warm.provider._pricing._spot
    prices.fetched, prices.version = dict.fromkeys(prices.fetched or (), 9.0), prices.version + 1


def make_spot_dear_by_an_overlay(warm: Warm) -> None:
    spot = Requirements([Requirement.of(CAPACITY_TYPE, "In", ["spot"])])
    dear = PriceChange(1000.0, percent=True)
    warm.provider.use_overlays([NodeOverlay("dear", requirements=spot, price_change=dear)])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (allow_on_demand_alone, "on-demand"),
        (label_nodes, "spot"),
        (taint_nodes, "spot"),
        (taint_starting_nodes, "spot"),
        (limit_pods, "spot"),
        (change_user_data, "spot"),
        (change_the_settings, "spot"),
        (add_a_security_group, "spot"),
        (sell_spot_out, "on-demand"),
        (make_spot_dear, "on-demand"),
        (make_spot_dear_by_an_overlay, "on-demand"),
    ],
)
async def test_what_changes_the_usual_launch_is_followed_before_the_next_launch(
    aws: LocalAws, world: World, change: Callable[[Warm], None], expected: str
) -> None:
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        warm = Warm(aws, world, provider, clock)
        assert await warm.warm() == ["spot"]
        assert await warm.warm() == []
        change(warm)
        assert await warm.warm() == [expected]
        assert (await warm.launch("default-aaaaa")).capacity_type == expected


async def test_what_is_to_be_had_again_is_followed_as_its_time_comes(aws: LocalAws, world: World) -> None:
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        warm = Warm(aws, world, provider, clock)
        sell_spot_out(warm)
        assert await warm.warm() == ["on-demand"]
        clock.now += UNAVAILABLE_SECONDS + 1
        assert await warm.warm() == ["spot"]
        assert (await warm.launch("default-aaaaa")).capacity_type == "spot"


async def test_a_zone_without_addresses_is_followed(aws: LocalAws, world: World) -> None:
    """In the one zone that has spot capacity no address is left."""
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        warm = Warm(aws, world, provider, clock)
        provider.mark_unavailable([("m5.large", f"us-east-1{zone}", "spot") for zone in "bc"])
        assert await warm.warm() == ["spot"]
        provider._subnets.mark_full(world.subnets[:1])
        assert await warm.warm() == ["on-demand"]
        assert (await warm.launch("default-aaaaa")).zone != "us-east-1a"


async def test_a_reservation_is_followed_as_it_comes_and_as_it_is_used_up(
    aws: LocalAws, world: World
) -> None:
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        warm = Warm(aws, world, provider, clock)
        warm.pool, warm.node_class = RESERVED_FIRST, RESERVING
        assert await warm.warm() == ["spot"]
        reserve(aws, 1, TagSpecifications=tagged())
        clock.now += OUTDATED
        assert await warm.warm() == ["reserved"]
        assert (await warm.launch("default-aaaaa")).capacity_type == "reserved"
        # The template for spot is there: that it is wanted again shows once it is not.
        await provider.delete_launch_templates()
        assert await warm.warm() == ["spot"]
        assert (await warm.launch("default-bbbbb")).capacity_type == "spot"


async def test_images_that_are_published_are_followed(aws: LocalAws, world: World) -> None:
    ec2 = aws.client("ec2")
    named = [{"Name": "name", "Values": ["amazon-eks-node-1.*"]}]
    (first, second, *_) = ec2.describe_images(Filters=named)["Images"]
    own = [{"Key": "team", "Value": "search"}]
    ec2.create_tags(Resources=[first["ImageId"]], Tags=own)
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        warm = Warm(aws, world, provider, clock)
        warm.node_class = replace(NODE_CLASS, images=(SelectorTerm(tags=(("team", ("search",)),)),))
        assert await warm.warm() == ["spot"]
        ec2.create_tags(Resources=[second["ImageId"]], Tags=own)
        ec2.delete_tags(Resources=[first["ImageId"]], Tags=own)
        clock.now += OUTDATED
        assert await warm.warm() == ["spot"]
        await warm.launch("default-aaaaa")


async def test_launch_templates_that_were_deleted_are_made_again(aws: LocalAws, world: World) -> None:
    """By us as unused, or by somebody else, which a launch finds out."""
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        warm = Warm(aws, world, provider, clock)
        await warm.warm()
        clock.now += 1801
        assert await provider._templates.delete_unused() == 1
        assert await warm.warm() == ["spot"]
        ec2 = aws.client("ec2")
        (template,) = ec2.describe_launch_templates(MaxResults=200)["LaunchTemplates"]
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
        await provider.launch(the_claim("default-aaaaa", SPOT_FIRST), SPOT_FIRST, NODE_CLASS)
        assert await warm.warm() == []
        assert len(ec2.describe_launch_templates(MaxResults=200)["LaunchTemplates"]) == 1


async def test_a_class_with_a_launch_template_of_its_own_gets_none(aws: LocalAws, world: World) -> None:
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        warm = Warm(aws, world, provider, clock)
        warm.node_class = NodeClass(NODE_CLASS.reference, subnets=DISCOVERY, launch_template="their-own")
        assert await warm.warm() == []


async def test_pools_do_not_share_what_they_choose_from(aws: LocalAws, world: World) -> None:
    other = the_pool("m5.large")
    other = replace(other, reference=replace(other.reference, name="other"))
    async with a_provider() as provider:
        await asyncio.gather(provider.warm(SPOT_FIRST, NODE_CLASS), provider.warm(other, NODE_CLASS))
    made = sorted(map(_capacity_type, made_by(aws, "CreateLaunchTemplate")))
    assert made == ["on-demand", "spot"]


async def an_order(provider: AwsProvider, pool: Pool) -> Any:
    return await provider._launch_request((the_claim(pool=pool),), pool, NODE_CLASS)


async def test_a_catalog_is_looked_through_once(world: World) -> None:
    async with a_provider() as provider:
        latest = LatestCandidates()
        first = latest.of(await an_order(provider, SPOT_FIRST))
        assert first is not None
        assert latest.of(await an_order(provider, SPOT_FIRST)) is first
        provider.mark_unavailable([("m5.large", "us-east-1a", "spot")])
        fewer = latest.of(await an_order(provider, SPOT_FIRST))
        assert fewer is not None
        assert len(fewer.offerings()) < len(first.offerings())


async def test_other_claims_choose_anew_from_the_same_catalog(world: World) -> None:
    async with a_provider() as provider:
        latest = LatestCandidates()
        order = await an_order(provider, SPOT_FIRST)
        assert latest.of(order) is not None
        larger = replace(order, claims=(replace(order.claim, requests={"cpu": 4000}),))
        assert latest.of(larger) is None
        assert latest.of(order) is not None
