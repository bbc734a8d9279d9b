"""Every full filling that nodes may have, shape by shape, as far as these are few.

A filling of a shape is full where no further pod of any item has room beside it. A cover may hold more pods
than there are, so fillings that are not full are never needed: a part of a full one is as good. Fillings are
listed item by item for all shapes at once, and counted: shapes that have too many are left out, and named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.items import HostCounts, HostLimits
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul
from nodeless.scheduling.spread.sharing import ENDLESS

#: Fillings, begun or full, up to which they are listed.
_BEGUN = 40_000
#: Seconds for each amount of a filling that is listed, and for each pair of fillings that are compared.
_AMOUNT, _COMPARISON = 30e-9, 1.5e-9
#: Fillings up to which those are left out that a cheaper one holds.
_COMPARED = 3000


@dataclass(frozen=True, slots=True, eq=False)
class Fillings:
    """Full fillings: row by row a shape and its pods of each item."""

    shape: NDArray[np.intp]
    pods: Amounts
    beside: NDArray[np.intp]
    """The shapes that have more fillings than were asked for, of which none is listed."""


def full_fillings(
    cover: Cover, hosts: HostLimits, shapes: Sequence[int], most: Amounts, effort: Effort
) -> Fillings | None:
    """The full fillings of shapes; None where the effort does not suffice.

    Fillings are left out where another holds as much, costs no more and takes no more of any cap.

    Args:
        cover: The items, and what the shapes are.
        hosts: What items allow beside each other on one node.
        shapes: The shapes to fill.
        most: Fillings, begun or full, up to which those of each shape of the cover are listed.
        effort: What the listing takes is taken from it.
    """
    asked = np.flatnonzero(cover.requests.any(axis=0))
    needs: Amounts = cover.requests[:, asked]
    room: Amounts = np.maximum(cover.shapes.room[:, asked], 0)
    size = (needs / np.maximum(room.max(axis=0, initial=1), 1)).max(axis=1, initial=0.0)
    order = np.argsort(-size, kind="stable").tolist()
    begun = _Begun(cover, hosts, needs, room, np.array(shapes, dtype=np.intp))
    for place, item in enumerate(order):
        later = order[place + 1 :]
        if not begun.add(item, matmul(cover.needed[later], needs[later]), most, effort):
            return None
    shape, pods = begun.full()
    kept = _undominated(cover, shape, pods, effort)
    return Fillings(shape[kept], pods[kept], np.array(sorted(begun.beside), dtype=np.intp))


class _Begun:
    """Fillings that are decided for some of the items; row by row."""

    def __init__(
        self, cover: Cover, hosts: HostLimits, needs: Amounts, room: Amounts, shapes: NDArray[np.intp]
    ) -> None:
        self._cover = cover
        self._hosts = hosts
        self._needs = needs
        self._shape = shapes
        self._left: Amounts = room[shapes]
        self._filling: Amounts = np.zeros((len(shapes), len(needs)), dtype=np.int64)
        self._counts = HostCounts(hosts, len(shapes))
        self.beside: set[int] = set()
        """The shapes that have too many fillings."""

    def add(self, item: int, later: Amounts, most: Amounts, effort: Effort) -> bool:
        """Decide for one more item, in every way; whether the effort suffices.

        Args:
            item: The item.
            later: What all pods of the items that come after it ask for.
            most: Fillings of each shape at most; shapes with more are left out from now on.
            effort: What it takes is taken from it.
        """
        fits = self._drop_many(self._beside(item), most)
        each = fits + 1
        total = int(each.sum())
        effort.left -= _AMOUNT * total * (self._filling.shape[1] + self._left.shape[1])
        if total > _BEGUN or effort.left <= 0:
            return False
        rows = np.repeat(np.arange(len(fits)), each)
        number = np.arange(total) - np.repeat(np.cumsum(each) - each, each)
        left = self._left[rows] - number[:, None] * self._needs[item]
        keep = np.ones(total, dtype=np.bool_)
        if not len(self._hosts.touched[item]):
            # Where there is room for one more even beside all that may follow, it never gets full.
            keep = (number == fits[rows]) | (left - later < self._needs[item]).any(axis=1)
        rows, number = rows[keep], number[keep]
        self._take(rows, left[keep])
        self._filling[:, item] = number
        self._counts.add(number, item)
        return True

    def _drop_many(self, fits: Amounts, most: Amounts) -> Amounts:
        """Leave out the shapes that would have too many fillings; returns `fits` of the others."""
        ways = np.bincount(self._shape, weights=fits + 1, minlength=len(self._cover.shapes))
        many = np.flatnonzero(ways > most)
        if not len(many):
            return fits
        self.beside.update(many.tolist())
        kept = np.flatnonzero(ways[self._shape] <= most[self._shape])
        self._take(kept, self._left[kept])
        return fits[kept]

    def _take(self, rows: NDArray[np.intp], left: Amounts) -> None:
        """Go on with copies of some rows."""
        self._shape, self._left, self._filling = self._shape[rows], left, self._filling[rows]
        self._counts.keep(rows)

    def _beside(self, item: int) -> Amounts:
        """How many pods of an item have room beside what is there, and are there at all."""
        needs = self._needs[item]
        used = needs > 0
        room = (self._left[:, used] // needs[used]).min(axis=1, initial=ENDLESS)
        rest: Amounts = np.minimum(room, self._cover.needed[item] - self._filling[:, item])
        return np.where(self._cover.shapes.allowed[self._shape, item], self._counts.limited(rest, item), 0)

    def full(self) -> tuple[NDArray[np.intp], Amounts]:
        """Those beside which no pod has room."""
        full: Mask = np.logical_or.reduce(self._filling > 0, axis=1)
        for item in range(self._filling.shape[1]):
            np.logical_and(full, self._beside(item) == 0, out=full)
        return self._shape[full], self._filling[full]


def _undominated(cover: Cover, shape: NDArray[np.intp], pods: Amounts, effort: Effort) -> NDArray[np.intp]:
    """Rows without those of which another holds as much, costs no more and takes no more of any cap."""
    order = np.argsort(cover.cost[shape], kind="stable")
    if len(shape) > _COMPARED:
        return order
    uses = np.zeros((len(shape), len(cover.caps)))
    for row, number in enumerate(shape.tolist()):
        for cap, amount in cover.uses[number].items():
            uses[row, cap] = amount
    effort.left -= _COMPARISON * len(shape) ** 2 * (pods.shape[1] + uses.shape[1]) / 2
    pods, uses, number = pods[order], uses[order], 0
    kept: NDArray[np.intp] = np.zeros(len(order), dtype=np.intp)
    for row in range(len(order)):
        # Whoever costs no more comes before.
        before = kept[:number]
        if not ((pods[before] >= pods[row]).all(axis=1) & (uses[before] <= uses[row]).all(axis=1)).any():
            kept[number] = row
            number += 1
    return order[kept[:number]]
