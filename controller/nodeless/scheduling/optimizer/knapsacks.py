"""What pods are worth at most on one node of each shape, and so what a plan costs at least.

Problem
-------
For each shape s, given values v_i of pods:

    M_s = max  sum_i v_i x_i
          s.t. sum_i q_i[r] x_i <= b_s[r]     in every resource r
               x_i <= u_is                    no more than there are, and than may be on one node
               x_i whole numbers

No filling is worth more; what different items mean to each other (`items.HostLimits`) is left out. Let w_s be
the price of shape s, g_sr what it takes of cap r, of which there is G_r at price m_r; for an existing node,
which costs nothing, m_r is M_s. If all values are divided by the largest M_s / (w_s + sum_r m_r g_sr) of the
shapes that are bought, no filling is worth more than it costs, and by linear duality no plan for n_i pods
costs less than

    sum_i v_i n_i - sum_r m_r G_r

Method: M_s is at most what pods are worth in fractions, in each resource and in mixtures of two:

    M_s <= max  sum_i v_i x_i   s.t.  sum_i (q_i . a) x_i <= b_s . a,   0 <= x_i <= u_is       for any a >= 0

The shapes that lower the bound the most this way are looked at more closely, one after the other, by an
integer program. Where its search ends early, what it could not rule out is the bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import (
    PLAIN_SEARCH,
    Rows,
    bound_of,
    iterations_of,
    run_within,
    tree_search,
    whole_numbers,
)
from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul
from nodeless.scheduling.spread.sharing import ENDLESS

#: Mixtures of two resources in which pods are bounded in fractions; seconds in each for each item or shape.
_MIXTURES, _IN_FRACTIONS = 16, 0.1e-6
#: Seconds for an integer program and each item in it, for each time that its search looks whether it has to
#: end, and for each simplex iteration; and how many of these there are from one look to the next, about.
_PROGRAM, _PROGRAM_ITEM, _LOOK, _ITERATION, _BETWEEN = 5e-3, 60e-6, 25e-6, 50e-6, 0.8
#: Nodes of the search tree at most; what a filling costs in the program, and how exactly it is solved.
_TREE, _COST, _GAP = 100_000, 1000.0, 1e-3
#: Pods of one item beyond which more make no difference on one node.
_MANY = 1e6
#: What rounding in sums of values may hide, as a share.
_ROUNDING = 1e-7
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
        self._most: Amounts = np.minimum(cover.needed, hosts.alone())
        self._open_alike = list(_open_alike(cover))

    def price(
        self,
        values: Values,
        rents: Values,
        effort: Effort,
        together: float | None = None,
        *,
        existing: bool = True,
    ) -> Priced:
        """What a plan costs at least at some values, and fillings that are worth more than they cost.

        Args:
            values: Of one pod of each item.
            rents: What the caps cost.
            effort: What it takes is taken from it; with little, the bound is low.
            together: What all pods are worth at least; that of all that are needed, if it is not given.
            existing: Whether existing nodes are looked at more closely, too.
        """
        together = float(matmul(values, self._cover.needed)) if together is None else together
        cover = self._cover
        rents = rents.copy()
        held = np.where(cover.standing, cover.rent(rents, range(len(cover.shapes))), 0.0)
        # What existing nodes cost follows from what they hold.
        for shape in np.flatnonzero(cover.standing):
            rents[list(cover.uses[shape])] = 0.0
        taken = cover.rent(rents, range(len(cover.shapes)))
        most, found, settled = self._most_worth(values, taken, held, max(together, 1e-12), effort, existing)
        price = (cover.cost + taken + held) * (1 + _ENOUGH)
        fillings = [(shape, pods) for shape, pods in found if float(matmul(pods, values)) > price[shape]]
        return Priced(self._bound(together, rents, most, taken), fillings, settled)

    def _most_worth(
        self,
        values: Values,
        taken: Values,
        held: Values,
        together: float,
        effort: Effort,
        existing: bool,
    ) -> tuple[Values, list[tuple[int, Amounts]], bool]:
        """What pods on each shape are worth at most, best fillings, and whether more would not help.

        The shape that lowers the bound the most is looked at next, as long as it was not yet.
        """
        standing = self._cover.standing
        most = self.in_fractions(values, effort)
        fillings: list[tuple[int, Amounts]] = []
        seen: Mask = np.zeros(len(most), dtype=np.bool_)
        while effort.left > 0:
            lost = self._lost(most, taken, held, together)
            # Of new nodes one shape lowers the bound, of existing ones each does.
            dearest = float(lost[seen & ~standing].max(initial=0.0))
            unknown = ~seen & (
                lost > np.where(standing, _ENOUGH if existing else np.inf, max(_ENOUGH, dearest))
            )
            if not unknown.any():
                return most, fillings, True
            worst = int(np.where(unknown, lost, -np.inf).argmax())
            seen[worst] = True
            # Less than this does not lower the bound.
            enough = (1 + max(_ENOUGH, dearest)) * (self._cover.cost[worst] + taken[worst])
            scale = _COST / max(float(most[worst]), 1e-9)
            bound, filling = self._best(worst, values, scale, 0.0 if standing[worst] else enough, effort)
            most[worst] = min(most[worst], bound)
            if filling is not None:
                fillings.append((worst, filling))
        return most, fillings, False

    def _best(
        self, shape: int, values: Values, scale: float, enough: float, effort: Effort
    ) -> tuple[float, Amounts | None]:
        """What pods on a node of the shape are worth at most, and the best filling that was found.

        Where they are worth no more than `enough`, how much is not found out.
        """
        cover = self._cover
        room = cover.shapes.room[shape]
        useful = cover.shapes.allowed[shape] & (values > 0) & (self._most > 0)
        items = np.flatnonzero(useful & (cover.requests <= room).all(axis=1))
        if not len(items):
            return 0.0, None
        rows = Rows()
        requests = cover.requests[items]
        for resource in np.flatnonzero(requests.any(axis=0)).tolist():
            rows.most(enumerate((requests[:, resource] / room[resource]).tolist()), 1.0)
        most = np.minimum(self._most[items], _MANY).astype(np.float64)
        solver = tree_search(_TREE, _GAP, **PLAIN_SEARCH)
        nothing = np.zeros(len(items))
        solver.passModel(rows.of_integers(values[items] * scale, nothing, most, highspy.ObjSense.kMaximize))
        effort.left -= _PROGRAM + _PROGRAM_ITEM * len(items)
        checks = max(1, int(effort.left / (_LOOK + _BETWEEN * _ITERATION)))
        looks = run_within(solver, checks, enough * scale)
        effort.left -= _LOOK * looks + _ITERATION * iterations_of(solver)
        bound, answer = bound_of(solver), whole_numbers(solver)
        worth = np.inf if bound is None else bound / scale * (1 + _ROUNDING)
        if answer is None:
            return worth, None
        filling: Amounts = np.zeros(len(cover.needed), dtype=np.int64)
        filling[items] = answer
        return worth, filling if self._holds(shape, filling) else None

    def _lost(self, most: Values, taken: Values, held: Values, together: float) -> Values:
        """By what share each shape lowers the bound, about."""
        cover = self._cover
        price = np.maximum(cover.cost + taken, 1e-9)
        lost: Values = np.where(cover.standing, (most - held) / together, most / price - 1.0)
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
        return max(0.0, (together - float(matmul(rents, cover.caps))) / dearest)

    def in_fractions(self, values: Values, effort: Effort) -> Values:
        """What pods on a node of each shape are worth at most where they may be divided."""
        cover = self._cover
        worth = np.full(len(cover.shapes), np.inf)
        mixtures = _mixtures(matmul(self._most, cover.requests))
        room = matmul(np.maximum(cover.shapes.room, 0), mixtures.T)
        size = matmul(cover.requests, mixtures.T)
        for shapes in self._open_alike:
            items = np.flatnonzero(cover.shapes.allowed[shapes[0]] & (values > 0) & (self._most > 0))
            effort.left -= _IN_FRACTIONS * len(mixtures) * (len(items) + len(shapes))
            own = _knapsacks_in_fractions(values[items], size[items], self._most[items], room[shapes])
            worth[shapes] = own.min(axis=1, initial=np.inf)
        return worth * (1 + _ROUNDING)

    def _holds(self, shape: int, filling: Amounts) -> bool:
        """Whether a node has the room, and its pods may be together."""
        hosts, there = self._hosts, np.flatnonzero(filling)
        fits = bool((matmul(filling, self._cover.requests) <= self._cover.shapes.room[shape]).all())
        most = hosts.most[there].min(axis=0, initial=ENDLESS)
        return fits and bool((most >= matmul(filling, hosts.adds)).all())


def _open_alike(cover: Cover) -> Iterator[NDArray[np.intp]]:
    """Shapes that are open to the same items."""
    masks: dict[bytes, list[int]] = {}
    for shape, allowed in enumerate(cover.shapes.allowed):
        masks.setdefault(allowed.tobytes(), []).append(shape)
    for shapes in masks.values():
        yield np.array(shapes, dtype=np.intp)


def _mixtures(total: Amounts) -> Values:
    """Weights of the resources: each alone, and the first two that are asked for in several parts."""
    asked = np.flatnonzero(total)
    alone = np.eye(len(total))[asked]
    if len(asked) < 2:
        return alone
    share = np.arange(1, _MIXTURES) / _MIXTURES
    mixed = np.zeros((len(share), len(total)))
    mixed[:, asked[0]], mixed[:, asked[1]] = share / total[asked[0]], (1 - share) / total[asked[1]]
    return np.concatenate([alone, mixed])


def _knapsacks_in_fractions(values: Values, size: Values, most: Amounts, room: Values) -> Values:
    """What items are worth at most in some room, where they may be divided; shape (rooms, mixtures).

    Args:
        values: Of one pod of each item.
        size: What it takes of each mixture; shape (items, mixtures).
        most: Pods of each item.
        room: Of each mixture; shape (rooms, mixtures).
    """
    with np.errstate(divide="ignore"):
        density = values[:, None] / size
    order = np.argsort(-density, axis=0, kind="stable")
    nothing = np.zeros((1, size.shape[1]))
    used = np.cumsum(np.take_along_axis(size * most[:, None], order, axis=0), axis=0)
    worth = np.cumsum((values * most)[order], axis=0)
    used, worth = np.concatenate([nothing, used]), np.concatenate([nothing, worth])
    filled = [np.interp(room[:, each], used[:, each], worth[:, each]) for each in range(size.shape[1])]
    return np.array(filled).reshape(size.shape[1], len(room)).T
