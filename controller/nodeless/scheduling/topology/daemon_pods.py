"""Rules between pods that select the pods of DaemonSets, for nodes that have none of these pods yet.

A node gets the pods of its DaemonSets as soon as it joins, before other pods are bound there. So a pod that
must not run beside those of a DaemonSet needs a new node that the DaemonSet does not select, and a pod that
must run beside them may have a new node that it selects:

    nodeSelector of the DaemonSet      apart from its pods          beside its pods
    disk=fast                          disk NotIn (fast)            disk In (fast)
    none                               no node of the pool          any node of the pool

Such requirements still hold when the node is narrowed for other pods, and they go into its NodeClaim. On
NodeClaims in flight and on nodes that boot, the pods that their DaemonSets will put there are counted like
pods that run; on nodes that are up, the pods that run.

All terms of a DaemonSet's node affinity must fail to keep it off a node, and one expression of a term is
enough to fail it. At most 16 combinations of these are followed for a class of pods and a pool.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np

from nodeless.model.labels import HOSTNAME, NODE_NAME, PROVISIONER_NAME
from nodeless.model.pods import DaemonSet
from nodeless.model.requirements import (
    DOES_NOT_EXIST,
    IN,
    Requirement,
    Requirements,
)
from nodeless.model.taints import find_untolerated
from nodeless.scheduling.capacity.existing import Slot, lasting_for_daemons
from nodeless.scheduling.capacity.in_flight_node import may_satisfy_as_any
from nodeless.scheduling.capacity.pool_table import LATER_LABELS, PoolTable
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import DaemonRules, Mask, PodClass
from nodeless.scheduling.pods.constraints import (
    NodeRequirements,
    PodRequirements,
    daemon_alternatives,
    node_requirements_of,
    with_expressions,
)
from nodeless.scheduling.pods.profiles import Profiles
from nodeless.scheduling.pods.rules import Affinity, Rules, TopologyGroup
from nodeless.scheduling.topology.domains import values_of
from nodeless.scheduling.topology.node_filter import ON_EVERY_NODE, all_hold, any_holds

#: Combinations of requirements that are followed for a class and a pool.
_MOST_COMBINATIONS = 16
#: Combinations of a solve after which only one is followed, and after which no pool is looked at any more.
_MANY_COMBINATIONS, _TOO_MANY_COMBINATIONS = 10_000, 40_000
#: Pairs of a DaemonSet and a node to come that are looked at; of the others nothing is known.
_MOST_PAIRS = 100_000
#: Seconds for each of them.
_COMBINATION, _PAIR = 15e-6, 5e-6
#: DaemonSets named in a message.
_NAMED = 3
_HINT = "hint: change the selector, or keep the DaemonSet off some nodes by node affinity or a taint"
_Expressions = tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class _Apart:
    """A DaemonSet whose pods a pod must not run beside."""

    daemon_set: str
    """Its key."""
    rule: str
    """The rule, in words."""
    label: str
    """The label over which the rule is, which not every node bears; empty: every node bears it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Combination:
    """What may be asked of a new node of a pool, and the types that could be it, for sale or not."""

    expressions: _Expressions
    held: frozenset[Requirement]
    """The expressions, to look one up."""
    requirements: Requirements
    """The expressions merged with what the pool offers."""
    types: Mask


