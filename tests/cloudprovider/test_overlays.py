"""NodeOverlays in what AWS sells: catalogs follow them, and launches buy what they make cheapest."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudUnavailable
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import INSTANCE_TYPE, PRICE_OVERLAY_APPLIED
from nodeless.model.nodes import NodeClaim
from nodeless.model.overlays import NodeOverlay, PriceChange
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirement, Requirements
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, made_by, the_claim, the_pool

SLICE = "example.com/gpu-slice"
BOTH = the_pool("m5.large", "m5.xlarge")


def an_overlay(name: str, *types: str, **fields: Any) -> NodeOverlay:
    return NodeOverlay(
        name, requirements=Requirements([Requirement.of(INSTANCE_TYPE, "In", types)]), **fields
    )


def on_demand(instance_type: InstanceType) -> set[float]:
    return {each.price for each in instance_type.offerings if each.capacity_type == "on-demand"}


async def catalog(
    provider: AwsProvider, overlays: Sequence[NodeOverlay], pool: Pool = BOTH
) -> dict[str, InstanceType]:
    provider.use_overlays(overlays)
    return {each.name: each for each in await provider.catalog(pool, NODE_CLASS)}


async def test_prices_and_capacity_follow_the_overlays_and_come_back_without_them(world: World) -> None:
    async with a_provider() as provider:
        plain = await catalog(provider, ())
        overlays = (
            an_overlay("dear", "m5.large", price_change=PriceChange(100.0, percent=True)),
            an_overlay("sliced", "m5.xlarge", capacity={SLICE: 4}),
        )
        laid = await catalog(provider, overlays)
        again = await provider.catalog(BOTH, NODE_CLASS)
        back = await catalog(provider, ())

    (price,) = on_demand(plain["m5.large"])
    assert on_demand(laid["m5.large"]) == {2 * price}
    assert laid["m5.xlarge"].allocatable[SLICE] == 4
    assert on_demand(laid["m5.xlarge"]) == on_demand(plain["m5.xlarge"])
    assert all(one is other for one, other in zip(again, laid.values(), strict=True))
    assert back == plain


async def test_what_is_sold_out_stays_so_whatever_an_overlay_says(world: World) -> None:
    async with a_provider() as provider:
        provider.mark_unavailable([("m5.large", "us-east-1a", "on-demand")])
        laid = await catalog(provider, [an_overlay("free", "m5.large", price=0.001)])

    gone = [each.zone for each in laid["m5.large"].offerings if not each.available]
    assert gone == ["us-east-1a"]


async def test_memory_that_was_measured_does_not_take_an_overlays_capacity_away(world: World) -> None:
    async with a_provider() as provider:
        await catalog(provider, [an_overlay("sliced", "m5.large", capacity={SLICE: 4})])
        (image, *_) = (await provider.resolve(NODE_CLASS)).images
        measured = provider._catalogs.measured.observe("m5.large", image.id, 7 * 2**30, 0.0)
        provider.record_memory_overhead(measured)
        types = {each.name: each for each in await provider.catalog(BOTH, NODE_CLASS)}

    assert types["m5.large"].capacity["memory"] == 7 * 2**30
    assert types["m5.large"].capacity[SLICE] == 4


async def test_until_it_is_known_which_overlays_count_a_catalog_waits(world: World) -> None:
    async with a_provider() as provider:
        provider.use_overlays(None)
        assert {each.name for each in await provider.list_sold_types(BOTH, NODE_CLASS)} > {
            "m5.large",
            "c5.large",
        }
        waiting = asyncio.create_task(provider.catalog(BOTH, NODE_CLASS))
        provider.use_overlays([an_overlay("free", "m5.large", price=0.001)])
        types = {each.name: each for each in await waiting}
        assert on_demand(types["m5.large"]) == {0.001}

        provider._catalogs.overlays_seconds = 0.01
        provider.use_overlays(None)
        with pytest.raises(CloudUnavailable, match="which NodeOverlays apply"):
            await provider.catalog(BOTH, NODE_CLASS)


def marked(claim: NodeClaim) -> NodeClaim:
    return replace(claim, annotations={PRICE_OVERLAY_APPLIED: "true"})


@pytest.mark.parametrize(
    ("capacity_type", "options", "strategy"),
    [
        ("on-demand", "OnDemandOptions", "prioritized"),
        ("spot", "SpotOptions", "capacity-optimized-prioritized"),
    ],
)
async def test_a_launch_buys_what_an_overlay_makes_cheapest(
    aws: LocalAws, world: World, capacity_type: str, options: str, strategy: str
) -> None:
    pool = the_pool("m5.large", "m5.xlarge", capacity_types=(capacity_type,))
    async with a_provider() as provider:
        provider.use_overlays([an_overlay("cheap", "m5.xlarge", price=0.001)])
        claim = marked(the_claim(pool=pool))
        instance = await provider.launch(claim, pool, NODE_CLASS, first=True)

    assert instance.instance_type == "m5.xlarge"
    (request,) = [call["parameters"] for call in made_by(aws, "CreateFleet")]
    assert request[options]["AllocationStrategy"] == strategy
    listed = [each for config in request["LaunchTemplateConfigs"] for each in config["Overrides"]]
    first, others = (
        {each["Priority"] for each in listed if each["InstanceType"] == name}
        for name in ("m5.xlarge", "m5.large")
    )
    assert first == {0}
    assert min(others) >= 1


async def test_without_a_price_of_an_overlay_ec2_goes_by_its_own(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        instance = await provider.launch(the_claim(pool=BOTH), BOTH, NODE_CLASS, first=True)

    assert instance.instance_type == "m5.large"
    (request,) = [call["parameters"] for call in made_by(aws, "CreateFleet")]
    assert request["OnDemandOptions"] == {"AllocationStrategy": "lowest-price"}
    configs = request["LaunchTemplateConfigs"]
    assert all("Priority" not in each for config in configs for each in config["Overrides"])
