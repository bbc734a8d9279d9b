"""Two nodes as one, where that costs no more.

For nodes a, b of shapes s, t the pair is replaced by one node of the cheapest shape u that holds
the pods of both, if w_u <= w_s + w_t. Each merge leaves one node less, so the passes end. Of plans
at the same price the one with fewer nodes is better: fewer agents, fewer addresses, fewer images.
"""

from collections.abc import Sequence

import numpy as np

from nodeless.solve.improving.configurations import Chosen, Cover
from nodeless.solve.improving.items import HostLimits
from nodeless.solve.pods.classes import Amounts

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
    nodes = [Chosen(one.shape, one.filling, 1) for one in new for _ in range(one.times)]
    nodes.sort(key=lambda one: (float(cover.cost[one.shape]), one.shape))
    while (pair := _pair(nodes, cover, requests, free)) is not None:
        first, second, shape = pair
        together = Chosen(shape, nodes[first].filling + nodes[second].filling, 1)
        nodes = [node for index, node in enumerate(nodes) if index not in (first, second)]
        nodes.append(together)
    return [*kept, *nodes]


def _pair(
    nodes: Sequence[Chosen],
    cover: Cover,
    requests: Amounts,
    free: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
) -> tuple[int, int, int] | None:
    """The first two nodes that can be one, and its shape."""
    plain = [index for index, node in enumerate(nodes) if free[node.filling > 0].all()]
    if len(plain) < 2:
        return None
    shapes = cover.shapes
    used = np.array([nodes[index].filling @ requests for index in plain])
    price = np.array([shapes.price[nodes[index].shape] for index in plain])
    asked = np.array([nodes[index].filling > 0 for index in plain])
    fits_pods = ~(~shapes.allowed @ asked.T.astype(np.int64)).astype(np.bool_)
    for position, first in enumerate(plain):
        both = used[position] + used[position + 1 :]
        budget = price[position] + price[position + 1 :] + _SAME
        holds = (shapes.room[:, None, :] >= both[None, :, :]).all(axis=2)
        holds &= (shapes.price[:, None] <= budget) & (shapes.pool >= 0)[:, None]
        holds &= fits_pods[:, position, None] & fits_pods[:, position + 1 :]
        for other in np.flatnonzero(holds.any(axis=0)):
            rows = np.flatnonzero(holds[:, other])
            return first, plain[position + 1 + int(other)], int(rows[shapes.price[rows].argmin()])
    return None
