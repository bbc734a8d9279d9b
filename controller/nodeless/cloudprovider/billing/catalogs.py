"""Catalogs at the prices of nodes: the bill of each offering, laid over the prices of instances.

    price = instance, adjusted as the user says + parts that are known

Offerings of one type share the parts that do not go by the price of the instance. The same catalog is given
out until something changes, as `cloudprovider.aws.catalogs` does.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nodeless.cloudprovider.billing.parts import Location, parts_of_type, platform_of, shared_parts
from nodeless.cloudprovider.billing.room import with_room
from nodeless.cloudprovider.billing.terms import BillTerms
from nodeless.cloudprovider.recently_used import RecentlyUsed
from nodeless.launch.unavailable import OfferingKey, exclude_offerings
from nodeless.model.bill import LICENSE, PARTS, Bill, BillPart
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.placement import CAPACITY_BLOCK
from nodeless.model.pools import NodeClass, Pool

if TYPE_CHECKING:
    from nodeless.scheduling import PriceAdjustment


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
    # On-demand reservations are billed at the price of their platform, used or not; capacity blocks are
    # billed for the operating system while it runs.
    paid = tuple(part for part in parts if part.name != LICENSE)
    offerings = tuple(
        _with_bill(
            offering,
            Bill(offering.price, paid if _is_reserved(offering) else parts, platform, left_out),
            matching,
        )
        if offering.price_known
        else offering
        for offering in instance_type.offerings
    )
    return replace(instance_type, offerings=offerings)


def _is_reserved(offering: Offering) -> bool:
    """Whether it is of a reservation that is paid for with its license."""
    return bool(offering.reservation) and offering.reservation_type != CAPACITY_BLOCK


def _with_bill(offering: Offering, bill: Bill, adjustments: "Sequence[PriceAdjustment]") -> Offering:
    paid = offering
    for adjustment in adjustments:
        paid = adjustment.apply(paid)
    return offering.billed(bill.adjusted(paid.price - offering.price))


@dataclass(frozen=True, slots=True)
class _Billed:
    """A catalog as it was given, by which facts it was billed, and what came of it."""

    made_of: tuple[InstanceType, ...]
    facts: tuple[object, ...]
    types: tuple[InstanceType, ...]

    def by_name(self) -> dict[str, tuple[InstanceType, InstanceType]]:
        """Each type as it was given and as it was billed."""
        return {each.name: (each, billed) for each, billed in zip(self.made_of, self.types, strict=True)}


@dataclass(frozen=True, slots=True)
class _Entry:
    billed: _Billed
    facts: tuple[object, ...]
    result: tuple[InstanceType, ...]


class BilledCatalogs:
    """Keeps each pool's last catalog for as long as what it was made of stays.

    What is sold out changes no bill, so it is marked on the bills: these are the slowest part.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._entries: RecentlyUsed[str, _Entry] = RecentlyUsed(clock)

    def get(
        self,
        types: tuple[InstanceType, ...],
        pool: Pool,
        node_class: NodeClass,
        location: Location,
        terms: BillTerms,
        named: frozenset[str],
        *,
        sold_out: frozenset[OfferingKey] = frozenset(),
    ) -> tuple[InstanceType, ...]:
        """See `bill_catalog`; types with too little room are not for sale (`room.with_room`).

        Args:
            types: At the prices of instances, as if nothing was sold out.
            pool: Whose nodes they would be.
            node_class: How they would be made.
            location: Where.
            terms: What the settings choose.
            named: What pods name of instance types.
            sold_out: Offerings that cannot be bought for now.
        """
        entry = self._entries.get(pool.key)
        last = None if entry is None else entry.billed
        billed = _bill_again(last, types, pool, node_class, location, terms)
        facts = (pool.requirements, named, sold_out)
        if entry is None or entry.billed is not billed or entry.facts != facts:
            priced = exclude_offerings(billed.types, sold_out) if sold_out else billed.types
            result = with_room(priced, pool.requirements, node_class, named, terms)
            entry = _Entry(billed, facts, result)
            self._entries.put(pool.key, entry)
        return entry.result


def _bill_again(
    last: _Billed | None,
    types: tuple[InstanceType, ...],
    pool: Pool,
    node_class: NodeClass,
    location: Location,
    terms: BillTerms,
) -> _Billed:
    """The last bills where nothing changed; where types changed, theirs anew."""
    facts = (
        node_class.ami_family,
        node_class.block_devices,
        node_class.launch_template,
        node_class.public_address,
        location,
        terms,
    )
    if last is None or last.facts != facts:
        return _Billed(types, facts, bill_catalog(types, pool.name, node_class, location, terms))
    if last.made_of is types:
        return last
    known = last.by_name()
    changed = tuple(each for each in types if each.name not in known or known[each.name][0] is not each)
    anew = iter(bill_catalog(changed, pool.name, node_class, location, terms))
    others = {each.name for each in changed}
    return _Billed(
        types, facts, tuple(next(anew) if each.name in others else known[each.name][1] for each in types)
    )
