"""The problem of `column_generation` for the items of a solve: shapes, prices, caps.

Prices come with two corrections. Of plans at the same price the one with fewer nodes is better,
so that each node counts a little more than it costs. And heavier pools come first whatever they
cost: where a limited pool is dearer than the one behind it, a node of the lighter pool counts as
if it were dearer still (`_weight_penalties`), so that limits are the only reason to use it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.resource_prices import even_resource_prices, resource_prices
from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.items import Item
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul

PricesOf = Callable[[Amounts, Values, Mask, Amounts], Values]

#: What each node counts besides its price, as a share of the mean price.
_NODE = 1e-5
#: How many times dearer than a heavier pool's a CPU of a lighter pool counts at least: whole nodes leave some
#: room unused, and fewer of them must not be a reason to use it.
_AHEAD = 2.0
#: Of the shapes that are open to the same items, so many of the best in bulk are likely to be used.
_LIKELY = 14


def cover_of(
    items: Sequence[Item], shapes: Shapes, left: Sequence[Amounts], standing: tuple[Amounts, Mask]
) -> Cover:
    """The cover problem; existing nodes are its last shapes.

    Args:
        items: The pods.
        shapes: The shapes of new nodes.
        left: For each pool of the shapes what is left of its limits.
        standing: Room of existing nodes and the items that may go there.
    """
    room, allowed = standing
    first_tables = _first_tables(items)
    worth = {table.pool.key: _worth_in(table, items, resource_prices) for table in first_tables}
    even = {table.pool.key: _worth_in(table, items, even_resource_prices) for table in first_tables}
    uses, caps = caps_of(shapes, left, len(room))
    weight_penalties = _weight_penalties(shapes, items)
    cost = shapes.price + _NODE * float(shapes.price.mean()) if len(shapes.price) else shapes.price
    cost = cost * weight_penalties[shapes.pool]
    whole = Shapes(
        shapes.tables,
        np.concatenate([shapes.pool, np.full(len(room), -1, dtype=np.intp)]),
        np.concatenate([shapes.room, room]),
        np.concatenate([shapes.price, np.zeros(len(room))]),
        [*shapes.charge, *([np.zeros(0, dtype=np.int64)] * len(room))],
        np.concatenate([shapes.allowed, allowed]),
    )
    nothing = np.zeros(shapes.room.shape[1])
    return Cover(
        whole,
        np.array([item.pods.requests for item in items], dtype=np.int64),
        np.array([item.count for item in items], dtype=np.int64),
        np.concatenate([cost, np.zeros(len(room))]),
        uses,
        caps,
        np.array([float(matmul(item.pods.requests, _first_worth(item, worth, nothing))) for item in items]),
        np.array([float(matmul(item.pods.requests, _first_worth(item, even, nothing))) for item in items]),
        whole.pool < 0,
        _likely(whole, worth, nothing),
        {table.pool.key: float(weight_penalties[number]) for number, table in enumerate(shapes.tables)},
        np.array([worth.get(table.pool.key, nothing) for table in shapes.tables]).reshape(-1, len(nothing)),
    )


def caps_of(
    shapes: Shapes, left: Sequence[Amounts], standing: int
) -> tuple[tuple[dict[int, float], ...], Values]:
    """What a node of each shape takes of the caps, and these: limits of pools, and each existing node once.

    Args:
        shapes: The shapes of new nodes.
        left: For each pool of the shapes what is left of its limits.
        standing: How many existing nodes follow them.
    """
    caps: list[float] = []
    rows: dict[tuple[int, int], int] = {}
    for number, amounts in enumerate(left):
        for position, amount in enumerate(amounts):
            rows[number, position] = len(caps)
            caps.append(float(max(0, amount)))
    uses = [
        {rows[int(number), position]: float(amount) for position, amount in enumerate(charge) if amount > 0}
        for number, charge in zip(shapes.pool, shapes.charge, strict=True)
    ]
    uses += [{len(caps) + index: 1.0} for index in range(standing)]
    return tuple(uses), np.array([*caps, *([1.0] * standing)])


def _first_tables(items: Sequence[Item]) -> list[PoolTable]:
    return list(dict.fromkeys(item.tables[0] for item in items if item.tables))


def _first_worth(item: Item, worth: dict[str, Values], nothing: Values) -> Values:
    return worth[item.tables[0].pool.key] if item.tables else nothing


def _worth_in(table: PoolTable, items: Sequence[Item], prices_of: PricesOf) -> Values:
    """Prices of the resources for the items whose first pool this is."""
    demand = np.zeros(table.room.shape[1], dtype=np.int64)
    usable = np.zeros(len(table.table), dtype=np.bool_)
    prices = np.full(len(table.table), np.inf)
    for item in items:
        fresh = table.fresh(item.pods, item.node_requirements) if item.tables[:1] == (table,) else None
        if fresh is not None:
            demand += item.pods.requests * item.count
            usable |= fresh[0].types
            prices = np.minimum(prices, fresh[0].prices)
    return prices_of(table.room, prices, usable & np.isfinite(prices), demand)


def _weight_penalties(shapes: Shapes, items: Sequence[Item]) -> Values:
    """By pool: how many times its price a node counts."""
    weight_penalties = np.ones(max(len(shapes.tables), 1))
    if all(len({table.pool.weight for table in item.tables}) <= 1 for item in items):
        return weight_penalties
    order = sorted(range(len(shapes.tables)), key=lambda index: -shapes.tables[index].pool.weight)
    for ahead, behind in pairwise(order):
        heavy, light = shapes.tables[ahead], shapes.tables[behind]
        weight_penalties[behind] = weight_penalties[ahead]
        if heavy.pool.weight > light.pool.weight:
            dearer = float((_unit_price(shapes, ahead)).max(initial=0.0))
            cheaper = float((_unit_price(shapes, behind)).min(initial=np.inf))
            weight_penalties[behind] *= max(1.0, _AHEAD * dearer / cheaper) if cheaper > 0 else 1.0
    return weight_penalties


def _unit_price(shapes: Shapes, pool: int) -> Values:
    """Price of a CPU on the efficient shapes of a pool."""
    own = shapes.pool == pool
    unit: Values = shapes.price[own] / np.maximum(shapes.room[own, 0], 1)
    return np.sort(unit)[: max(1, len(unit) // 4)]


def _likely(shapes: Shapes, worth: dict[str, Values], nothing: Values) -> NDArray[np.intp]:
    """The best shapes in bulk for each group of items that are open to the same; all existing nodes."""
    value = np.zeros(len(shapes))
    for number, table in enumerate(shapes.tables):
        own = shapes.pool == number
        value[own] = matmul(np.maximum(shapes.room[own], 0), worth.get(table.pool.key, nothing))
    ratio = value / np.maximum(shapes.price, 1e-9)
    chosen: set[int] = set(np.flatnonzero(shapes.pool < 0).tolist())
    distinct = {column.tobytes(): column for column in shapes.allowed.T}
    for column in distinct.values():
        rows = np.flatnonzero(column & (shapes.pool >= 0))
        chosen.update(rows[np.argsort(-ratio[rows], kind="stable")[:_LIKELY]].tolist())
    return np.array(sorted(chosen), dtype=np.intp)
