"""What resources cost at least for some pods: nodes in fractions, or whole nodes with fractions of pods.

Problem
-------
Let nodes be bought in fractions z_s and the pods of a class be divided among shapes, y_cs:

    min  sum_s w_s z_s
    s.t. sum_c q_c[r] y_cs <= b_s[r] z_s       for each shape s, resource r
         sum_s y_cs = n_c                      for each class c; y_cs = 0 where c may not run on s
         sum_{c counted by h} y_cs <= k_h z_s  for each limit h of pods on one host
         sum_{s of pool p} g_s[r] z_s <= G_p[r]   for each limit of a pool
         z_e <= 1, w_e = 0                     for each existing node e

b_s[r] is first rounded down to a multiple of the greatest common divisor of all requests of r, which every
sum of them is.

Where there are too many pairs of class and shape, classes that may run on the same shapes are poured
together: their requests of each resource become a class of their own. What is given up is that a
pod's resources must come from one node, and limits on one host, so the optimum can only get lower.
`joining_shapes` keeps classes apart there, and knows of fewer shapes.
Classes that need many nodes because of such limits stay apart as far as the number of pairs allows.
Limits of pools leave many more shapes, for of two types the smaller one counts less against them: there such
liquids are poured together as well as may run on different shapes of the same pools.

HiGHS solves both programs, with a limit on simplex iterations or on its search.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import (
    PLAIN_SEARCH,
    bound_of,
    iterations_of,
    looks_within,
    quiet_solver,
    run_within,
    seconds_of,
    whole_numbers_of,
)
from nodeless.scheduling.optimizer.bound_problem import PAIRS, BoundProblem, Kind
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.optimizer.whole_nodes import SAME
from nodeless.scheduling.optimizer.work_budget import Effort

#: Pairs of those that stay apart because limits on one host make them need many nodes.
_APART = 4000
_ITERATIONS = 20000
#: Seconds for each variable of the program at a node of the search tree, and nodes of it, as a rule.
_VARIABLE, _LEAST_TREE, _MOST_TREE = 11e-6, 10, 500
#: What prices add up to in a program of whole numbers, about: HiGHS's tolerances are fixed amounts.
_SCALE = 1000.0


def program_of(problem: BoundProblem) -> "ResourceProgram | None":
    """The program for some pods, poured together as far as they are too many; None where they are even so."""
    kinds = problem.kinds
    if _pairs(kinds) > PAIRS:
        kinds = _fewer(kinds)
    if _pairs(kinds) > PAIRS:
        kinds = _poured(kinds)
    if _pairs(kinds) > PAIRS:
        kinds = _widened(kinds, lambda kind: _pools_of(kind, problem.shapes))
    if _pairs(kinds) > PAIRS:
        kinds = _widened(kinds, lambda _: b"")
    if _pairs(kinds) > PAIRS:
        return None
    program = ResourceProgram(problem, kinds)
    program.open(range(len(problem.shapes) + len(problem.existing.nodes)))
    return program


class ResourceProgram:
    """The linear program, in scaled units so that its numbers are near one."""

    def __init__(self, problem: BoundProblem, kinds: Sequence[Kind]) -> None:
        """`kinds`: those of the problem, or fewer that cost no more."""
        self.poured = kinds is not problem.kinds
        """Whether they are fewer."""
        self.bought: Values = np.zeros(len(problem.shapes))
        """How many nodes of each shape the optimum buys, in fractions."""
        self._nodes = problem.existing.nodes
        self._shapes = problem.shapes
        self._kinds = kinds
        self._left = problem.left
        room = problem.room_for_whole_pods()
        requests = np.array([kind.requests for kind in kinds])
        self._asked = np.flatnonzero(requests.any(axis=0))
        self._unit = np.maximum(room[:, self._asked].max(axis=0, initial=1), 1).astype(np.float64)
        self._room = room[:, self._asked] / self._unit
        self._numbers = np.array([kind.number for kind in kinds])
        self._amounts = requests[:, self._asked] * self._numbers[:, None] / self._unit
        self._count = len(room)
        self._solver = quiet_solver()
        self._solver.setOptionValue("simplex_iteration_limit", _ITERATIONS)
        self._rows = self._add_rows(self._solver)
        self._add_nodes(self._solver, self._rows)

    def open(self, shapes: Iterable[int]) -> int:
        """Let the kinds be on nodes of further shapes, existing nodes last; how many variables that makes."""
        before = int(self._solver.getNumCol())
        for shape in shapes:
            for index, kind in enumerate(self._kinds):
                if kind.allowed[shape]:
                    self._add_pair(index, shape)
        return int(self._solver.getNumCol()) - before

    def let_go_without(self, price: float) -> None:
        """Let pods go without a node, at a price for each."""
        for index, kind in enumerate(self._kinds):
            _add(self._solver, price * kind.number, highspy.kHighsInf, {self._rows["kind", index]: 1.0})

    def solve(self, effort: Effort) -> float | None:
        """The optimum, whatever it takes of the effort; None when it is not reached or pods have no place."""
        solver = self._solver
        solver.run()
        effort.spend_solving(iterations_of(solver), solver.getNumRow(), solver.getNumCol())
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        self.bought = np.array(solver.getSolution().col_value[: len(self._shapes)], dtype=np.float64)
        return float(solver.getInfo().objective_function_value)

    def duals(self) -> tuple[Values, Values]:
        """What a pod of each kind is worth, and what new nodes pay for limits by shape; after `solve`."""
        dual = np.array(self._solver.getSolution().row_dual, dtype=np.float64)
        first = self._rows["kind", 0]
        worth = dual[first : first + len(self._kinds)] / self._numbers
        rents = [
            -sum(dual[row] * part for row, part in self._charges(shape)) for shape in range(len(self._shapes))
        ]
        return np.maximum(worth, 0.0), np.maximum(rents, 0.0)

    def solve_whole(self, effort: Effort, price: float) -> float | None:
        """What the optimum is at least where new nodes are whole; after `solve`. None: not known.

        Args:
            effort: What it may take; what it takes is taken from it.
            price: What the optimum is about, in dollars an hour.
        """
        columns = self._solver.getNumCol()
        tree = int(min(_MOST_TREE, effort.left / (_VARIABLE * columns)))
        if tree < _LEAST_TREE:
            return None
        scale = _SCALE / price
        for shape, dollars in enumerate(self._shapes.price.tolist()):
            self._solver.changeColCost(shape, dollars * scale)
        solver = whole_numbers_of(
            self._solver, range(len(self._shapes)), tree, _SCALE * SAME / 10, **PLAIN_SEARCH
        )
        # The tree alone says little: most of the work may be at its first node.
        looks = max(1, looks_within(effort.left, solver))
        effort.left -= seconds_of(run_within(solver, looks), solver)
        bound = bound_of(solver)
        return None if bound is None else bound / scale

    def _add_rows(self, solver: highspy.Highs) -> dict[object, int]:
        """Rows by what they are about: (shape, resource), kind, (topology group, shape), (pool, limit)."""
        infinite = highspy.kHighsInf
        rows: dict[object, int] = {}

        def row(name: object, low: float, high: float) -> None:
            if name not in rows:
                rows[name] = len(rows)
                solver.addRow(low, high, 0, _NO_INDEX, _NO_VALUE)

        for shape in range(self._count):
            for resource in range(len(self._asked)):
                row(("room", shape, resource), -infinite, 0.0)
        for index in range(len(self._kinds)):
            row(("kind", index), 1.0, infinite)
        for kind in self._kinds:
            for topology_group, _ in kind.hosts:
                for place in np.flatnonzero(kind.allowed):
                    row(("host", topology_group, int(place)), -infinite, 0.0)
        for number, amounts in enumerate(self._left):
            for position, amount in enumerate(amounts):
                row(("limit", number, position), -infinite, float(max(amount, 0)) / _scale(amount))
        return rows

    def _add_nodes(self, solver: highspy.Highs, rows: dict[object, int]) -> None:
        most: dict[int, int] = {}
        for kind in self._kinds:
            for topology_group, limit in kind.hosts:
                most[topology_group] = max(limit, most.get(topology_group, 0))
        for shape in range(self._count):
            entries = {
                rows["room", shape, resource]: -float(self._room[shape, resource])
                for resource in range(len(self._asked))
                if self._room[shape, resource] > 0
            }
            for topology_group, limit in most.items():
                if ("host", topology_group, shape) in rows:
                    nodes = 1 if shape < len(self._shapes) else int(self._nodes[shape - len(self._shapes)])
                    entries[rows["host", topology_group, shape]] = -float(limit * nodes)
            new = shape < len(self._shapes)
            if new:
                entries |= self._charges(shape)
            price = float(self._shapes.price[shape]) if new else 0.0
            _add(solver, price, highspy.kHighsInf if new else 1.0, entries)

    def _charges(self, shape: int) -> Iterator[tuple[int, float]]:
        """What a new node of a shape takes of the limits of its pool, by row."""
        number = int(self._shapes.pool[shape])
        for position, amount in enumerate(self._shapes.charge[shape]):
            if amount > 0:
                scale = _scale(self._left[number][position])
                yield self._rows["limit", number, position], float(amount) / scale

    def _add_pair(self, index: int, shape: int) -> None:
        """A variable: the share of a kind that is on nodes of a shape."""
        kind, rows = self._kinds[index], self._rows
        entries = {
            rows["room", shape, resource]: float(amount)
            for resource, amount in enumerate(self._amounts[index])
            if amount > 0
        }
        entries[rows["kind", index]] = 1.0
        for topology_group, _ in kind.hosts:
            entries[rows["host", topology_group, shape]] = kind.number
        _add(self._solver, 0.0, highspy.kHighsInf, entries)


def _pairs(kinds: Iterable[Kind]) -> int:
    return sum(int(kind.allowed.sum()) for kind in kinds)


def _fewer(kinds: Sequence[Kind]) -> list[Kind]:
    """Kinds with fewer pairs that cost no more: those apart that need many nodes, the others as liquids."""
    alone: dict[tuple[tuple[int, int], ...], list[Kind]] = {}
    for kind in kinds:
        if kind.hosts:
            alone.setdefault(kind.hosts, []).append(kind)
    by_nodes = sorted(alone.items(), key=lambda entry: (-_nodes(*entry), entry[0]))
    kept: list[Kind] = []
    dropped = [kind for kind in kinds if not kind.hosts]
    for _, group in by_nodes:
        merged = _merged(group)
        if _pairs(kept) + _pairs(merged) <= _APART:
            kept += merged
        else:
            dropped += group
    return [*kept, *_poured(dropped)]


def _nodes(hosts: tuple[tuple[int, int], ...], kinds: Iterable[Kind]) -> float:
    """How many nodes the limits on one host make of some kinds, at least."""
    return sum(kind.number for kind in kinds) / max(1, min(most for _, most in hosts))


def _merged(kinds: Iterable[Kind]) -> list[Kind]:
    """Kinds with the same limits; equal requests that may run on the same shapes are one."""
    alike: dict[tuple[bytes, bytes], Kind] = {}
    for kind in kinds:
        same = kind.requests.tobytes(), kind.allowed.tobytes()
        known = alike.get(same)
        number = kind.number + (known.number if known is not None else 0.0)
        alike[same] = Kind(kind.requests, number, kind.allowed, kind.hosts)
    return list(alike.values())


def _poured(kinds: Sequence[Kind]) -> list[Kind]:
    """Kinds that may run on the same shapes as one liquid for each resource."""
    groups: dict[bytes, list[Kind]] = {}
    for kind in kinds:
        groups.setdefault(kind.allowed.tobytes(), []).append(kind)
    result = []
    for group in groups.values():
        total = sum(kind.requests * kind.number for kind in group)
        for resource, amount in enumerate(np.asarray(total, dtype=np.float64)):
            if amount > 0:
                unit = np.zeros(len(group[0].requests), dtype=np.int64)
                unit[resource] = 1
                result.append(Kind(unit, float(amount), group[0].allowed))
    return result


def _pools_of(kind: Kind, shapes: Shapes) -> bytes:
    """The pools whose shapes take some pods, and whether existing nodes do."""
    new = kind.allowed[: len(shapes)]
    return np.unique(shapes.pool[new]).tobytes() + bytes([bool(kind.allowed[len(shapes) :].any())])


def _widened(kinds: Sequence[Kind], alike: Callable[[Kind], bytes]) -> list[Kind]:
    """Liquids of one resource that are alike as one, which may run wherever any of them may."""
    known: dict[tuple[bytes, bytes], Kind] = {}
    for pods in kinds:
        same = pods.requests.tobytes(), alike(pods)
        before = known.get(same, Kind(pods.requests, 0.0, np.zeros_like(pods.allowed)))
        known[same] = Kind(pods.requests, before.number + pods.number, before.allowed | pods.allowed)
    return list(known.values())


def _scale(amount: float | np.int64) -> float:
    return float(max(amount, 1))


def _add(solver: highspy.Highs, price: float, most: float, entries: dict[int, float]) -> None:
    order = sorted(entries)
    index: NDArray[np.int32] = np.array(order, dtype=np.int32)
    solver.addCol(price, 0.0, most, len(order), index, np.array([entries[row] for row in order]))


_NO_INDEX = np.array([], dtype=np.int32)
_NO_VALUE = np.array([], dtype=np.float64)
