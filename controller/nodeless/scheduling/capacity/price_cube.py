"""Prices of all offerings of a catalog as one array: type by zone by capacity type.

An offering must satisfy what is asked of its zone and of its capacity type at once, so both are
looked at here and not with the other labels (`type_table`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.requirements import Requirement

Prices = NDArray[np.float64]
#: Stands for the price of what has none and so cannot be bought.
_UNPRICED = 1e9


class PriceCube:
    """The lowest price (USD an hour) of each type in each zone as each capacity type."""

    def __init__(self, types: Sequence[InstanceType]) -> None:
        offerings = [offering for instance_type in types for offering in instance_type.offerings]
        zones = [offering.zone for offering in offerings]
        capacity_types = [offering.capacity_type for offering in offerings]
        self.zones, zone = _coded(zones)
        self.capacity_types, capacity_type = _coded(capacity_types)
        row = np.repeat(np.arange(len(types)), [len(instance_type.offerings) for instance_type in types])
        price = _prices_of(offerings)
        priced = (price >= 0) & (price < np.inf)
        available = np.array([offering.available for offering in offerings], dtype=np.bool_)
        reserved = [index for index, offering in enumerate(offerings) if offering.reservation]
        for index in reserved:
            available[index] = offerings[index].for_sale
        self.reserves = bool(reserved)
        """Whether anything is sold from a reservation."""
        shape = (len(types), len(self.zones), len(self.capacity_types))
        self._listed: Prices = np.full(shape, np.inf)
        self._for_sale: Prices = self._listed.copy()
        np.minimum.at(self._listed, (row, zone, capacity_type), np.where(priced, price, _UNPRICED))
        sold = priced & available
        np.minimum.at(self._for_sale, (row[sold], zone[sold], capacity_type[sold]), price[sold])
        self._cheapest: dict[tuple[Requirement | None, Requirement | None, bool], Prices] = {}

    def cheapest(
        self, zone: Requirement | None, capacity_type: Requirement | None, *, sold_out_too: bool = False
    ) -> Prices:
        """Per type the lowest price of an available, allowed offering; infinite when none."""
        memo = (zone, capacity_type, sold_out_too)
        prices = self._cheapest.get(memo)
        if prices is None:
            cube = self._listed if sold_out_too else self._for_sale
            chosen = cube[:, _allowed(zone, self.zones)][:, :, _allowed(capacity_type, self.capacity_types)]
            prices = self._cheapest[memo] = chosen.min(axis=(1, 2), initial=np.inf)
        return prices

    def price_at(self, zone: str, capacity_type: str) -> Prices:
        """Per type the price of one offering; infinite where it is not available."""
        prices: Prices = self._for_sale[:, self.zones.index(zone), self.capacity_types.index(capacity_type)]
        return prices


def _allowed(requirement: Requirement | None, names: Sequence[str]) -> list[int]:
    return [i for i, name in enumerate(names) if requirement is None or requirement.allows(name)]


def _coded(names: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct names, sorted, and the position of each name among them."""
    distinct = sorted(set(names))
    position = {name: index for index, name in enumerate(distinct)}
    return distinct, np.fromiter(map(position.__getitem__, names), dtype=np.intp, count=len(names))


def _prices_of(offerings: Sequence[Offering]) -> Prices:
    """The prices; NaN where there is none."""
    prices: list[object] = [offering.price for offering in offerings]
    if set(map(type, prices)) - {float}:
        prices = [offering.price if offering.priced else np.nan for offering in offerings]
    return np.array(prices, dtype=np.float64)
