"""Which offering a node that exists is of."""

from collections.abc import Sequence
from dataclasses import replace

from nodeless.model.bill import (
    ADDRESS,
    ADDRESSES,
    CREDITS,
    EBS_VOLUMES,
    LICENSE,
    LICENSES,
    VOLUMES,
    Bill,
    BillPart,
)
from nodeless.model.instance_types import Catalog, InstanceType, Offering
from nodeless.model.labels import ON_DEMAND, OS

#: Of nodes that do not say it.
_LINUX = "linux"
#: Parts that go by the system of a node, and those that go by its node class.
_OF_SYSTEM, _OF_NODE_CLASS = (LICENSE, CREDITS), (VOLUMES, ADDRESS)


class NodeOfferings:
    """Finds the offerings of nodes in a catalog, to be had now or not."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        #: By pool key and name: of tens of thousands of offerings only those of a node's type are searched.
        self._types: dict[str, dict[str, InstanceType]] = {}

    def find(self, pool: str, instance_type: str, zone: str, capacity_type: str) -> Offering | None:
        """The cheapest of these that a pool, by key, buys; None: it buys none, or nobody prices it."""
        sold = self._types_of(pool).get(instance_type)
        offerings = (
            offering
            for offering in (sold.offerings if sold is not None else ())
            if (offering.zone, offering.capacity_type) == (zone, capacity_type) and offering.price_known
        )
        return min(offerings, key=lambda offering: offering.price, default=None)

    def system_of(self, pool: str, instance_type: str = "") -> str:
        """The operating system of a type in a pool, or of any of its types; empty: not known."""
        types = self._types_of(pool)
        sold = types.get(instance_type) if instance_type else next(iter(types.values()), None)
        label = None if sold is None else sold.label(OS)
        values = frozenset() if label is None or label.complement else label.values
        return next(iter(values)) if len(values) == 1 else ""

    def parts_of_pool(self, pool: str) -> tuple[BillPart, ...] | None:
        """What each node of a pool pays by its node class; None: not known."""
        for sold in self._types_of(pool).values():
            for offering in sold.offerings:
                if offering.bill is not None:
                    return _named(offering.bill, _OF_NODE_CLASS)
        return None

    def _types_of(self, pool: str) -> dict[str, InstanceType]:
        if pool not in self._types:
            sold = self._catalog.get(pool, ())
            self._types[pool] = {instance_type.name: instance_type for instance_type in sold}
        return self._types[pool]


class NodePrices:
    """Finds the offerings of nodes also where their own pool does not buy them any more."""

    def __init__(self, catalog: Catalog) -> None:
        self._offerings = NodeOfferings(catalog)
        self._pools = sorted(catalog)
        self._found: dict[tuple[str, str, str, str, str], Offering | None] = {}

    def find(
        self, pool: str, instance_type: str, zone: str, capacity_type: str, system: str = ""
    ) -> Offering | None:
        """The offering of a node; None: its price is not known.

        The cheapest of the pool. Where that buys no such nodes, another pool tells what the instance costs,
        one of the same system if there is any; the rest of the bill is the node's own, as far as it is known.

        Args:
            pool: Key of the node's pool; of no pool for nodes that are not ours.
            instance_type: Its type.
            zone: Its zone.
            capacity_type: Its capacity type; empty: on-demand.
            system: Its operating system; empty: that of its pool, or else Linux.
        """
        wanted = instance_type, zone, capacity_type or ON_DEMAND
        key = (pool, *wanted, system)
        if key not in self._found:
            own = self._offerings.find(pool, *wanted)
            self._found[key] = self._elsewhere(pool, wanted, system) if own is None else own
        return self._found[key]

    def _elsewhere(self, pool: str, wanted: tuple[str, str, str], system: str) -> Offering | None:
        system = system or self._offerings.system_of(pool) or _LINUX
        found = [
            (self._offerings.system_of(each, wanted[0]), offering)
            for each in self._pools
            if (offering := self._offerings.find(each, *wanted)) is not None
        ]
        same = (each for each in found if each[0] == system)
        chosen = next(same, found[0] if found else None)
        if chosen is None or chosen[1].bill is None:
            return None if chosen is None else chosen[1]
        sold_with, offering = chosen
        return _billed_again(offering, system, sold_with, self._offerings.parts_of_pool(pool))


def _billed_again(
    offering: Offering, system: str, sold_with: str, of_node_class: Sequence[BillPart] | None
) -> Offering:
    """The offering of another pool with the bill of a node of a system.

    What is paid for the instance stays, and so do adjustments. What the node's class adds is given; None: not
    known.
    """
    bill = offering.bill
    if bill is None:
        return offering
    kept = tuple(part for part in bill.parts if part.name not in (*_OF_SYSTEM, *_OF_NODE_CLASS))
    if system == sold_with:
        # An image that costs more on Linux is its node class's own.
        kept += _named(bill, (CREDITS,) if system == _LINUX else _OF_SYSTEM)
    else:
        unknown = [] if system == _LINUX or LICENSES in bill.left_out else [LICENSE]
        unknown += [part.name for part in _named(bill, (CREDITS,))]
        kept += tuple(BillPart(name, None, f"of {system}") for name in unknown)
    if of_node_class is None:
        counted = [
            name for name, key in ((VOLUMES, EBS_VOLUMES), (ADDRESS, ADDRESSES)) if key not in bill.left_out
        ]
        of_node_class = [BillPart(name, None, "node class not known") for name in counted]
    own = replace(bill, parts=(*kept, *of_node_class))
    # The fee for each node is in the price alone.
    return offering.at_price(max(0.0, offering.price + own.total - bill.total), own)


def _named(bill: Bill, names: Sequence[str]) -> tuple[BillPart, ...]:
    return tuple(part for part in bill.parts if part.name in names)
