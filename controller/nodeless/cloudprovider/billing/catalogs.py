"""Catalogs at the prices of nodes: the bill of each offering, laid over the prices of instances.

    price = instance, adjusted as the user says + parts that are known

Offerings of one type share the parts that do not go by the price of the instance. The same catalog is given
out until something changes, as `cloudprovider.aws.catalogs` does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nodeless.cloudprovider.billing.parts import Location, parts_of_type, platform_of, shared_parts
from nodeless.cloudprovider.billing.room import with_room
from nodeless.cloudprovider.billing.terms import BillTerms
from nodeless.model.bill import PARTS, Bill, BillPart
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.pools import NodeClass, Pool

if TYPE_CHECKING:
    from nodeless.scheduling import PriceAdjustment

#: Pools of which the last catalog is kept.
_KEPT = 64


def bill_catalog(
    types: tuple[InstanceType, ...], pool: str, node_class: NodeClass, location: Location, terms: BillTerms
) -> tuple[InstanceType, ...]:
    """The catalog of a pool at the prices of its nodes.

    Args:
        types: At the prices of instances.
        pool: Name of the pool whose nodes they would be.
        node_class: How they would be made.
        location: Where.
        terms: What the settings choose.
    """
    shared = shared_parts(node_class, location, terms)
    platform = platform_of(node_class, location)
    return tuple(
        _bill_type(
            instance_type,
            pool,
            (*parts_of_type(instance_type, node_class, location, terms), *shared),
            platform,
            terms,
        )
        for instance_type in types
    )


def _bill_type(
    instance_type: InstanceType, pool: str, parts: tuple[BillPart, ...], platform: str, terms: BillTerms
) -> InstanceType:
    matching = [each for each in terms.adjustments if each.concerns(pool, instance_type.name)]
    left_out = frozenset(PARTS) - terms.parts
    offerings = tuple(
        _with_bill(offering, Bill(offering.price, parts, platform, left_out), matching)
        if offering.price_known
        else offering
        for offering in instance_type.offerings
    )
    return replace(instance_type, offerings=offerings)


def _with_bill(offering: Offering, bill: Bill, adjustments: "Sequence[PriceAdjustment]") -> Offering:
    paid = offering
    for adjustment in adjustments:
        paid = adjustment.apply(paid)
    return offering.billed(bill.adjusted(paid.price - offering.price))


@dataclass(frozen=True, slots=True)
class _Entry:
    made_of: tuple[InstanceType, ...]
    facts: tuple[object, ...]
    result: tuple[InstanceType, ...]


class BilledCatalogs:
    """Keeps each pool's last catalog for as long as what it was made of stays."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def get(
        self,
        types: tuple[InstanceType, ...],
        pool: Pool,
        node_class: NodeClass,
        location: Location,
        terms: BillTerms,
        named: frozenset[str],
    ) -> tuple[InstanceType, ...]:
        """See `billed`; types with too little room are not for sale (`room.with_room`)."""
        facts = (
            pool.requirements,
            node_class.ami_family,
            node_class.block_devices,
            node_class.launch_template,
            node_class.public_address,
            location,
            terms,
            named,
        )
        entry = self._entries.get(pool.key)
        if entry is None or entry.made_of is not types or entry.facts != facts:
            if len(self._entries) >= _KEPT:
                self._entries.pop(next(iter(self._entries)))
            priced = bill_catalog(types, pool.name, node_class, location, terms)
            result = with_room(priced, pool.requirements, node_class, named, terms)
            entry = _Entry(types, facts, result)
            self._entries[pool.key] = entry
        return entry.result
