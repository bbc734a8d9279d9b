"""What pods are worth at most on one node of each shape, and so what a plan costs at least.

Problem
-------
For each shape s, given values v_i of pods:

    M_s = max  sum_i v_i x_i
          s.t. sum_i q_i[r] x_i <= b_s[r]     for the two resources r of which most is asked for
               x_i <= u_is                    no more than there are, and than may be on one node
               x_i whole numbers

No filling is worth more, for other resources and what different items mean to each other (`items.HostLimits`)
are left out. Let w_s be the price of shape s, g_sr what it takes of cap r, of which there is G_r at price
m_r; for an existing node, which costs nothing, m_r is M_s. If all values are divided by the largest
M_s / (w_s + sum_r m_r g_sr) of the shapes that are bought, no filling is worth more than it costs, and by
linear duality no plan for n_i pods costs less than

    sum_i v_i n_i - sum_r m_r G_r

Method: M_s is at most what pods are worth in fractions, in each resource and in mixtures of two:

    M_s <= max  sum_i v_i x_i   s.t.  sum_i (q_i . a) x_i <= b_s . a,   0 <= x_i <= u_is       for any a >= 0

The shapes that lower the bound the most this way are looked at more closely, one after the other: large items
by dynamic programming over the room of both resources, in steps of the greatest common divisors of what
they request, and what is left of the room by small items in fractions. So many items are large as there are
steps for; where that is none, what large ones request is rounded down. One table answers for all shapes of
about the same size that are open to the same items, and says which filling is worth so much.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.spread.sharing import ENDLESS

#: Amounts of room that a table tells apart, from the first one of a group of shapes to the last.
_CELLS = (20_000, 100_000, 500_000)
#: An item that requests so much of the room of a node is large.
_LARGE = 1 / 16
#: Mixtures of two resources in which pods are bounded in fractions.
_MIXTURES = 16
#: Seconds for each step of a table, and for each of its cells in it; for the rest of the room at one; and in
#: a mixture for each item or shape.
_STEP, _CELL, _REST, _IN_FRACTIONS = 12e-6, 1.2e-9, 2.5e-9, 0.1e-6
#: What rounding in sums of values may hide, as a share.
_ROUNDING = 1e-9
#: A shape that lowers the bound by a smaller share is not looked at.
_ENOUGH = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """What nodes of each shape hold at best."""

    bound: float
    """No plan costs less."""
    fillings: Sequence[tuple[int, Amounts]]
    """Fillings that are worth more than they cost; they fit, and are what was found to be worth the most."""
    settled: bool
    """Whether shapes were looked at until none lowered the bound by much."""


class Knapsacks:
    """The problem for the shapes and items of a cover; values change from call to call."""

    def __init__(self, cover: Cover, hosts: HostLimits) -> None:
        self._cover = cover
        self._hosts = hosts
        own = np.where(hosts.adds, hosts.most, ENDLESS).min(axis=1, initial=ENDLESS)
        self._most: Amounts = np.minimum(cover.needed, own)
        self._open_alike = list(_open_alike(cover))
        self._groups = list(_groups(cover, self._most, self._open_alike))
        self._group = np.full(len(cover.shapes), -1, dtype=np.intp)
        for number, group in enumerate(self._groups):
            self._group[group.shapes] = number
        self._known_steps: dict[tuple[int, int], _Steps] = {}

    def price(self, values: Values, rents: Values, effort: Effort, together: float | None = None) -> Priced:
        """What a plan costs at least at some values, and fillings that are worth more than they cost.

        Args:
            values: Of one pod of each item.
            rents: What the caps cost.
            effort: What it takes is taken from it; with little, the bound is low.
            together: What all pods are worth at least; that of all that are needed, if it is not given.
        """
        together = float(values @ self._cover.needed) if together is None else together
        cover = self._cover
        rents = rents.copy()
        # What existing nodes cost follows from what they hold.
        for shape in np.flatnonzero(cover.standing):
            rents[list(cover.uses[shape])] = 0.0
        taken = cover.rent(rents, range(len(cover.shapes)))
        most, tables, settled = self._most_worth(values, taken, max(together, 1e-12), effort)
        dear = most > (cover.cost + taken) * (1 + _ENOUGH)
        fillings = list(self._fillings(tables, values, dear))
        return Priced(self._bound(together, rents, most, taken), fillings, settled)

    def _most_worth(
        self, values: Values, taken: Values, together: float, effort: Effort
    ) -> "tuple[Values, dict[int, _Table], bool]":
        """What pods on each shape are worth at most, the tables that say so, and whether more would not help.

        The shape that lowers the bound the most is looked at next, as long as it is not known exactly.
        """
        # A shape without a group has no room for any item.
        most = np.where(self._group >= 0, self._in_fractions(values, effort), 0.0)
        level = np.zeros(len(self._groups), dtype=np.intp)
        tables: dict[int, _Table] = {}
        while effort.left > 0:
            lost = self._lost(most, taken, together)
            # The last entry stands for shapes without a group.
            finest = np.array([*(self._is_finest(*each) for each in enumerate(level.tolist())), True])
            coarse = ~finest[self._group]
            worst = int(np.where(coarse, lost, -np.inf).argmax())
            if not coarse[worst] or lost[worst] <= max(float(lost[~coarse].max(initial=0.0)), _ENOUGH):
                return most, tables, True
            number = int(self._group[worst])
            steps = self._steps(number, int(level[number]))
            level[number] += 1
            if effort.left < steps.seconds:
                break
            effort.left -= steps.seconds
            group = self._groups[number]
            tables[number] = _Table(self._cover, self._most, group, steps, values)
            most[group.shapes] = np.minimum(most[group.shapes], tables[number].most)
        return most, tables, False

    def _lost(self, most: Values, taken: Values, whole: float) -> Values:
        """By what share each shape lowers the bound, about."""
        cover = self._cover
        price = np.maximum(cover.cost + taken, 1e-9)
        lost: Values = np.where(cover.standing, most / whole, most / price - 1.0)
        return lost

    def _bound(self, together: float, rents: Values, most: Values, taken: Values) -> float:
        cover = self._cover
        new = ~cover.standing
        dearest = float(((most - taken)[new] / np.maximum(cover.cost[new], 1e-9)).max(initial=0.0))
        if dearest <= 0:
            return 0.0
        for shape in np.flatnonzero(cover.standing):
            for row in cover.uses[shape]:
                rents[row] = most[shape]
        return max(0.0, (together - float(rents @ cover.caps)) / dearest)

    def _in_fractions(self, values: Values, effort: Effort) -> Values:
        """What pods on a node of each shape are worth at most where they may be divided."""
        cover = self._cover
        worth = np.full(len(cover.shapes), np.inf)
        room = np.maximum(cover.shapes.room, 0)
        total = self._most @ cover.requests
        mixtures = list(_mixtures(total))
        for shapes in self._open_alike:
            items = np.flatnonzero(cover.shapes.allowed[shapes[0]] & (values > 0) & (self._most > 0))
            effort.left -= _IN_FRACTIONS * len(mixtures) * (len(items) + len(shapes))
            for mixture in mixtures:
                least = _knapsack_in_fractions(
                    values[items], cover.requests[items] @ mixture, self._most[items], room[shapes] @ mixture
                )
                worth[shapes] = np.minimum(worth[shapes], least)
        return worth * (1 + _ROUNDING)

    def _steps(self, number: int, level: int) -> "_Steps":
        """A group with its room in steps of that level."""
        known = self._known_steps.get((number, level))
        if known is None:
            known = _steps(self._cover, self._most, self._groups[number], _CELLS[level])
            self._known_steps[number, level] = known
        return known

    def _is_finest(self, number: int, level: int) -> bool:
        """Whether a group that was looked at so often has nothing more to tell."""
        return level == len(_CELLS) or (level > 0 and self._steps(number, level - 1).finest)

    def _fillings(
        self, tables: "dict[int, _Table]", values: Values, wanted: Mask
    ) -> Iterator[tuple[int, Amounts]]:
        for number, table in tables.items():
            for place, shape in enumerate(self._groups[number].shapes.tolist()):
                if wanted[shape]:
                    filling = self._fitting(shape, table.filling(place), values)
                    if filling is not None:
                        yield shape, filling

    def _fitting(self, shape: int, filling: Amounts, values: Values) -> Amounts | None:
        """The filling, without pods for which there is no room; None where its pods cannot be together."""
        cover, hosts = self._cover, self._hosts
        room = cover.shapes.room[shape]
        size = cover.requests / np.maximum(room, 1)
        while (filling @ cover.requests > room).any():
            over = filling @ cover.requests > room
            some = np.flatnonzero((filling > 0) & (cover.requests[:, over] > 0).any(axis=1))
            filling[some[np.argmin(values[some] / size[np.ix_(some, np.flatnonzero(over))].sum(axis=1))]] -= 1
        if hosts.count:
            there = np.flatnonzero(filling)
            if (hosts.most[there].min(axis=0, initial=ENDLESS) < filling @ hosts.adds).any():
                return None
        return filling


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Shapes of about the same size that are open to the same items."""

    shapes: NDArray[np.intp]
    items: NDArray[np.intp]
    """Those that one of them has room for."""
    both: NDArray[np.intp]
    """The resources of which most is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """A group with its room in steps."""

    pieces: tuple[tuple[int, int, int, int], ...]
    """A large item, so many pods of it, and the steps of room that they take of both resources."""
    small: NDArray[np.intp]
    """The other items."""
    room: Amounts
    """Of each shape; shape (shapes, 2)."""
    unit: Amounts
    """What a step is of both resources."""
    size: tuple[int, int]
    """Of the table."""

    @property
    def finest(self) -> bool:
        """Whether all items are large."""
        return not len(self.small)

    @property
    def seconds(self) -> float:
        """What a table takes."""
        cells = self.size[0] * self.size[1]
        rest = len(self.room) * cells * _REST * (_MIXTURES + 2) if len(self.small) else 0.0
        return len(self.pieces) * (_STEP + _CELL * cells) + rest


class _Table:
    """The most that pods are worth by the room of a node, and who is there."""

    def __init__(self, cover: Cover, most: Amounts, group: _Group, steps: _Steps, values: Values) -> None:
        self._cover = cover
        self._number = most
        self._group = group
        self._steps = steps
        self._values = values
        worth = np.zeros(steps.size)
        self._taken: list[tuple[int, int, int, int, Mask]] = []
        for item, number, one, other in steps.pieces:
            if values[item] <= 0:
                continue
            with_piece = worth[: steps.size[0] - one, : steps.size[1] - other] + number * values[item]
            better = with_piece > worth[one:, other:]
            np.copyto(worth[one:, other:], with_piece, where=better)
            self._taken.append((item, number, one, other, better))
        self._worth = worth
        self._corners = self._find_corners()
        self._small = [item for item in steps.small.tolist() if values[item] > 0]
        self.most = np.zeros(len(steps.room))
        """What pods on each shape are worth."""
        self._best: list[tuple[int, int]] = []
        for place in range(len(steps.room)):
            value, corner = self._most_on(place)
            self.most[place] = value * (1 + _ROUNDING)
            self._best.append(corner)

    def _find_corners(self) -> NDArray[np.intp]:
        """Where large pods have just the room that they need; shape (corners, 2)."""
        rises: Mask = np.ones(self._steps.size, dtype=np.bool_)
        rises[1:] &= self._worth[1:] > self._worth[:-1]
        across: Mask = np.ones(self._steps.size, dtype=np.bool_)
        across[:, 1:] = self._worth[:, 1:] > self._worth[:, :-1]
        rises &= across
        rises[0, 0] = True
        return np.argwhere(rises)

    def _most_on(self, place: int) -> tuple[float, tuple[int, int]]:
        """What pods on one of the shapes are worth, and the room of the large ones of them, in steps."""
        steps = self._steps
        room = steps.room[place]
        left = room - self._corners * steps.unit
        fits = (left >= 0).all(axis=1)
        corners, left = self._corners[fits], left[fits]
        worth = self._worth[corners[:, 0], corners[:, 1]]
        if self._small:
            worth = worth + self._rest(left)
        best = int(worth.argmax())
        return float(worth[best]), (int(corners[best, 0]), int(corners[best, 1]))

    def _rest(self, left: Amounts) -> Values:
        """What small pods are worth at most in some room, in fractions."""
        both = self._group.both
        small = np.array(self._small, dtype=np.intp)
        requests, number = self._cover.requests[np.ix_(small, both)], self._number[small]
        worth = np.full(len(left), np.inf)
        for mixture in _mixtures(number @ requests):
            own = _knapsack_in_fractions(self._values[small], requests @ mixture, number, left @ mixture)
            worth = np.minimum(worth, own)
        return worth

    def filling(self, place: int) -> Amounts:
        """The pods of each item on one of the shapes: the best large ones, and small ones beside them."""
        filling: Amounts = np.zeros(len(self._cover.needed), dtype=np.int64)
        row, column = self._best[place]
        for item, number, one, other, better in reversed(self._taken):
            if row >= one and column >= other and better[row - one, column - other]:
                filling[item] += number
                row, column = row - one, column - other
        room = self._cover.shapes.room[self._group.shapes[place]]
        left = room - filling @ self._cover.requests
        small = np.array(self._small, dtype=np.intp)
        size = (self._cover.requests[small] / np.maximum(left, 1)).sum(axis=1)
        for item in small[np.argsort(-self._values[small] / np.maximum(size, 1e-12), kind="stable")].tolist():
            asked = self._cover.requests[item] > 0
            fits = (left[asked] // self._cover.requests[item, asked]).min(initial=ENDLESS)
            filling[item] = max(0, min(int(fits), int(self._number[item])))
            left = left - filling[item] * self._cover.requests[item]
        return filling


def _open_alike(cover: Cover) -> Iterator[NDArray[np.intp]]:
    """Shapes that are open to the same items."""
    masks: dict[bytes, list[int]] = {}
    for shape, allowed in enumerate(cover.shapes.allowed):
        masks.setdefault(allowed.tobytes(), []).append(shape)
    for shapes in masks.values():
        yield np.array(shapes, dtype=np.intp)


def _groups(cover: Cover, most: Amounts, open_alike: Sequence[NDArray[np.intp]]) -> Iterator[_Group]:
    asked = np.flatnonzero(cover.requests.any(axis=0))
    if not len(asked):
        return
    for shapes in open_alike:
        room = np.maximum(cover.shapes.room[np.ix_(shapes, asked)], 0)
        size = np.round(np.log2(np.maximum(room, 1))).astype(np.int64)
        for alike in np.unique(size, axis=0):
            some = shapes[(size == alike).all(axis=1)]
            largest = cover.shapes.room[some].max(axis=0)
            fits = cover.shapes.allowed[some[0]] & (cover.requests <= largest).all(axis=1) & (most > 0)
            items = np.flatnonzero(fits)
            if len(items):
                total = most[items] @ cover.requests[np.ix_(items, asked)]
                first = asked[np.argsort(-total / np.maximum(largest[asked], 1), kind="stable")[:2]]
                yield _Group(some, items, np.sort(first) if len(first) == 2 else np.repeat(first, 2))


def _steps(cover: Cover, most: Amounts, group: _Group, cells: int) -> _Steps:
    requests = cover.requests[np.ix_(group.items, group.both)]
    room = np.maximum(cover.shapes.room[np.ix_(group.shapes, group.both)], 0)
    largest = room.max(axis=0)
    share = (requests / np.maximum(largest, 1)).max(axis=1)
    order = np.argsort(-share, kind="stable")
    divisors = np.maximum(np.gcd.accumulate(requests[order], axis=0), 1)
    large = int((np.prod(largest / divisors + 1, axis=1) <= cells).sum())
    unit: Amounts = divisors[large - 1] if large else np.maximum(largest, 1)
    if large < (share >= _LARGE).sum():
        # Sizes that have little in common: what large ones request is rounded down.
        large, unit = int((share >= _LARGE).sum()), largest // (int(cells**0.5) - 1) + 1
    size = largest // unit + 1
    pieces = []
    for place in order[:large].tolist():
        item, request = int(group.items[place]), requests[place]
        fits = np.where(request > 0, largest // np.maximum(request, 1), ENDLESS).min()
        left, number = int(min(fits, most[item])), 1
        while left > 0:
            taken = min(number, left)
            one, other = (taken * request // unit).tolist()
            pieces.append((item, taken, one, other))
            left, number = left - taken, 2 * number
    return _Steps(tuple(pieces), group.items[order[large:]], room, unit, (int(size[0]), int(size[1])))


def _mixtures(total: Amounts) -> Iterator[Values]:
    """Weights of the resources: each alone, and the first two that are asked for in several parts."""
    asked = np.flatnonzero(total).tolist()
    for resource in asked:
        alone = np.zeros(len(total))
        alone[resource] = 1.0
        yield alone
    for one, other in pairwise(asked[:2]):
        for part in range(1, _MIXTURES):
            mixed = np.zeros(len(total))
            mixed[one], mixed[other] = part / _MIXTURES / total[one], (1 - part / _MIXTURES) / total[other]
            yield mixed


def _knapsack_in_fractions(values: Values, size: Values, most: Amounts, room: Values) -> Values:
    """What items are worth at most by the room that they have, where they may be divided."""
    free = size <= 0
    order = np.flatnonzero(~free)
    order = order[np.argsort(-values[order] / size[order], kind="stable")]
    used = np.concatenate([[0.0], np.cumsum(size[order] * most[order])])
    worth = np.concatenate([[0.0], np.cumsum(values[order] * most[order])])
    filled: Values = np.interp(room, used, worth)
    return filled + float(values[free] @ most[free])
