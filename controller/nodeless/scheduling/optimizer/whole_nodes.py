"""What some pods cost at least on whole nodes, and the cheapest nodes for them, by an integer program.

Problem
-------
Shapes of which all full fillings are listed (`every_filling`) are bought by filling: k, with pods a_k, at
w_k. Of the other shapes, which are large beside the pods, so many nodes are bought that their room holds
their pods together:

    z[k] = nodes with filling k        z[s] = nodes of shape s        y[i, s] = pods of item i on them

    min   sum_k w_k z[k] + sum_s w_s z[s]
    s.t.  sum_k a_ik z[k] + sum_s y[i, s] >= n_i                every pod has a place
          sum_i q_i y[i, s] <= b_s z[s]                         room, in every resource
          sum_k (q a_k) z[k] + sum_s b_s z[s] >= sum_i q_i n_i  room for all pods, in every resource
          sum of what nodes use of cap r <= G_r                 limits of pools, each existing node once
          sum of z over shapes of a group <= 1                  what need not be together (`dominance`)
          sum z <= K                                            new nodes, where their number is limited
          sum w z < what the cheapest known cover counts
          z whole numbers; y whole numbers, too, where few of an item fit on a node

Every cover is an answer to this, or one that counts as little is, so none counts less than its bound. Where
the nodes of an answer hold the pods one by one, which `chosen_nodes` finds out, they are the cheapest cover.
Where they do not, it is asked for another shape, or for more nodes of one, and solved again: the bound rises
from turn to turn. Where it is not found out, all pods become whole numbers if they are few; of many the
fillings of the shapes that an answer has are listed, too, if these are not thousands. Only those cuts
(`_Cuts`) are in the program that its optimum in fractions would break.

Room is what pods on one node can use of it (`dominance`). Work is counted: how often the search looks whether
it has to end, and simplex iterations, by the size of the program. The bound holds wherever it ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import (
    PLAIN_SEARCH,
    Rows,
    Values,
    bound_of,
    iterations_of,
    looks_within,
    quiet_solver,
    run_within,
    seconds_of,
    whole_numbers,
    whole_numbers_of,
)
from nodeless.scheduling.optimizer.chosen_nodes import on_chosen_nodes
from nodeless.scheduling.optimizer.cover import Chosen, Cover, cost_of
from nodeless.scheduling.optimizer.dominance import Useful, useful_shapes
from nodeless.scheduling.optimizer.every_filling import Fillings, full_fillings
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts
from nodeless.scheduling.pods.matmul import matmul
from nodeless.scheduling.spread.sharing import ENDLESS

#: Fillings of one shape up to which they are listed at first, of those that an answer has, of all at first.
_EACH, _EACH_USED, _LISTED = 60, 3000, 30_000
#: Where no more pods of an item fit on a node they are whole numbers from the first; and of so many at last.
_FEW, _WHOLE_PODS = 4, 150
#: Programs that are solved at most.
_TURNS = 40
#: Variables that a program may have, and entries other than zero once it has our cuts: with more, a round of
#: HiGHS's own takes a fifth of a second, and of the programs tried none was solved in a box of five seconds.
_VARIABLES, _ENTRIES = 2500, 12_000
#: Looks of the search at its limits at least.
_LEAST_LOOKS = 40
#: Nodes of the search tree at most.
_MOST_TREE = 20_000
#: Simplex iterations of the program in fractions, and rounds in which it gets rows that its optimum breaks.
_ITERATIONS, _ROUNDS, _BROKEN = 5000, 12, 1e-6
#: Of each shape so many at once; and the parts of its room that give further units (`_Cuts`).
_AT_ONCE, _PARTS = 3, range(2, 8)
#: What prices of a program add up to, about: HiGHS's tolerances are fixed amounts.
_SCALE = 1000.0
#: A cover that counts so little more than the bound, as a share, is the cheapest: rounding hides as much.
SAME = 1e-6
_NO_INDEX, _NO_VALUE = np.array([], dtype=np.int32), np.array([], dtype=np.float64)


#: How a search ends that finds nothing below what it must count less than.
_NOTHING = (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kObjectiveBound)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What is known of the cheapest cover."""

    bound: float
    """No cover counts less than this."""
    chosen: list[Chosen] | None
    """The best cover that was found; None where none is, or none is cheaper than what is known."""


