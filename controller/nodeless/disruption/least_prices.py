"""Quick bounds: what new capacity for some pods would cost at least.

Like those of `node_capacity`, they say no. What pods need beyond the room of nodes that stay, new nodes must
have. Give a unit of each resource a price such that no offer is worth more than it costs; then what is needed
is worth no more than any nodes that have it cost. Processors alone and memory alone are priced so, and both
together: pods that need much of both find no offer that is the cheapest for either. The best prices for both
are corners of the set of such prices, and those are edges of the convex hull of what a dollar buys.
"""

from collections.abc import Collection, Iterator, Sequence, Set
from itertools import pairwise

import numpy as np

from nodeless.disruption.candidates import Candidate
from nodeless.disruption.node_capacity import Amounts, NodeCapacity, Requests, pods_that_fit
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.pods import PodShape
from nodeless.model.pools import Pool
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import find_untolerated
from nodeless.scheduling.capacity.pool_table import LATER_LABELS, prefers_only
from nodeless.scheduling.devices import known_devices
from nodeless.scheduling.pods.classes import UNBOUNDED
from nodeless.scheduling.pods.daemons import with_observed_requests
from nodeless.scheduling.pods.matmul import matmul

#: US dollars an hour: what is paid for already costs nothing, but is not divided by.
_LEAST_PRICE = 1e-9
_GRID = 1_000_000


class LeastPrices:
    """What new capacity costs at least, after the daemons that every new node of a pool has."""

    def __init__(self, catalog: Catalog, capacity: NodeCapacity, snapshot: Snapshot) -> None:
        """`catalog`: the types that the requirements of each pool leave it."""
        offers: list[tuple[float, Amounts]] = []
        announced = {name for kinds in catalog.values() for kind in kinds for name in kind.capacity}
        for key, kinds in catalog.items():
            pool = snapshot.pools.get(key)
            if pool is None:
                continue
            taken = sum(
                map(capacity.row, _daemons_of_all_nodes(snapshot, pool, kinds)),
                np.zeros(len(capacity.resources)),
            )
            for kind in kinds:
                has = {**_by_devices(kind, capacity.served, announced), **kind.allocatable}
                holds = np.array([has.get(name, 0) for name in capacity.resources]) - taken
                offers += [(price, holds) for price in _prices(kind, pool)]
        offers.sort(key=lambda offer: offer[0])
        self._capacity = capacity
        #: By [offer], cheapest first, and what a node of it holds by [offer, resource].
        self._prices: Amounts = np.array([price for price, _ in offers], dtype=np.float64)
        self._holds: Amounts = np.array([holds for _, holds in offers], dtype=np.float64).reshape(
            len(offers), len(capacity.resources)
        )
        self._columns = [capacity.resources.index(name) for name in (CPU, MEMORY)]
        self._unit_prices = _unit_prices(self._prices, self._holds[:, self._columns])

    def of(self, candidates: Sequence[Candidate]) -> float:
        """A bound: no new nodes for what cannot go elsewhere cost less; infinite when no type holds it."""
        if not any(candidate.pods for candidate in candidates):
            return 0.0
        pod = self._capacity.unschedulable_pod(candidates)
        bounds = [*self._by_amount(candidates), self._by_number(candidates)]
        if pod is not None:
            bounds.append(self._cheapest(self._capacity.row(pod.shape.requests)))
        elif any(bounds):
            # A part of a node cannot be bought.
            bounds.append(self._cheapest(self._capacity.least(candidates)))
        return max(bounds)

    def _by_amount(self, candidates: Sequence[Candidate]) -> Iterator[float]:
        """Processors, memory, and both: each unit costs what it costs where it is cheapest."""
        rows = [self._capacity.row(pod.shape.requests) for candidate in candidates for pod in candidate.pods]
        needed = np.array(rows).sum(axis=0) - self._capacity.absorbable_amounts(candidates)
        for column in self._columns:
            if needed[column] > 0:
                yield self._least_rate(self._holds[:, column]) * float(needed[column])
        both = np.maximum(needed[self._columns], 0.0)
        yield float(matmul(self._unit_prices, both).max(initial=0.0))

    def _by_number(self, candidates: Sequence[Candidate]) -> float:
        """Whole pods: a node holds no more of them than if each were the smallest."""
        over = sum(len(candidate.pods) for candidate in candidates) - self._capacity.max_pods(candidates)
        return (
            self._least_rate(pods_that_fit(self._holds, self._capacity.least(candidates))) * over
            if over > 0
            else 0.0
        )

    def _least_rate(self, amounts: Amounts) -> float:
        """The least price of a unit, when the nodes offered have so many; infinite when none has any."""
        some = amounts > 0
        return float((self._prices[some] / amounts[some]).min(initial=np.inf))

    def _cheapest(self, requests: Amounts) -> float:
        fitting = np.flatnonzero((self._holds >= requests).all(axis=1))
        return float(self._prices[fitting[0]]) if fitting.size else float("inf")


