"""Who may be in which zone, or other domain, as the part of the question that `program_domains` answers."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from nodeless.model.labels import HOSTNAME, WELL_KNOWN
from nodeless.model.requirements import DOES_NOT_EXIST, IN, Conflict, Requirement
from nodeless.scheduling.capacity.existing import Slot
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.first_fit.offers import Offer
from nodeless.scheduling.first_fit.program_domains import (
    Axis,
    Closed,
    DomainApart,
    DomainNear,
    Domains,
    DomainSpread,
)
from nodeless.scheduling.first_fit.relaxing import beside_daemons
from nodeless.scheduling.pods.classes import Mask, PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements, node_requirements_of
from nodeless.scheduling.pods.rules import Affinity, Spread, TopologyGroup
from nodeless.scheduling.topology.tracking import Topology

#: Domains that a topology key may have, and pairs of class and domain of all keys; rules on others are looked
#: at when the answer is carried out.
_MOST_VALUES, _MOST_PAIRS = 8, 200
Adders = Mapping[TopologyGroup, Sequence[int]]
"""By what is counted, the classes whose pods count."""


class DomainRules:
    """The rules of classes over zones and other domains."""

    def __init__(
        self, topology: Topology, slots: Sequence[Slot], ordered: Sequence[PodClass], adders: Adders
    ) -> None:
        self._topology = topology
        self._slots = slots
        self._ordered = ordered
        self._adders = adders
        self.values: dict[str, tuple[str | None, ...]] = {}
        """By topology key that rules look at, its domains; keys with too many are left out."""
        for key in sorted(
            {topology_group.key for pods in ordered for topology_group in pods.hard_rules.topology_groups()}
            - {HOSTNAME}
        ):
            values = self._values_of(key)
            known = sum(map(len, self.values.values())) + len(values)
            if len(values) <= _MOST_VALUES and len(ordered) * known <= _MOST_PAIRS:
                self.values[key] = values
        self._number = {key: number for number, key in enumerate(self.values)}

    def question(self, offers: Sequence[Offer]) -> Domains:
        """What is asked, when these are the offers."""
        tables = {offer.table: self.fits(offer.table) for offer in offers}
        axes = []
        for number, (key, values) in enumerate(self.values.items()):
            columns = [tables[offer.table][number][:, offer.row] for offer in offers]
            fits = (
                np.stack(columns, axis=1) if columns else np.zeros((len(self._ordered), 0, len(values)), bool)
            )
            slots = tuple(self._domain_of(slot, key) for slot in self._slots)
            axes.append(Axis(key, values, slots, fits, tuple(sorted(self._counted(key)))))
        near, groups = self._near(offers)
        return Domains(
            axes=tuple(axes),
            near=tuple(near),
            apart=tuple(sorted(self._apart(), key=lambda apart: (apart.axis, apart.one, apart.other))),
            closed=tuple(self._closed()),
            spread=tuple(self._spreads()),
            groups=groups,
            together=[
                (self._number[one], self._number[other], self._sold(offers, (one, other)))
                for one, other in combinations(self.values, 2)
            ],
            asked_together=[
                (index, self._number[one], self._number[other], self._sold(offers, (one, other), pods))
                for index, pods in enumerate(self._ordered)
                if len(pods.demand.required) > 1
                for one, other in combinations(self.values, 2)
            ],
        )

    def fits(self, table: PoolTable) -> list[Mask]:
        """By topology key, which type of a pool makes a node for a class in which domain.

        Each of shape (classes, types, domains).
        """
        found = []
        for key, values in self.values.items():
            fits: Mask = np.zeros((len(self._ordered), len(table.table), len(values)), dtype=np.bool_)
            for index, pods in enumerate(self._ordered):
                if table.refuses(pods.shape.tolerations, soft=True) is not None:
                    continue
                for at, value in enumerate(values):
                    fits[index, :, at] = _makes(table, pods, pods.demand.required, (in_domain(key, value),))
            found.append(fits)
        return found

    def _sold(self, offers: Sequence[Offer], keys: tuple[str, str], pods: PodClass | None = None) -> Mask:
        """Which offer is sold in a domain of each of two keys; of a class: and makes a node for it.

        Shape (offers, domains, other domains).
        """
        one, other = (self.values[key] for key in keys)
        sold: Mask = np.zeros((len(offers), len(one), len(other)), dtype=np.bool_)
        for at, place in np.ndindex(sold.shape[1:]):
            domains = in_domain(keys[0], one[at]), in_domain(keys[1], other[place])
            alternatives = (
                [node_requirements.expressions for node_requirements in pods.demand.required]
                if pods is not None
                else [()]
            )
            types: dict[PoolTable, Mask] = {}
            for number, offer in enumerate(offers):
                if offer.table not in types:
                    types[offer.table] = _types_of(
                        offer.table, [(*node_requirements, *domains) for node_requirements in alternatives]
                    )
                sold[number, at, place] = types[offer.table][offer.row]
        return sold

    def keeps_off(self, pods: PodClass) -> Mask:
        """The slots whose domains are not certain, or that bear no such label, where a class minds."""
        off: Mask = np.zeros(len(self._slots), dtype=np.bool_)
        for key in {rule.key for rule in _asked_for(pods)} & set(self.values):
            for index, slot in enumerate(self._slots):
                off[index] |= len(slot.domains(key)) != 1
        return off

    def _values_of(self, key: str) -> tuple[str | None, ...]:
        values = set(self._topology.domains.launchable(key))
        values.update(value for slot in self._slots for value in slot.domains(key))
        for pods in self._ordered:
            for spread in pods.hard_rules.spread:
                if spread.topology_group.key == key:
                    values.update(self._topology.domains.universe(key, spread.topology_group.nodes))
        return (*sorted(values), *(() if key in WELL_KNOWN else (None,)))

    def _domain_of(self, slot: Slot, key: str) -> int | None:
        domains = slot.domains(key)
        values = self.values[key]
        if len(domains) == 1:
            return values.index(next(iter(domains)))
        return values.index(None) if not domains and None in values else None

    def _counted(self, key: str) -> set[int]:
        counted: set[int] = set()
        for index, pods in enumerate(self._ordered):
            for topology_group in pods.hard_rules.topology_groups():
                if topology_group.key == key:
                    counted |= {index, *self._adders.get(topology_group, ())}
        return counted

    def _known(self, topology_groups: Iterable[TopologyGroup]) -> Iterable[TopologyGroup]:
        return (topology_group for topology_group in topology_groups if topology_group.key in self.values)

    def _near(self, offers: Sequence[Offer]) -> tuple[list[DomainNear], int]:
        groups: dict[TopologyGroup, int] = {}
        near = []
        for index, pods in enumerate(self._ordered):
            for rule in pods.hard_rules.affinity:
                for topology_group in self._known(rule.topology_groups):
                    near.append(self._near_by(index, rule, topology_group, groups, offers))
        return near, len(groups)

    def _near_by(
        self,
        index: int,
        rule: Affinity,
        topology_group: TopologyGroup,
        groups: dict[TopologyGroup, int],
        offers: Sequence[Offer],
    ) -> DomainNear:
        counter = self._topology.counters[topology_group]
        others = tuple(self._adders.get(topology_group, ()))
        group = None
        if rule.counts_itself:
            others = tuple(at for at in others if not _leads(self._ordered[at], topology_group))
            if not counter.total:
                group = groups.setdefault(topology_group, len(groups))
        there = tuple(
            value is not None and counter.domains.get(value, 0) > 0
            for value in self.values[topology_group.key]
        )
        daemons = [
            (offer, at)
            for at, value in enumerate(self.values[topology_group.key])
            for offer in brought_by(
                offers, self._ordered[index], rule, (in_domain(topology_group.key, value),)
            )
        ]
        return DomainNear(self._number[topology_group.key], index, others, there, group, daemons)

    def _apart(self) -> set[DomainApart]:
        pairs = set()
        for index, pods in enumerate(self._ordered):
            for topology_group in self._known(_keeping_off(pods)):
                for other in self._adders.get(topology_group, ()):
                    pairs.add(
                        DomainApart(self._number[topology_group.key], min(index, other), max(index, other))
                    )
        return pairs

    def _closed(self) -> Iterable[Closed]:
        for index, pods in enumerate(self._ordered):
            for topology_group in self._known(_keeping_off(pods)):
                counted = self._topology.counters[topology_group].domains
                for at, value in enumerate(self.values[topology_group.key]):
                    if value is not None and counted.get(value, 0):
                        yield Closed(self._number[topology_group.key], index, at)
            for topology_group in self._known(_asked_for(pods)):
                if None in self.values[topology_group.key]:
                    at = self.values[topology_group.key].index(None)
                    yield Closed(self._number[topology_group.key], index, at)

    def _spreads(self) -> Iterable[DomainSpread]:
        for index, pods in enumerate(self._ordered):
            for spread in pods.hard_rules.spread:
                if spread.topology_group.key in self.values:
                    yield self._spread(index, spread)

    def _spread(self, index: int, spread: Spread) -> DomainSpread:
        topology_group, domains = spread.topology_group, self._topology.domains
        counter, values = self._topology.counters[topology_group], self.values[topology_group.key]
        universe = domains.universe(topology_group.key, topology_group.nodes)
        there = [counter.domains.get(value, 0) if value is not None else 0 for value in values]
        unsure = [counter.unsure.get(value, 0) if value is not None else 0 for value in values]
        return DomainSpread(
            axis=self._number[topology_group.key],
            pods=index,
            counted=tuple(self._adders.get(topology_group, ())),
            skew=spread.max_skew,
            universe=tuple(values.index(value) for value in universe),
            grows=len(universe) >= spread.min_domains,
            there=tuple(there),
            sure=tuple(number - less for number, less in zip(there, unsure, strict=True)),
            slots=tuple(domains.passes(topology_group.nodes, slot.name) is not False for slot in self._slots),
        )


def in_domain(key: str, value: str | None) -> Requirement:
    """What is asked of a node that must be in a domain; None: without the label."""
    return Requirement.of(key, DOES_NOT_EXIST) if value is None else Requirement.of(key, IN, (value,))


def brought_by(
    offers: Sequence[Offer], pods: PodClass, rule: Affinity, within: Sequence[Requirement] = ()
) -> list[int]:
    """The offers of which a new node gets pods of DaemonSets that satisfy an affinity of a class.

    `within`: the domains that the node must be in.
    """
    types = {
        table: beside_daemons_on(table, pods, rule, within) for table in {offer.table for offer in offers}
    }
    return [at for at, offer in enumerate(offers) if types[offer.table][offer.row]]


def beside_daemons_on(
    table: PoolTable, pods: PodClass, rule: Affinity, within: Sequence[Requirement] = ()
) -> Mask:
    """The types of a pool of which a new node gets pods of DaemonSets that satisfy an affinity of a class."""
    alternatives, others = beside_daemons(pods, pods.demand.required, pods.hard_rules)
    if rule in others.affinity or table.refuses(pods.shape.tolerations, soft=True) is not None:
        alternatives = ()
    return _makes(table, pods, alternatives, within)


def _makes(
    table: PoolTable,
    pods: PodClass,
    alternatives: Iterable[NodeRequirements],
    within: Sequence[Requirement],
) -> Mask:
    """The types of a pool of which nodes in some domains meet any of some requirements and hold a pod."""
    types: Mask = np.zeros(len(table.table), dtype=np.bool_)
    for node_requirements in alternatives:
        bound = node_requirements_of((*node_requirements.expressions, *within))
        fresh = table.fresh(pods, bound) if isinstance(bound, NodeRequirements) else None
        if fresh is not None:
            types |= fresh[0].types & (fresh[1] > 0)
    return types


def _keeping_off(pods: PodClass) -> Iterable[TopologyGroup]:
    """What must not be counted where a class is."""
    yield from (rule.topology_group for rule in pods.hard_rules.anti_affinity)
    yield from pods.hard_rules.repelled_by


def _asked_for(pods: PodClass) -> Iterable[TopologyGroup]:
    """What is counted by labels without which no node takes a class."""
    yield from (rule.topology_group for rule in pods.hard_rules.spread)
    yield from (
        topology_group for rule in pods.hard_rules.affinity for topology_group in rule.topology_groups
    )


def _leads(pods: PodClass, topology_group: TopologyGroup) -> bool:
    return any(
        rule.counts_itself and topology_group in rule.topology_groups for rule in pods.hard_rules.affinity
    )


def _types_of(table: PoolTable, alternatives: Iterable[tuple[Requirement, ...]]) -> Mask:
    """The types of a pool that any of some lists of expressions leaves."""
    types: Mask = np.zeros(len(table.table), dtype=np.bool_)
    for expressions in alternatives:
        node_requirements = node_requirements_of(expressions)
        terms = (
            table.grow(table.start, node_requirements)
            if isinstance(node_requirements, NodeRequirements)
            else node_requirements
        )
        if not isinstance(terms, Conflict):
            types |= terms.types
    return types
