"""Rules over domains larger than a node (zones, capacity types, custom labels) in the program of `program`.

Problem
-------
Beside the variables there, for an axis a (a topology key) with domains v, where rules look at it:

    d[k, a, v] = 1: new node k is in domain v            y[c, k, a, v] those pods of c on k where that is so
    N[c, a, v] = y of all new nodes, x of the slots in v         M[c, a, v] = 1 where any pod of c is in v
    b[g, a, v] = 1: group g begins in v                          l[s]: pods in the emptiest domain of spread s

    sum_v d[k, a, v] = sum_o z[k, o],   y[c, k, a, v] <= n_c d[k, a, v],   sum_v y[c, k, a, v] = x[c, k]
    u[c, k] + d[k, a, v] + sum_{o that makes no node for c in v} z[k, o] <= 2
    d[k, a, v] + d[k, a', v'] + sum_{o that is not sold in both} z[k, o] <= 2
    u[c, k] + d[k, a, v] + d[k, a', v'] + sum_{o that makes no node for c in both} z[k, o] <= 3
    M[c, a, v] + M[d, a, v] <= 1                                         pods that keep off each other
    M[c, a, v] <= sum_{d wanted} N[d, a, v] + (1 where one is there) + b[g, a, v],   sum_v b[g, a, v] <= 1
    x[c, s], y[c, k, a, v] <= n_c (the same + sum_{o that DaemonSets put one on in v} z[k, o])   where some do
    l[s] <= sum_{d counted} N[d, a, v] + (those there)                   each domain v that s balances
    sum_{d counted} N[d, a, v] + (those there) - l[s] <= skew            where M[c, a, v] = 1
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import Rows
from nodeless.scheduling.pods.classes import Amounts, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A topology key that rules look at."""

    key: str
    values: tuple[str | None, ...]
    """Its domains; None: nodes without the label."""
    slots: tuple[int | None, ...]
    """By slot, its domain; None: not certain."""
    fits: Mask
    """Which offer makes a node for a class in which domain; shape (classes, offers, values)."""
    counted: tuple[int, ...]
    """The classes that rules on it look at, or that have such rules."""


@dataclass(frozen=True, slots=True)
class DomainNear:
    """Pods of a class must share a domain with some of others."""

    axis: int
    pods: int
    others: tuple[int, ...]
    there: tuple[bool, ...]
    """By domain, whether any such pod runs there."""
    group: int | None
    """Where nobody runs whom they could join but they will do themselves: their group."""
    daemons: Sequence[tuple[int, int]] = ()
    """Offers and domains where a new node gets such pods by DaemonSets, which counts for that node alone."""


