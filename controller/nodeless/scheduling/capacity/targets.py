"""Which types a fresh node may become, by what its pods cost there.

`fewest-nodes` keeps every type that holds a pod, so that the node grows as large as any allows.
`lowest-price` looks for the type on which a dollar buys most: with prices y of the resources
(`resource_prices`), k pods of the class that opens the node and room f left beside them,

    worth_t = y . (k q)  +  y . min(f, what is still to come),      t* = argmin w_t / worth_t,

ties to the type that takes more pods, then by name. What is still to come counts a little less
than what is there, for it may not fit. The node then keeps the types that cost no more than t*:
the pods that follow may fill it, but never make it dearer.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from nodeless.model.packing import LOWEST_PRICE
from nodeless.scheduling.capacity.pool_table import PoolTable, Terms
from nodeless.scheduling.capacity.resource_prices import resource_prices
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass
from nodeless.scheduling.pods.matmul import matmul

#: What room for pods to come is worth beside room that is used.
_PROMISE = 0.9
#: Prices per worth that differ by less than this share are equal.
_EQUAL = 1e-9


class Targets:
    """The price-aware choice of types in one solve."""

    def __init__(
        self,
        tables: Iterable[PoolTable],
        classes: Iterable[PodClass],
        packing: str,
        *,
        thrifty: bool = False,
        wide: bool = False,
        apart: Mapping[PodClass, float] | None = None,
        meter: Meter | None = None,
    ) -> None:
        """Prepare the choice.

        Args:
            tables: The usable pools.
            classes: All pods.
            packing: The policy where a pool has none of its own.
            thrifty: In pools with limits, types that count the least against them go before any price.
            wide: No type is set aside for its price, whatever the packing.
            apart: Nodes that classes need for themselves: what is to come is shared among those.
            meter: Counts the work for all classes; where there is too much, some are not looked at.
        """
        self._meter = meter or Meter()
        self._thrifty = thrifty
        self._wide = wide
        self._begun: set[PodClass] = set()
        self._apart = apart or {}
        self._classes = tuple(classes)
        self._default = packing
        self._worth: dict[str, NDArray[np.float64]] = {}
        total = sum((pods.requests * len(pods.pods) for pods in self._classes), np.int64(0))
        self._to_come: Amounts = np.array(total, dtype=np.int64)
        self._tables = {table.pool.key: table for table in tables}

    def begin(self, pods: PodClass) -> None:
        """A class is placed now; it is no longer to come."""
        if pods not in self._begun:
            self._begun.add(pods)
            self._to_come = self._to_come - pods.requests * len(pods.pods)

    def aims(self, table: PoolTable) -> bool:
        """Whether nodes of the pool are chosen by price."""
        return (table.pool.packing or self._default) == LOWEST_PRICE

    def _by_price(self, table: PoolTable) -> bool:
        return not self._wide and self.aims(table)

    def rank(self, table: PoolTable, pods: PodClass, terms: Terms, counts: Amounts) -> float | None:
        """What room for a pod costs on a fresh node (of the limits, if `thrifty`); None: no matter."""
        held = counts > 0
        taken = np.minimum(counts[held], len(pods.pods))
        if self._thrifty and table.limit_names:
            return float((_shares(table)[held] / taken).min())
        return float((terms.prices[held] / taken).min()) if self._by_price(table) else None

    def types(
        self, table: PoolTable, pods: PodClass, terms: Terms, counts: Amounts, holds: Mask, want: int
    ) -> Mask:
        """The types that a fresh node keeps, of those that hold a pod of the class."""
        if self._thrifty and table.limit_names:
            return _least_charge(table, terms, counts, holds, want)
        if not self._by_price(table):
            return holds
        rows = np.flatnonzero(holds)
        taken = np.minimum(counts[rows], want)
        used = taken[:, None] * pods.requests
        share = np.maximum(self._to_come, 0) / max(1.0, self._apart.get(pods, 1.0))
        left = np.minimum(table.room[rows] - used, share)
        worth = matmul(used + _PROMISE * left, self._prices_of(table))
        prices = terms.prices[rows]
        ratio = prices / np.where(worth > 0, worth, taken)
        best = rows[np.lexsort((rows, -taken, np.round(ratio / (_EQUAL + ratio.min()), 9)))[0]]
        kept: Mask = holds & (terms.prices <= terms.prices[best])
        return kept

    def _prices_of(self, table: PoolTable) -> NDArray[np.float64]:
        worth = self._worth.get(table.pool.key)
        if worth is None:
            worth = self._worth[table.pool.key] = self._bought_in(table)
        return worth

    def _bought_in(self, table: PoolTable) -> NDArray[np.float64]:
        """Prices of the resources for the classes that the pool accepts.

        They are asked for by whoever opens a node first, and are for everybody.
        """
        with self._meter.for_others():
            return self._priced_for(table, in_turns(self._classes))

    def _priced_for(self, table: PoolTable, classes: Iterable[PodClass]) -> NDArray[np.float64]:
        demand = np.zeros(table.room.shape[1], dtype=np.int64)
        usable = np.zeros(len(table.table), dtype=np.bool_)
        prices = np.full(len(table.table), np.inf)
        for pods in classes:
            if not self._meter.common_left:
                break
            if table.refuses(pods.shape.tolerations, soft=True) is not None:
                continue
            for node_requirements in pods.demand.required:
                fresh = table.fresh(pods, node_requirements)
                if fresh is not None:
                    demand += pods.requests * len(pods.pods)
                    usable |= fresh[0].types
                    prices = np.minimum(prices, fresh[0].prices)
                    break
        return resource_prices(table.room, prices, usable & np.isfinite(prices), demand)


def in_turns(classes: Iterable[PodClass]) -> Iterator[PodClass]:
    """One class of each namespace after the other: where there is no time for all, none goes short."""
    by_namespace: dict[str, list[PodClass]] = {}
    for pods in classes:
        by_namespace.setdefault(pods.pods[0].partition("/")[0], []).append(pods)
    for some in zip_longest(*by_namespace.values()):
        yield from (pods for pods in some if pods is not None)


def _shares(table: PoolTable) -> NDArray[np.float64]:
    """By type, the largest share of a limit that a node takes."""
    shares: NDArray[np.float64] = (table.limited / np.maximum(table.limits, 1)).max(axis=1)
    return shares


def _least_charge(table: PoolTable, terms: Terms, counts: Amounts, holds: Mask, want: int) -> Mask:
    """The types no larger than the one on which a pod counts the least against the pool's limits."""
    rows = np.flatnonzero(holds)
    taken = np.minimum(counts[rows], want)
    share = _shares(table)[rows] / taken
    best = rows[np.lexsort((rows, terms.prices[rows], np.round(share, 9)))[0]]
    kept: Mask = holds & (table.limited <= table.limited[best]).all(axis=1)
    return kept
