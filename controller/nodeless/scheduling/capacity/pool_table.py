"""One pool with its types: what daemons leave free on each, and what a set of requirements admits.

`Terms` are the requirements gathered on a new node and the types that can meet them. They
grow with every class placed there; the same growth is computed once for the whole solve.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodeless.model.identity import Identity
from nodeless.model.labels import (
    HOSTNAME,
    INITIALIZED,
    NODE_NAME,
    REGISTERED,
)
from nodeless.model.min_values import least_values
from nodeless.model.pods import DaemonSet, HostPort
from nodeless.model.pools import Pool
from nodeless.model.requirements import Conflict, Requirement, Requirements
from nodeless.model.taints import Taint, TaintEffect, Toleration, find_untolerated
from nodeless.scheduling.capacity.diversity import most_possible, shortage
from nodeless.scheduling.capacity.price_cube import Prices
from nodeless.scheduling.capacity.type_table import TypeTable
from nodeless.scheduling.pods.classes import (
    Amounts,
    Mask,
    PodClass,
    column,
    how_many,
    ports_conflict,
    requests_of,
)
from nodeless.scheduling.pods.constraints import NodeRequirements, daemon_alternatives

#: The limit that counts nodes instead of a resource.
NODES = "nodes"


def _unknown_name_satisfies(expression: Requirement) -> bool:
    """Whether a name that nobody knows yet meets an expression: any that asks for none, and for no number."""
    return expression.complement and expression.minimum is None and expression.maximum is None


#: Labels that a node bears only once it has joined, and whether an expression holds for them on a node to
#: come: it has a name that nobody knows yet, and comes to be registered and initialized.
LATER_LABELS: Mapping[str, Callable[[Requirement], bool]] = {
    HOSTNAME: _unknown_name_satisfies,
    NODE_NAME: _unknown_name_satisfies,
    REGISTERED: lambda expression: expression.allows("true"),
    INITIALIZED: lambda expression: expression.allows("true"),
}
_LARGEST_LIMIT = 2**61
#: Seconds for terms that grow, for each expression that they grow by, and for each type.
_GROWTH, _EXPRESSION, _ROW = 40e-6, 4e-6, 12e-9
#: Seconds for a fresh node that a class opens.
_OPENING = 10e-6


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Requirements gathered on a node, the types that meet them, and each type's lowest price."""

    requirements: Requirements
    types: Mask
    prices: Prices


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """An open node after it took all that it could of a class."""

    take: int
    terms: Terms
    types: NDArray[np.intp]
    used: Amounts
    spare: Amounts
    slack: Amounts


#: Answers of a table that are kept, and of those with arrays (ten kilobytes each): greedy pods ask for more.
_MOST_GROWN, MOST_ARRAYS = 50_000, 4_000


def keep_few(known: dict[Any, Any], most: int) -> None:
    """Forget everything where there is no room for one more: what is asked again is worked out again."""
    if len(known) >= most:
        known.clear()


