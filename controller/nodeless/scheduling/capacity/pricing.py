"""What a node costs: list prices with the user's discounts, surcharges and the fee per node.

For an offering of list price w the adjustments that match it are applied in their order,

    w <- price                          where the adjustment gives a price
    w <- w * (1 + percent / 100) + dollars      otherwise,

never below zero nor above `HIGHEST_FIGURE`, and the fee per node is added last. The result stands in the
place of the list price everywhere: in the choice of types, in the plan's cost, in its bound.

Example: `PriceAdjustment(pools=("batch",), capacity_types=("on-demand",), percent=-28.0)` is a
savings plan that covers one pool.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from nodeless.model.bill import HIGHEST_FIGURE, Bill
from nodeless.model.identity import Identity
from nodeless.model.instance_types import Catalog, InstanceType, Offering
from nodeless.model.pools import Pool


@dataclass(frozen=True, slots=True)
class PriceAdjustment:
    """One deviation from list prices; an empty selection matches everything.

    Attributes:
        pools: Names of pools.
        instance_types: Names of instance types; `*` and `?` are wildcards, as in `m5.*`.
        capacity_types: `on-demand`, `spot` or `reserved`.
        percent: Percent of the price to add, negative for a discount.
        dollars: US dollars an hour to add, negative for a discount.
        price: US dollars an hour in place of the price; 0 for capacity that is paid for already.

    Raises:
        ValueError: a discount of more than all, a negative price, or a price beside an amount to add.
    """

    pools: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()
    percent: float = 0.0
    dollars: float = 0.0
    price: float | None = None

    def __post_init__(self) -> None:
        if not -100 <= self.percent < float("inf"):
            raise ValueError(f"percent is {self.percent:g}; hint: -20 is a discount of a fifth, -100 is free")
        if not abs(self.dollars) < float("inf"):
            raise ValueError(f"dollars is {self.dollars}; hint: US dollars an hour to add")
        if self.price is not None and not 0 <= self.price < float("inf"):
            raise ValueError(f"price is {self.price}; hint: US dollars an hour, 0 or more")
        if self.price is not None and (self.percent or self.dollars):
            raise ValueError("price is combined with percent or dollars; hint: give the price alone")

    def concerns(self, pool: str, instance_type: str) -> bool:
        """Whether it may apply to offerings of an instance type in a pool."""
        return (not self.pools or pool in self.pools) and (
            not self.instance_types
            or any(fnmatchcase(instance_type, pattern) for pattern in self.instance_types)
        )

    def apply(self, offering: Offering) -> Offering:
        """The offering at its new price."""
        if self.capacity_types and offering.capacity_type not in self.capacity_types:
            return offering
        price = self.price
        if price is None:
            price = max(0.0, offering.price * (1 + self.percent / 100) + self.dollars)
            # Surcharges follow each other: many of them together must not make a price infinite.
            price = min(price, HIGHEST_FIGURE)
        return offering.at_price(price, offering.bill)


def priced(
    catalog: Catalog, pools: Iterable[Pool], adjustments: Sequence[PriceAdjustment], node_fee: float
) -> Catalog:
    """The catalog at the prices that are paid; pools that pay the same share their types."""
    if not adjustments and not node_fee:
        return catalog
    shared: dict[tuple[Identity, tuple[int, ...]], tuple[InstanceType, ...]] = {}
    result: dict[str, tuple[InstanceType, ...]] = {}
    for pool in pools:
        types = catalog.get(pool.key, ())
        own = [
            number
            for number, adjustment in enumerate(adjustments)
            if not adjustment.pools or pool.name in adjustment.pools
        ]
        memo = (Identity(types), tuple(own))
        if memo not in shared:
            mine = [adjustments[number] for number in own]
            shared[memo] = tuple(
                _repriced(instance_type, pool.name, mine, node_fee) for instance_type in types
            )
        result[pool.key] = shared[memo]
    return result


def _repriced(
    instance_type: InstanceType, pool: str, adjustments: Sequence[PriceAdjustment], node_fee: float
) -> InstanceType:
    matching = [adjustment for adjustment in adjustments if adjustment.concerns(pool, instance_type.name)]
    offerings = []
    for offering in instance_type.offerings:
        if not offering.price_known:
            offerings.append(offering)
            continue
        paid = offering
        for adjustment in matching:
            paid = adjustment.apply(paid)
        bill = Bill.of_instance(paid.price) if paid.bill is None and node_fee else paid.bill
        offerings.append(paid.at_price(paid.price + node_fee, bill))
    return replace(instance_type, offerings=tuple(offerings))
