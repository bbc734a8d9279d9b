"""As many pods as there is room for, by an integer program: who goes where when nodes are few.

Problem
-------
Classes c of n_c pods with requests q_c, slots e with free room f_e, new nodes k each of which may be made
as offer o (a type of a pool) with room a_o at w_o:

    x[c, p] pods of class c on place p, a slot or a new node        z[k, o] = 1: node k is made as offer o
    u[c, p] = 1 where any pod of c may be on p                      b[g, p] = 1: group g begins on p

    max   W sum_c v_c x[c, p] - sum w_o z[k, o]
    s.t.  x[c, p] >= those who are expected on slot p and can stay there
          sum_p x[c, p] <= n_c,   sum_o z[k, o] <= 1,   x[c, p] <= n_c u[c, p]
          sum_c q_c x[c, p] + s_c u[c, p] <= f_p or sum_o a_o z[k, o]           room, in every resource
          x[c, k] <= sum_o h_co z[k, o]                                         types that take c
          sum_ko g_o z[k, o] <= G                                               limits of pools
          u[c, p] + u[d, p] <= 1                                                pods that keep off each other
          u[c, p] <= sum_{d wanted} x[d, p] + (1 where one is there) + b[g, p]  pods that must share a node
                     + (1 where a DaemonSet puts one)
          sum_p b[g, p] <= 1                                                    a group begins on one node
          b[g, p] = 0 where nobody of g is expected, if some are elsewhere
          sum_p x[c, p] <= n_c sum_{d wanted, p} x[d, p]                        pods that must share a zone
          sum_{d counted} x[d, p] <= skew - (those there), where u[c, p] = 1    spread over nodes
      and what holds for zones and other domains (`program_domains`)

Each new node is led by the first class on it, and nodes that one class leads are ordered, so that the search
does not meet one plan many times. HiGHS runs in one thread with a fixed seed, and its work is bounded by
counting, never by a clock: the same question has the same answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import Rows, iterations_of, tree_search, whole_numbers
from nodeless.scheduling.first_fit.program_domains import Base, DomainColumns, Domains
from nodeless.scheduling.pods.classes import Amounts

Values = NDArray[np.float64]

#: Variables that a program may have, and those up to which its tree is searched: of a larger one only the
#: root is solved, with what is found from there.
MOST_VARIABLES, MOST_SEARCHED = 1200, 360
#: Nodes of the search tree, and those without a better answer, after which it ends with what it has.
_MOST_NODES, _MOST_STALLED = 60, 20
#: What all new nodes may cost beside one pod, and the part of the cheapest that is not looked into.
_COST, _GAP = 0.5, 0.05


@dataclass(frozen=True, slots=True)
class Near:
    """Pods of a class must share their place with some of others."""

    pods: int
    others: tuple[int, ...]
    there: tuple[bool, ...]
    """By slot, whether any such pod runs there."""
    group: int | None
    """Where nobody runs whom they could join but they will do themselves: their group."""
    daemons: tuple[int, ...] = ()
    """The offers of which a node gets such pods by DaemonSets."""


@dataclass(frozen=True, slots=True)
class Far:
    """Pods of a class have a place only where some of others have one, wherever that is."""

    pods: int
    others: tuple[int, ...]
    daemons: tuple[int, ...] = ()
    """The offers of which a node gets such pods by DaemonSets."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Where pods of a class are, there are at most so many of some classes."""

    pods: int
    counted: tuple[int, ...]
    most: int
    there: tuple[int, ...]
    """By slot, how many run there."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Who waits, and for what."""

    waiting: Amounts
    """Pods of each class."""
    worth: Amounts
    """What a pod of each class counts."""
    requests: Amounts
    """Shape (classes, resources)."""
    once: Amounts
    """What a place needs once for all pods of a class; shape (classes, resources)."""
    free: Amounts
    """Shape (slots, resources)."""
    most: Amounts
    """The most pods of a class that each slot takes; shape (classes, slots)."""
    stays: Amounts
    """How many pods of a class stay on each slot, because they are expected there; shape (classes, slots)."""
    room: Amounts
    """Shape (offers, resources)."""
    cost: Values
    """Of each offer."""
    holds: Amounts
    """The most pods of a class that each offer takes; shape (classes, offers)."""
    limits: Sequence[tuple[Amounts, int]]
    """What each offer counts against a limit, and what is left of that."""
    led: tuple[int, ...]
    """The new nodes that there may be, each by the first of its classes: no class before that is on it."""
    apart: Sequence[tuple[int, int]]
    """Classes that keep off each other; twice the same: at most one pod of it."""
    strangers: Sequence[tuple[int, int, tuple[int, ...]]]
    """Classes that cannot share a node that is one of some offers."""
    near: Sequence[Near]
    far: Sequence[Far]
    crowds: Sequence[Crowd]
    groups: int
    domains: Domains
    beyond: int
    """What the answer must be worth more than."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Who goes where."""

    pods: Amounts
    """Shape (classes, slots + new nodes)."""
    offers: tuple[int | None, ...]
    """What each new node is made as."""
    begins: Amounts
    """Where each group begins; shape (groups, slots + new nodes)."""
    domains: tuple[Mapping[str, str | None], ...]
    """By topology key, the domain that each new node must be in."""