@dataclass(frozen=True, slots=True)
class DomainApart:
    """Classes that keep off each other in every domain; twice the same: at most one pod in each."""

    axis: int
    one: int
    other: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A domain in which no pod of a class may be."""

    axis: int
    pods: int
    value: int


@dataclass(frozen=True, slots=True)
class DomainSpread:
    """Where pods of a class are, at most `skew` more of some classes are than in the emptiest domain."""

    axis: int
    pods: int
    counted: tuple[int, ...]
    skew: int
    universe: tuple[int, ...]
    """The domains that it balances."""
    grows: bool
    """Whether there are enough domains; otherwise the emptiest counts as without pods."""
    there: tuple[int, ...]
    """By domain, the pods that run there."""
    sure: tuple[int, ...]
    """Those of them that surely count."""
    slots: tuple[bool, ...]
    """The slots whose pods count."""


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """All rules over domains of a question."""

    axes: tuple[Axis, ...] = ()
    near: tuple[DomainNear, ...] = ()
    apart: tuple[DomainApart, ...] = ()
    closed: tuple[Closed, ...] = ()
    spread: tuple[DomainSpread, ...] = ()
    groups: int = 0
    together: Sequence[tuple[int, int, Mask]] = ()
    """Two axes, and which offer is sold in a domain of each; shape (offers, values, other values)."""
    asked_together: Sequence[tuple[int, int, int, Mask]] = ()
    """A class, two axes, and which offer makes a node for it in a domain of each."""

    @property
    def size_of_node(self) -> int:
        """How many variables each new node has for them."""
        return sum(len(axis.values) * (1 + len(axis.counted)) for axis in self.axes)

    @property
    def size(self) -> int:
        """How many they have at most, whatever nodes there are."""
        begins = sum(len(near.there) for near in self.near if near.group is not None)
        return sum(len(axis.values) * len(axis.counted) for axis in self.axes) + begins + len(self.spread)


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """The variables that rules over domains build on."""

    waiting: Amounts
    slots: int
    nodes: int
    offers: int
    first: int
    """Where their own variables begin."""
    places: int
    made: int
    """Where the variables of what new nodes are made as begin; those of pods at 0, of marks behind them."""
    stays: Amounts
    """How many pods of each class are expected on each slot; shape (classes, slots)."""

    def pods(self, one: int, place: int) -> int:
        return one * self.places + place

    def mark(self, one: int, place: int) -> int:
        return (len(self.waiting) + one) * self.places + place

    def offer(self, node: int, offer: int) -> int:
        return self.made + node * self.offers + offer


class DomainColumns:
    """Where the variables of rules over domains are, and what holds between them."""

    def __init__(self, rules: Domains, base: Base) -> None:
        self._rules = rules
        self._base = base
        self._at: dict[tuple[str, int, int, int, int], int] = {}
        self._most: list[float] = []
        for number, axis in enumerate(rules.axes):
            for value in range(len(axis.values)):
                for node in range(base.nodes):
                    self._new("in", 1.0, number, node, value)
                for one in axis.counted:
                    self._new("any", 1.0, number, one, value)
                    for node in range(base.nodes):
                        self._new("pods", float(base.waiting[one]), number, one, value, node)
        for near in rules.near:
            if near.group is not None and ("begins", near.axis, near.group, 0, 0) not in self._at:
                for value, may in enumerate(self._may_begin(near.axis, near.group)):
                    self._new("begins", float(may), near.axis, near.group, value)
        everybody = float(base.waiting.sum())
        for number, spread in enumerate(rules.spread):
            most = everybody + max(spread.sure, default=0) if spread.grows else 0.0
            self._new("least", most, spread.axis, number)

    def _new(self, name: str, most: float, *at: int) -> None:
        one, two, three, four = (*at, 0, 0, 0, 0)[:4]
        self._at[name, one, two, three, four] = self._base.first + len(self._most)
        self._most.append(most)

    def _may_begin(self, axis: int, group: int) -> list[bool]:
        """Where a group may begin: while some of it are expected, where they are, since those run first."""
        at = self._rules.axes[axis]
        members = [near.pods for near in self._rules.near if (near.axis, near.group) == (axis, group)]
        expected = {at.slots[slot] for slot in np.flatnonzero(self._base.stays[members].any(axis=0))}
        return [not expected or value in expected for value in range(len(at.values))]

    def _of(self, name: str, *at: int) -> int:
        one, two, three, four = (*at, 0, 0, 0, 0)[:4]
        return self._at[name, one, two, three, four]

    @property
    def most(self) -> Sequence[float]:
        """The most that each variable may be."""
        return self._most

    def domains_of(self, values: NDArray[np.int64], node: int) -> dict[str, str | None]:
        """The domains that an answer puts a new node in, by topology key."""
        return {
            axis.key: value
            for number, axis in enumerate(self._rules.axes)
            for at, value in enumerate(axis.values)
            if values[self._of("in", number, node, at)]
        }

    def add(self, rows: Rows) -> None:
        """What holds."""
        for number in range(len(self._rules.axes)):
            self._new_nodes(number, rows)
            self._counts(number, rows)
        for one, other, sold in self._rules.together:
            self._sold_together(one, other, sold, rows)
        for pods, one, other, fits in self._rules.asked_together:
            self._sold_together(one, other, fits, rows, pods)
        self._closed(rows)
        self._apart(rows)
        self._near(rows)
        for number, spread in enumerate(self._rules.spread):
            self._spread(number, spread, rows)

    def _new_nodes(self, number: int, rows: Rows) -> None:
        """Each new node is in one domain, in which there are nodes for its pods."""
        base, axis = self._base, self._rules.axes[number]
        values = range(len(axis.values))
        for node in range(base.nodes):
            inside = [(self._of("in", number, node, value), 1.0) for value in values]
            made = [(base.offer(node, offer), -1.0) for offer in range(base.offers)]
            rows.most((*inside, *made), 0.0)
            rows.least((*inside, *made), 0.0)
            for one in range(len(base.waiting)):
                for value in values:
                    unfit = np.flatnonzero(~axis.fits[one, :, value]).tolist()
                    if unfit:
                        some = ((base.offer(node, offer), 1.0) for offer in unfit)
                        mark = base.mark(one, base.slots + node)
                        rows.most(((mark, 1.0), (self._of("in", number, node, value), 1.0), *some), 2.0)

    def _counts(self, number: int, rows: Rows) -> None:
        """How many pods of a class are in which domain."""
        base, axis = self._base, self._rules.axes[number]
        values = range(len(axis.values))
        for one in axis.counted:
            most = float(base.waiting[one])
            for node in range(base.nodes):
                parts = [(self._of("pods", number, one, value, node), 1.0) for value in values]
                whole = (base.pods(one, base.slots + node), -1.0)
                rows.most((*parts, whole), 0.0)
                rows.least((*parts, whole), 0.0)
                for value in values:
                    inside = (self._of("in", number, node, value), -most)
                    rows.most(((self._of("pods", number, one, value, node), 1.0), inside), 0.0)
            for value in values:
                rows.most(
                    (*self._inside(number, one, value), (self._of("any", number, one, value), -most)), 0.0
                )

    def _inside(
        self, number: int, one: int, value: int, factor: float = 1.0, slots: Sequence[bool] | None = None
    ) -> Iterator[tuple[int, float]]:
        """The pods of a class in a domain; `slots`: only those of them, and all new nodes."""
        base = self._base
        for slot, domain in enumerate(self._rules.axes[number].slots):
            if domain == value and (slots is None or slots[slot]):
                yield base.pods(one, slot), factor
        for node in range(base.nodes):
            yield self._of("pods", number, one, value, node), factor

    def _sold_together(self, one: int, other: int, sold: Mask, rows: Rows, pods: int | None = None) -> None:
        """A node in a domain of each of two axes is one of what is sold there, for pods of a class if any."""
        base = self._base
        for value, theirs in np.ndindex(sold.shape[1:]):
            unsold = np.flatnonzero(~sold[:, value, theirs]).tolist()
            for node in range(base.nodes) if unsold else ():
                some = [(base.offer(node, offer), 1.0) for offer in unsold]
                some += [
                    (self._of("in", one, node, value), 1.0),
                    (self._of("in", other, node, theirs), 1.0),
                ]
                if pods is not None:
                    some.append((base.mark(pods, base.slots + node), 1.0))
                rows.most(some, 2.0 if pods is None else 3.0)

    def _closed(self, rows: Rows) -> None:
        for closed in self._rules.closed:
            rows.most(self._inside(closed.axis, closed.pods, closed.value), 0.0)

    def _apart(self, rows: Rows) -> None:
        for apart in self._rules.apart:
            for value, domain in enumerate(self._rules.axes[apart.axis].values):
                if domain is None:
                    continue
                if apart.one == apart.other:
                    rows.most(self._inside(apart.axis, apart.one, value), 1.0)
                    continue
                marks = (self._of("any", apart.axis, one, value) for one in (apart.one, apart.other))
                rows.most(((mark, 1.0) for mark in marks), 1.0)

    def _near(self, rows: Rows) -> None:
        groups: dict[tuple[int, int], None] = {}
        for near in self._rules.near:
            for value, there in enumerate(near.there):
                support = [
                    entry for other in near.others for entry in self._inside(near.axis, other, value, -1.0)
                ]
                if near.group is not None:
                    groups[near.axis, near.group] = None
                    support.append((self._of("begins", near.axis, near.group, value), -1.0))
                if near.daemons:
                    self._near_or_by_daemons(near, value, support, rows)
                else:
                    rows.most(((self._of("any", near.axis, near.pods, value), 1.0), *support), float(there))
        for axis, group in groups:
            values = range(len(self._rules.axes[axis].values))
            rows.most(((self._of("begins", axis, group, value), 1.0) for value in values), 1.0)

    def _near_or_by_daemons(
        self, near: DomainNear, value: int, support: Sequence[tuple[int, float]], rows: Rows
    ) -> None:
        """Pods of a class are where others are, or on new nodes to which DaemonSets bring such."""
        base = self._base
        number = float(base.waiting[near.pods])
        others = [(at, number * factor) for at, factor in support]
        there = number * near.there[value]
        for slot, domain in enumerate(self._rules.axes[near.axis].slots):
            if domain == value:
                rows.most(((base.pods(near.pods, slot), 1.0), *others), there)
        for node in range(base.nodes):
            inside = (self._of("pods", near.axis, near.pods, value, node), 1.0)
            brought = ((base.offer(node, offer), -number) for offer, where in near.daemons if where == value)
            rows.most((inside, *others, *brought), there)

    def _spread(self, number: int, spread: DomainSpread, rows: Rows) -> None:
        least = self._of("least", spread.axis, number)
        for value in spread.universe:
            counted = [
                entry
                for other in spread.counted
                for entry in self._inside(spread.axis, other, value, 1.0, spread.slots)
            ]
            rows.most([(least, 1.0), *((at, -factor) for at, factor in counted)], float(spread.sure[value]))
            spare = float(self._base.waiting.sum()) + max(0, spread.there[value])
            mark = self._of("any", spread.axis, spread.pods, value)
            rows.most(
                (*counted, (least, -1.0), (mark, spare)), float(spread.skew - spread.there[value]) + spare
            )
