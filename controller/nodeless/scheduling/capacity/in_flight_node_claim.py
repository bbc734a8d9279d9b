"""One node that this pass opens: the types still possible for it shrink with every class placed.

Invariant: each remaining type holds all pods of the node, resources, requirements, daemons
and host ports included, and has an available offering that the node's requirements allow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nodeless.model.identity import Identity, places_of_same
from nodeless.model.pods import HostPort
from nodeless.model.requirements import Conflict
from nodeless.scheduling.capacity.diversity import most_possible
from nodeless.scheduling.capacity.pool_table import MOST_ARRAYS, Filled, PoolTable, Terms, keep_few
from nodeless.scheduling.capacity.price_cube import Prices
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass, how_many, ports_conflict
from nodeless.scheduling.pods.constraints import NodeRequirements
from nodeless.scheduling.pods.rules import Rules

#: Seconds for each host port that is looked at.
_PORT = 1.2e-6


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Pods of one class that a node took at once, and what was asked for them."""

    pods: PodClass
    node_requirements: NodeRequirements
    rules: Rules
    tables: tuple[PoolTable, ...]
    """The pools in which they may be, heaviest first."""
    count: int


@dataclass(slots=True, eq=False)
class InFlightNodeClaim:
    """A node of a pool while it is being filled."""

    table: PoolTable
    #: All types that could hold what it is opened for, also those that it may not become while it is filled.
    possible: Mask
    terms: Terms
    #: Rows of the pool's types that can still hold the node.
    types: NDArray[np.intp]
    used: Amounts
    #: Room left on each remaining type; shape (remaining types, resources).
    spare: Amounts
    #: The most that any remaining type has left, resource by resource.
    slack: Amounts
    pods: list[str] = field(default_factory=list)
    #: What `pods` consists of, in the same order.
    parts: list[Part] = field(default_factory=list)
    ports: list[HostPort] = field(default_factory=list)
    #: Claims that other pods mount too and whose volumes it attaches.
    held: frozenset[str] = frozenset()

    @classmethod
    def opened(cls, table: PoolTable, types: Mask, possible: Mask | None = None) -> "InFlightNodeClaim":
        """A node without pods.

        Args:
            table: Its pool.
            types: The types that it may become while it is filled.
            possible: All that could hold what it is opened for; None: the same types.
        """
        rows = np.flatnonzero(types)
        spare: Amounts = table.room[rows]
        used = np.zeros(table.room.shape[1], dtype=np.int64)
        most: Amounts = spare.max(axis=0)
        return cls(table, types if possible is None else possible, table.start, rows, used, spare, most)

    def place(self, pods: PodClass, node_requirements: NodeRequirements, want: int) -> int:
        """How many of the class the node can take, at most `want`; it is narrowed for them.

        What comes out where more pods wait than fit is kept for the node's twins.
        """
        if self.ports or pods.shape.host_ports or pods.shared:
            return self._place(pods, node_requirements, want)
        memo = (Identity(self.types, self.used), self.terms, pods, node_requirements)
        known = self.table.filled.get(memo)
        if known is not None and known.take <= want:
            self.terms, self.types, self.used = known.terms, known.types, known.used
            self.spare, self.slack = known.spare, known.slack
            return known.take
        take = self._place(pods, node_requirements, want)
        if take < want:
            after = Filled(take, self.terms, self.types, self.used, self.spare, self.slack)
            keep_few(self.table.filled, MOST_ARRAYS)
            self.table.filled[memo] = after
        return take

    def _place(self, pods: PodClass, node_requirements: NodeRequirements, want: int) -> int:
        terms = self.table.grow(self.terms, node_requirements)
        if isinstance(terms, Conflict):
            return 0
        counts = self._counts(pods, terms)
        take = self._diverse(pods, terms, counts, min(want, int(counts.max(initial=0))))
        if take == 0:
            return 0
        self.terms = terms
        self.used = self.used + pods.requests * take
        if pods.shared:
            self.used = self.used + pods.attaching(self.held)
            self.held = self.held | {key for key, _ in pods.shared}
        if pods.shape.host_ports:
            self.ports.extend(pods.shape.host_ports)
            self.possible = self.possible & self.table.free_ports(pods.shape.host_ports)
        self._keep(counts >= take)
        return take

    def twin(self, pods: Sequence[str]) -> "InFlightNodeClaim":
        """A node in the same state, with as many other pods of the same classes."""
        return replace(self, pods=list(pods), parts=list(self.parts), ports=list(self.ports))

    def capacity(self, pods: PodClass, node_requirements: NodeRequirements) -> int:
        """How many of the class the node could take."""
        terms = self.table.grow(self.terms, node_requirements)
        if isinstance(terms, Conflict):
            return 0
        counts = self._counts(pods, terms)
        return self._diverse(pods, terms, counts, int(counts.max(initial=0)))

    def price(self, pods: PodClass, node_requirements: NodeRequirements) -> float:
        """The lowest price of a remaining type that takes one of the class; infinite when none does."""
        terms = self.table.grow(self.terms, node_requirements)
        if isinstance(terms, Conflict):
            return float("inf")
        rows = self.types[self._counts(pods, terms) > 0]
        return float(terms.prices[rows].min(initial=np.inf))

    def wide(self) -> NDArray[np.intp]:
        """Its types with those that were set aside while it was filled, where they hold its pods.

        No limit is touched: the types are no larger than the largest that was kept.
        """
        return np.flatnonzero(self._wide(self.terms, self.used, self.types))

    def _wide(self, terms: Terms, used: Amounts, kept: NDArray[np.intp]) -> Mask:
        """The types that hold so much and charge no more to the limits than those that are kept."""
        types: Mask = self.possible & terms.types & (self.table.room >= used).all(axis=1)
        types &= (self.table.limited <= self.table.limited[kept].max(axis=0)).all(axis=1)
        types[kept] = True
        return types

    def _diverse(self, pods: PodClass, terms: Terms, counts: Amounts, take: int) -> int:
        """How many of `take` pods leave the different types that the pool's minValues insist on."""
        if not self.table.least:
            return take

        def possible(number: int) -> bool:
            kept = self.types[counts >= number]
            used = self.used + pods.requests * number + pods.attaching(self.held)
            wide = self._wide(terms, used, kept)
            return self.table.diverse(wide, terms.requirements)

        return most_possible(take, possible)

    def beyond(
        self, pods: PodClass, node_requirements: NodeRequirements, affordable: Mask
    ) -> tuple[NDArray[np.intp], Amounts, Prices] | None:
        """Types that it could be instead, set aside or not: rows, how many of the class each takes, prices.

        None where the node cannot take the class whatever its type.
        """
        terms = self.table.grow(self.terms, node_requirements)
        if isinstance(terms, Conflict):
            return None
        rows = np.flatnonzero(self.possible & terms.types & affordable)
        used = self.used + pods.attaching(self.held) if pods.shared else self.used
        counts = how_many(self.table.room[rows] - used, pods.requests)
        if pods.shape.host_ports:
            counts = np.minimum(counts, 0 if ports_conflict(pods.shape.host_ports, self.ports) else 1)
            counts[~self.table.free_ports(pods.shape.host_ports)[rows]] = 0
        return rows, counts, terms.prices[rows]

    def become(self, rows: NDArray[np.intp]) -> None:
        """Be any of these types, each of which holds what the node has."""
        self.types = rows
        self.spare = self.table.room[rows] - self.used
        self.slack = self.spare.max(axis=0)

    def restrict(self, types: Mask) -> None:
        """Give up the types outside the mask; some must stay."""
        self._keep(types[self.types])

    def charge(self) -> Amounts:
        """What the node counts against its pool's limits, whichever of its types is launched."""
        most: Amounts = self.table.limited[self.types].max(axis=0)
        return most

    def by_price(self) -> list[int]:
        """Rows of the remaining types, cheapest first; equal prices by name."""
        order = np.lexsort((self.types, self.terms.prices[self.types]))
        rows: list[int] = self.types[order].tolist()
        return rows

    def _counts(self, pods: PodClass, terms: Terms) -> Amounts:
        """How many of the class each remaining type could take under the terms."""
        spare = self.spare - pods.attaching(self.held) if pods.shared else self.spare
        counts = how_many(spare, pods.requests)
        if terms is not self.terms:
            counts[~terms.types[self.types]] = 0
        ports = pods.shape.host_ports
        if ports:
            self.table.meter.spend(_PORT * (len(ports) + len(self.ports)))
            counts = np.minimum(counts, 0 if ports_conflict(ports, self.ports) else 1)
            counts[~self.table.free_ports(ports)[self.types]] = 0
        return counts

    def _keep(self, kept: Mask) -> None:
        self.become(self.types[kept])


def widen(nodes: Iterable[InFlightNodeClaim]) -> None:
    """Give nodes back the types that were set aside while they were filled; twins are looked at once."""
    some = list(nodes)
    for alike in places_of_same([(node.table, node.terms, node.types, node.possible) for node in some]):
        known: dict[bytes, NDArray[np.intp]] = {}
        for place in alike:
            node = some[place]
            used = node.used.tobytes()
            if used not in known:
                known[used] = node.wide()
            node.types = known[used]


def reopened(nodes: Sequence[InFlightNodeClaim]) -> Sequence[InFlightNodeClaim]:
    """Nodes like these, widened, that take further pods; these stay as they are."""
    others = [node.twin(node.pods) for node in nodes]
    widen(others)
    for node in others:
        node.restrict(np.ones(len(node.table.table), dtype=np.bool_))
    return others


def price_of(nodes: Iterable[InFlightNodeClaim]) -> float:
    """Dollars an hour of nodes, each as the cheapest type that it may become."""
    return sum(float(node.terms.prices[node.types].min()) for node in nodes)
