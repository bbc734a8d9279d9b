"""What pods cost at least on nodes that are filled with whole pods, in fractions of such nodes.

Problem
-------
A configuration k is a node of a shape with a filling a_k, bought at w_k dollars an hour:

    min  sum_k w_k z_k
    s.t. sum_k a_ik z_k >= n_i            pods of kind i: of a class, in one zone where that matters
         sum_{i of class c} n_i = N_c     each pod once
         sum_k g_kr z_k <= G_r            limits of pools; each existing node once
         what rules say of zones          (`balances`)
         z >= 0

Each plan is an answer to this, with all configurations there are. It begins with those that the search for a
cheaper plan left, and with every turn gets those that are worth the most at the last duals (`knapsacks`).
What these prove holds in every turn, however far from all configurations the program is.
"""

from collections.abc import Iterable, Iterator, Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.model.labels import ZONE
from nodeless.scheduling.capacity.highs import Rows, iterations_of, quiet_solver
from nodeless.scheduling.optimizer.balances import add_balances, least_worth
from nodeless.scheduling.optimizer.bound_problem import BoundProblem
from nodeless.scheduling.optimizer.configurations import Configuration
from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.items import Item
from nodeless.scheduling.optimizer.knapsacks import Knapsacks
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts

#: Turns at most, and the share of the optimum in fractions up to which it is worth the while to prove more.
_TURNS, _ENOUGH = 40, 1e-4
#: What a pod without a place costs, in terms of the dearest node.
_MISSING = 10.0
#: The part of the effort that one turn may take: one that looks at too few shapes proves nothing.
_TURN = 0.9


def configuration_bound(
    problem: BoundProblem, configurations: Sequence[Configuration], effort: Effort, below: float
) -> float:
    """Dollars an hour that no plan goes below.

    Args:
        problem: The pods, and where they may be.
        configurations: To begin with, by shapes and kinds of the problem.
        effort: What it takes is taken from it.
        below: Where so much is proved, there is nothing more to prove.
    """
    cover, hosts = problem.cover(), problem.hosts()
    if hosts.count and not problem.singly:
        return 0.0
    knapsacks = Knapsacks(cover, hosts)
    program = _Program(problem, cover)
    bound = 0.0
    found = list(configurations)
    for _ in range(_TURNS):
        if not program.add(found) or effort.left <= 0:
            break
        optimum, values, rents = program.solve(effort)
        parts = [
            (kind.pods, kind.zone, kind.number, value)
            for kind, value in zip(problem.kinds, values.tolist(), strict=True)
        ]
        turn = Effort(_TURN * effort.left)
        effort.left -= turn.left
        priced = knapsacks.price(values, rents, turn, least_worth(parts, problem.balances))
        effort.left += turn.left
        bound = max(bound, priced.bound)
        if bound >= min(below, optimum * (1 - _ENOUGH)):
            break
        found = list(priced.fillings)
    return bound


def translated(
    configurations: Iterable[Configuration],
    items: Sequence[Item],
    shapes: Shapes,
    names: Sequence[str],
    problem: BoundProblem,
) -> Iterator[Configuration]:
    """Configurations of some shapes and items by those of a problem; what that does not have is left out.

    Args:
        configurations: By numbers of `shapes` and `items`.
        items: The pods that they were found for.
        shapes: The shapes of new nodes; existing nodes follow them.
        names: Of these.
        problem: Has its own shapes, and kinds.
    """
    kinds = {(kind.pods, kind.zone): number for number, kind in enumerate(problem.kinds)}
    kind_of = []
    for item in items:
        zone = item.node_requirements.requirements.single_values().get(ZONE)
        kind_of.append(kinds.get((item.pods, zone), kinds.get((item.pods, None))))
    places: dict[object, list[int]] = {}
    for shape in range(len(problem.shapes)):
        places.setdefault(_what(problem.shapes, shape), []).append(shape)
    places |= {name: [row] for row, name in enumerate(problem.existing.names, len(problem.shapes))}
    for shape, filling in configurations:
        pods: Amounts = np.zeros(len(problem.kinds), dtype=np.int64)
        there: list[int] = np.flatnonzero(filling).tolist()
        meant = [kind for each in there if (kind := kind_of[each]) is not None]
        if len(meant) < len(there):
            continue
        for kind, each in zip(meant, there, strict=True):
            pods[kind] += filling[each]
        what = _what(shapes, shape) if shape < len(shapes) else names[shape - len(shapes)]
        for place in places.get(what, ()):
            if all(problem.kinds[kind].allowed[place] for kind in meant):
                yield place, pods
                break


def _what(shapes: Shapes, shape: int) -> object:
    """What a shape is, but for the items that it is open to."""
    pool = shapes.tables[shapes.pool[shape]].pool.key
    return pool, shapes.room[shape].tobytes(), float(shapes.price[shape])


class _Program:
    """The program with the configurations that were found."""

    def __init__(self, problem: BoundProblem, cover: Cover) -> None:
        self._cover = cover
        self._kinds = len(problem.kinds)
        self._known: set[tuple[int, bytes]] = set()
        self._solver = quiet_solver()
        number, rows = self._kinds, Rows()
        # Rows: kinds, caps, classes, rules. Columns: pods by kind, those without a place, what rules need.
        for column in range(number):
            rows.least([(number + column, 1.0), (column, -1.0)], 0.0)
        for cap in cover.caps.tolist():
            rows.most([], cap)
        classes: dict[object, list[int]] = {}
        for index, kind in enumerate(problem.kinds):
            classes.setdefault(kind.pods, []).append(index)
        for some in classes.values():
            rows.least([(index, 1.0) for index in some], problem.kinds[some[0]].number)
        places = {(kind.pods, kind.zone): index for index, kind in enumerate(problem.kinds)}
        most = [highspy.kHighsInf] * (2 * number)
        add_balances(problem.balances, places, rows, most)
        cost = np.zeros(len(most))
        cost[number : 2 * number] = _MISSING * max(float(cover.cost.max(initial=0.0)), 1e-9)
        self._solver.passModel(
            rows.of_fractions(cost, np.zeros(len(most)), np.array(most), highspy.ObjSense.kMinimize)
        )

    def add(self, found: Iterable[Configuration]) -> bool:
        """Add configurations; whether any was new."""
        before = len(self._known)
        for shape, filling in found:
            memo = shape, filling.tobytes()
            if memo in self._known:
                continue
            self._known.add(memo)
            entries = {int(kind): float(filling[kind]) for kind in np.flatnonzero(filling)}
            entries |= {self._kinds + row: uses for row, uses in self._cover.uses[shape].items()}
            index: NDArray[np.int32] = np.array(list(entries), dtype=np.int32)
            price = float(self._cover.cost[shape])
            self._solver.addCol(
                price, 0.0, highspy.kHighsInf, len(index), index, np.array(list(entries.values()))
            )
        return len(self._known) > before

    def solve(self, effort: Effort) -> tuple[float, Values, Values]:
        """The optimum, what a pod of each kind is worth, and what the caps cost."""
        rows, columns = self._solver.getNumRow(), self._solver.getNumCol()
        self._solver.setOptionValue("simplex_iteration_limit", max(1, effort.iterations(rows)))
        self._solver.run()
        effort.spend_solving(iterations_of(self._solver), rows, columns)
        duals = np.array(self._solver.getSolution().row_dual)
        rents = np.maximum(-duals[self._kinds : self._kinds + len(self._cover.caps)], 0.0)
        optimum = float(self._solver.getInfo().objective_function_value)
        return optimum, np.maximum(duals[: self._kinds], 0.0), rents