class PoolTable:
    """A pool, its types as arrays, and the memory of everything asked about them in one solve."""

    def __init__(
        self, pool: Pool, table: TypeTable, daemon_sets: Iterable[DaemonSet], *, strict: bool = True
    ) -> None:
        """`strict`: no node is made whose types offer fewer values than the pool's minValues."""
        self.pool = pool
        self.table = table
        self.meter = table.meter
        self.offered = pool.offered
        self.wanted = least_values(self.offered)
        """What the pool's minValues ask for."""
        self.least = self.wanted if strict else ()
        """What a node may not be made without."""
        self._grown: dict[tuple[Terms, NodeRequirements], Terms | Conflict] = {}
        self._interned: dict[tuple[Requirements, bytes], Terms] = {}
        self._fresh: dict[tuple[PodClass, NodeRequirements], tuple[Terms, Amounts] | None] = {}
        self._held: dict[bytes, Amounts] = {}
        self.filled: dict[tuple[Identity, Terms, PodClass, NodeRequirements], Filled] = {}
        """What became of open nodes, by the arrays that they had (`in_flight_node_claim`)."""
        self.daemons: Amounts = np.zeros_like(table.capacity)
        self._daemon_ports: list[tuple[tuple[HostPort, ...], Mask]] = []
        self.daemon_sets: dict[str, tuple[tuple[Requirement, ...], ...]] = {}
        """The DaemonSets whose pods some node may get, by key, with what they ask of it (any of these)."""
        for daemon_set in sorted(daemon_sets, key=lambda daemon_set: daemon_set.key):
            self._add_daemon(daemon_set)
        self.room: Amounts = table.allocatable - self.daemons
        """What pods of a new node may use; shape (types, resources)."""
        own = np.ones(len(table), dtype=np.bool_)
        for requirement in pool.requirements.values():
            own &= table.allowed(requirement, defined=True)
        self.start = self._terms(self.offered, own)
        """The terms of a node without pods."""
        limits = pool.limits or {}
        self.limit_names = tuple(sorted(limits))
        self.limits: Amounts = np.array(
            [bounded_limit(limits[name]) for name in self.limit_names], dtype=np.int64
        )
        self.limited: Amounts = self._limited_capacity()
        """What each type counts against the limits; shape (types, limits)."""

    def keep_limits(self, some: Mask) -> None:
        """From now on know only those limits, by position: nothing is counted against the others."""
        self.limit_names = tuple(name for name, keep in zip(self.limit_names, some, strict=True) if keep)
        self.limits, self.limited = self.limits[some], self.limited[:, some]

    def refuses(self, tolerations: tuple[Toleration, ...], *, soft: bool) -> Taint | None:
        """The first taint that is not tolerated; `soft` lets PreferNoSchedule pass."""
        hard = (taint for taint in self.pool.taints if not soft or not prefers_only(taint))
        return find_untolerated(hard, tolerations)

    def grow(self, terms: Terms, node_requirements: NodeRequirements) -> Terms | Conflict:
        """The terms with further requirements, or the conflict that forbids it. No type may be left."""
        memo = (terms, node_requirements)
        grown = self._grown.get(memo)
        if grown is None:
            keep_few(self._grown, _MOST_GROWN)
            grown = self._grown[memo] = self._grow(terms, node_requirements)
        return grown

    def fresh(self, pods: PodClass, node_requirements: NodeRequirements) -> tuple[Terms, Amounts] | None:
        """Terms of a node opened for a class, and how many of the class each type holds; None when none."""
        memo = (pods, node_requirements)
        if memo not in self._fresh:
            keep_few(self._fresh, MOST_ARRAYS)
            self._fresh[memo] = self._open(pods, node_requirements)
        return self._fresh[memo]

    def daemon_ports(self, rows: Sequence[int]) -> tuple[HostPort, ...]:
        """The host ports that daemons hold on some of the types."""
        return tuple(port for ports, where in self._daemon_ports if where[rows].any() for port in ports)

    def free_ports(self, ports: tuple[HostPort, ...]) -> Mask:
        """The types on which no daemon holds one of the host ports."""
        free = np.ones(len(self.table), dtype=np.bool_)
        for held, where in self._daemon_ports:
            if ports_conflict(ports, held):
                free &= ~where
        return free

    def undefined(self, node_requirements: NodeRequirements) -> Requirement | None:
        """The first expression on a label that neither the pool nor any type knows."""
        for expression in node_requirements.expressions:
            known = expression.key in self.offered or self.table.carries(expression.key)
            if not known and not self.allowed(expression).any():
                return expression
        return None

    def allowed(self, expression: Requirement) -> Mask:
        """The types that one expression allows on a node of this pool."""
        if expression.key == HOSTNAME:
            return np.full(len(self.table), LATER_LABELS[HOSTNAME](expression))
        return self.table.allowed(expression, defined=expression.key in self.offered)

    def _open(self, pods: PodClass, node_requirements: NodeRequirements) -> tuple[Terms, Amounts] | None:
        terms = self.grow(self.start, node_requirements)
        if isinstance(terms, Conflict):
            return None
        self.meter.spend(_OPENING + _ROW * len(self.table))
        counts = self._holds(pods.requests)
        if pods.shared:
            counts = how_many(self.room - pods.attaching(), pods.requests)
        usable = terms.types
        if pods.shape.host_ports:
            counts = np.minimum(counts, 1)
            usable = usable & self.free_ports(pods.shape.host_ports)
        counts = np.where(usable, counts, 0)
        if self.least:
            counts = np.minimum(counts, self._diverse(terms, counts))
        return (terms, counts) if counts.any() else None

    def _holds(self, requests: Amounts) -> Amounts:
        """How many times a request fits on a node of each type."""
        memo = requests.tobytes()
        if memo not in self._held:
            keep_few(self._held, MOST_ARRAYS)
            self._held[memo] = how_many(self.room, requests)
        return self._held[memo]

    def diverse(self, types: Mask, requirements: Requirements) -> bool:
        """Whether the types offer as many different values as the pool insists on."""
        rows = [int(row) for row in np.flatnonzero(types)]
        return not self.least or shortage(self.table, rows, self.least, requirements) is None

    def _diverse(self, terms: Terms, counts: Amounts) -> int:
        """How many pods leave enough different types, of which each holds so many as `counts` says."""
        return most_possible(
            int(counts.max(initial=0)), lambda number: self.diverse(counts >= number, terms.requirements)
        )

    def _grow(self, terms: Terms, node_requirements: NodeRequirements) -> Terms | Conflict:
        self.meter.spend(_GROWTH + _EXPRESSION * len(node_requirements.expressions) + _ROW * len(self.table))
        conflict = terms.requirements.conflict(node_requirements.requirements)
        if conflict is not None:
            return conflict
        types = terms.types
        for expression in node_requirements.expressions:
            types = types & self.allowed(expression)
        asked = node_requirements.requirements
        if HOSTNAME in asked:  # The hostname is the node's own: no claim may ask for it.
            asked = Requirements(one for one in asked.values() if one.key != HOSTNAME)
        merged = terms.requirements.intersect(asked)
        if merged == terms.requirements and types is terms.types:
            return terms
        return self._terms(merged, types)

    def _terms(self, requirements: Requirements, types: Mask) -> Terms:
        """Narrow by the merged requirements (labels with several values) and by available offerings."""
        for requirement in requirements.values():
            types = types & self.table.allowed(requirement, defined=True)
        prices = self.table.cheapest(requirements)
        types = types & np.isfinite(prices)
        return self._interned.setdefault((requirements, types.tobytes()), Terms(requirements, types, prices))

    def _add_daemon(self, daemon_set: DaemonSet) -> None:
        shape = daemon_set.shape
        hard = (taint for taint in self.pool.taints if not prefers_only(taint))
        if find_untolerated(hard, shape.tolerations) is not None:
            return
        where = np.zeros(len(self.table), dtype=np.bool_)
        possible = []
        for expressions in daemon_alternatives(shape):
            selected = self._selected(expressions)
            where |= selected
            if selected.any():
                possible.append(expressions)
        if possible:
            self.daemon_sets[daemon_set.key] = tuple(possible)
        self.daemons += np.outer(where, self.table.axis.row(requests_of(shape)))
        if shape.host_ports:
            self._daemon_ports.append((shape.host_ports, where))

    def _selected(self, expressions: tuple[Requirement, ...]) -> Mask:
        """Types whose nodes a daemon may land on: anything not excluded, as zone and the like are open."""
        where = np.ones(len(self.table), dtype=np.bool_)
        for expression in expressions:
            if expression.key in LATER_LABELS:
                where = where & LATER_LABELS[expression.key](expression)
                continue
            offered = self.offered.get(expression.key)
            if offered is not None and not offered.overlaps(expression):
                return np.zeros_like(where)
            where = where & self.allowed(expression)
        return where

    def _limited_capacity(self) -> Amounts:
        capacities = (
            [instance_type.capacity for instance_type in self.table.types] if self.limit_names else []
        )
        limited: Amounts = np.ones((len(self.table), len(self.limit_names)), dtype=np.int64)
        for position, name in enumerate(self.limit_names):
            if name != NODES:
                limited[:, position] = column(capacities, name)
        return limited


def bounded_limit(amount: int) -> int:
    """A limit, or what counts against one, as 64 bits can hold it with room for a difference."""
    return min(max(amount, -_LARGEST_LIMIT), _LARGEST_LIMIT)


def prefers_only(taint: Taint) -> bool:
    """Whether a taint only asks the scheduler to look elsewhere first."""
    return taint.effect == TaintEffect.PREFER_NO_SCHEDULE
