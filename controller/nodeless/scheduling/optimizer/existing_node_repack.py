"""Room on existing nodes that a cheaper plan may use otherwise.

Pods that the first-fit plan put on existing nodes may change places with others, so that what is
there is used better. Only plain pods do: a class with rules, preferences, host ports or volumes keeps
its places, and what it takes is not room any more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.first_fit.filling import Existing
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.optimizer.items import Item, in_whole_pods
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass, how_many
from nodeless.scheduling.pods.rules import NO_RULES

#: Existing nodes that are looked at, those with the most room first.
_MOST = 200
#: Existing nodes up to which a bound looks at each of them, whatever pods there are.
_LEAST_GROUPS = 64
#: Seconds for each amount of a node that a request is held against.
_CELL = 12e-9


@dataclass(frozen=True, slots=True, eq=False)
class ExistingNodes:
    """Existing nodes as a bound sees them: each one, or groups that are looked at as one node."""

    room: Amounts
    allowed: Mask
    """Items that may go there; shape (rows, items)."""
    nodes: Amounts
    """How many nodes each row stands for."""
    names: tuple[str, ...] = ()
    """Of the nodes, where each row is one."""


class ExistingNodeRepack:
    """The existing nodes of a solve as shapes that cost nothing and are there once."""

    def __init__(
        self,
        existing: Existing,
        placements: Mapping[str, str],
        classes: Iterable[PodClass],
        kept: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._existing = existing
        self._slot = {name: index for index, name in enumerate(existing.names)}
        self.free: Amounts = existing.free
        """Room for plain pods: where they are, or could be."""
        self._whole: Amounts = existing.free
        #: Room before this pass.
        self.placed: dict[PodClass, tuple[str, ...]] = {}
        """Plain pods that are on existing nodes and may move, by class."""
        for pods in classes if placements else ():
            keys = tuple(key for key in pods.pods if key in placements)
            for key in keys:
                self._whole[self._slot[placements[key]]] += pods.requests + pods.attaching()
            if keys and _plain(pods):
                # What an earlier pass decided is not undone for a cent: their nodes are on the way.
                movable = tuple(key for key in keys if kept.get(key) != placements[key])
                if movable:
                    self.placed[pods] = movable
                for key in movable:
                    self.free[self._slot[placements[key]]] += pods.requests

    def joined(self, items: Sequence[Item], tables: Sequence[PoolTable]) -> list[Item]:
        """The items, with the plain pods that are on existing nodes."""
        result = list(items)
        for pods, keys in self.placed.items():
            index = next((i for i, item in enumerate(result) if item.pods is pods), None)
            if index is not None:
                one = result[index]
                result[index] = Item(pods, one.node_requirements, one.rules, one.tables, (*keys, *one.keys))
                continue
            result.append(Item(pods, pods.demand.required[0], NO_RULES, _open_to(pods, tables), keys))
        return result

    def shapes(self, items: Sequence[Item], meter: Meter) -> tuple[Amounts, Mask, list[str]]:
        """Room, items that may go there, and names; of the nodes that can take any item."""
        allowed: Mask = np.zeros((len(self.free), len(items)), dtype=np.bool_)
        for index, item in enumerate(items):
            meter.spend(_CELL * self.free.size)
            if _plain(item.pods) and not meter.over:
                fits = how_many(self.free, item.pods.requests) > 0
                allowed[:, index] = fits & self._existing.accepts(item.pods)
        rows = np.flatnonzero(allowed.any(axis=1))
        if len(rows) > _MOST:
            share = (self.free[rows] / np.maximum(self.free[rows].max(axis=0), 1)).sum(axis=1)
            rows = np.sort(rows[np.argsort(-share, kind="stable")[:_MOST]])
        return self.free[rows], allowed[rows], [self._existing.names[row] for row in rows]

    def at_most(self, items: Sequence[Item], pairs: int, meter: Meter) -> ExistingNodes:
        """What may be on existing nodes as far as these are concerned, with the room before this pass.

        Not all items are looked at where `meter` says so.

        Args:
            items: What may go there.
            pairs: Pairs of a node and an item up to which each node counts; else those that are most alike
                count as one with the room of all.
            meter: Counts the work.
        """
        accepted: Mask = np.zeros((len(self._whole), len(items)), dtype=np.bool_)
        allowed: Mask = np.zeros_like(accepted)
        for index, item in enumerate(items):
            meter.spend(_CELL * self._whole.size)
            if meter.over:
                break
            accepted[:, index] = self._existing.accepts(item.pods, include_prefer_no_schedule=True)
            allowed[:, index] = accepted[:, index] & (how_many(self._whole, item.pods.requests) > 0)
        rows = np.flatnonzero(allowed.any(axis=1))
        room, allowed = np.maximum(self._whole[rows], 0), allowed[rows]
        most = np.clip(len(rows) * max(0, pairs) / max(1, allowed.sum()), _LEAST_GROUPS, _MOST)
        if len(rows) <= most:
            names = tuple(self._existing.names[row] for row in rows)
            return ExistingNodes(room, allowed, np.ones(len(rows), dtype=np.int64), names)
        order = _alike_first(room, accepted[rows])
        first = np.unique(np.linspace(0, len(rows), int(most), endpoint=False).astype(np.intp))
        return ExistingNodes(
            np.add.reduceat(in_whole_pods(room, items)[order], first),
            np.logical_or.reduceat(allowed[order], first),
            np.diff(first, append=len(rows)),
        )


def _alike_first(room: Amounts, accepted: Mask) -> NDArray[np.intp]:
    """An order of nodes in which those follow each other that accept the same, and whose room is alike.

    What resources are poured into loses nothing where nodes are one whose room has the same proportions.
    """
    share = room / np.maximum(room.max(axis=0, initial=1), 1)
    asked = np.argsort(-share.std(axis=0), kind="stable")[:2]
    slope = np.arctan2(share[:, asked[0]], share[:, asked[-1]])
    _, same = np.unique(accepted, axis=0, return_inverse=True)
    return np.lexsort((slope, same.reshape(-1)))


def _plain(pods: PodClass) -> bool:
    return not (
        pods.rules
        or pods.adds
        or pods.demand.preferred
        or pods.shape.host_ports
        or pods.shape.claims
        or pods.shared
        or pods.shape.placeholder
    )


def _open_to(pods: PodClass, tables: Sequence[PoolTable]) -> tuple[PoolTable, ...]:
    """The heaviest pool that accepts a class; none: its pods stay on existing nodes."""
    for table in tables:
        if table.refuses(pods.shape.tolerations, soft=False) is None and table.fresh(
            pods, pods.demand.required[0]
        ):
            return (table,)
    return ()
