"""The domains of a topology key: the values that its label has on nodes, or could have on new ones.

A domain counts as soon as a pool could make a node in it, limits aside, as in Karpenter. That
is never less than what kube-scheduler sees once the plan is carried out, so the emptiest
domain is never fuller here than there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, NODE_NAME, WELL_KNOWN, ZONE
from nodeless.model.requirements import IN, Conflict, Requirement, Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, Toleration, find_untolerated
from nodeless.scheduling.capacity.existing import Slot
from nodeless.scheduling.capacity.in_flight_node import may_satisfy_as_any
from nodeless.scheduling.capacity.pool_table import LATER_LABELS, PoolTable, prefers_only
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.constraints import NodeRequirements, node_requirements_of
from nodeless.scheduling.pods.rules import NodeFilter
from nodeless.scheduling.topology.node_filter import (
    NAMES,
    ON_EVERY_NODE,
    ExpectedNode,
    all_hold,
    any_holds,
    matches_node_filter,
)

#: Seconds for a node that a filter looks at, and for an expression of a filter on a domain to come.
_PLACE, _FILTERED = 2e-6, 3e-6


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A node that exists, or a claim; `slot` is its index where it may take pods."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    slot: int | None
    possible: tuple[Requirements, ...] = ()
    """For each type that a claim may become, its labels; empty for a node."""


def places_of(snapshot: Snapshot, slots: Sequence[Slot], keys: Sequence[str]) -> dict[str, Place]:
    """Every node and every claim that becomes one, by name; labels of a claim as far as they are certain."""
    places = {
        name: Place({HOSTNAME: name, **node.labels, NODE_NAME: name}, node.taints, None)
        for name, node in sorted(snapshot.nodes.items())
    }
    for index, slot in enumerate(slots):
        certain = {key: slot.domains(key) for key in keys}
        more = {key: next(iter(values)) for key, values in certain.items() if len(values) == 1}
        # A claim whose node has not come has no name yet that a pod could ask for.
        name = {} if slot.possible or slot.name not in snapshot.nodes else {NODE_NAME: slot.name}
        places[slot.name] = Place({**slot.labels, **more, **name}, slot.taints, index, slot.possible)
    return places


class Domains:
    """The domains of every topology key in one solve."""

    def __init__(
        self,
        tables: Sequence[PoolTable],
        places: Mapping[str, Place],
        meter: Meter,
        named: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        """`named`: by topology key, the values that pods which wait ask for."""
        self._meter = meter
        self._named = named
        self._tables = tuple(tables)
        self._places = places
        self._universes: dict[tuple[str, NodeFilter | None], tuple[str, ...]] = {}
        self._passes: dict[tuple[NodeFilter, str], bool | None] = {}
        self._launchable: dict[str, tuple[str, ...]] = {}

    def launchable(self, key: str) -> tuple[str, ...]:
        """The values that new nodes may have, sorted."""
        if key not in self._launchable:
            there = {place.labels[key] for place in self._places.values() if key in place.labels}
            named = there.union(self._named.get(key, ()))
            values = {value for table in self._tables for value in values_of(table, key, named)}
            self._launchable[key] = tuple(sorted(values))
        return self._launchable[key]

    def open_to(
        self, key: str, required: Sequence[NodeRequirements], tolerations: tuple[Toleration, ...]
    ) -> tuple[str, ...]:
        """The values of new nodes that pods which require something of nodes may be on, sorted."""
        nodes = NodeFilter(tuple(each.expressions for each in required), tolerations, ())
        return tuple(value for value in self.launchable(key) if self._may_come(key, value, nodes))

    def universe(self, key: str, nodes: NodeFilter | None) -> tuple[str, ...]:
        """The domains that a spread constraint balances, sorted."""
        memo = (key, nodes)
        if memo not in self._universes:
            self._meter.spend(_PLACE * len(self._places))
            there = {
                place.labels[key]
                for name, place in self._places.items()
                if key in place.labels and self.passes(nodes, name) is not False
            }
            to_come: set[str] = set()
            for value in self.launchable(key):
                if self._meter.over:
                    # As if all could come: then no domain is taken for fuller than it may be.
                    return tuple(sorted(there.union(self.launchable(key))))
                if self._may_come(key, value, nodes):
                    to_come.add(value)
            self._universes[memo] = tuple(sorted(there | to_come))
        return self._universes[memo]

    def passes(self, nodes: NodeFilter | None, name: str) -> bool | None:
        """Whether a node, there or to come, takes part in a spread constraint; None: not known yet."""
        if nodes is None:
            return True
        memo = (nodes, name)
        if memo not in self._passes:
            self._meter.spend(_PLACE * sum(1 + len(each) for each in nodes.alternatives))
            self._passes[memo] = _passes(nodes, self._places[name])
        return self._passes[memo]

    def _may_come(self, key: str, value: str, nodes: NodeFilter | None) -> bool:
        domain = Requirement.of(key, IN, (value,))
        self._meter.spend(_FILTERED * sum(4 + len(each) for each in (nodes.alternatives if nodes else ((),))))
        alternatives = [
            node_requirements_of((*expressions, domain))
            for expressions in (nodes.alternatives if nodes else ((),))
        ]
        return any(
            _makes(table, node_requirements, nodes)
            for table in self._tables
            for node_requirements in alternatives
            if isinstance(node_requirements, NodeRequirements)
        )


def values_of(table: PoolTable, key: str, named: Collection[str] = ()) -> set[str]:
    """The values that a label of new nodes of a pool may have.

    Where the pool leaves its own label open (`Exists`), those that are `named` are what it may be.
    """
    if key in (ZONE, CAPACITY_TYPE):
        return set(table.table.offers.zones if key == ZONE else table.table.offers.capacity_types)
    values: set[str] = set()
    for carried in table.table.carried(key):
        if carried is not None and not carried.complement:
            values |= carried.values
    offered = table.offered.get(key)
    if offered is not None and not offered.complement:
        values |= offered.values
    elif offered is not None and not values and key not in WELL_KNOWN:
        # The pool leaves it open: nodes bear what their pods ask for, else the value that is always chosen.
        values |= {value for value in named if offered.allows(value)}
        if (chosen := offered.some_value()) is not None:
            values.add(chosen)
    return values


def _makes(table: PoolTable, node_requirements: NodeRequirements, nodes: NodeFilter | None) -> bool:
    """Whether a pool could make a node that the requirements ask for and that is one of the filter's."""
    terms = table.grow(table.start, node_requirements)
    if isinstance(terms, Conflict) or not terms.types.any():
        return False
    return nodes is None or matches_node_filter(nodes, ExpectedNode(table, terms.requirements)) is not False


