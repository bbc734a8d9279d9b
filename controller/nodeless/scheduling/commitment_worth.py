"""What a unit of each commitment has to be worth for the highest lower bound of plans with commitments.

Let B_j units be left of commitment j, and let an instance i at price p_i use u_ij of them. What commitments
cover of a plan is the optimum of a linear program (cover x_ij of each instance, at most 1 in all, at most B_j
units of j), so by its dual, for any worth y_j >= 0 in US dollars an hour for each unit, a plan costs

    at least   what it costs with each instance at min(p_i, y_j u_ij for each j)   less   sum of B_j y_j.

A lower bound of plans at these prices, less the sum, so is one of plans with commitments. Every plan that is
known says how high it can be at most, whatever the worth: where these leave room for the most, the next plan
is made (Kelley's cutting planes).

Example: 2 USD/h of a Savings Plan with 50 % discount are left. At a worth of 2 instances cost their price,
and 4 are taken off; at a worth of 1 they cost half, and 2 are taken off.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from nodeless.scheduling.capacity.highs import Rows, quiet_solver


@dataclass(frozen=True, slots=True)
class InstanceUse:
    """Equal instances of a plan that commitments may cover."""

    number: int
    price: float
    """Of one, in US dollars an hour."""
    uses: tuple[float | None, ...]
    """Units that one uses of each commitment; None: it is not covered."""


@dataclass(frozen=True, slots=True)
class PlanUse:
    """A plan as commitments see it."""

    beside: float
    """What it costs beside the instances that they may cover, in US dollars an hour."""
    instances: tuple[InstanceUse, ...]


def highest_bound(
    plans: Sequence[PlanUse], left: Sequence[float], most: Sequence[float]
) -> tuple[float, tuple[float, ...]]:
    """The highest lower bound that the plans leave room for, and the worth of each commitment for it.

    Args:
        plans: Those that are known, one at least.
        left: Units that are left of each commitment.
        most: What a unit of each is worth at most.
    """
    # Columns: the bound, the worth of each commitment, the prices of instances.
    number, rows = 1 + len(left), Rows()
    gain, lower, upper = [1.0, *[0.0] * len(left)], [-highspy.kHighsInf], [highspy.kHighsInf]
    lower += [0.0] * len(left)
    upper += most
    prices: dict[tuple[float, tuple[float | None, ...]], int] = {}
    for plan in plans:
        entries: dict[int, float] = {}
        for instance in plan.instances:
            memo = instance.price, instance.uses
            if memo not in prices:
                prices[memo] = number + len(prices)
                gain.append(0.0)
                lower.append(0.0)
                upper.append(instance.price)
                for index, use in enumerate(instance.uses, 1):
                    if use is not None:
                        rows.least([(index, use), (prices[memo], -1.0)], 0.0)
            column = prices[memo]
            entries[column] = entries.get(column, 0.0) - instance.number
        rows.most([(0, 1.0), *enumerate(left, 1), *entries.items()], plan.beside)
    solver = quiet_solver()
    sense = highspy.ObjSense.kMaximize
    solver.passModel(rows.of_fractions(np.array(gain), np.array(lower), np.array(upper), sense))
    solver.run()
    answer = solver.getSolution().col_value
    return float(answer[0]), tuple(float(worth) for worth in answer[1:number])
