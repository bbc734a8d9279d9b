"""Two nodes as one, where that costs no more.

For nodes a, b of shapes s, t the pair is replaced by one node of the cheapest shape u that holds
the pods of both, if w_u <= w_s + w_t. Each merge leaves one node less, so the passes end. Of plans
at the same price the one with fewer nodes is better: fewer agents, fewer addresses, fewer images.
"""

from collections.abc import Sequence

import numpy as np

from nodeless.solve.improving.cover import Chosen, Cover
from nodeless.solve.improving.items import HostLimits
from nodeless.solve.pods.classes import Amounts, Mask

#: Nodes beyond which pairs are not tried.
_MOST = 120
#: Prices that differ by less are equal.
_SAME = 1e-9


def merged(chosen: Sequence[Chosen], cover: Cover, requests: Amounts, hosts: HostLimits) -> Sequence[Chosen]:
    """The same pods on fewer nodes, for no more money."""
    new = [one for one in chosen if cover.shapes.pool[one.shape] >= 0]
    kept = [one for one in chosen if cover.shapes.pool[one.shape] < 0]
    if len(cover.caps) or sum(one.times for one in new) > _MOST:
        return chosen
    free = np.array([not len(touched) for touched in hosts.touched], dtype=np.bool_)
    nodes = [single for one in new for single in [Chosen(one.shape, one.filling, 1)] * one.times]
    nodes.sort(key=lambda one: (float(cover.cost[one.shape]), one.shape))
    while (pair := _pair(nodes, cover, requests, free)) is not None:
        first, second, shape = pair
        together = Chosen(shape, nodes[first].filling + nodes[second].filling, 1)
        nodes = [node for index, node in enumerate(nodes) if index not in (first, second)]
        nodes.append(together)
    return [*kept, *_folded(nodes)]


def _folded(nodes: Sequence[Chosen]) -> list[Chosen]:
    """Equal nodes as one entry."""
    times: dict[tuple[int, bytes], list[Chosen]] = {}
    for node in nodes:
        times.setdefault((node.shape, node.filling.tobytes()), []).append(node)
    return [Chosen(same[0].shape, same[0].filling, len(same)) for same in times.values()]


def _pair(
    nodes: Sequence[Chosen], cover: Cover, requests: Amounts, free: Mask
) -> tuple[int, int, int] | None:
    """The first two nodes that can be one, and its shape; nodes that are alike are looked at once."""
    numbers: dict[tuple[int, bytes], int] = {}
    alike = np.array(
        [numbers.setdefault((node.shape, node.filling.tobytes()), len(numbers)) for node in nodes]
    )
    kinds = [nodes[alike.tolist().index(number)] for number in range(len(numbers))]
    shapes = cover.shapes
    used = np.array([kind.filling @ requests for kind in kinds])
    price = np.array([shapes.price[kind.shape] for kind in kinds])
    asked = np.array([kind.filling > 0 for kind in kinds])
    allowed = ~(~shapes.allowed @ asked.T) & (shapes.pool >= 0)[:, None]

    def holding(kind: int) -> Mask:
        """The shapes that hold a node of the kind and one of each other, for no more money."""
        holds: Mask = allowed & allowed[:, kind, None]
        holds &= shapes.price[:, None] <= price + price[kind] + _SAME
        for room, total in zip(shapes.room.T, (used + used[kind]).T, strict=True):
            holds &= room[:, None] >= total
        return holds

    plain = ~(asked @ ~free)
    barren: set[int] = set()
    for first, kind in enumerate(alike.tolist()):
        if kind in barren or not plain[kind]:
            continue
        barren.add(kind)
        holds = holding(kind) & plain
        others = np.flatnonzero(holds.any(axis=0)[alike[first + 1 :]])
        if len(others):
            other = first + 1 + int(others[0])
            rows = np.flatnonzero(holds[:, alike[other]])
            return first, other, int(rows[shapes.price[rows].argmin()])
    return None
