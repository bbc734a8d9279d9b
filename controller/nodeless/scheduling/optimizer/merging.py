"""Two nodes as one, where that costs no more.

For nodes a, b of shapes s, t the pair is replaced by one node of the cheapest shape u that holds
the pods of both, if w_u <= w_s + w_t, and if the caps leave what u takes of them beyond s and t. Each merge
leaves one node less, so the passes end. Of plans at the same price the one with fewer nodes is better: fewer
agents, fewer addresses, fewer images.
"""

from collections.abc import Sequence

import numpy as np

from nodeless.scheduling.optimizer.cover import Chosen, Cover
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.pods.classes import Amounts, Mask

#: Nodes, and caps, beyond which pairs are not tried.
_MOST, _MOST_CAPS = 120, 20
#: Prices that differ by less are equal.
_SAME = 1e-9


def merged(chosen: Sequence[Chosen], cover: Cover, requests: Amounts, hosts: HostLimits) -> Sequence[Chosen]:
    """The same pods on fewer nodes, for no more money."""
    new = [one for one in chosen if cover.shapes.pool[one.shape] >= 0]
    kept = [one for one in chosen if cover.shapes.pool[one.shape] < 0]
    uses, left = _of_new_nodes(cover, chosen)
    if len(left) > _MOST_CAPS or not 2 <= sum(one.times for one in new) <= _MOST:
        return chosen
    free = np.array([not len(touched) for touched in hosts.touched], dtype=np.bool_)
    nodes = [single for one in new for single in [Chosen(one.shape, one.filling, 1)] * one.times]
    nodes.sort(key=lambda one: (float(cover.cost[one.shape]), one.shape))
    while (pair := _pair(nodes, cover, requests, free, uses, left)) is not None:
        first, second, shape = pair
        left = left + uses[nodes[first].shape] + uses[nodes[second].shape] - uses[shape]
        together = Chosen(shape, nodes[first].filling + nodes[second].filling, 1)
        nodes = [node for index, node in enumerate(nodes) if index not in (first, second)]
        nodes.append(together)
    return [*kept, *_folded(nodes)]


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


def _folded(nodes: Sequence[Chosen]) -> list[Chosen]:
    """Equal nodes as one entry."""
    times: dict[tuple[int, bytes], list[Chosen]] = {}
    for node in nodes:
        times.setdefault((node.shape, node.filling.tobytes()), []).append(node)
    return [Chosen(same[0].shape, same[0].filling, len(same)) for same in times.values()]


def _pair(
    nodes: Sequence[Chosen], cover: Cover, requests: Amounts, free: Mask, uses: Values, left: Values
) -> tuple[int, int, int] | None:
    """The first two nodes that can be one, and its shape; nodes that are alike are looked at once.

    `uses` is what a node of each shape takes of the caps, `left` what the nodes leave of them.
    """
    numbers: dict[tuple[int, bytes], int] = {}
    alike = np.array(
        [numbers.setdefault((node.shape, node.filling.tobytes()), len(numbers)) for node in nodes]
    )
    patterns = [nodes[alike.tolist().index(number)] for number in range(len(numbers))]
    shapes = cover.shapes
    used = np.array([pattern.filling @ requests for pattern in patterns])
    price = np.array([shapes.price[pattern.shape] for pattern in patterns])
    cost = np.array([cover.cost[pattern.shape] for pattern in patterns])
    asked = np.array([pattern.filling > 0 for pattern in patterns])
    taken = np.array([uses[pattern.shape] for pattern in patterns])
    allowed = ~(~shapes.allowed @ asked.T) & (shapes.pool >= 0)[:, None]

    def holding(pattern: int) -> Mask:
        """The shapes that hold a node of the kind and one of each other, for no more money."""
        holds: Mask = allowed & allowed[:, pattern, None]
        holds &= shapes.price[:, None] <= price + price[pattern] + _SAME
        # What pools of less weight cost beyond their price.
        holds &= cover.cost[: len(shapes), None] <= cost + cost[pattern] + _SAME
        for room, total in zip(shapes.room.T, (used + used[pattern]).T, strict=True):
            holds &= room[:, None] >= total
        for use, total in zip(uses.T, (taken + taken[pattern] + left).T, strict=True):
            holds &= use[:, None] <= total + _SAME
        return holds

    plain = ~(asked @ ~free)
    barren: set[int] = set()
    for first, pattern in enumerate(alike.tolist()):
        if pattern in barren or not plain[pattern]:
            continue
        barren.add(pattern)
        holds = holding(pattern) & plain
        others = np.flatnonzero(holds.any(axis=0)[alike[first + 1 :]])
        if len(others):
            other = first + 1 + int(others[0])
            rows = np.flatnonzero(holds[:, alike[other]])
            return first, other, int(rows[shapes.price[rows].argmin()])
    return None
