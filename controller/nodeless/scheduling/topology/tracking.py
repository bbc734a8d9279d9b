"""Topology of one solve: what is counted where, and what the rules of a class let into each domain.

An `Option` is a choice of domains: one value for each topology key that matters to a class,
None where the label is absent. `shares` divides a batch among options so that every rule
holds after each pod; the hostname is left out there, since each node is its own domain
(`Counters`). New nodes are bound to the domain at once, so that what comes next in the same
pass counts on it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from nodeless.model.labels import HOSTNAME
from nodeless.model.requirements import Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.existing import Slot
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.profiles import Profiles
from nodeless.scheduling.pods.rules import NodeFilter, Rules, Spread, TopologyGroup
from nodeless.scheduling.spread.dividing import divide
from nodeless.scheduling.spread.sharing import ENDLESS, Limit, Option
from nodeless.scheduling.topology.counting import Counters
from nodeless.scheduling.topology.domains import Domains, places_of
from nodeless.scheduling.topology.node_filter import ExpectedNode, matches_node_filter

#: Seconds for each domain of which the emptiest is looked for, for each that is counted, and for each tally.
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
    ) -> None:
        self.keys: tuple[str, ...] = tuple(sorted({tally.key for tally in profiles.tallies} - {HOSTNAME}))
        """The topology keys of any rule, without the hostname."""
        self._slots = tuple(slots)
        self._profiles = profiles
        self._meter = meter
        self.counters = Counters(profiles.tallies, len(slots))
        places = places_of(snapshot, slots, self.keys) if profiles.tallies else {}
        self.domains = Domains(tables, places, meter)
        self._verdicts: dict[ExpectedNode, dict[NodeFilter, bool | None]] = {}
        #: By open node: pods counted there though it may turn out to take no part.
        self._unsettled: dict[int, dict[tuple[TopologyGroup, str], int]] = {}
        for pod in profiles.staying or ():
            place = places.get(pod.node_name)
            if place is None:
                continue
            for tally in profiles.counted_in(pod):
                if self.domains.passes(tally.nodes, pod.node_name) is False:
                    continue
                if tally.key == HOSTNAME:
                    self.counters[tally].total += 1
                    if place.slot is not None:
                        self.counters[tally].slots[place.slot] += 1
                elif tally.key in place.labels:
                    self.counters[tally].add((place.labels[tally.key],), 1)

    def keys_of(self, rules: Rules, adds: Iterable[TopologyGroup] = ()) -> tuple[str, ...]:
        """The keys of rules and tallies in order, without the hostname."""
        keys = {tally.key for tally in rules.tallies()} | {tally.key for tally in adds}
        return tuple(key for key in self.keys if key in keys)

    def of_namespace(self, tallies: Iterable[TopologyGroup], namespace: str) -> list[TopologyGroup]:
        """Those of some tallies that pods of a namespace look at, or carry what they count."""
        return [tally for tally in tallies if self._profiles.of_namespace(tally, namespace)]

    def together_on_host(self, rules: Rules) -> bool:
        """Whether affinity keeps all pods of a group on one node."""
        return any(tally.key == HOSTNAME for rule in rules.affinity for tally in rule.tallies)

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
        for tally in adds:
            part = self.domains.passes(tally.nodes, slot.name)
            if part is False:
                continue
            counter = self.counters[tally]
            if tally.key == HOSTNAME:
                counter.slots[index] += number
                counter.total += number
                continue
            values = sorted(slot.domains(tally.key))
            if len(values) == 1 or tally.repels or tally.nodes is not None:
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
        for tally in adds:
            part = self._takes_part(tally.nodes, node, verdicts)
            if part is False:
                continue
            counter = self.counters[tally]
            domain = _single(node.requirements, tally.key)
            if tally.key == HOSTNAME:
                counter.nodes.add(index, number)
                counter.total += number
            elif domain is not None:
                counter.add((domain,), number)
            else:
                continue
            if part is None:
                unsure = self._unsettled.setdefault(index, {})
                unsure[tally, domain or ""] = unsure.get((tally, domain or ""), 0) + number
                counter.doubt(domain or "", number)

    def _settle(self, index: int, node: ExpectedNode, verdicts: dict[NodeFilter, bool | None]) -> None:
        """Decide about pods on a node of which it was not sure whether it takes part."""
        still: dict[tuple[TopologyGroup, str], int] = {}
        unsettled = self._unsettled.pop(index, {})
        self._meter.spend(_TALLY * len(unsettled))
        for (tally, domain), number in unsettled.items():
            part = self._takes_part(tally.nodes, node, verdicts)
            if part is None:
                still[tally, domain] = number
                continue
            counter = self.counters[tally]
            counter.doubt(domain, -number)
            if not part and tally.key == HOSTNAME:
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
    ) -> list[tuple[list[int], int]]:
        """How a batch is divided: (options of which any will do, pods), the emptiest domains first.

        Args:
            rules: What the pods of the batch ask for.
            keys: The topology key of each value of an option.
            options: Where pods could go.
            room: The most pods for each option.
            want: The pods of the batch.
            stepwise: Give the first steps of a way on, each of which keeps the rules where it stands.
        """
        at = {key: index for index, key in enumerate(keys)}
        lets_in = self._door(rules, at)
        usable = [i for i, option in enumerate(options) if room[i] > 0 and lets_in(option)]
        return divide(
            self._limits(rules, at), usable, options, room, want, stepwise=stepwise, meter=self._meter
        )

    def tightens(self, rules: Rules, keys: Sequence[str]) -> bool:
        """Whether each pod of a class leaves less room for the next one in some domain."""
        own = [rule.tally.key for rule in rules.spread if rule.counts_itself]
        own += [rule.tally.key for rule in rules.anti_affinity if rule.counts_itself]
        return any(key in keys for key in own)

    def open_domains(self, rules: Rules) -> int:
        """How many domains of one rule's key, among those of new nodes, it lets one pod into."""
        keys = self.keys_of(rules)
        if not keys:
            return self.counters.on_fresh(rules)
        options = [(value,) for value in self.domains.launchable(keys[0])]
        lets_in = self._door(rules, {keys[0]: 0})
        return sum(map(lets_in, options))

    def emptiest(self, spread: Spread) -> int:
        """Pods in the emptiest domain of a spread constraint."""
        universe = self.domains.universe(spread.tally.key, spread.tally.nodes)
        if len(universe) < spread.min_domains:
            return 0
        self._meter.spend(_DOMAIN * len(universe))
        return self.counters[spread.tally].least(universe)

    def _door(self, rules: Rules, at: Mapping[str, int]) -> Callable[[Option], bool]:
        """Whether the rules allow one pod in an option, as things stand."""
        spreads = [
            (at[spread.tally.key], spread, self.emptiest(spread) + spread.max_skew - spread.counts_itself)
            for spread in rules.spread
            if spread.tally.key in at
        ]
        return lambda option: self._lets_in(rules, at, option, spreads)

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
            if value is None or self.counters[spread.tally].domains.get(value, 0) > most:
                return False
        for affinity in rules.affinity:
            first = affinity.counts_itself and not any(
                self.counters[tally].total for tally in affinity.tallies
            )
            for tally in affinity.tallies:
                if tally.key in at:
                    value = option[at[tally.key]]
                    if value is None or not (first or self.counters[tally].domains.get(value)):
                        return False
        return all(
            not self.counters[tally].domains.get(option[at[tally.key]] or "", 0)
            for tally in (*(rule.tally for rule in rules.anti_affinity), *rules.repelled_by)
            if tally.key in at and option[at[tally.key]] is not None
        )

    def _limits(self, rules: Rules, at: Mapping[str, int]) -> list[Limit]:
        """The rules that get tighter with each pod of the batch itself."""
        limits = []
        for spread in rules.spread:
            if spread.counts_itself and spread.tally.key in at:
                self._meter.spend(_COUNTED * len(self.counters[spread.tally].domains))
                universe = self.domains.universe(spread.tally.key, spread.tally.nodes)
                floor = 0 if len(universe) < spread.min_domains else ENDLESS
                limits.append(
                    Limit(
                        at[spread.tally.key],
                        dict(self.counters[spread.tally].domains),
                        universe,
                        floor,
                        spread.max_skew,
                        self.counters[spread.tally].unsure,
                    )
                )
        for anti in rules.anti_affinity:
            if anti.counts_itself and anti.tally.key in at:
                counts = dict(self.counters[anti.tally].domains)
                limits.append(Limit(at[anti.tally.key], counts, (), 0, 1))
        return limits


def _single(requirements: Requirements, key: str) -> str | None:
    """The one value that a label must have, or None."""
    label = requirements.get(key)
    if label is None or label.complement or len(label.values) != 1:
        return None
    return next(iter(label.values))
