"""Which shapes a cheapest cover can do without, and which two nodes need not be in it together.

Problem
-------
What pods on a node of shape s may use of resource r together is at most its room, and at most what they
use of it where another resource u runs out first, in fractions:

    c_sr = min over u of  max { sum_i q_i[r] y_i :  sum_i q_i[u] y_i <= b_s[u],  0 <= y_i <= m_is }

Shape t dominates s where c_s <= c_t, and t costs no more, takes no more of any cap and is open to as many
items: whatever a node of s holds, one of t holds. Two nodes of s and u are never needed together where some
shape t costs no more than both, takes no more of any cap, is open to the items of both and has room for
min(c_s + c_u, what all pods ask for): of the cheapest covers the one with the fewest nodes has no such pair.
As prices of a family are linear, and sizes double, there is one node at most of every size but the largest.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul
from nodeless.scheduling.spread.sharing import ENDLESS

#: Seconds for each comparison of two shapes, or of a pair and a shape, in one resource or cap.
_COMPARISON = 2e-9
#: Shapes of which pairs are compared, with as many others as these at most.
_PAIRED, _TAKING = 150, 1500
#: Costs that differ by less are equal, as a share: sums of prices are rounded.
_SAME = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Useful:
    """Shapes that a cheapest cover may need."""

    shapes: NDArray[np.intp]
    """Their numbers in the cover, existing nodes among them."""
    room: Amounts
    """What pods on one node can use, of every shape of the cover; shape (shapes, resources)."""
    apart: Mask
    """Pairs of them, and each with itself, of which a cheapest cover need not have two nodes."""

    def groups(self) -> list[list[int]]:
        """Groups of shapes, by number in the cover, of all of which one node at most is needed."""
        single = np.flatnonzero(self.apart.diagonal())
        apart = self.apart[np.ix_(single, single)]
        missing = apart.copy()
        found: list[list[int]] = []
        for first in range(len(single)):
            while missing[first].any():
                group = [first]
                for other in [*np.flatnonzero(missing[first]).tolist(), *range(len(single))]:
                    if other not in group and apart[other, group].all():
                        group.append(other)
                missing[np.ix_(group, group)] = False
                found.append(self.shapes[single[group]].tolist())
        return found


def useful_shapes(cover: Cover, hosts: HostLimits, below: float, effort: Effort) -> Useful:
    """The shapes that a cheapest cover may need.

    Args:
        cover: What to cover, with what.
        hosts: What items allow beside each other on one node.
        below: New nodes that count more are left out.
        effort: What it takes is taken from it.
    """
    usable = replace(cover, shapes=replace(cover.shapes, room=_usable_room(cover)))
    uses = np.zeros((len(cover.shapes), len(cover.caps)))
    for shape, taken in enumerate(cover.uses):
        for cap, amount in taken.items():
            uses[shape, cap] = amount
    affordable = np.flatnonzero(~cover.standing & (cover.cost <= below))
    new = affordable[_undominated(usable, uses, affordable, effort)]
    shapes = np.sort(np.concatenate([np.flatnonzero(cover.standing), new]))
    apart: Mask = np.zeros((len(shapes), len(shapes)), dtype=np.bool_)
    limited = (hosts.adds | (hosts.most < ENDLESS)).any(axis=1)
    # Pods that keep off each other have reason to be on two nodes.
    free = ~cover.standing[shapes] & ~cover.shapes.allowed[shapes][:, limited].any(axis=1)
    if free.sum() <= _PAIRED and len(affordable) <= _TAKING:
        together = _Together(usable, uses, shapes[free])
        apart[np.ix_(free, free)] = together.replaced(cover, affordable, effort)
    return Useful(shapes, usable.shapes.room, apart)


def _usable_room(cover: Cover) -> Amounts:
    """What pods on one node of each shape can use of each resource, in sums of requests."""
    requests, room = cover.requests, np.maximum(cover.shapes.room, 0)
    fits: Amounts = np.where(cover.shapes.allowed, cover.needed, 0)
    asked = np.flatnonzero(requests.any(axis=0)).tolist()
    for resource in asked:
        own = requests[:, resource]
        each = room[:, resource, None] // np.maximum(own, 1)
        fits = np.where(own > 0, np.minimum(fits, each), fits)
    usable: Amounts = np.minimum(room, matmul(fits, requests))
    for resource in asked:
        for other in asked:
            if other != resource:
                most = _most_of(requests[:, resource], requests[:, other], fits, room[:, other])
                usable[:, resource] = np.minimum(usable[:, resource], most)
    divisors: Amounts = np.maximum(np.gcd.reduce(requests, axis=0), 1)
    return usable // divisors * divisors


def _most_of(worth: Amounts, size: Amounts, number: Amounts, room: Amounts) -> Amounts:
    """What pods of some sizes are worth at most where they fill the room, in fractions, for each row."""
    ratio = np.where(size > 0, worth / np.maximum(size, 1), np.inf)
    order = np.argsort(-ratio, kind="stable")
    taken = (number * size)[:, order].astype(np.float64)
    before = np.cumsum(taken, axis=1) - taken
    share = np.clip(room[:, None] - before, 0.0, taken)
    of_size = matmul(share, np.where(size > 0, ratio, 0.0)[order])
    most: Amounts = np.floor(of_size + matmul(number, np.where(size > 0, 0, worth)) + 0.5).astype(np.int64)
    return most


def _undominated(cover: Cover, uses: Values, shapes: NDArray[np.intp], effort: Effort) -> NDArray[np.intp]:
    """Positions of the shapes that no other one dominates; of equal ones the first stays."""
    size = cover.shapes.room[shapes].sum(axis=1, dtype=np.float64)
    order = np.lexsort((np.arange(len(shapes)), -size, cover.cost[shapes]))
    room, uses, allowed = cover.shapes.room[shapes], uses[shapes], cover.shapes.allowed[shapes]
    kept: list[int] = []
    for shape in order.tolist():
        # Whoever costs no more comes before.
        better = (room[kept] >= room[shape]).all(axis=1) & (uses[kept] <= uses[shape]).all(axis=1)
        if not (better & (allowed[kept] | ~allowed[shape]).all(axis=1)).any():
            kept.append(shape)
    effort.left -= _COMPARISON * len(shapes) * len(kept) * (room.shape[1] + uses.shape[1] + allowed.shape[1])
    return np.array(kept, dtype=np.intp)


class _Together:
    """Two nodes of each pair of shapes as one: what it must hold, and may count and take."""

    def __init__(self, usable: Cover, uses: Values, shapes: NDArray[np.intp]) -> None:
        room = usable.shapes.room[shapes]
        self._uses = uses
        self._room: Amounts = np.minimum(room[:, None] + room, matmul(usable.needed, usable.requests))
        self._cost = (usable.cost[shapes, None] + usable.cost[shapes]) * (1 + _SAME)
        self._taken = uses[shapes][:, None] + uses[shapes]
        self._allowed = usable.shapes.allowed[shapes]

    def replaced(self, cover: Cover, shapes: NDArray[np.intp], effort: Effort) -> Mask:
        """The pairs that one node of some shape can be, with all the room that it has."""
        found: Mask = np.zeros(self._cost.shape, dtype=np.bool_)
        for shape in shapes.tolist():
            holds: Mask = (cover.cost[shape] <= self._cost) & (self._uses[shape] <= self._taken).all(axis=2)
            holds &= (np.maximum(cover.shapes.room[shape], 0) >= self._room).all(axis=2)
            open_to = (cover.shapes.allowed[shape] | ~self._allowed).all(axis=1)
            found |= holds & open_to[:, None] & open_to
        effort.left -= _COMPARISON * found.size * len(shapes) * (self._room.shape[2] + self._taken.shape[2])
        return found
