"""Open nodes that grow for pods with nowhere else to go.

A fresh node is bought at the price at which the pods that open it are cheapest (`targets`). Pods that must
be on the same node as those come later; where that node is too small for them it becomes a larger type of
those that were set aside, the one on which each of them costs the least more. So price decides which node
pods share, never whether they have one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """A node that can grow: its index, the option in which it would, the types, and what it would take."""

    index: int
    option: int
    rows: NDArray[np.intp]
    take: int
    extra: float
    """Dollars an hour more for each pod."""


def cheapest_growth(
    nodes: Sequence[InFlightNodeClaim],
    budgets: RemainingLimits,
    pods: PodClass,
    by_option: Sequence[NodeRequirements],
    candidates: Iterable[tuple[int, int, int]],
) -> Growth | None:
    """The growth that costs the least for each pod; of equal ones that which takes the most.

    Args:
        nodes: The open nodes.
        budgets: What pools may still grow by.
        pods: The class that needs room.
        by_option: What is asked of a node, by option.
        candidates: Index of a node, option, and the most pods that it may take.
    """
    found = [_growth(nodes[index], index, budgets, pods, by_option, rest) for index, *rest in candidates]
    return min(
        (growth for growth in found if growth is not None),
        key=lambda growth: (round(growth.extra, 9), -growth.take, growth.index, growth.option),
        default=None,
    )


def _growth(
    node: InFlightNodeClaim,
    index: int,
    budgets: RemainingLimits,
    pods: PodClass,
    by_option: Sequence[NodeRequirements],
    allowed: Sequence[int],
) -> Growth | None:
    option, most = allowed
    beyond = node.beyond(pods, by_option[option], budgets.affordable_instead(node))
    if beyond is None:
        return None
    rows, counts, prices = beyond
    take = np.minimum(counts, most)
    held = np.flatnonzero(take > 0)
    if not len(held):
        return None
    now = float(node.terms.prices[node.types].min())
    extra = (prices[held] - now) / take[held]
    best = held[np.lexsort((rows[held], -take[held], np.round(extra, 9)))[0]]
    kept = rows[(take >= take[best]) & (prices <= prices[best])]
    return Growth(index, option, kept, int(take[best]), float((prices[best] - now) / take[best]))
