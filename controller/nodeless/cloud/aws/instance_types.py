"""The catalogue: every instance type as a node of a pool, with what it costs and whether it can be had.

What EC2 tells of types is fetched once for all pools and kept as `TypeFacts`. What a pool
makes of them (its kubelet settings, its disks, its zones) is built once and kept until
something that it depends on changes; sold-out offerings are laid over it each time.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from nodeless.cloud.aws.caching import Cache, Clock
from nodeless.cloud.aws.instance_type_labels import type_requirements
from nodeless.cloud.aws.instance_type_math import NodeShape, capacity, overhead, pods
from nodeless.cloud.aws.pricing import Prices
from nodeless.cloud.aws.session import AwsSession, each_entry
from nodeless.cloud.aws.type_facts import TypeFacts, read_type
from nodeless.launch.unavailable import EVERY_SPOT, OfferingKey
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import ON_DEMAND, SPOT

#: Seconds; types and the zones that sell them change a few times a month.
_FRESH = 300.0
_USABLE = 12 * 3600.0
_KEPT = 16
#: `read_type` drops architectures that no image is for.
FILTERS = [{"Name": "supported-virtualization-type", "Values": ["hvm"]}]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What EC2 tells: facts sorted by name, and the zones that sell each type. Hashed by identity."""

    facts: tuple[TypeFacts, ...]
    zones: Mapping[str, frozenset[str]]


class InstanceTypes:
    """Builds and keeps catalogues."""

    def __init__(self, session: AwsSession, clock: Clock) -> None:
        self._session = session
        self._cache: Cache[Known] = Cache(clock, _FRESH, _USABLE)
        self._built: OrderedDict[Hashable, tuple[InstanceType, ...]] = OrderedDict()

    async def known(self) -> Known:
        """Facts and zones. One call for all who ask."""
        return await self._cache.get("types", lambda: self._session.run(self._fetch))

    def facts(self, name: str) -> TypeFacts | None:
        """The facts of one type, as far as they were fetched."""
        known = self._cache.peek("types")
        return next((each for each in known.facts if each.name == name), None) if known else None

    async def catalogue(
        self, shape: NodeShape, zones: frozenset[str], prices: Prices
    ) -> tuple[InstanceType, ...]:
        """Every type that some of the zones sell, all priced offerings available, sorted by name."""
        known = await self.known()
        key = (known, shape, zones, prices.version)
        if key not in self._built:
            self._built[key] = await self._session.run(
                lambda: build(known, shape, zones, prices, self._session.region)
            )
            while len(self._built) > _KEPT:
                self._built.popitem(last=False)
        self._built.move_to_end(key)
        return self._built[key]

    def _fetch(self) -> Known:
        client = self._session.client("ec2")
        zones: dict[str, set[str]] = {}
        request = {"LocationType": "availability-zone"}
        for row in each_entry(client, "describe_instance_type_offerings", request, "InstanceTypeOfferings"):
            zones.setdefault(row["InstanceType"], set()).add(row["Location"])
        facts = [
            fact
            for record in each_entry(client, "describe_instance_types", {"Filters": FILTERS}, "InstanceTypes")
            if (fact := read_type(record)) is not None
        ]
        facts.sort(key=lambda each: each.name)
        present = self._cache.peek("types")
        fresh = Known(tuple(facts), {name: frozenset(where) for name, where in zones.items()})
        same = present is not None and present.facts == fresh.facts and present.zones == fresh.zones
        return present if present is not None and same else fresh


def build(
    known: Known, shape: NodeShape, zones: frozenset[str], prices: Prices, region: str
) -> tuple[InstanceType, ...]:
    """The catalogue of types that the zones sell."""
    return tuple(
        _instance_type(facts, shape, sold, prices, region)
        for facts in known.facts
        if (sold := sorted(known.zones.get(facts.name, frozenset()) & zones))
    )


def _instance_type(
    facts: TypeFacts, shape: NodeShape, zones: list[str], prices: Prices, region: str
) -> InstanceType:
    capacity_types = [each for each in (ON_DEMAND, SPOT) if each in facts.usage_classes]
    return InstanceType(
        name=facts.name,
        requirements=type_requirements(
            facts, region=region, zones=zones, capacity_types=capacity_types, pods=pods(facts, shape)
        ),
        capacity=capacity(facts, shape),
        overhead=overhead(facts, shape),
        offerings=tuple(
            Offering(zone, capacity_type, price or 0.0, price is not None)
            for zone in zones
            for capacity_type in capacity_types
            for price in (prices.of(facts.name, zone, capacity_type),)
        ),
    )


def without(
    instance_types: tuple[InstanceType, ...], unavailable: frozenset[OfferingKey]
) -> tuple[InstanceType, ...]:
    """The catalogue with these offerings marked as not available."""
    touched = {name for name, _, _ in unavailable}
    every = EVERY_SPOT in unavailable
    return tuple(
        _mark(each, unavailable) if every or each.name in touched else each for each in instance_types
    )


def _mark(instance_type: InstanceType, unavailable: frozenset[OfferingKey]) -> InstanceType:
    every_spot = EVERY_SPOT in unavailable
    return replace(
        instance_type,
        offerings=tuple(
            replace(offering, available=False)
            if (instance_type.name, offering.zone, offering.capacity_type) in unavailable
            or (every_spot and offering.capacity_type == SPOT)
            else offering
            for offering in instance_type.offerings
        ),
    )