class DaemonPods:
    """The DaemonSets that the rules of one solve select."""

    def __init__(
        self, profiles: Profiles, tables: Iterable[PoolTable], slots: Sequence[Slot], meter: Meter
    ) -> None:
        self._tables = tuple(tables)
        self._meter = meter
        self._of_groups = {
            topology_group: daemon_sets
            for topology_group, daemon_sets in profiles.daemon_sets_of_groups().items()
            if topology_group.nodes is None
        }
        #: Combinations that were looked at.
        self._looked_at = 0
        self._known: dict[
            tuple[PodRequirements, tuple[_Apart, ...], Affinity | None], tuple[PodRequirements, DaemonRules]
        ] = {}
        self.to_come: Mapping[TopologyGroup, Sequence[int]] = self._find_to_come(slots)
        """By topology group, the slots that will get pods of DaemonSets which it counts."""

    def apply(self, pods: PodClass) -> PodClass:
        """The class, with what its rules on DaemonSets' pods ask of new nodes."""
        if not self._of_groups:
            return pods
        apart = tuple(self._apart_from(pods.hard_rules))
        # All required terms of a pod's affinity are one rule.
        beside = next((rule for rule in pods.hard_rules.affinity if self._selected(rule)), None)
        if not apart and beside is None:
            return pods
        memo = pods.demand, apart, beside
        if memo not in self._known:
            self._known[memo] = self._demand(pods.demand, apart, beside)
        demand, daemon_rules = self._known[memo]
        return replace(pods, demand=demand, daemon_rules=daemon_rules)

    # Nodes that are on their way.

    def _find_to_come(self, slots: Sequence[Slot]) -> dict[TopologyGroup, Sequence[int]]:
        """Where anti-affinity looks, DaemonSets count that may come; elsewhere those that surely do.

        Of rules over other labels than the hostname only affinity: a zone in which a claim may end up is
        not closed for its sake.
        """
        starting = {index: slot for index, slot in enumerate(slots) if slot.starting}
        if not starting:
            return {}
        groups = {
            topology_group: daemon_sets
            for topology_group, daemon_sets in self._of_groups.items()
            if topology_group.key == HOSTNAME or not topology_group.repels
        }
        concerned = {daemon_set.key: daemon_set for some in groups.values() for daemon_set in some}
        verdicts = {
            key: self._verdicts(daemon_set, starting)
            for key, daemon_set in islice(concerned.items(), _MOST_PAIRS // len(starting))
        }
        unknown = dict.fromkeys(starting)
        shared: dict[tuple[tuple[str, ...], bool], Sequence[int]] = {}
        found: dict[TopologyGroup, Sequence[int]] = {}
        for topology_group, daemon_sets in groups.items():
            counted = tuple(daemon_set.key for daemon_set in daemon_sets), topology_group.repels
            if counted not in shared:
                keys, may_come = counted
                shared[counted] = sorted(
                    {
                        index
                        for key in keys
                        for index, verdict in verdicts.get(key, unknown).items()
                        if verdict or (verdict is None and may_come)
                    }
                )
            if shared[counted]:
                found[topology_group] = shared[counted]
        return found

    def _verdicts(self, daemon_set: DaemonSet, slots: Mapping[int, Slot]) -> dict[int, bool | None]:
        """Whether each of some slots gets a pod of a DaemonSet; None: that depends on what it becomes."""
        self._meter.spend(_PAIR * len(slots))
        alternatives = daemon_alternatives(daemon_set.shape)
        return {
            index: find_untolerated(lasting_for_daemons(slot.taints), daemon_set.shape.tolerations) is None
            and any_holds([all_hold([_holds(slot, each) for each in some]) for some in alternatives])
            for index, slot in slots.items()
        }

    # New nodes.

    def _apart_from(self, rules: Rules) -> Iterator[_Apart]:
        """The DaemonSets whose pods must not be where pods with such rules are."""
        seen: set[tuple[str, str]] = set()
        own = [(rule.topology_group, True) for rule in rules.anti_affinity]
        for topology_group, is_own in (*own, *((each, False) for each in rules.repelled_by)):
            key = topology_group.key
            label = "" if key in ON_EVERY_NODE else key
            for daemon_set in self._of_groups.get(topology_group, ()):
                if (daemon_set.key, label) not in seen:
                    seen.add((daemon_set.key, label))
                    rule = (
                        f"podAntiAffinity on {key} selects the pods of DaemonSet {daemon_set.key}"
                        if is_own
                        else f"podAntiAffinity on {key} of DaemonSet {daemon_set.key} selects the pod"
                    )
                    yield _Apart(daemon_set.key, rule, label)

    def _selected(self, affinity: Affinity) -> Sequence[DaemonSet]:
        """The DaemonSets whose pods an affinity selects: each of its groups counts the same pods."""
        return self._of_groups.get(affinity.topology_groups[0], ())

    def _demand(
        self, demand: PodRequirements, apart: Sequence[_Apart], beside: Affinity | None
    ) -> tuple[PodRequirements, DaemonRules]:
        """What is asked of new nodes, and what that follows from."""
        by_pool: dict[str, Sequence[_Combination]] = {}
        refused: dict[str, str] = {}
        pools: dict[_Expressions, list[PoolTable]] = {}
        for table in self._tables if apart else ():
            start = list(self._start(table, demand))
            if not start:
                continue
            combinations, message = self._keep_apart(table, start, apart)
            if message:
                refused[table.pool.key] = message
                continue
            by_pool[table.pool.key] = combinations
            for combination in combinations:
                pools.setdefault(combination.expressions, []).append(table)
        alternatives = {
            expressions: node_requirements
            for expressions in pools
            if isinstance(node_requirements := node_requirements_of(expressions), NodeRequirements)
        }
        daemon_rules = DaemonRules(
            demand,
            {key: tuple(alternatives[each.expressions] for each in some) for key, some in by_pool.items()},
            refused,
            beside,
            () if beside is None else tuple(self._with_daemons(beside)),
        )
        if not apart:
            return demand, daemon_rules
        required = [
            node_requirements
            for expressions, tables in pools.items()
            for limited in _limited_to(tables, len(by_pool) + len(refused))
            for node_requirements in with_expressions((alternatives[expressions],), limited)
        ]
        return (
            PodRequirements(tuple(required) or (_impossible(demand.required[0]),), demand.preferred),
            daemon_rules,
        )

    def _start(self, table: PoolTable, demand: PodRequirements) -> Iterator[_Combination]:
        """What the pods ask for themselves, where the pool could make such a node."""
        types = np.ones(len(table.table), dtype=np.bool_)
        for requirement in table.pool.requirements.values():
            types &= table.table.allowed(requirement, defined=True)
        for node_requirements in demand.required:
            if table.offered.conflict(node_requirements.requirements) is None:
                mask = types
                for expression in node_requirements.expressions:
                    mask = mask & table.allowed(expression)
                combination = _Combination(
                    node_requirements.expressions,
                    frozenset(node_requirements.expressions),
                    table.offered.intersect(node_requirements.requirements),
                    mask,
                )
                if self._is_sold(table, combination):
                    yield combination

    def _keep_apart(
        self, table: PoolTable, start: Sequence[_Combination], apart: Sequence[_Apart]
    ) -> tuple[Sequence[_Combination], str]:
        """What is asked of new nodes that none of some DaemonSets selects; or why the pool makes none.

        Where not all combinations were tried, and none of the others will do, nothing is asked.
        """
        if self._looked_at > _TOO_MANY_COMBINATIONS:
            return start, ""
        choices: dict[_Expressions, _Apart] = {}
        for rule in apart:
            for expressions in table.daemon_sets.get(rule.daemon_set, ()):
                choices.setdefault(tuple(_opposites(table, expressions, rule)), rule)
        combinations, is_cut = start, False
        met: list[_Apart] = []
        # What leaves no choice first.
        for options, rule in sorted(choices.items(), key=lambda entry: len(entry[0])):
            met.append(rule)
            grown: dict[Requirements, _Combination] = {}
            most = _MOST_COMBINATIONS if self._looked_at < _MANY_COMBINATIONS else 1
            for combination in combinations:
                held = [each for each in options if each in combination.held]
                for option in held or options:
                    if len(grown) == most:
                        is_cut = True
                        break
                    self._looked_at += 1
                    self._meter.spend(_COMBINATION)
                    more = combination if held else _add(table, combination, option)
                    if more is not None:
                        grown.setdefault(more.requirements, more)
            combinations = list(grown.values())
            if not combinations and is_cut:
                return start, ""
            if not combinations:
                alone = any(_add(table, each, option) is not None for each in start for option in options)
                return (), _message(met if alone else [rule])
        sold = [each for each in combinations if self._is_sold(table, each)]
        if not sold and is_cut:
            return start, ""
        return sold, "" if sold else _message(met)

    def _is_sold(self, table: PoolTable, combination: _Combination) -> bool:
        """Whether some type has an offering for it, available at the moment or not."""
        types = combination.types
        for requirement in combination.requirements.values():
            types = types & table.table.allowed(requirement, defined=True)
        prices = table.table.cheapest(combination.requirements, sold_out_too=True)
        return bool((types & np.isfinite(prices)).any())

    def _with_daemons(self, affinity: Affinity) -> Iterator[_Expressions]:
        """What is asked in addition of new nodes that get pods which an affinity selects.

        Over other labels than the hostname, one value is asked for: only so the next pass knows, while the
        node is on its way, that its domain has such a pod.
        """
        keys = sorted({topology_group.key for topology_group in affinity.topology_groups} - {HOSTNAME})
        pools: dict[_Expressions, list[PoolTable]] = {}
        for table in self._tables:
            values = [
                [Requirement.of(key, IN, (value,)) for value in sorted(values_of(table, key))] for key in keys
            ]
            selected = (
                (*domain, *(each for each in expressions if each.key not in LATER_LABELS))
                for daemon_set in self._selected(affinity)
                for expressions in table.daemon_sets.get(daemon_set.key, ())
                for domain in product(*values)
            )
            for expressions in dict.fromkeys(islice(selected, _MOST_COMBINATIONS)):
                pools.setdefault(expressions, []).append(table)
        for expressions, tables in pools.items():
            for limited in _limited_to(tables, len(self._tables)):
                yield (*expressions, *limited)


def _holds(slot: Slot, expression: Requirement) -> bool | None:
    value = slot.labels.get(HOSTNAME if expression.key == NODE_NAME else expression.key)
    if value is not None:
        return expression.allows(value)
    if expression.key in LATER_LABELS:
        return LATER_LABELS[expression.key](expression)
    if not slot.possible:
        return expression.allows_absence()
    return may_satisfy_as_any(expression, slot.possible)


def _opposites(table: PoolTable, expressions: _Expressions, rule: _Apart) -> Iterator[Requirement]:
    """The requirements of a node of which one is enough that a DaemonSet's term does not select it."""
    if rule.label:
        yield Requirement.of(rule.label, DOES_NOT_EXIST)
    for expression in expressions:
        if expression.key in LATER_LABELS:
            continue
        offered = table.offered.get(expression.key)
        if offered is not None and not offered.complement and offered.values:
            others = frozenset(value for value in offered.values if not expression.allows(value))
            if others:
                yield Requirement(expression.key, False, others)
        elif expression.minimum is None and expression.maximum is None:
            yield replace(expression, complement=not expression.complement, min_values=None)
        else:
            if expression.minimum is not None:
                yield Requirement(expression.key, True, maximum=expression.minimum - 1)
            if expression.maximum is not None:
                yield Requirement(expression.key, True, minimum=expression.maximum + 1)
            yield Requirement.of(expression.key, DOES_NOT_EXIST)


def _add(table: PoolTable, combination: _Combination, expression: Requirement) -> _Combination | None:
    """The combination with another expression; None where no type could be such a node."""
    present = combination.requirements.get(expression.key)
    if expression.is_impossible() or (present is not None and not present.overlaps(expression)):
        return None
    types = combination.types & table.allowed(expression)
    if not types.any():
        return None
    return _Combination(
        (*combination.expressions, expression),
        combination.held | {expression},
        combination.requirements.intersect(Requirements((expression,))),
        types,
    )


def _message(rules: Sequence[_Apart]) -> str:
    words = list(dict.fromkeys(rule.rule for rule in rules))
    more = len(words) - _NAMED
    listed = " and ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    which = "that DaemonSet" if len(words) == 1 else "one of these DaemonSets"
    return f"{listed}; every node that this pool could make for the pod gets a pod of {which}; {_HINT}"


def _limited_to(tables: Collection[PoolTable], number: int) -> Iterator[_Expressions]:
    """What asks for a node of some of a number of pools, for each API that they are of."""
    if len(tables) == number:
        yield ()
        return
    names: dict[str, list[str]] = {}
    for table in tables:
        names.setdefault(table.pool.reference.pool_label, []).append(table.pool.name)
    for key, values in names.items():
        yield (Requirement.of(key, IN, values),)


def _impossible(node_requirements: NodeRequirements) -> NodeRequirements:
    """The requirements with one that no new node meets: no pool is called so."""
    nowhere = Requirement.of(PROVISIONER_NAME, IN, ("",))
    others = [each for each in node_requirements.requirements.values() if each.key != PROVISIONER_NAME]
    return NodeRequirements((*node_requirements.expressions, nowhere), Requirements([*others, nowhere]))
