"""The catalog: every instance type as a node of a pool, with what it costs and whether it can be had.

What EC2 tells of types is fetched once for all pools and kept as `TypeFacts`. What a pool
makes of them (its kubelet settings, its disks, its zones) is built once and kept until
something that it depends on changes; sold-out offerings are laid over it each time.
"""

import re
from collections.abc import Mapping
from typing import Any

from nodeless.cloudprovider import CloudUnavailable
from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.instance_type_builder import Known, build
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.price_list import Prices
from nodeless.cloudprovider.aws.session import AwsSession, each_entry
from nodeless.cloudprovider.aws.type_facts import TypeFacts, read_type
from nodeless.cloudprovider.recently_used import RecentlyUsed
from nodeless.model.instance_types import InstanceType

CatalogKey = tuple[Known, NodeShape, frozenset[str], int]
"""What a catalog is made of: facts, how nodes are made, zones, and the version of prices."""
#: Seconds; types and the zones that sell them change a few times a month (Karpenter v1 asks twice a day).
_FRESH = 3600.0
_USABLE = 12 * 3600.0
_NAME = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+")
#: A record that tells of more is a mistake: the largest machine has 1,920 vCPUs and 32 TiB.
_MOST_CPUS, _MOST_MEMORY_MIB, _MOST_OF_ANYTHING = 100_000, 1024**3, 100_000
#: `read_type` drops architectures that no image is for.
FILTERS = [{"Name": "supported-virtualization-type", "Values": ["hvm"]}]


class InstanceTypes:
    """Builds and keeps catalogs."""

    def __init__(self, session: AwsSession, clock: Clock) -> None:
        self._session = session
        self._cache: Cache[Known] = Cache(clock, _FRESH, _USABLE)
        self._built: RecentlyUsed[CatalogKey, tuple[InstanceType, ...]] = RecentlyUsed(clock)
        #: The facts by name, of what was known when they were last asked for.
        self._named: tuple[Known | None, dict[str, TypeFacts]] = (None, {})

    async def get_facts(self) -> Known:
        """Facts and zones. One call for all who ask."""
        return await self._cache.get("types", lambda: self._session.run(self._fetch))

    def facts(self, name: str) -> TypeFacts | None:
        """The facts of one type, as far as they were fetched."""
        known = self._cache.peek("types")
        if known is not None and known is not self._named[0]:
            self._named = known, {fact.name: fact for fact in known.facts}
        return self._named[1].get(name)

    async def catalog(
        self, shape: NodeShape, zones: frozenset[str], prices: Prices
    ) -> tuple[InstanceType, ...]:
        """Every type that some of the zones sell, all priced offerings available, sorted by name."""
        known = await self.get_facts()
        key = (known, shape, zones, prices.version)
        built = self._built.get(key)
        if built is None:
            built = await self._session.run(lambda: build(known, shape, zones, prices, self._session.region))
            self._built.put(key, built)
        return built

    def _fetch(self) -> Known:
        client = self._session.client("ec2")
        zones: dict[str, set[str]] = {}
        request = {"LocationType": "availability-zone"}
        for row in each_entry(client, "describe_instance_type_offerings", request, "InstanceTypeOfferings"):
            name, zone = row.get("InstanceType"), row.get("Location")
            if isinstance(name, str) and isinstance(zone, str):
                zones.setdefault(name, set()).add(zone)
        facts = [
            fact
            for record in each_entry(client, "describe_instance_types", {"Filters": FILTERS}, "InstanceTypes")
            if (fact := _read(record)) is not None
        ]
        if not facts or not zones:
            operation = "DescribeInstanceTypes" if not facts else "DescribeInstanceTypeOfferings"
            raise CloudUnavailable("ec2", f"ec2:{operation} returned no instance type", "nodeless asks again")
        facts.sort(key=lambda fact: fact.name)
        present = self._cache.peek("types")
        fresh = Known(tuple(facts), {name: frozenset(where) for name, where in zones.items()})
        same = present is not None and present.facts == fresh.facts and present.zones == fresh.zones
        return present if present is not None and same else fresh


def _read(record: Mapping[str, Any]) -> TypeFacts | None:
    """The facts of a record; None also for one that cannot be read, which says nothing against the others."""
    try:
        facts = read_type(record)
        return facts if facts is not None and _is_sound(facts) else None
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _is_sound(facts: TypeFacts) -> bool:
    """Whether there can be such a machine."""
    amounts = (facts.interfaces, facts.addresses_per_interface, facts.efa_interfaces, facts.neuron_cores)
    return (
        _NAME.fullmatch(facts.name) is not None
        and 0 < facts.cpus <= _MOST_CPUS
        and 0 < facts.memory_mib <= _MOST_MEMORY_MIB
        and all(0 <= amount <= _MOST_OF_ANYTHING for amount in amounts)
        and all(0 <= gpu.count <= _MOST_OF_ANYTHING for gpu in (*facts.gpus, *facts.accelerators))
    )
