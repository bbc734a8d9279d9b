"""The numbers of a topology group: pods in each domain, on each slot and on each node that the solve opens.

Nodes are the domains of the hostname; they are kept as arrays, so that what a rule leaves free
on every node is one comparison. Other domains are few and kept by name.
"""

from collections.abc import Iterable

import numpy as np

from nodeless.model.labels import HOSTNAME
from nodeless.scheduling.pods.classes import Amounts
from nodeless.scheduling.pods.rules import Rules, TopologyGroup
from nodeless.scheduling.spread.sharing import ENDLESS
from nodeless.scheduling.topology.growing import Growing


class Counter:
    """What one topology group has counted so far."""

    def __init__(self, slots: int) -> None:
        self.domains: dict[str, int] = {}
        """Pods by the value of the topology key; the hostname's are in `slots` and `nodes`."""
        self.unsure: dict[str, int] = {}
        """Those of them on nodes that may turn out to take no part: they fill, but raise no minimum."""
        self.slots: Amounts = np.zeros(slots, dtype=np.int64)
        self.nodes = Growing()
        self.total = 0
        """All pods counted, also those on nodes that take no more pods."""

    def add(self, domains: Iterable[str], number: int) -> None:
        """Count pods whose domain is one of these; each is taken for the one."""
        for domain in domains:
            self.domains[domain] = self.domains.get(domain, 0) + number
            self.total += number

    def doubt(self, domain: str, number: int) -> None:
        """Of the pods of a domain so many more (or fewer) may turn out not to count."""
        self.unsure[domain] = self.unsure.get(domain, 0) + number

    def least(self, domains: Iterable[str]) -> int:
        """Pods that surely are in the emptiest of some domains."""
        return min(
            (self.domains.get(domain, 0) - self.unsure.get(domain, 0) for domain in domains), default=0
        )


class Counters:
    """The counters of a solve, by topology group."""

    def __init__(self, topology_groups: Iterable[TopologyGroup], slots: int) -> None:
        self._slots = slots
        self._counters = {topology_group: Counter(slots) for topology_group in topology_groups}

    def __getitem__(self, topology_group: TopologyGroup) -> Counter:
        return self._counters[topology_group]

    def bootstraps(self, rules: Rules) -> bool:
        """Whether a pod is the first of its group: nobody is there to be near to, but itself would be."""
        return any(
            rule.counts_itself
            and not any(self[topology_group].total for topology_group in rule.topology_groups)
            for rule in rules.affinity
        )

    def hopeless(self, rules: Rules) -> bool:
        """Whether pods must be near others of which none runs or is planned: then no domain will do."""
        return any(
            not rule.counts_itself
            and not all(self[topology_group].total for topology_group in rule.topology_groups)
            for rule in rules.affinity
        )

    def on_slots(self, rules: Rules) -> Amounts | None:
        """The most pods that rules on the hostname let onto each slot; None: no rule is on the hostname."""
        return self._on_hosts(
            rules,
            {topology_group: self[topology_group].slots for topology_group in _hosts(rules)},
            self._slots,
        )

    def on_nodes(self, rules: Rules, count: int) -> Amounts | None:
        """The same for each of the nodes opened so far."""
        return self._on_hosts(
            rules,
            {topology_group: self[topology_group].nodes.first(count) for topology_group in _hosts(rules)},
            count,
        )

    def on_fresh(self, rules: Rules) -> int:
        """The same for a node without pods."""
        limits = self._on_hosts(rules, dict.fromkeys(_hosts(rules), _NONE), 1)
        return ENDLESS if limits is None else int(limits[0])

    def _on_hosts(self, rules: Rules, counts: dict[TopologyGroup, Amounts], number: int) -> Amounts | None:
        """The least that any rule allows where its group counts so many pods on each of `number` hosts."""
        if not counts:
            return None
        limit = np.full(number, ENDLESS, dtype=np.int64)
        for spread in rules.spread:
            if spread.topology_group in counts:
                left = spread.max_skew - counts[spread.topology_group]
                if not spread.counts_itself:
                    left = np.where(left >= 0, ENDLESS, 0)
                limit = np.minimum(limit, np.maximum(left, 0))
        for anti in rules.anti_affinity:
            if anti.topology_group in counts:
                limit[counts[anti.topology_group] > 0] = 0
                limit = np.minimum(limit, 1 if anti.counts_itself else ENDLESS)
        for topology_group in rules.repelled_by:
            if topology_group in counts:
                limit[counts[topology_group] > 0] = 0
        for affinity in rules.affinity:
            first = affinity.counts_itself and not any(
                self[topology_group].total for topology_group in affinity.topology_groups
            )
            for topology_group in affinity.topology_groups:
                if topology_group in counts and not first:
                    limit[counts[topology_group] == 0] = 0
        return limit


_NONE: Amounts = np.zeros(1, dtype=np.int64)


def _hosts(rules: Rules) -> tuple[TopologyGroup, ...]:
    return tuple(
        topology_group for topology_group in rules.topology_groups() if topology_group.key == HOSTNAME
    )
