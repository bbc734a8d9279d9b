"""How few calls a cold start takes, and how little memory a catalog."""

import gc
import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest

from bench.cloud_provider import told_start
from localenv.aws import LocalAws
from nodeless.cloudprovider.aws.instance_type_builder import Known, build
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.price_list import Prices
from nodeless.cloudprovider.aws.type_facts import TypeFacts
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, launched, the_pool

M5 = TypeFacts(
    name="m5.large",
    architecture="amd64",
    cpus=2,
    memory_mib=8192,
    interfaces=3,
    addresses_per_interface=10,
    bandwidth_mbps=750,
    hypervisor="nitro",
    encryption_in_transit=False,
    local_nvme_gb=None,
    gpus=(),
    accelerators=(),
    usage_classes=("on-demand", "spot"),
)


#: What Karpenter v0.27.3 calls from its start to its first node of one AL2 pool.
UPSTREAM = {
    "DescribeInstanceTypes": 2,
    "DescribeInstanceTypeOfferings": 1,
    "DescribeSpotPriceHistory": 1,
    "GetProducts": 2,
    "DescribeSubnets": 1,
    "DescribeSecurityGroups": 1,
    "GetParameter": 3,
    "DescribeLaunchTemplates": 2,  # all of the cluster's as it begins to lead, and the one by its name
    "CreateLaunchTemplate": 1,
    "CreateFleet": 1,
    "DescribeInstances": 1,  # to learn the name of the node
}


async def test_a_cold_start_describes_each_thing_once(aws: LocalAws, world: World) -> None:
    """Pages count once, as upstream's do."""
    async with a_provider() as provider:
        provider._types._cache.forget()
        for half in (provider._pricing._on_demand, provider._pricing._spot):
            half._due, half._tried = 0.0, False
        aws.forget_calls()
        await provider.start()
        await provider.warm(the_pool(), NODE_CLASS)
        await launched(provider)
    calls = Counter(call["action"] for call in aws.calls() if not call["parameters"].get("NextToken"))
    assert calls == {
        "DescribeInstanceTypes": 2,  # one of them the dry run
        "DescribeInstanceTypeOfferings": 1,
        "DescribeSpotPriceHistory": 1,
        "GetProducts": 2,
        "DescribeSubnets": 1,
        "DescribeSecurityGroups": 1,
        "GetParameter": 3,
        "CreateLaunchTemplate": 1,
        "DescribeInstances": 1,
        "CreateFleet": 1,
    }
    assert sum(calls.values()) < sum(UPSTREAM.values())
    assert {action for action, number in calls.items() if number > UPSTREAM[action]} == set()


async def test_a_second_pool_of_the_same_class_asks_for_nothing_but_its_template(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        await provider.warm(the_pool(), NODE_CLASS)
        aws.forget_calls()
        other = replace(the_pool(), taints=())
        await provider.catalog(other, NODE_CLASS)
        assert aws.calls() == []


def test_a_catalog_of_800_types_in_6_zones_takes_less_than_40_mib() -> None:
    facts = tuple(
        replace(M5, name=f"m{number // 10 + 5}.{number % 10 + 2}xlarge", cpus=2 + number % 64)
        for number in range(800)
    )
    zones = frozenset(f"us-east-1{letter}" for letter in "abcdef")
    known = Known(facts, {fact.name: zones for fact in facts})
    prices = Prices(
        {fact.name: 0.1 + fact.cpus / 50 for fact in facts},
        {(fact.name, zone): 0.03 + fact.cpus / 99 for fact in facts for zone in zones},
        1,
    )
    gc.collect()
    tracemalloc.start()
    try:
        catalog = build(known, NodeShape("AL2"), zones, prices, "us-east-1")
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(each.offerings) for each in catalog) == 800 * 6 * 2
    assert held < 40 * 2**20


@pytest.mark.parametrize(
    ("seconds", "missed"),
    [(2.96, []), (3.0, []), (3.24, ["    missed: takes 3.2 s, not 3"])],
)
def test_a_cold_start_beyond_its_bound_is_told_by_the_bench(seconds: float, missed: list[str]) -> None:
    first, *more = told_start(seconds, Counter(GetProducts=2, DescribeSubnets=1))
    assert first.endswith("3 calls (1 DescribeSubnets, 2 GetProducts)")
    assert more == missed
