"""The cheapest cover made of every filling that a node may have, by an integer program.

Problem
-------
A filling of a shape is full where no further pod of any item has room beside it. With all full fillings k
of all shapes, each a_k at w_k:

    min  sum_k w_k z_k
    s.t. sum_k a_ik z_k >= n_i         every pod has a place
         sum_k g_kr z_k <= G_r         limits of pools, each existing node once
         z whole numbers

A cover may hold more pods than there are, so fillings that are not full are never needed: a part of a
full one is as good. Column generation finds the fillings that are best on average, and a dive rounds them;
where few pods wait, the best plan is often made of others. Fillings are listed item by item for all shapes
at once, and counted: where there are too many of them, none is tried.
"""

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import Rows, iterations_of, tree_search, whole_numbers
from nodeless.scheduling.optimizer.cover import Chosen, Cover
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.spread.sharing import ENDLESS

#: Fillings, begun or full, and full ones, up to which they are listed and given to the program.
_BEGUN, _FULL = 40_000, 5_000
#: Seconds for each amount of a filling that is listed, and that a program takes at most, as a rule, for each
#: pair of a filling and an item.
_AMOUNT, _PAIR = 30e-9, 12e-6
#: Nodes of the search tree, after which it ends with what it has.
_TREE = 100
#: By how much more than the best the answer may count.
_GAP = 1e-7


def cheapest_of_every_filling(cover: Cover, hosts: HostLimits, effort: Effort) -> list[Chosen] | None:
    """The cheapest cover; None where none is found, or fillings are too many for the effort.

    Args:
        cover: What to cover, with what.
        hosts: What items allow beside each other on one node.
        effort: What the search takes is taken from it.
    """
    listed = full_fillings(cover, hosts, effort)
    if listed is None:
        return None
    shapes, fillings = _cheapest_alike(cover, *listed)
    if not len(shapes) or len(shapes) > _FULL or _PAIR * fillings.size > effort.left:
        return None
    rows = Rows()
    for item, needed in enumerate(cover.needed.tolist()):
        rows.least(enumerate(fillings[:, item].tolist()), needed)
    uses = [cover.uses[shape] for shape in shapes.tolist()]
    for cap, left in enumerate(cover.caps.tolist()):
        rows.most(((column, use[cap]) for column, use in enumerate(uses) if cap in use), left)
    times = np.where(fillings > 0, -(-cover.needed // np.maximum(fillings, 1)), 0).max(axis=1)
    solver = tree_search(_TREE, _GAP)
    solver.passModel(
        rows.of_integers(
            cover.cost[shapes], np.zeros(len(shapes)), times.astype(np.float64), highspy.ObjSense.kMinimize
        )
    )
    solver.run()
    effort.spend_solving(iterations_of(solver), len(rows), len(shapes))
    values = whole_numbers(solver)
    if values is None:
        return None
    return [
        Chosen(int(shapes[column]), fillings[column], int(values[column]))
        for column in np.flatnonzero(values).tolist()
    ]


def full_fillings(cover: Cover, hosts: HostLimits, effort: Effort) -> tuple[NDArray[np.intp], Amounts] | None:
    """Every full filling: its shape, and its pods of each item; None where there are too many.

    Args:
        cover: The shapes and the items.
        hosts: What items allow beside each other on one node.
        effort: What the listing takes is taken from it.
    """
    asked = np.flatnonzero(cover.requests.any(axis=0))
    needs: Amounts = cover.requests[:, asked]
    room: Amounts = np.maximum(cover.shapes.room[:, asked], 0)
    size = (needs / np.maximum(room.max(axis=0, initial=1), 1)).max(axis=1, initial=0.0)
    order = np.argsort(-size, kind="stable").tolist()
    begun = _Begun(cover, hosts, needs, room)
    for place, item in enumerate(order):
        later = order[place + 1 :]
        if not begun.add(item, cover.needed[later] @ needs[later], effort):
            return None
    return begun.full()


class _Begun:
    """Fillings that are decided for some of the items; row by row."""

    def __init__(self, cover: Cover, hosts: HostLimits, needs: Amounts, room: Amounts) -> None:
        self._cover = cover
        self._hosts = hosts
        self._needs = needs
        self._shape: NDArray[np.intp] = np.arange(len(room))
        self._left = room
        self._filling: Amounts = np.zeros((len(room), len(needs)), dtype=np.int64)
        self._counted: Amounts = np.zeros((len(room), hosts.count), dtype=np.int64)
        self._most: Amounts = np.full((len(room), hosts.count), ENDLESS, dtype=np.int64)

    def add(self, item: int, later: Amounts, effort: Effort) -> bool:
        """Decide for one more item, in every way; whether the fillings are not too many.

        Args:
            item: The item.
            later: What all pods of the items that come after it ask for.
            effort: What it takes is taken from it.
        """
        fits = self._beside(item)
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
        self._shape, self._left, self._filling = self._shape[rows], left[keep], self._filling[rows]
        self._filling[:, item] = number
        self._counted = self._counted[rows] + self._hosts.adds[item] * number[:, None]
        own = np.where(number[:, None] > 0, self._hosts.most[item], ENDLESS)
        self._most = np.minimum(self._most[rows], own)
        return True

    def _beside(self, item: int) -> Amounts:
        """How many pods of an item have room beside what is there, and are there at all."""
        needs, hosts = self._needs[item], self._hosts
        used = needs > 0
        room = (self._left[:, used] // needs[used]).min(axis=1, initial=ENDLESS)
        rest: Amounts = np.minimum(room, self._cover.needed[item] - self._filling[:, item])
        if hosts.count:
            spare = np.minimum(self._most, hosts.most[item]) - self._counted
            rest = np.minimum(rest, np.where(hosts.adds[item], spare, ENDLESS).min(axis=1))
            rest[(~hosts.adds[item] & (hosts.most[item] < self._counted)).any(axis=1)] = 0
        return np.where(self._cover.shapes.allowed[self._shape, item], np.maximum(rest, 0), 0)

    def full(self) -> tuple[NDArray[np.intp], Amounts]:
        """Those beside which no pod has room."""
        full: Mask = np.logical_or.reduce(self._filling > 0, axis=1)
        for item in range(self._filling.shape[1]):
            np.logical_and(full, self._beside(item) == 0, out=full)
        return self._shape[full], self._filling[full]


def _cheapest_alike(
    cover: Cover, shapes: NDArray[np.intp], fillings: Amounts
) -> tuple[NDArray[np.intp], Amounts]:
    """Of shapes with the same filling those that cost the least, and others that use less of a cap."""
    kept: list[int] = []
    known: dict[bytes, list[int]] = {}
    for row in np.argsort(cover.cost[shapes], kind="stable").tolist():
        alike = known.setdefault(fillings[row].tobytes(), [])
        uses = cover.uses[int(shapes[row])]
        if not any(
            all(amount <= uses.get(cap, 0.0) for cap, amount in cover.uses[int(shapes[other])].items())
            for other in alike
        ):
            alike.append(row)
            kept.append(row)
    return shapes[kept], fillings[kept]
