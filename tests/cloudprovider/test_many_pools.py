"""However many pools and node classes a cluster has: what did not change is not made again."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.aws.catalogs import Catalogs
from nodeless.cloudprovider.aws.instance_type_builder import Known
from nodeless.cloudprovider.aws.instance_types import InstanceTypes
from nodeless.cloudprovider.aws.price_list import Prices
from nodeless.cloudprovider.aws.settings import AwsSettings
from nodeless.cloudprovider.billing.catalogs import BilledCatalogs
from nodeless.cloudprovider.billing.parts import Location
from nodeless.cloudprovider.billing.terms import BillTerms
from nodeless.cloudprovider.recently_used import UNUSED_SECONDS
from nodeless.launch.resolved import Image, ResolvedNodeClass, Subnet
from nodeless.launch.unavailable import EVERY_SPOT, all_of_zone
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import ARCH
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, BlockDevice, NodeClass, Pool, Reference
from nodeless.model.requirements import IN, Requirement, Requirements

SOLD = bundled_catalog().with_spot_percent(40)
FACTS = tuple(facts for facts in SOLD.facts if facts.name in ("m5.large", "m5.xlarge"))
ZONES = SOLD.all_zones[:3]
AMD64 = Requirements([Requirement.of(ARCH, IN, ["amd64"])])
FOUND = ResolvedNodeClass(
    tuple(Subnet(f"subnet-{zone}", zone, 100) for zone in ZONES), ("sg-1",), (Image("ami-1", AMD64),), "nodes"
)
SPOT_IN_A = ("m5.large", ZONES[0], "spot")


class Session:
    """What is asked of AWS here: nothing."""

    region = SOLD.region

    async def run(self, work: Callable[[], Any]) -> Any:
        return work()


class ListPrices:
    async def current(self, *, spot: bool) -> Prices:
        return Prices(SOLD.on_demand, SOLD.spot)


class Cluster:
    """Pools of some node classes whose nodes have disks of different sizes."""

    def __init__(self, pools: int, classes: int) -> None:
        self.now = 0.0
        types = InstanceTypes(Session(), self.clock)
        types._cache.put("types", Known(FACTS, SOLD.zones))
        self.catalogs = Catalogs(AwsSettings("demo"), types, ListPrices(), self.clock)
        self.billed = BilledCatalogs(self.clock)
        self.classes = [
            NodeClass(
                Reference(EC2_NODE_CLASS, f"class-{number}"),
                ami_family="AL2023",
                block_devices=(BlockDevice("/dev/xvda", (20 + number) * 2**30, "gp3"),),
            )
            for number in range(classes)
        ]
        self.pools = [
            Pool(Reference(NODE_POOL_KIND, f"pool-{number}"), self.classes[number % classes].reference)
            for number in range(pools)
        ]

    def clock(self) -> float:
        return self.now

    async def look(self) -> list[tuple[InstanceType, ...]]:
        """The catalogs of all pools, as each pass asks for them."""
        found = []
        for number, pool in enumerate(self.pools):
            node_class = self.classes[number % len(self.classes)]
            made = await self.catalogs.find(pool, node_class, FOUND)
            place = Location(SOLD.region)
            found.append(
                self.billed.get(
                    made.chosen, pool, node_class, place, BillTerms(), frozenset(), sold_out=made.unavailable
                )
            )
        return found


@pytest.mark.parametrize(("pools", "classes"), [(100, 4), (30, 30)])
async def test_a_second_pass_is_given_the_same_catalogs(pools: int, classes: int) -> None:
    cluster = Cluster(pools, classes)
    first = await cluster.look()
    cluster.now += 300
    assert all(again is before for again, before in zip(await cluster.look(), first, strict=True))


async def test_catalogs_that_nobody_asks_for_any_more_are_dropped() -> None:
    cluster = Cluster(3, 3)
    await cluster.look()
    cluster.pools, cluster.classes = cluster.pools[:1], cluster.classes[:1]
    cluster.now += UNUSED_SECONDS - 1
    await cluster.look()
    cluster.now += 2
    cluster.catalogs.mark((SPOT_IN_A,))
    await cluster.look()
    assert [key for key, _ in cluster.catalogs._entries.items()] == [cluster.pools[0].key]
    assert [key for key, _ in cluster.billed._entries.items()] == [cluster.pools[0].key]


@pytest.mark.parametrize("mark", [SPOT_IN_A, EVERY_SPOT, all_of_zone(ZONES[0])])
async def test_what_is_sold_out_is_marked_and_no_bill_is_reckoned_again(mark: tuple[str, str, str]) -> None:
    cluster = Cluster(2, 1)
    before = await cluster.look()
    cluster.catalogs.mark((mark,))
    after = await cluster.look()
    for (large, _), (marked, _) in zip(before, after, strict=True):
        assert all(offering.available for offering in large.offerings)
        (spot_in_a,) = [
            offering
            for offering in marked.offerings
            if (offering.zone, offering.capacity_type) == (ZONES[0], "spot")
        ]
        assert not spot_in_a.available
        bills = zip(large.offerings, marked.offerings, strict=True)
        assert all(bill.bill is again.bill is not None for bill, again in bills)


async def test_of_types_one_of_which_changed_that_one_is_billed_again() -> None:
    cluster = Cluster(1, 1)
    pool, node_class, place = cluster.pools[0], cluster.classes[0], Location(SOLD.region)
    types = (await cluster.catalogs.find(pool, node_class, FOUND)).chosen
    before = cluster.billed.get(types, pool, node_class, place, BillTerms(), frozenset())
    changed = (replace(types[0], offerings=types[0].offerings[:1]), *types[1:])
    after = cluster.billed.get(changed, pool, node_class, place, BillTerms(), frozenset())
    assert [len(each.offerings) for each in after] == [1, len(types[1].offerings)]
    assert after[0].offerings[0].bill == before[0].offerings[0].bill
    assert after[1] is before[1]
