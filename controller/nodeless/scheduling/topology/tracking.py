"""Topology of one solve: what is counted where, and what the rules of a class let into each domain.

An `Option` is a choice of domains: one value for each topology key that matters to a class,
None where the label is absent. `shares` divides a batch among options so that every rule
holds after each pod; the hostname is left out there, since each node is its own domain
(`Counters`). New nodes are bound to the domain at once, so that what comes next in the same
pass counts on it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from nodeless.api.names import label_value_defects
from nodeless.model.labels import HOSTNAME, WELL_KNOWN
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.existing import Slot
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.profiles import Profiles
from nodeless.scheduling.pods.rules import NodeFilter, Rules, Spread, TopologyGroup
from nodeless.scheduling.spread.dividing import divide
from nodeless.scheduling.spread.sharing import ENDLESS, NO_ROOM, Limit, Option
from nodeless.scheduling.topology.counting import Counters
from nodeless.scheduling.topology.domains import Domains, places_of
from nodeless.scheduling.topology.node_filter import ExpectedNode, matches_node_filter

#: Seconds for each domain of which the emptiest is looked for, for each that is counted, and for each group.
_DOMAIN, _COUNTED, _TALLY = 0.5e-6, 0.1e-6, 1.2e-6
#: Seconds for each expression of a filter that a node is held against.
_FILTER = 3e-6


class Topology:
    """All counters of a solve, counted for the pods that run."""

    def __init__(
        self,
        snapshot: Snapshot,
        profiles: Profiles,
        slots: Sequence[Slot],
        tables: Sequence[PoolTable],
        meter: Meter,
        daemons_to_come: Mapping[TopologyGroup, Sequence[int]],
    ) -> None:
        """`daemons_to_come`: by topology group, the slots that will get pods which it counts."""
        self.keys: tuple[str, ...] = tuple(
            sorted({topology_group.key for topology_group in profiles.topology_groups} - {HOSTNAME})
        )
        """The topology keys of any rule, without the hostname."""
        self._slots = tuple(slots)
        self._profiles = profiles
        self._meter = meter
        self.counters = Counters(profiles.topology_groups, len(slots))
        places = places_of(snapshot, slots, self.keys) if profiles.topology_groups else {}
        self.domains = Domains(tables, places, meter, _named(self.keys, profiles))
        self._verdicts: dict[ExpectedNode, dict[NodeFilter, bool | None]] = {}
        #: By open node: pods counted there though it may turn out to take no part.
        self._unsettled: dict[int, dict[tuple[TopologyGroup, str], int]] = {}
        for pod in profiles.staying or ():
            place = places.get(pod.node_name)
            if place is None:
                continue
            for topology_group in profiles.counted_in(pod):
                # kube-scheduler counts a terminating pod for affinity too, but nobody should follow it.
                if pod.deletion_timestamp is not None and not topology_group.repels:
                    continue
                if self.domains.passes(topology_group.nodes, pod.node_name) is False:
                    continue
                if topology_group.key == HOSTNAME:
                    self.counters[topology_group].total += 1
                    if place.slot is not None:
                        self.counters[topology_group].slots[place.slot] += 1
                elif topology_group.key in place.labels:
                    self.counters[topology_group].add((place.labels[topology_group.key],), 1)
        for topology_group, indices in daemons_to_come.items():
            if topology_group.key == HOSTNAME:
                self.counters[topology_group].slots[list(indices)] += 1
                self.counters[topology_group].total += len(indices)
            else:
                for index in indices:
                    self.count_on_slot((topology_group,), index, 1)

    def keys_of(self, rules: Rules, adds: Iterable[TopologyGroup] = ()) -> tuple[str, ...]:
        """The keys of rules and topology groups in order, without the hostname."""
        keys = {topology_group.key for topology_group in rules.topology_groups()} | {
            topology_group.key for topology_group in adds
        }
        return tuple(key for key in self.keys if key in keys)

    def of_namespace(self, topology_groups: Iterable[TopologyGroup], namespace: str) -> list[TopologyGroup]:
        """Those of some topology groups that pods of a namespace look at, or carry what they count."""
        return [
            topology_group
            for topology_group in topology_groups
            if self._profiles.of_namespace(topology_group, namespace)
        ]

    def together_on_host(self, rules: Rules) -> bool:
        """Whether affinity keeps all pods of a group on one node."""
        return any(
            topology_group.key == HOSTNAME
            for rule in rules.affinity
            for topology_group in rule.topology_groups
        )

    def launchable(self, keys: Sequence[str], option: Option) -> bool:
        """Whether some pool may make nodes in each domain of an option."""
        return all(value in self.domains.launchable(key) for key, value in zip(keys, option, strict=True))

    def option_of(self, slot: Slot, keys: Sequence[str]) -> Option | None:
        """The domains of a slot, or None when one is not certain."""
        option: list[str | None] = []
        for key in keys:
            values = slot.domains(key)
            if len(values) > 1:
                return None
            option.append(next(iter(values), None))
        return tuple(option)

    def count_on_slot(self, adds: Sequence[TopologyGroup], index: int, number: int) -> None:
        """Pods were placed on a slot."""
        slot = self._slots[index]
        self._meter.spend(_TALLY * len(adds))
        for topology_group in adds:
            part = self.domains.passes(topology_group.nodes, slot.name)
            if part is False:
                continue
            counter = self.counters[topology_group]
            if topology_group.key == HOSTNAME:
                counter.slots[index] += number
                counter.total += number
                continue
            values = sorted(slot.domains(topology_group.key))
            if len(values) == 1 or topology_group.repels or topology_group.nodes is not None:
                # One of the domains of a spread gets the pods, and it is not known which: each may be fuller,
                # none may be counted on.
                counter.add(values, number)
                if part is None or len(values) > 1:
                    for value in values:
                        counter.doubt(value, number)

    def counts_on_node(self, adds: Sequence[TopologyGroup], index: int) -> bool:
        """Whether `count_on_node` has anything to do."""
        return bool(adds) or index in self._unsettled

    def count_on_node(
        self, adds: Sequence[TopologyGroup], index: int, node: ExpectedNode, number: int
    ) -> None:
        """Pods were placed on a node that this solve opened, and may have narrowed it."""
        verdicts = self._verdicts.setdefault(node, {})
        self._settle(index, node, verdicts)
        self._meter.spend(_TALLY * len(adds))
        for topology_group in adds:
            part = self._takes_part(topology_group.nodes, node, verdicts)
            if part is False:
                continue
            counter = self.counters[topology_group]
            domain = _single(node.requirements, topology_group.key)
            if topology_group.key == HOSTNAME:
                counter.nodes.add(index, number)
                counter.total += number
            elif domain is not None:
                counter.add((domain,), number)
            else:
                continue
            if part is None:
                unsure = self._unsettled.setdefault(index, {})
                unsure[topology_group, domain or ""] = unsure.get((topology_group, domain or ""), 0) + number
                counter.doubt(domain or "", number)

    def _settle(self, index: int, node: ExpectedNode, verdicts: dict[NodeFilter, bool | None]) -> None:
        """Decide about pods on a node of which it was not sure whether it takes part."""
        still: dict[tuple[TopologyGroup, str], int] = {}
        unsettled = self._unsettled.pop(index, {})
        self._meter.spend(_TALLY * len(unsettled))
        for (topology_group, domain), number in unsettled.items():
            part = self._takes_part(topology_group.nodes, node, verdicts)
            if part is None:
                still[topology_group, domain] = number
                continue
            counter = self.counters[topology_group]
            counter.doubt(domain, -number)
            if not part and topology_group.key == HOSTNAME:
                counter.nodes.add(index, -number)
                counter.total -= number
            elif not part:
                counter.add((domain,), -number)
        if still:
            self._unsettled[index] = still

    def _takes_part(
        self, nodes: NodeFilter | None, node: ExpectedNode, verdicts: dict[NodeFilter, bool | None]
    ) -> bool | None:
        """Whether a node is one of a filter's; `verdicts`: what is known of the node."""
        if nodes is None:
            return True
        if nodes not in verdicts:
            self._meter.spend(_FILTER * sum(1 + len(each) for each in nodes.alternatives))
            verdicts[nodes] = matches_node_filter(nodes, node)
        return verdicts[nodes]

    def shares(
        self,
        rules: Rules,
        keys: Sequence[str],
        options: Sequence[Option],
        room: Sequence[int],
        want: int,
        *,
        stepwise: bool = False,
        there: Mapping[str, int] = NO_ROOM,
    ) -> list[tuple[list[int], int]]:
        """How a batch is divided: (options of which any will do, pods), the emptiest domains first.

        Args:
            rules: What the pods of the batch ask for.
            keys: The topology key of each value of an option.
            options: Where pods could go.
            room: The most pods for each option.
            want: The pods of the batch.
            stepwise: Give the first steps of a way on, each of which keeps the rules where it stands.
            there: By domain of a single key, room of this that is there already.
        """
        at = {key: index for index, key in enumerate(keys)}
        lets_in = self._door(rules, at, may_open=True)
        usable = [i for i, option in enumerate(options) if room[i] > 0 and lets_in(option)]
        return divide(
            self._limits(rules, at),
            usable,
            options,
            room,
            want,
            stepwise=stepwise,
            there=there,
            meter=self._meter,
        )

    def tightens(self, rules: Rules, keys: Sequence[str]) -> bool:
        """Whether each pod of a class leaves less room for the next one in some domain."""
        own = [rule.topology_group.key for rule in rules.spread if rule.counts_itself]
        own += [rule.topology_group.key for rule in rules.anti_affinity if rule.counts_itself]
        return any(key in keys for key in own)

    def open_domains(self, rules: Rules, pods: PodClass) -> tuple[int, int]:
        """How many domains of one rule's key it lets one pod into, and how many there are.

        Of those in which a node for a class of pods can be made.
        """
        keys = self.keys_of(rules)
        if not keys:
            return self.counters.on_fresh(rules), ENDLESS
        values = self.domains.open_to(keys[0], pods.demand.required, pods.shape.tolerations)
        lets_in = self._door(rules, {keys[0]: 0})
        return sum(lets_in((value,)) for value in values), len(values)

    def emptiest(self, spread: Spread) -> int:
        """Pods in the emptiest domain of a spread constraint."""
        universe = self.domains.universe(spread.topology_group.key, spread.topology_group.nodes)
        if len(universe) < spread.min_domains:
            return 0
        self._meter.spend(_DOMAIN * len(universe))
        return self.counters[spread.topology_group].least(universe)

    def _door(
        self, rules: Rules, at: Mapping[str, int], *, may_open: bool = False
    ) -> Callable[[Option], bool]:
        """Whether the rules allow one pod in an option, as things stand.

        `may_open`: or will do so once other domains have got pods with these rules.
        """
        spreads = [
            (
                at[spread.topology_group.key],
                spread,
                ENDLESS
                if may_open and spread.counts_itself and not self._is_unsure(spread)
                else self.emptiest(spread) + spread.max_skew - spread.counts_itself,
            )
            for spread in rules.spread
            if spread.topology_group.key in at
        ]
        return lambda option: self._lets_in(rules, at, option, spreads)

    def _is_unsure(self, spread: Spread) -> bool:
        """Whether pods that it counts may turn out not to count: then a full domain may stay full."""
        return any(self.counters[spread.topology_group].unsure.values())

    def _lets_in(
        self,
        rules: Rules,
        at: Mapping[str, int],
        option: Option,
        spreads: Iterable[tuple[int, Spread, int]],
    ) -> bool:
        """Whether rules let one pod in; `spreads`: where each looks, and the most pods allowed there."""
        for place, spread, most in spreads:
            value = option[place]
            if value is None or self.counters[spread.topology_group].domains.get(value, 0) > most:
                return False
        for affinity in rules.affinity:
            first = affinity.counts_itself and not any(
                self.counters[topology_group].total for topology_group in affinity.topology_groups
            )
            for topology_group in affinity.topology_groups:
                if topology_group.key in at:
                    value = option[at[topology_group.key]]
                    if value is None or not (first or self.counters[topology_group].domains.get(value)):
                        return False
        return all(
            not self.counters[topology_group].domains.get(option[at[topology_group.key]] or "", 0)
            for topology_group in (*(rule.topology_group for rule in rules.anti_affinity), *rules.repelled_by)
            if topology_group.key in at and option[at[topology_group.key]] is not None
        )

    def _limits(self, rules: Rules, at: Mapping[str, int]) -> list[Limit]:
        """The rules that get tighter with each pod of the batch itself."""
        limits = []
        for spread in rules.spread:
            if spread.counts_itself and spread.topology_group.key in at:
                self._meter.spend(_COUNTED * len(self.counters[spread.topology_group].domains))
                universe = self.domains.universe(spread.topology_group.key, spread.topology_group.nodes)
                first_fit = 0 if len(universe) < spread.min_domains else ENDLESS
                limits.append(
                    Limit(
                        at[spread.topology_group.key],
                        dict(self.counters[spread.topology_group].domains),
                        universe,
                        first_fit,
                        spread.max_skew,
                        self.counters[spread.topology_group].unsure,
                    )
                )
        for anti in rules.anti_affinity:
            if anti.counts_itself and anti.topology_group.key in at:
                counts = dict(self.counters[anti.topology_group].domains)
                limits.append(Limit(at[anti.topology_group.key], counts, (), 0, 1))
        return limits


def _named(keys: Collection[str], profiles: Profiles) -> dict[str, set[str]]:
    """The values of labels of the user's own that pods which wait ask for, by key."""
    found: dict[str, set[str]] = {key: set() for key in keys if key not in WELL_KNOWN}
    for shape in {shape for shape, _ in profiles.groups} if found else ():
        asked = [Requirement.of(key, IN, (value,)) for key, value in shape.node_selector]
        asked += [expression for term in shape.required_terms for expression in term.expressions]
        for expression in asked:
            if expression.key in found and not expression.complement:
                found[expression.key] |= expression.values
    # What no label can have must not get onto a node.
    return {
        key: {value for value in values if not label_value_defects(value)} for key, values in found.items()
    }


def _single(requirements: Requirements, key: str) -> str | None:
    """The one value that a label must have, or None."""
    label = requirements.get(key)
    if label is None or label.complement or len(label.values) != 1:
        return None
    return next(iter(label.values))
