"""Two nodes as one, where that costs no more, or little more.

For nodes a, b of shapes s, t the pair is replaced by one node of the cheapest shape u that holds the pods of
both, if w_u <= w_s + w_t + what may be spent, and if the caps leave what u takes of them beyond s and t. The
pair that costs the least more goes first. Each merge leaves one node less, so they end. Of plans at the same
price the one with fewer nodes is better: fewer agents, fewer addresses, fewer images.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.configurations import Configuration
from nodeless.scheduling.optimizer.cover import Chosen, Cover
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul

#: Caps beyond which pairs are not tried.
_MOST_CAPS = 20
#: Kinds that are compared at most, and seconds for it, as counted; of more, those of the cheapest nodes are.
_MOST_KINDS, _SECONDS = 250, 0.03
#: Seconds for a pair of kinds and a shape, for each resource of these, and for a new kind at first and for
#: each kind that is there.
_PAIR, _RESOURCE, _KIND, _KIND_MORE = 1.5e-9, 1e-9, 100e-6, 1e-6
#: Of each of two kinds of nodes so many are tried for a pair that may be merged.
_TRIED = 8
#: Prices that differ by less are equal.
_SAME = 1e-9

Members = tuple[int, ...]
"""Which of the nodes at first are one node now, by their numbers."""


def merged(chosen: Sequence[Chosen], cover: Cover, hosts: HostLimits) -> tuple[Sequence[Chosen], float]:
    """The same pods on fewer nodes, for no more money, and the seconds of work that it took."""
    new = [one for one in chosen if cover.shapes.pool[one.shape] >= 0]
    nodes = [(one.shape, one.filling) for one in new for _ in range(one.times)]
    if len(nodes) < 2:
        return chosen, 0.0
    merging = Merging(cover, hosts, nodes, chosen, _SECONDS)
    merging.merge()
    kept = [one for one in chosen if cover.shapes.pool[one.shape] < 0]
    return [*kept, *(Chosen(*kind, len(members)) for kind, members in merging.kinds)], merging.seconds


class Merging:
    """Nodes by kind, those alike together, and for each pair of kinds the cheapest shape that holds both."""

    def __init__(
        self,
        cover: Cover,
        hosts: HostLimits,
        nodes: Sequence[Configuration],
        chosen: Sequence[Chosen],
        seconds: float,
        spent: float = 0.0,
    ) -> None:
        """What may be merged, and for how much.

        Args:
            cover: What can be bought.
            hosts: Limits for single nodes; those with pods that have any stay as they are.
            nodes: May be merged.
            chosen: What uses the caps: these, and more.
            seconds: Of work to compare kinds of nodes, as counted: so many are compared.
            spent: US dollars an hour that all merges may cost at most.
        """
        shapes = cover.shapes
        new = np.flatnonzero(shapes.pool >= 0)
        self._rows = new[np.argsort(cover.cost[new], kind="stable")]
        self._cover = cover
        self._cost, self._price = cover.cost[self._rows], shapes.price[self._rows]
        self._room, self._allowed = shapes.room[self._rows], shapes.allowed[self._rows]
        self._uses, self._left = _of_new_nodes(cover, chosen)
        self._may_spend = spent
        self._plain = np.array([not len(touched) for touched in hosts.touched], dtype=np.bool_)
        self._kinds: list[_Kind] = []
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._extra: Values = np.zeros((0, 0))
        self._shape: NDArray[np.intp] = np.zeros((0, 0), dtype=np.intp)
        self.seconds = 0.0
        """Seconds of work so far."""
        pair = len(self._rows) * (_PAIR + _RESOURCE * self._room.shape[1])
        most = min(_MOST_KINDS, int(sqrt(seconds / pair))) if len(self._left) <= _MOST_CAPS else 0
        alike = _in_kinds(nodes, cover)
        kinds: list[tuple[Configuration, list[Members]]] = [
            (nodes[same[0]], [(number,) for number in same]) for same in alike
        ]
        self._others = kinds[most:]
        for kind, members in kinds[:most]:
            self._add(*kind, members)

    @property
    def kinds(self) -> list[tuple[Configuration, list[Members]]]:
        """The nodes as they are now, those alike together."""
        compared = [((kind.shape, kind.filling), kind.members) for kind in self._kinds if kind.members]
        return [*compared, *self._others]

    def merge(self, may: Callable[[Members, Members], bool] | None = None) -> None:
        """Merge pairs, the one that costs the least more first; `may`: whether two may; None: all may."""
        while self._extra.size:
            first, second = divmod(int(self._extra.argmin()), len(self._kinds))
            extra, shape = float(self._extra[first, second]), int(self._shape[first, second])
            if extra > max(self._may_spend, 0.0) + _SAME:
                return
            taken = self._uses[shape] - self._used_by(first) - self._used_by(second)
            if (taken > self._left + _SAME).any():
                self._set(first, second, *self._within_caps(first, second))
                continue
            pairs = self._pairs(first, second, may)
            if (taken > 0).any():
                pairs = pairs[:1]
            if extra > _SAME:
                pairs = pairs[: max(1, int(self._may_spend / extra))]
            if not pairs:
                self._set(first, second, np.inf, shape)
                continue
            self._left = self._left - taken * len(pairs)
            self._may_spend -= max(extra, 0.0) * len(pairs)
            filling = self._kinds[first].filling + self._kinds[second].filling
            self._take(first, [one for one, _ in pairs])
            self._take(second, [other for _, other in pairs])
            self._add(shape, filling, [(*one, *other) for one, other in pairs])

    def _used_by(self, kind: int) -> Values:
        used: Values = self._uses[self._kinds[kind].shape]
        return used

    def _pairs(
        self, first: int, second: int, may: Callable[[Members, Members], bool] | None
    ) -> list[tuple[Members, Members]]:
        """Nodes of each kind that may be merged: of those that may not all, one pair."""
        ones, others = self._kinds[first].members, self._kinds[second].members
        if first == second:
            others = ones[len(ones) // 2 :]
            ones = ones[: len(ones) // 2]
        if may is None:
            return list(zip(ones, others, strict=False))
        tried = product(ones[:_TRIED], others[:_TRIED])
        return [pair for pair in tried if may(*pair)][:1]

    def _take(self, kind: int, members: Collection[Members]) -> None:
        own = self._kinds[kind].members
        gone = set(members)
        own[:] = [each for each in own if each not in gone]
        if len(own) < 2:
            self._extra[kind, kind] = np.inf
        if not own:
            self._extra[kind, :] = self._extra[:, kind] = np.inf

    def _add(self, shape: int, filling: Amounts, members: Sequence[Members]) -> None:
        name = shape, filling.tobytes()
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._kinds)
            self.seconds += _KIND + _KIND_MORE * number
            used = matmul(filling, self._cover.requests)
            fits: Mask = np.array((self._room >= used).all(axis=1))
            fits &= self._allowed[:, filling > 0].all(axis=1) & self._plain[filling > 0].all()
            self._kinds.append(_Kind(shape, filling, used, fits, []))
            self._extra = np.pad(self._extra, (0, 1), constant_values=np.inf)
            self._shape = np.pad(self._shape, (0, 1))
        own = self._kinds[number].members
        before = len(own)
        own += members
        if before < 2:  # it had no pairs, or none with itself
            self._compare(number)

    def _compare(self, number: int) -> None:
        """For this kind and each other the cheapest shape that holds both, and what it costs more."""
        kind = self._kinds[number]
        alive = np.flatnonzero([bool(other.members) for other in self._kinds])
        if len(kind.members) < 2:
            alive = alive[alive != number]
        rows = np.flatnonzero(kind.fits)
        if not len(rows) or not len(alive):
            return
        self.seconds += len(rows) * len(alive) * (_PAIR + _RESOURCE * self._room.shape[1])
        holds = np.array([self._kinds[other].fits[rows] for other in alive]).T
        used = np.array([self._kinds[other].used for other in alive])
        for room, total in zip(self._room[rows].T, (used + kind.used).T, strict=True):
            holds &= room[:, None] >= total
        found = rows[holds.argmax(axis=0)]
        extra = np.where(holds.any(axis=0), self._more(found, number, alive), np.inf)
        self._extra[number, alive] = self._extra[alive, number] = extra
        self._shape[number, alive] = self._shape[alive, number] = self._rows[found]

    def _more(self, rows: NDArray[np.intp], first: int, second: NDArray[np.intp]) -> Values:
        """What nodes of shapes cost more than one of a kind and one of each of others, by each measure."""
        shapes = np.array([self._kinds[other].shape for other in second.tolist()])
        own = self._kinds[first].shape
        cost = self._cost[rows] - self._cover.cost[own] - self._cover.cost[shapes]
        # What pools of less weight cost beyond their price.
        price = self._price[rows] - self._cover.shapes.price[own] - self._cover.shapes.price[shapes]
        more: Values = np.maximum(cost, price)
        return more

    def _within_caps(self, first: int, second: int) -> tuple[float, int]:
        """What the cheapest shape that holds both costs more where the caps leave what it takes."""
        one, other = self._kinds[first], self._kinds[second]
        taken = self._uses[self._rows] - self._used_by(first) - self._used_by(second)
        holds = one.fits & other.fits & (self._room >= one.used + other.used).all(axis=1)
        rows = np.flatnonzero(holds & (taken <= self._left + _SAME).all(axis=1))[:1]
        if not len(rows):
            return np.inf, 0
        return float(self._more(rows, first, np.array([second]))[0]), int(self._rows[rows[0]])

    def _set(self, first: int, second: int, extra: float, shape: int) -> None:
        self._extra[first, second] = self._extra[second, first] = extra
        self._shape[first, second] = self._shape[second, first] = shape


def _in_kinds(nodes: Sequence[Configuration], cover: Cover) -> list[list[int]]:
    """The numbers of nodes that are alike together, those of the cheapest shapes first."""
    kinds: dict[tuple[float, int, bytes], list[int]] = {}
    for number, (shape, filling) in enumerate(nodes):
        kinds.setdefault((float(cover.cost[shape]), shape, filling.tobytes()), []).append(number)
    return [kinds[kind] for kind in sorted(kinds)]


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    shape: int
    filling: Amounts
    used: Amounts
    fits: Mask
    """The shapes of new nodes, the cheapest first, that hold its pods."""
    members: list[Members]


def _of_new_nodes(cover: Cover, chosen: Sequence[Chosen]) -> tuple[Values, Values]:
    """What a node of each shape takes of each cap, and what is left of these; of caps of new nodes alone."""
    new = np.flatnonzero(cover.shapes.pool >= 0)
    caps = sorted({cap for shape in new.tolist() for cap in cover.uses[shape]})
    column = {cap: number for number, cap in enumerate(caps)}
    uses = np.zeros((len(cover.uses), len(caps)))
    for shape in new.tolist():
        for cap, amount in cover.uses[shape].items():
            uses[shape, column[cap]] = amount
    left = cover.caps[caps] if caps else np.zeros(0)
    for one in chosen:
        left = left - uses[one.shape] * one.times
    return uses, left