class _Columns:
    """Where the variables of a question are."""

    def __init__(self, asked: Question) -> None:
        self.classes: int = asked.most.shape[0]
        self.slots: int = asked.most.shape[1]
        self.offers: int = len(asked.cost)
        self.nodes: int = len(asked.led)
        self.places: int = self.slots + self.nodes
        self._marks: int = self.classes * self.places
        self._made: int = 2 * self._marks
        self._begins: int = self._made + self.nodes * self.offers
        first = self._begins + asked.groups * self.places
        base = Base(
            asked.waiting, self.slots, self.nodes, self.offers, first, self.places, self._made, asked.stays
        )
        self.domains = DomainColumns(asked.domains, base)
        self.count: int = first + len(self.domains.most)

        self.most = _most(asked)

    def pods(self, one: int, place: int) -> int:
        return one * self.places + place

    def mark(self, one: int, place: int) -> int:
        return self._marks + one * self.places + place

    def made(self, node: int, offer: int) -> int:
        return self._made + node * self.offers + offer

    def begins(self, group: int, place: int) -> int:
        return self._begins + group * self.places + place


def size_of(asked: Question) -> int:
    """How many variables a question has."""
    return _Columns(asked).count


def most_nodes(classes: int, slots: int, offers: int, groups: int, domains: Domains) -> int:
    """The most new nodes with which a question is not too large."""
    on_each = 2 * classes + groups
    left = MOST_VARIABLES - slots * on_each - domains.size
    return max(0, left) // (on_each + offers + domains.size_of_node)


def answer(asked: Question) -> tuple[Answer | None, int]:
    """The best that was found, None where nothing is worth more; and the simplex iterations that it took."""
    columns = _Columns(asked)
    searched = columns.count <= MOST_SEARCHED
    solver = tree_search(
        _MOST_NODES if searched else 1,
        _GAP * _COST * float(asked.cost.min(initial=np.inf)) / _dearest(asked),
        mip_max_stall_nodes=_MOST_STALLED if searched else 1,
        mip_heuristic_run_rens=searched,
    )
    solver.passModel(_model(asked, columns))
    solver.run()
    values, iterations = whole_numbers(solver), iterations_of(solver)
    if values is None:
        return None, iterations
    made = values[columns.made(0, 0) : columns.begins(0, 0)].reshape(columns.nodes, columns.offers)
    return (
        Answer(
            values[: columns.mark(0, 0)].reshape(columns.classes, columns.places),
            tuple(int(row.argmax()) if row.any() else None for row in made),
            values[columns.begins(0, 0) : columns.begins(asked.groups, 0)].reshape(
                asked.groups, columns.places
            ),
            tuple(columns.domains.domains_of(values, node) for node in range(columns.nodes)),
        ),
        iterations,
    )


def _most(asked: Question) -> Amounts:
    """The most pods of each class that each place takes; shape (classes, slots + new nodes)."""
    fresh = np.repeat(asked.holds.max(axis=1, initial=0)[:, None], len(asked.led), axis=1)
    most: Amounts = np.minimum(np.hstack([asked.most, fresh]), asked.waiting[:, None])
    for node, leader in enumerate(asked.led):
        most[:leader, asked.most.shape[1] + node] = 0
    alone = [one for one, other in asked.apart if one == other]
    most[alone] = np.minimum(most[alone], 1)
    return most


def _model(asked: Question, columns: _Columns) -> highspy.HighsLp:
    rows = Rows()
    _pods(asked, columns, rows)
    _nodes(asked, columns, rows)
    _rules(asked, columns, rows)
    columns.domains.add(rows)
    lower, upper, gain = _bounds(asked, columns)
    return rows.of_integers(gain, lower, upper, highspy.ObjSense.kMaximize)


def _bounds(asked: Question, columns: _Columns) -> tuple[Values, Values, Values]:
    """The least and the most that each variable may be, and what it is worth."""
    lower, upper, gain = np.zeros(columns.count), np.ones(columns.count), np.zeros(columns.count)
    dearest = _dearest(asked)
    for one in range(columns.classes):
        for place in range(columns.places):
            upper[columns.pods(one, place)] = columns.most[one, place]
            gain[columns.pods(one, place)] = float(asked.worth[one])
    for node in range(columns.nodes):
        for offer in range(columns.offers):
            gain[columns.made(node, offer)] = -_COST * float(asked.cost[offer]) / dearest
    upper[columns.begins(asked.groups, 0) :] = columns.domains.most
    for group in range(asked.groups):
        # Those who are expected somewhere run first, and then nobody of their group begins elsewhere.
        members = [near.pods for near in asked.near if near.group == group]
        expected = set(np.flatnonzero(asked.stays[members].any(axis=0)).tolist())
        for place in range(columns.places) if expected else ():
            upper[columns.begins(group, place)] = float(place in expected)
    for one, slot in zip(*np.nonzero(asked.stays), strict=True):
        at = columns.pods(int(one), int(slot))
        lower[at] = min(float(asked.stays[one, slot]), upper[at])
    return lower, upper, gain