def rounded(cover: Cover) -> Cover:
    """The cover with no more room than sums of requests can use."""
    divisors: Amounts = np.maximum(np.gcd.reduce(cover.requests, axis=0), 1)
    room = np.maximum(cover.shapes.room, 0) // divisors * divisors
    return replace(cover, shapes=replace(cover.shapes, room=room))


def whole_nodes(
    cover: Cover, hosts: HostLimits, effort: Effort, most_new_nodes: float = np.inf, below: float = np.inf
) -> Answer | None:
    """The cheapest cover below what is known, and a bound that proves it where the effort suffices.

    Args:
        cover: What to cover, with what.
        hosts: What items allow beside each other on one node.
        effort: What the search takes is taken from it.
        most_new_nodes: New nodes at most.
        below: What a cover is known for: nothing is looked for that costs as much, and the bound is never
            above it.

    Returns:
        None where the effort does not suffice to begin, or no cover is found possible.
    """
    cover = rounded(cover)
    useful = useful_shapes(cover, hosts, below * (1 + SAME), effort)
    cover = replace(cover, shapes=replace(cover.shapes, room=useful.room))
    shapes = useful.shapes.tolist()
    most: Amounts = np.full(len(cover.shapes), min(_EACH, _LISTED // max(1, len(shapes))), dtype=np.int64)
    listed = full_fillings(cover, hosts, shapes, most, effort)
    bound, best, least, whole = 0.0, None, below, False
    program: _Program | None = None
    few = int(cover.needed.sum()) <= _WHOLE_PODS
    for _ in range(_TURNS):
        if listed is None:
            break
        program = program or _Program(cover, hosts, useful, listed, most_new_nodes, below)
        found = program.solve(effort, least, whole=whole)
        if found is None:
            break
        bound = max(bound, min(found.bound, least))
        if found.chosen is None:
            break
        held, chosen = on_chosen_nodes(cover, hosts, found.chosen, effort)
        if chosen is not None and cost_of(cover, chosen) < least:
            best, least = chosen, cost_of(cover, chosen)
        if bound >= least * (1 - SAME) or (whole and not len(listed.beside)):
            break
        if held is False:
            program.bar(_times(found.chosen))
        elif few and not whole:
            whole = True
        else:
            most[[one.shape for one in found.chosen]] = _EACH_USED
            more = full_fillings(cover, hosts, shapes, most, effort)
            if more is None or len(more.beside) == len(listed.beside):
                break
            listed, program = more, None
    return Answer(bound, best) if bound > 0 or best is not None else None


def _times(chosen: Sequence[Chosen]) -> dict[int, int]:
    times: dict[int, int] = {}
    for one in chosen:
        times[one.shape] = times.get(one.shape, 0) + one.times
    return times


class _Program:
    """Where the variables are, and what they must keep to."""

    def __init__(
        self,
        cover: Cover,
        hosts: HostLimits,
        useful: Useful,
        listed: Fillings,
        most_new_nodes: float,
        below: float,
    ) -> None:
        self._cover = cover
        self._hosts = hosts
        self._useful = useful
        self._listed = listed
        self._most_new_nodes = most_new_nodes
        self._items = len(cover.needed)
        self._asked = np.flatnonzero(cover.requests.any(axis=0)).tolist()
        self._filled = len(listed.shape)
        self._made = self._filled + len(listed.beside)
        self._shapes = np.concatenate([listed.shape, listed.beside])
        self.count = self._made + self._items * len(listed.beside)
        self._fits = self._fits_of_each()
        self._most = self._most_of_each()
        self._scale = _SCALE / max(below if np.isfinite(below) else float(cover.cost.max(initial=0.0)), 1e-9)
        self._once = cover.standing.copy()
        self._once[useful.shapes[useful.apart.diagonal()]] = True
        self._bars = 0
        self._cuts = _Cuts.of(cover, listed.beside, self._asked, self._most)
        self._program: highspy.Highs | None = None

    def _pods(self, item: int, number: int) -> int:
        return self._made + number * self._items + item

    def _fits_of_each(self) -> Amounts:
        """How many pods of each item one node of each unlisted shape has room for."""
        requests = self._cover.requests[:, self._asked]
        most: Amounts = np.zeros((len(self._listed.beside), self._items), dtype=np.int64)
        for number, shape in enumerate(self._listed.beside.tolist()):
            room = np.maximum(self._cover.shapes.room[shape, self._asked], 0)
            fits = np.where(requests > 0, room // np.maximum(requests, 1), ENDLESS).min(axis=1)
            most[number] = np.where(self._cover.shapes.allowed[shape], fits, 0)
        return most

    def _most_of_each(self) -> Amounts:
        """The most pods of each item that one node of each unlisted shape holds."""
        most = np.minimum(self._fits, self._cover.needed)
        least: Amounts = np.minimum(most, self._hosts.alone())
        return least

    def solve(self, effort: Effort, below: float, *, whole: bool) -> Answer | None:
        """The bound, and the best answer: unlisted shapes without pods where it is not known which.

        None where the program would be too large for the effort, or has no answer.

        Args:
            effort: What it takes is taken from it.
            below: What a cover is known for; only what counts less is looked for.
            whole: Whether pods on unlisted shapes are whole numbers.
        """
        if not 0 < self.count <= _VARIABLES:
            return None
        program = self._program = self._program or self._in_fractions()
        if not self._cut(program, effort, below):
            return None
        looks = looks_within(effort.left, program)
        if looks < _LEAST_LOOKS or program.getNumNz() > _ENTRIES:
            return None
        few = self._fits.reshape(-1) <= (ENDLESS if whole else _FEW)
        pods = self._made + np.flatnonzero(few)
        columns = [*range(self._made), *pods.tolist(), *range(self.count, self.count + self._bars)]
        cutoff = below * self._scale * (1 - SAME / 10)
        options = PLAIN_SEARCH | ({"objective_bound": cutoff} if np.isfinite(cutoff) else {})
        solver = whole_numbers_of(program, columns, _MOST_TREE, _SCALE * SAME / 10, **options)
        effort.left -= seconds_of(run_within(solver, looks), solver)
        if np.isfinite(cutoff) and solver.getModelStatus() in _NOTHING:
            return Answer(cutoff / self._scale, None)
        bound = bound_of(solver)
        if bound is None:
            return None
        values = whole_numbers(solver)
        if values is not None and float(solver.getInfo().objective_function_value) > cutoff:
            values = None
        chosen = None if values is None else list(self._chosen(values, whole=whole))
        return Answer(min(bound, cutoff) / self._scale, chosen)

    def bar(self, times: dict[int, int]) -> None:
        """Ask for another shape, or more nodes of one, than so many of each, which do not hold the pods."""
        program = self._program
        if program is None:
            return
        others = np.flatnonzero(~np.isin(self._shapes, list(times))).tolist()
        for shape, number in times.items():
            if self._once[shape]:
                continue
            column = self.count + self._bars
            self._bars += 1
            program.addCol(0.0, 0.0, 1.0, 0, _NO_INDEX, _NO_VALUE)
            more = [at for at, _ in self._nodes_of([shape])]
            entries = np.array([*more, column], dtype=np.int32)
            values = np.array([*([1.0] * len(more)), -float(number + 1)])
            program.addRow(0.0, highspy.kHighsInf, len(entries), entries, values)
            others.append(column)
        program.addRow(
            1.0, highspy.kHighsInf, len(others), np.array(others, dtype=np.int32), np.ones(len(others))
        )

    def _in_fractions(self) -> highspy.Highs:
        """The program without cuts, in fractions."""
        cost = np.concatenate([self._cover.cost[self._shapes], np.zeros(self.count - self._made)])
        program = quiet_solver()
        program.setOptionValue("simplex_iteration_limit", _ITERATIONS)
        program.passModel(
            self._rows().of_fractions(
                cost * self._scale, np.zeros(self.count), self._upper(), highspy.ObjSense.kMinimize
            )
        )
        return program

    def _cut(self, program: highspy.Highs, effort: Effort, below: float) -> bool:
        """Add the cuts that the optimum in fractions would break; whether there is an optimum.

        One above what a cover is known for says that the program has rows that the cover breaks.
        """
        for _ in range(_ROUNDS):
            program.run()
            effort.spend_solving(iterations_of(program), program.getNumRow(), self.count)
            if program.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return False
            taken = np.array(program.getSolution().col_value)
            nodes, pods = taken[self._filled : self._made], taken[self._made : self.count]
            broken = self._cuts.broken(nodes, pods.reshape(len(nodes), self._items))
            if not len(broken):
                break
            self._add_cuts(program, broken)
        return float(program.getInfo().objective_function_value) <= below * self._scale * (1 + SAME)

    def _add_cuts(self, program: highspy.Highs, cuts: NDArray[np.intp]) -> None:
        for cut in cuts.tolist():
            number, counts = int(self._cuts.number[cut]), self._cuts.counts[cut]
            items = np.flatnonzero(counts)
            entries = np.array([*self._pods(0, number) + items, self._filled + number], dtype=np.int32)
            values = np.array([*counts[items], -self._cuts.most[cut]], dtype=np.float64)
            program.addRow(-highspy.kHighsInf, 0.0, len(entries), entries, values)

    def _chosen(self, values: NDArray[np.int64], *, whole: bool) -> Iterator[Chosen]:
        nothing = np.zeros(self._items, dtype=np.int64)
        for column in np.flatnonzero(values[: self._made]).tolist():
            times = int(values[column])
            if column < self._filled:
                yield Chosen(int(self._listed.shape[column]), self._listed.pods[column], times)
                continue
            number = column - self._filled
            shape, pods = int(self._listed.beside[number]), nothing
            if whole and times == 1 and not self._hosts.count:
                pods = values[self._pods(0, number) : self._pods(self._items, number)]
            yield Chosen(shape, pods, times)

    def _upper(self) -> Values:
        """The most that each variable may be."""
        needed = self._cover.needed
        pods = self._listed.pods
        times = np.where(pods > 0, -(-needed // np.maximum(pods, 1)), 0).max(axis=1, initial=0)
        made = np.concatenate([times, np.full(len(self._listed.beside), max(1, int(needed.sum())))])
        made[self._once[self._shapes]] = 1
        most = np.minimum(self._most * made[self._filled :, None], needed).reshape(-1)
        return np.concatenate([made, most]).astype(np.float64)

    def _rows(self) -> Rows:
        rows = Rows()
        beside = range(len(self._listed.beside))
        for item, needed in enumerate(self._cover.needed.tolist()):
            column = self._listed.pods[:, item]
            listed = [(at, float(column[at])) for at in np.flatnonzero(column).tolist()]
            rows.least([*listed, *((self._pods(item, number), 1.0) for number in beside)], needed)
        self._room(rows)
        self._limits_beside(rows)
        nodes = self._shapes.tolist()
        uses = [self._cover.uses[shape] for shape in nodes]
        for cap, left in enumerate(self._cover.caps.tolist()):
            unit = max(1.0, abs(left))
            using = ((at, use[cap] / unit) for at, use in enumerate(uses) if cap in use)
            rows.most(using, max(0.0, left) / unit)
        if np.isfinite(self._most_new_nodes):
            new = np.flatnonzero(~self._cover.standing[nodes]).tolist()
            rows.most(((at, 1.0) for at in new), self._most_new_nodes)
        for group in self._useful.groups():
            rows.most(self._nodes_of(group), 1.0)
        return rows

    def _nodes_of(self, shapes: Sequence[int]) -> list[tuple[int, float]]:
        return [(at, 1.0) for at in np.flatnonzero(np.isin(self._shapes, shapes)).tolist()]

    def _room(self, rows: Rows) -> None:
        requests, shapes = self._cover.requests, self._listed.beside.tolist()
        for resource in self._asked:
            unit = float(requests[:, resource].max())
            asked = requests[:, resource]
            whole = float(matmul(asked, self._cover.needed))
            entries = [(at, float(used)) for at, used in enumerate(matmul(self._listed.pods, asked).tolist())]
            for number, shape in enumerate(shapes):
                room = float(max(0, self._cover.shapes.room[shape, resource]))
                pods = [(self._pods(item, number), float(asked[item]) / unit) for item in range(self._items)]
                rows.most([*pods, (self._filled + number, -room / unit)], 0.0)
                entries.append((self._filled + number, room))
            rows.least(((at, min(room, whole) / unit) for at, room in entries), whole / unit)

    def _limits_beside(self, rows: Rows) -> None:
        """Pods that a limit counts and that have it: no more on so many nodes than the widest allows."""
        own = self._hosts.adds & (self._hosts.most < ENDLESS)
        for limit in np.flatnonzero(own.sum(axis=0) > 1).tolist():
            items = np.flatnonzero(own[:, limit]).tolist()
            most = float(self._hosts.most[items, limit].max())
            for number in range(len(self._listed.beside)):
                pods = [(self._pods(item, number), 1.0) for item in items]
                rows.most([*pods, (self._filled + number, -most)], 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Cuts:
    """Rows sum_i c_i y[i, s] <= m z[s] that hold for whole pods, with whole numbers c_i.

    Where no more than b is used of a resource, sum_i floor(q_i / u) y_i <= floor(b / u) for every unit u.
    Units are the requests themselves, by which no more pods of an item are on nodes than fit, and larger ones
    count for several; and a little more than b / 2, b / 3 and so on: one pod at most takes more than half.
    """

    number: NDArray[np.intp]
    """Which of the unlisted shapes each is about."""
    counts: Amounts
    """What a pod of each item counts; shape (cuts, items)."""
    most: Amounts

    @staticmethod
    def of(cover: Cover, shapes: NDArray[np.intp], resources: Sequence[int], most: Amounts) -> "_Cuts":
        """Those of some shapes, of which one node holds so many pods of each item at most."""
        numbers, counts, limits = [], [], []
        for number, shape in enumerate(shapes.tolist()):
            own = [np.eye(most.shape[1], dtype=np.int64)]
            room = [most[number]]
            for resource in resources:
                requests = np.where(most[number] > 0, cover.requests[:, resource], 0)
                b = max(0, int(cover.shapes.room[shape, resource]))
                units = np.unique([*requests.tolist(), *(b // parts + 1 for parts in _PARTS)])
                units = units[(units > 0) & (units <= b)]
                own.append(requests // units[:, None])
                room.append(b // units)
            mine = np.concatenate(own)
            holds = np.minimum(np.concatenate(room), matmul(mine, most[number]))
            useful = mine.any(axis=1) & (holds > 0)
            numbers += [number] * int(useful.sum())
            counts.append(mine[useful])
            limits.append(holds[useful])
        nothing: Amounts = np.zeros((0, most.shape[1]), dtype=np.int64)
        return _Cuts(
            np.array(numbers, dtype=np.intp),
            np.concatenate([nothing, *counts]),
            np.concatenate([nothing[:, 0], *limits]),
        )

    def broken(self, nodes: Values, pods: Values) -> NDArray[np.intp]:
        """For each shape those that an answer in fractions breaks most.

        Args:
            nodes: How many of each unlisted shape.
            pods: Of each item on them; shape (shapes, items).
        """
        over = (self.counts * pods[self.number]).sum(axis=1) / self.most - nodes[self.number]
        order = np.lexsort((-over, self.number))
        place = np.arange(len(order)) - np.searchsorted(self.number[order], self.number[order])
        return np.sort(order[(place < _AT_ONCE) & (over[order] > _BROKEN)])