def _passes(nodes: NodeFilter, place: Place) -> bool | None:
    if nodes.tolerations is not None:
        hard = [taint for taint in place.taints if not prefers_only(taint)]
        if find_untolerated(hard, nodes.tolerations) is not None:
            return False
    alternatives = [
        all_hold([_holds(expression, place) for expression in expressions])
        for expressions in nodes.alternatives
    ]
    return all_hold([any_holds(alternatives), *(_bears(key, place) for key in nodes.keys)])


def _holds(expression: Requirement, place: Place) -> bool | None:
    value = place.labels.get(expression.key)
    if value is not None:
        return expression.allows(value)
    if not place.possible:
        return expression.allows_absence()
    if expression.key in NAMES:
        return LATER_LABELS[expression.key](expression)
    return may_satisfy_as_any(expression, place.possible)


def _bears(key: str, place: Place) -> bool | None:
    """Whether a node bears a label; every node that is to come gets its hostname, whatever else it gets."""
    if key in place.labels:
        return True
    if not place.possible:
        return False
    if key in ON_EVERY_NODE:
        return True
    labels = [known.get(key) for known in place.possible]
    verdicts = {
        False if label is None or label.is_empty() else None if label.allows_absence() else True
        for label in labels
    }
    return verdicts.pop() if len(verdicts) == 1 else None