def _dearest(asked: Question) -> float:
    """What new nodes cost at most; never zero."""
    return max(float(asked.cost.max(initial=0.0)) * len(asked.led), 1e-9)


def _pods(asked: Question, columns: _Columns, rows: Rows) -> None:
    """Each pod once, on a place that has room."""
    every = range(columns.places)
    rows.least(
        (
            (columns.pods(one, place), float(asked.worth[one]))
            for one in range(columns.classes)
            for place in every
        ),
        asked.beyond + 1.0,
    )
    for one in range(columns.classes):
        rows.most(((columns.pods(one, place), 1.0) for place in every), float(asked.waiting[one]))
        for place in every:
            rows.most(
                (
                    (columns.pods(one, place), 1.0),
                    (columns.mark(one, place), -float(columns.most[one, place])),
                ),
                0.0,
            )
    scale = np.maximum(
        1, np.maximum(asked.requests.max(axis=0, initial=1), asked.once.max(axis=0, initial=1))
    )
    for place in every:
        for resource in np.flatnonzero((asked.requests + asked.once).any(axis=0)).tolist():
            unit = float(scale[resource])
            used = [
                entry
                for one in range(columns.classes)
                for entry in (
                    (columns.pods(one, place), asked.requests[one, resource] / unit),
                    (columns.mark(one, place), asked.once[one, resource] / unit),
                )
            ]
            if place < columns.slots:
                rows.most(used, float(asked.free[place, resource]) / unit)
                continue
            node = place - columns.slots
            room = (
                (columns.made(node, offer), -float(asked.room[offer, resource]) / unit)
                for offer in range(columns.offers)
            )
            rows.most((*used, *room), 0.0)


def _nodes(asked: Question, columns: _Columns, rows: Rows) -> None:
    """Each new node is one thing that takes its pods; limits hold."""
    offers = range(columns.offers)
    for node in range(columns.nodes):
        rows.most(((columns.made(node, offer), 1.0) for offer in offers), 1.0)
        for one in range(columns.classes):
            held = (
                (
                    columns.made(node, offer),
                    -float(min(asked.holds[one, offer], columns.most[one, columns.slots + node])),
                )
                for offer in offers
            )
            rows.most(((columns.pods(one, columns.slots + node), 1.0), *held), 0.0)
        leader = columns.pods(asked.led[node], columns.slots + node)
        rows.most((*((columns.made(node, offer), 1.0) for offer in offers), (leader, -1.0)), 0.0)
        if node and asked.led[node] == asked.led[node - 1]:
            before = ((columns.made(node - 1, offer), -float(offer + 1)) for offer in offers)
            here = ((columns.made(node, offer), float(offer + 1)) for offer in offers)
            rows.most((*here, *before), 0.0)
    for charge, left in asked.limits:
        unit = float(max(1, charge.max(initial=1)))
        rows.most(
            (
                (columns.made(node, offer), float(charge[offer]) / unit)
                for node in range(columns.nodes)
                for offer in offers
            ),
            max(0, left) / unit,
        )
    for one, other, some in asked.strangers:
        for node in range(columns.nodes):
            place = columns.slots + node
            made = ((columns.made(node, offer), 1.0) for offer in some)
            rows.most(((columns.mark(one, place), 1.0), (columns.mark(other, place), 1.0), *made), 2.0)


def _rules(asked: Question, columns: _Columns, rows: Rows) -> None:
    """What pods mean to others on the same place."""
    for place in range(columns.places):
        for one, other in asked.apart:
            if one != other:
                rows.most(((columns.mark(one, place), 1.0), (columns.mark(other, place), 1.0)), 1.0)
        for near in asked.near:
            others = [(columns.pods(other, place), -1.0) for other in near.others]
            if near.group is not None:
                others.append((columns.begins(near.group, place), -1.0))
            there = place < columns.slots and near.there[place]
            if place >= columns.slots:
                others += [(columns.made(place - columns.slots, offer), -1.0) for offer in near.daemons]
            rows.most(((columns.mark(near.pods, place), 1.0), *others), float(there))
        for crowd in asked.crowds:
            left = crowd.most - (crowd.there[place] if place < columns.slots else 0)
            spare = float(sum(asked.waiting[list(crowd.counted)])) + max(0, -left)
            counted = ((columns.pods(one, place), 1.0) for one in crowd.counted)
            rows.most((*counted, (columns.mark(crowd.pods, place), spare)), left + spare)
    for far in asked.far:
        number = float(asked.waiting[far.pods])
        own = [(columns.pods(far.pods, place), 1.0) for place in range(columns.places)]
        others = [
            (columns.pods(other, place), -number) for other in far.others for place in range(columns.places)
        ]
        others += [
            (columns.made(node, offer), -number) for node in range(columns.nodes) for offer in far.daemons
        ]
        rows.most((*own, *others), 0.0)
    for group in range(asked.groups):
        rows.most(((columns.begins(group, place), 1.0) for place in range(columns.places)), 1.0)
