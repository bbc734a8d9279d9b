"""The shapes that new nodes may have for a set of items, dominated ones left out.

A shape is a pool, one of its types, and a group of the type's offerings that the same items may
use, at the price of the cheapest. A shape is dominated when another of the same pool, open to the
same items, has as much room, costs no more and counts no more against the pool's limits: a node of
the one can be a node of the other. The cheapest solution never needs a dominated shape.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodeless.model.labels import CAPACITY_TYPE, ZONE
from nodeless.model.requirements import Requirement, Requirements
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.price_cube import Prices
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.optimizer.items import Item
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul

#: Labels that an offering settles.
_OFFERED = (ZONE, CAPACITY_TYPE)


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Rows are shapes; `allowed[s, i]`: whether pods of item i may run on a node of shape s."""

    tables: tuple[PoolTable, ...]
    """The pools that any item is open to."""
    pool: NDArray[np.intp]
    """Index into `tables`."""
    room: Amounts
    price: Prices
    charge: list[Amounts]
    """What a node counts against its pool's limits."""
    allowed: Mask

    def __len__(self) -> int:
        return len(self.price)


#: Seconds for each pair of a type and an item of a group of offerings, and for each comparison of two rows.
_CELL, _COMPARISON = 1.5e-9, 1.2e-9


def shapes_for(items: Sequence[Item], meter: Meter) -> Shapes | None:
    """The undominated shapes for some items; None where that takes longer than `meter` allows.

    Items that ask for labels which neither types nor pools settle have shapes of their own, so there may be
    as many as types times items.
    """
    tables: dict[str, PoolTable] = {}
    for item in items:
        for table in item.tables:
            tables.setdefault(table.pool.key, table)
    listed = tuple(tables.values())
    pool, room, price, charge, allowed = [], [], [], [], []
    for index, table in enumerate(listed):
        for rows, prices, mask in _groups(table, items, meter):
            if meter.over:
                return None
            chosen = _undominated(table.room[rows], prices[rows], table.limited[rows], mask[rows], meter)
            for row in rows[chosen]:
                pool.append(index)
                room.append(table.room[row])
                price.append(prices[row])
                charge.append(table.limited[row])
                allowed.append(mask[row])
    return Shapes(
        listed,
        np.array(pool, dtype=np.intp),
        np.array(room, dtype=np.int64).reshape(len(pool), len(items[0].pods.requests) if items else 0),
        np.array(price, dtype=np.float64),
        charge,
        np.array(allowed, dtype=np.bool_).reshape(len(pool), len(items)),
    )


def _groups(
    table: PoolTable, items: Sequence[Item], meter: Meter
) -> "Iterator[tuple[NDArray[np.intp], Prices, Mask]]":
    """For each group of offerings: the types sold there, their prices, and the items that each may take."""
    count = len(table.table)
    fits: Mask = np.zeros((count, len(items)), dtype=np.bool_)
    places: list[tuple[Requirement | None, Requirement | None] | None] = []
    labels: list[Requirements] = []
    for index, item in enumerate(items):
        fresh = table.fresh(item.pods, item.node_requirements) if table in item.tables else None
        if fresh is None:
            places.append(None)
            labels.append(Requirements())
            continue
        terms, counts = fresh
        fits[:, index] = terms.types & (counts > 0)
        places.append((terms.requirements.get(ZONE), terms.requirements.get(CAPACITY_TYPE)))
        labels.append(_open_labels(table, item))
    distinct_places = dict.fromkeys(place for place in places if place is not None)
    offered: dict[tuple[bool, ...], list[tuple[str, str]]] = {}
    for zone in table.table.offers.zones:
        for capacity_type in table.table.offers.capacity_types:
            admits = tuple(_admits(place, zone, capacity_type) for place in distinct_places)
            if any(admits):
                offered.setdefault(admits, []).append((zone, capacity_type))
    for admits, pairs in offered.items():
        open_places = {place for place, yes in zip(distinct_places, admits, strict=True) if yes}
        here = np.array([place in open_places for place in places], dtype=np.bool_)
        prices = np.full(count, np.inf)
        for zone, capacity_type in pairs:
            prices = np.minimum(prices, table.table.offers.price_at(zone, capacity_type))
        for distinct in dict.fromkeys(
            label for label, yes in zip(labels, here, strict=True) if yes and label
        ) or [Requirements()]:
            beside = here & np.array([not label or label == distinct for label in labels], dtype=np.bool_)
            mask = fits & beside
            rows = np.flatnonzero(np.isfinite(prices) & mask.any(axis=1))
            meter.spend(_CELL * mask.size)
            yield rows, prices, mask


def _open_labels(table: PoolTable, item: Item) -> Requirements:
    """What an item asks of labels that neither the type nor the offering settles: nodes bear one answer."""
    return Requirements(
        requirement
        for requirement in item.node_requirements.requirements.values()
        if requirement.key not in _OFFERED
        and not table.table.carries(requirement.key)
        and not _settled(table.offered.get(requirement.key))
    )


def _settled(offered: Requirement | None) -> bool:
    return offered is not None and not offered.complement and len(offered.values) <= 1


def _admits(place: tuple[Requirement | None, Requirement | None], zone: str, capacity_type: str) -> bool:
    wanted_zone, wanted_type = place
    return (wanted_zone is None or wanted_zone.allows(zone)) and (
        wanted_type is None or wanted_type.allows(capacity_type)
    )


#: Rows that are compared with all others at once.
_BLOCK = 256


def _undominated(
    room: Amounts, price: Prices, charge: Amounts, allowed: Mask, meter: Meter
) -> NDArray[np.intp]:
    """Positions of the rows that no other row dominates; of equal rows the first stays.

    In the order of price only a row ahead can dominate another, and whoever is dominated by a row that
    falls out is dominated by one that stays.
    """
    order = np.lexsort((np.arange(len(price)), -room.sum(axis=1, dtype=np.float64), price))
    group, wider = _masks(allowed)
    size: Amounts = np.concatenate([room, -charge], axis=1)

    def dominates(some: NDArray[np.intp], others: NDArray[np.intp]) -> Mask:
        better: Mask = wider[np.ix_(group[some], group[others])]
        for column in size.T:
            better &= column[some, None] >= column[others]
        return better

    kept = order[:0]
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        meter.spend(_COMPARISON * len(block) * (len(kept) + len(block)) * (1 + size.shape[1]))
        block = block[~dominates(kept, block).any(axis=0)]
        among = np.triu(dominates(block, block), 1)
        kept = np.concatenate([kept, block[~among.any(axis=0)]])
    return np.sort(kept)


def _masks(allowed: Mask) -> tuple[NDArray[np.intp], Mask]:
    """The number of each row's mask among the distinct ones, and which of those admit all of another."""
    numbers: dict[bytes, int] = {}
    group = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in allowed], dtype=np.intp)
    distinct = np.frombuffer(b"".join(numbers), dtype=np.bool_).reshape(len(numbers), allowed.shape[1])
    missing = matmul(~distinct, distinct.T)
    return group, ~missing
