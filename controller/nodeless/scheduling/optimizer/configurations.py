"""New nodes of a plan as configurations: shapes that can be bought, each with its pods of each item."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim
from nodeless.scheduling.optimizer.items import Item
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.pods.classes import Amounts

Configuration = tuple[int, Amounts]
"""A shape by its index, and the pods of each item on a node of it."""


class Configurations:
    """Finds the configurations of nodes; of those that are alike once."""

    def __init__(self, items: Sequence[Item], shapes: Shapes) -> None:
        self.items = items
        self._shapes = shapes
        self._pools = {table.pool.key: number for number, table in enumerate(shapes.tables)}
        self._known: dict[tuple[str, tuple[tuple[int, int], ...]], Configuration | None] = {}

    @cached_property
    def item_of(self) -> dict[str, int]:
        """The item that a pod is of, by its key."""
        return {key: number for number, item in enumerate(self.items) for key in item.keys}

    def of(self, node: InFlightNodeClaim) -> Configuration | None:
        """The cheapest shape that holds what the node has; None where no shape does."""
        counts: dict[int, int] = {}
        start = 0
        for part in node.parts:
            # The pods of a part are of one item.
            item = self.item_of[node.pods[start]]
            counts[item] = counts.get(item, 0) + part.count
            start += part.count
        name = node.table.pool.key, tuple(sorted(counts.items()))
        if name not in self._known:
            self._known[name] = self._cheapest(node, counts)
        return self._known[name]

    def _cheapest(self, node: InFlightNodeClaim, counts: Mapping[int, int]) -> Configuration | None:
        filling = np.zeros(len(self.items), dtype=np.int64)
        filling[list(counts)] = list(counts.values())
        shapes = self._shapes
        holds = (shapes.pool == self._pools.get(node.table.pool.key, -2)) & (shapes.room >= node.used).all(
            axis=1
        )
        holds &= shapes.allowed[:, filling > 0].all(axis=1)
        rows = np.flatnonzero(holds)
        return (int(rows[shapes.price[rows].argmin()]), filling) if len(rows) else None
