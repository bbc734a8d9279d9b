"""What resources cost at least where a program that knows of each pair of a class and a shape is too large.

Problem: the one of `resource_program` with all classes apart. It begins with the shapes that are bought where
classes are poured together, and every pod may go without a node, at a high price. Let v_c be what a pod of
class c is worth by its duals, M_s what pods on one node of a shape s that it does not know are worth at most
(`knapsacks`), w_s what that costs, and m_s what it pays for limits. The shapes whose (M_s - m_s) / w_s is
largest join, and so on until none is above one: the optimum is that with all shapes then. Before, dividing
all duals by the largest makes them feasible for all shapes, so every turn proves the optimum divided by it.
"""

import numpy as np

from nodeless.scheduling.optimizer.bound_problem import BoundProblem
from nodeless.scheduling.optimizer.knapsacks import Knapsacks
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.resource_program import ResourceProgram
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Mask

#: Shapes that join at a time, turns at most, and seconds for each pair of a class and a shape.
_JOINING, _TURNS, _PAIR = 8, 40, 10e-6
#: What a pod without a node costs, in terms of the dearest node.
_MISSING = 10.0
#: By what share pods may be worth more than a node costs before its shape joins.
_SAME = 1e-6


def bound_by_joining_shapes(problem: BoundProblem, bought: Values, effort: Effort) -> float:
    """Dollars an hour that no plan goes below.

    Args:
        problem: The pods, and where they may be.
        bought: By shape, how many nodes are bought in a program of fewer kinds.
        effort: What it takes is taken from it.

    Returns:
        0 where nothing is proved with the effort.
    """
    new, price = len(problem.shapes), np.maximum(problem.shapes.price, 1e-9)
    known: Mask = np.concatenate([bought > 0, np.ones(len(problem.existing.nodes), dtype=np.bool_)])
    program = ResourceProgram(problem, problem.kinds)
    program.let_go_without(_MISSING * float(price.max(initial=0.0)))
    knapsacks = Knapsacks(problem.cover(), problem.hosts())
    bound, joining = 0.0, np.flatnonzero(known)
    for _ in range(_TURNS):
        effort.left -= _PAIR * program.open(joining.tolist())
        optimum = program.solve(effort)
        if optimum is None:
            break
        values, rents = program.duals()
        worth = (knapsacks.in_fractions(values, effort)[:new] - rents) / price
        worth[known[:new]] = 0.0
        bound = max(bound, optimum / max(1.0, float(worth.max(initial=0.0))))
        joining = np.argsort(-worth, kind="stable")[:_JOINING]
        joining = joining[worth[joining] > 1 + _SAME]
        known[joining] = True
        if not len(joining) or effort.left <= 0:
            break
    return bound
