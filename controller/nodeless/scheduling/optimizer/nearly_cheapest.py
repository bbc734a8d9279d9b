"""Of plans that cost nearly as little as the cheapest one, the one with fewer, larger nodes.

Each node brings agents, addresses and images of its own, and something to look after: two nodes become one
(`merging`) as long as all that the merges cost stays within a part of the plan's price. More is lost at once
with a larger node, so these merges put no more than half of a workload's pods of this plan on one node; what
a node of the cheapest plan already holds may stay together.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim
from nodeless.scheduling.optimizer.configurations import Configurations
from nodeless.scheduling.optimizer.cover import Chosen, Cover
from nodeless.scheduling.optimizer.items import HostLimits, Item
from nodeless.scheduling.optimizer.merging import Members, Merging

#: The part of a workload's pods that merges for more money may put on one node.
MOST_OF_A_WORKLOAD = 0.5
#: Seconds to look up of which workload a pod is.
_POD = 3e-6

Parts = list[tuple[Item, list[str]]]


@dataclass(frozen=True, slots=True)
class Tolerated:
    """What a plan may cost more for fewer nodes, and how long they may be looked for."""

    tolerance: float
    """By how much of its price a plan may become dearer, 0 to 1."""
    seconds: float
    """Of work, as counted; of many kinds of nodes only the smallest are looked at."""
    workload: Callable[[str], Hashable]
    """Of which workload the pod with a key is."""


@dataclass(frozen=True, slots=True)
class NodeMerger:
    """Finds fewer nodes for the pods of a plan's new ones."""

    cover: Cover
    """What can be bought for their pods."""
    hosts: HostLimits
    known: Configurations
    """Finds the configurations of the nodes."""
    tolerated: Tolerated
    make: Callable[[int, Parts], InFlightNodeClaim | None]
    """A node of a shape with these pods; None where it cannot be made as it was meant."""

    def merge(self, nodes: Sequence[InFlightNodeClaim]) -> Sequence[InFlightNodeClaim]:
        """The nodes, or fewer with the same pods: at the same price, and then for what is tolerated."""
        nodes = self._merge_within(0.0, nodes)
        if not self.tolerated.tolerance or len(self.known.item_of) * _POD > self.tolerated.seconds:
            return nodes
        return self._merge_within(self.tolerated.tolerance, nodes)

    def _merge_within(
        self, tolerance: float, nodes: Sequence[InFlightNodeClaim]
    ) -> Sequence[InFlightNodeClaim]:
        """The nodes, or fewer that cost at most this part of their price more."""
        rows = [row for row in map(self.known.of, nodes) if row is not None]
        if not 2 <= len(nodes) == len(rows):
            return nodes
        spent = tolerance * sum(float(self.cover.cost[shape]) for shape, _ in rows)
        chosen = [Chosen(shape, filling, 1) for shape, filling in rows]
        merging = Merging(self.cover, self.hosts, rows, chosen, self.tolerated.seconds, spent)

        @cache
        def workloads_on(members: Members) -> Counter[Hashable]:
            return Counter(self.tolerated.workload(key) for member in members for key in nodes[member].pods)

        @cache
        def all_workloads() -> Counter[Hashable]:
            return Counter(map(self.tolerated.workload, self.known.item_of))

        def may(one: Members, other: Members) -> bool:
            first, second, every = workloads_on(one), workloads_on(other), all_workloads()
            return all(
                first[each] + second[each] <= max(MOST_OF_A_WORKLOAD * every[each], first[each], second[each])
                for each in first.keys() | second.keys()
            )

        merging.merge(may if tolerance else None)
        gone: set[int] = set()
        made: list[InFlightNodeClaim] = []
        for (shape, _), alike in merging.kinds:
            for members in alike:
                if len(members) < 2:
                    continue
                one = self.make(shape, _parts((nodes[member] for member in members), self.known))
                if one is None:  # others may have been merged with what this one leaves of the limits
                    return nodes
                gone.update(members)
                made.append(one)
        return [*(node for number, node in enumerate(nodes) if number not in gone), *made]


def _parts(nodes: Iterable[InFlightNodeClaim], known: Configurations) -> Parts:
    """The pods of some nodes by item, in the order of items."""
    keys: dict[int, list[str]] = {}
    for node in nodes:
        for key in node.pods:
            keys.setdefault(known.item_of[key], []).append(key)
    return [(known.items[item], keys[item]) for item in sorted(keys)]