def _unit_prices(prices: Amounts, holds: Amounts) -> Amounts:
    """Prices of a unit of two resources at which no offer is worth more than it costs, by [corner, resource].

    Those at which one of the two is free are left out.
    """
    rates = np.maximum(holds, 0.0) / np.maximum(prices, _LEAST_PRICE)[:, np.newaxis]
    most = rates.max(axis=0, initial=0.0)
    if not most.all():
        return np.empty((0, 2))
    # On a grid, rounded to what makes the bound less, the hull is exact.
    points = {(int(x), int(y)) for x, y in np.ceil(rates / most * _GRID)}
    hull: list[tuple[int, int]] = []
    for point in sorted({(0, _GRID), *points}):
        while len(hull) > 1 and _is_below(hull[-1], hull[-2], point):
            hull.pop()
        hull.append(point)
    corners = []
    for (x, y), (right, low) in pairwise(hull):
        if y > low:
            worth = (y - low) * x + (right - x) * y
            corners.append(((y - low) / worth, (right - x) / worth))
    found: Amounts = np.array(corners).reshape(len(corners), 2) * _GRID / most
    return found


def _is_below(point: tuple[int, int], left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Whether a point is not above the line between two others."""
    return (point[0] - left[0]) * (right[1] - left[1]) >= (point[1] - left[1]) * (right[0] - left[0])


def _by_devices(kind: InstanceType, served: Collection[str], announced: Set[str]) -> dict[str, int]:
    """What a type may have by devices: no bound is known of it."""
    if not served:
        return {}
    may_have = bool(kind.devices or known_devices(kind))
    return {name: int(UNBOUNDED) for name in served if may_have or name not in announced}


def _prices(kind: InstanceType, pool: Pool) -> set[float]:
    return {
        offering.price
        for offering in kind.offerings
        if offering.available and offering.allowed_by(pool.requirements)
    }


def _daemons_of_all_nodes(
    snapshot: Snapshot, pool: Pool, kinds: Sequence[InstanceType]
) -> Iterator[Requests]:
    """What the DaemonSets ask for that no node of the pool is without, whatever its type."""
    labels = {key for kind in kinds for key in kind.requirements} | set(pool.requirements) | set(LATER_LABELS)
    hard = [taint for taint in pool.taints if not prefers_only(taint)]
    for daemon_set in with_observed_requests(snapshot).values():
        shape = daemon_set.shape
        tolerated = find_untolerated(hard, shape.tolerations) is None
        if tolerated and not shape.invalid and _chooses_nothing(shape, labels):
            yield shape.requests


def _chooses_nothing(shape: PodShape, labels: Set[str]) -> bool:
    """Whether it runs on nodes with these labels, whatever their values are: others they do not have."""
    if shape.node_selector:
        return False
    return not shape.required_terms or any(
        all(expression.allows_absence() and expression.key not in labels for expression in term.expressions)
        for term in shape.required_terms
        if not term.match_fields
    )
