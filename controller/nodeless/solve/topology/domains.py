"""The domains of a topology key: the values that its label has on nodes, or could have on new ones.

A domain counts as soon as a pool could make a node in it, limits aside, as in Karpenter. That
is never less than what kube-scheduler sees once the plan is carried out, so the emptiest
domain is never fuller here than there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from nodeless.model.requirements import IN, Conflict, Requirement
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, untolerated
from nodeless.solve.capacity.existing import Slot
from nodeless.solve.capacity.pool_table import PoolTable, prefers_only
from nodeless.solve.pods.constraints import Wish, wish_of
from nodeless.solve.pods.rules import NodeFilter
from nodeless.solve.topology.partaking import NodeOutlook, takes_part


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A node that exists, or a claim; `slot` is its index where it may take pods."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    slot: int | None


def places_of(snapshot: Snapshot, slots: Sequence[Slot], keys: Sequence[str]) -> dict[str, Place]:
    """Every node and every claim that becomes one, by name; labels of a claim as far as they are certain."""
    places = {
        name: Place({HOSTNAME: name, **node.labels}, node.taints, None)
        for name, node in sorted(snapshot.nodes.items())
    }
    for index, slot in enumerate(slots):
        certain = {key: slot.domains(key) for key in keys}
        more = {key: next(iter(values)) for key, values in certain.items() if len(values) == 1}
        places[slot.name] = Place({**slot.labels, **more}, slot.taints, index)
    return places


class Domains:
    """The domains of every topology key in one solve."""

    def __init__(self, tables: Sequence[PoolTable], places: Mapping[str, Place]) -> None:
        self._tables = tuple(tables)
        self._places = places
        self._universes: dict[tuple[str, NodeFilter | None], tuple[str, ...]] = {}
        self._passes: dict[tuple[NodeFilter, str], bool] = {}
        self._launchable: dict[str, tuple[str, ...]] = {}

    def launchable(self, key: str) -> tuple[str, ...]:
        """The values that new nodes may have, sorted."""
        if key not in self._launchable:
            values = {value for table in self._tables for value in values_of(table, key)}
            self._launchable[key] = tuple(sorted(values))
        return self._launchable[key]

    def universe(self, key: str, nodes: NodeFilter | None) -> tuple[str, ...]:
        """The domains that a spread constraint balances, sorted."""
        memo = (key, nodes)
        if memo not in self._universes:
            there = {
                place.labels[key]
                for name, place in self._places.items()
                if key in place.labels and self.passes(nodes, name)
            }
            to_come = {value for value in self.launchable(key) if self._may_come(key, value, nodes)}
            self._universes[memo] = tuple(sorted(there | to_come))
        return self._universes[memo]

    def passes(self, nodes: NodeFilter | None, name: str) -> bool:
        """Whether a node that exists takes part in a spread constraint."""
        if nodes is None:
            return True
        memo = (nodes, name)
        if memo not in self._passes:
            self._passes[memo] = _passes(nodes, self._places[name])
        return self._passes[memo]

    def _may_come(self, key: str, value: str, nodes: NodeFilter | None) -> bool:
        domain = Requirement.of(key, IN, (value,))
        wishes = [wish_of((*expressions, domain)) for expressions in (nodes.alternatives if nodes else ((),))]
        return any(
            _makes(table, wish, nodes) for table in self._tables for wish in wishes if isinstance(wish, Wish)
        )


def values_of(table: PoolTable, key: str) -> set[str]:
    """The values that a label of new nodes of a pool may have, as far as they are listed."""
    if key in (ZONE, CAPACITY_TYPE):
        return set(table.table.offers.zones if key == ZONE else table.table.offers.capacity_types)
    values: set[str] = set()
    offered = table.offered.get(key)
    if offered is not None and not offered.complement:
        values |= offered.values
    for carried in table.table.carried(key):
        if carried is not None and not carried.complement:
            values |= carried.values
    return values


def _makes(table: PoolTable, wish: Wish, nodes: NodeFilter | None) -> bool:
    """Whether a pool could make a node that a wish asks for and that is one of the filter's."""
    terms = table.grow(table.start, wish)
    if isinstance(terms, Conflict) or not terms.types.any():
        return False
    return nodes is None or takes_part(nodes, NodeOutlook(table, terms.requirements)) is not False


def _passes(nodes: NodeFilter, place: Place) -> bool:
    if any(key not in place.labels for key in nodes.keys):
        return False
    if nodes.tolerations is not None:
        hard = [taint for taint in place.taints if not prefers_only(taint)]
        if untolerated(hard, nodes.tolerations) is not None:
            return False
    return any(
        all(_holds(expression, place.labels) for expression in expressions)
        for expressions in nodes.alternatives
    )


def _holds(expression: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    return expression.allows_absence() if value is None else expression.allows(value)
