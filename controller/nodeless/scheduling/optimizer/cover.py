"""What `column_generation` covers: pods of items, with nodes of shapes that have prices and caps.

`covering` makes it for the items of a solve, `merging` and `repacking` turn what was chosen into nodes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """What to cover, with what, at what price; the arrays speak of the same items and shapes."""

    shapes: Shapes
    requests: Amounts
    """Of one pod of each item; shape (items, resources)."""
    needed: Amounts
    """Pods of each item."""
    cost: Values
    """What a node of each shape counts in the comparison of plans."""
    uses: tuple[dict[int, float], ...]
    """For each shape what one node takes of the caps, by index of the cap."""
    caps: Values
    worth: Values
    """First values of one pod of each item."""
    even_worth: Values
    """The same where resources that are nearly scarce have a price, too."""
    standing: Mask
    """The shapes that are existing nodes."""
    likely: NDArray[np.intp]
    """The shapes that bulk purchases would use."""
    weight_penalties: dict[str, float]
    """By pool key: how many times its price a node counts."""
    unit_worth: Values
    """First values of one unit of each resource in each pool of the shapes; shape (pools, resources)."""

    def rent(self, rents: Values, rows: Iterable[int]) -> Values:
        """What a node of each of some shapes pays for the caps, at these prices for one unit of each."""
        return np.array(
            [sum(rents[row] * amount for row, amount in self.uses[shape].items()) for shape in rows],
            dtype=np.float64,
        )

    def at_most(self, values: Values, left: Amounts, rows: NDArray[np.intp]) -> Values:
        """What the pods on one node of each shape are worth at most.

        Where v_i <= a (q_i . y) for all items that a shape is open to, no filling is worth more than
        a (room . y), nor more than all the pods that are left.
        """
        useful = np.flatnonzero((values > 0) & (left > 0))
        allowed = self.shapes.allowed[np.ix_(rows, useful)]
        worth = matmul(allowed, values[useful] * left[useful])
        pool = self.shapes.pool[rows]
        for number, unit in enumerate(self.unit_worth):
            asked = matmul(self.requests[useful], unit)
            if not (asked > 0).all():
                continue
            own = pool == number
            largest = np.where(allowed[own], values[useful] / asked, 0.0).max(axis=1, initial=0.0)
            room = np.maximum(self.shapes.room[rows[own]], 0)
            worth[own] = np.minimum(worth[own], largest * matmul(room, unit))
        return np.where(pool < 0, np.inf, worth)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """So many nodes of one shape with one filling."""

    shape: int
    filling: Amounts
    times: int


def cost_of(cover: Cover, chosen: Sequence[Chosen]) -> float:
    """What the nodes count together."""
    return sum(float(cover.cost[one.shape]) * one.times for one in chosen)
