"""What a cheaper plan may move: the pods of the first-fit plan, with the domains that it gave them.

The first-fit plan has settled everything that pods mean to each other across nodes: how many of a
class go to each zone, which preferences were relaxed, which pools are open to them. An *item* is the
pods of one class for which all of that is the same. Packing items anew onto other nodes keeps
every topology rule but those on the hostname, for each domain holds as many pods of each class
as before; rules on the hostname and host ports are limits for a single node (`HostLimits`).

Pods stay where they are when pods on the same node must be near each other (affinity on the
hostname), and on existing nodes when they have rules, preferences or volumes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodeless.model.identity import Identity
from nodeless.model.labels import HOSTNAME
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim, Part
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements
from nodeless.scheduling.pods.rules import Rules, TopologyGroup
from nodeless.scheduling.spread.sharing import ENDLESS

#: Rules on the host, ports included, with which pods are still moved to a cheaper node.
_MOST_LIMITS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """Pods of one class that want the same of a new node; compared by identity."""

    pods: PodClass
    node_requirements: NodeRequirements
    rules: Rules
    tables: tuple[PoolTable, ...]
    """The pools that weights leave open to it, heaviest first."""
    keys: tuple[str, ...]
    """The pods, in order."""

    @property
    def count(self) -> int:
        return len(self.keys)


def in_whole_pods(room: Amounts, items: Iterable[Item]) -> Amounts:
    """The room of nodes, rounded down to what sums of the items' requests can be."""
    requests: Amounts = np.array([item.pods.requests for item in items], dtype=np.int64)
    divisors: Amounts = np.maximum(np.gcd.reduce(requests, axis=0), 1)
    whole: Amounts = np.maximum(room, 0) // divisors * divisors
    return whole


def movable(nodes: Sequence[InFlightNodeClaim], aims: frozenset[str]) -> list[InFlightNodeClaim]:
    """The nodes whose pods may be packed anew.

    They are of pools packed by price, without minValues, and none of their pods is bound to another or shares
    a volume.
    """
    parts = {part for node in nodes for part in node.parts}
    wanted = {topology_group for part in parts for topology_group in _neighbors(part.rules)}
    bound = {
        part
        for part in parts
        if wanted
        and (next(_neighbors(part.rules), None) is not None or not wanted.isdisjoint(part.pods.adds))
    }
    return [
        node
        for node in nodes
        if node.table.pool.key in aims
        and not node.table.wanted
        and not node.held
        and not (bound and any(part in bound for part in node.parts))
        and not any(map(_entangled, node.parts))
    ]


def _entangled(part: Part) -> bool:
    """Whether so many rules on the host speak of a part's pods that moving them costs too much."""
    rules = sum(topology_group.key == HOSTNAME for topology_group in part.rules.topology_groups())
    return len(part.pods.shape.host_ports) + rules > _MOST_LIMITS


def items_of(nodes: Iterable[InFlightNodeClaim]) -> list[Item]:
    """The items on some nodes, in the order in which they were placed."""
    classes: dict[object, tuple[Part, list[str]]] = {}
    known: dict[Part, list[str]] = {}
    for node in nodes:
        start = 0
        for part in node.parts:
            keys = known.get(part)
            if keys is None:
                pools = tuple(table.pool.key for table in part.tables)
                memo = part.pods, part.node_requirements, Identity(part.rules), pools
                keys = known[part] = classes.setdefault(memo, (part, []))[1]
            keys += node.pods[start : start + part.count]
            start += part.count
    return [
        Item(part.pods, part.node_requirements, part.rules, open_to(part), tuple(keys))
        for part, keys in classes.values()
    ]


def open_to(part: Part) -> tuple[PoolTable, ...]:
    """The pools that may take a part: the heaviest, and lighter ones where limits may close the others."""
    result: list[PoolTable] = []
    for table in part.tables:
        if table.fresh(part.pods, part.node_requirements) is None:
            continue
        if (
            result
            and not all(other.limit_names for other in result)
            and (table.pool.weight != result[-1].pool.weight)
        ):
            break
        result.append(table)
    return tuple(result)


def _neighbors(rules: Rules) -> Iterator[TopologyGroup]:
    return (
        topology_group
        for rule in rules.affinity
        for topology_group in rule.topology_groups
        if topology_group.key == HOSTNAME
    )


class HostLimits:
    """What items allow beside each other on one node.

    Tally h counts the pods of the items i with adds[i, h]. Where an item i is on a node, no more
    than most[i, h] pods may be counted there. A host port is a topology group of its own.
    """

    def __init__(self, items: Sequence[Item], *, any_order: bool = False) -> None:
        """`any_order`: only what no order in which pods may be bound gets around, as a bound has to."""
        topology_groups: dict[object, int] = {}
        adds: list[list[object]] = []
        most: list[dict[object, int]] = []
        for item in items:
            adds.append(
                [topology_group for topology_group in item.pods.adds if topology_group.key == HOSTNAME]
            )
            limits = _limits(item.rules, set(item.pods.adds))
            for port in item.pods.shape.host_ports:
                taken: object = (port.port, port.protocol or "TCP")
                adds[-1].append(taken)
                limits[taken] = 1
            most.append(limits)
        if any_order:
            _loosen_spreads(items, adds, most)
        for limits in most:
            for key in limits:
                topology_groups.setdefault(key, len(topology_groups))
        self.count = len(topology_groups)
        self.adds = np.zeros((len(items), self.count), dtype=np.bool_)
        self.most: Amounts = np.full((len(items), self.count), ENDLESS, dtype=np.int64)
        for index, (added, limits) in enumerate(zip(adds, most, strict=True)):
            for key in added:
                if key in topology_groups:
                    self.adds[index, topology_groups[key]] = True
            for key, limit in limits.items():
                self.most[index, topology_groups[key]] = limit
        self.touched = [np.flatnonzero(self.adds[i] | (self.most[i] < ENDLESS)) for i in range(len(items))]
        """The topology groups that matter to each item."""

    def alone(self) -> Amounts:
        """How many pods of each item a node may hold that holds nothing else."""
        most: Amounts = np.where(self.adds, self.most, ENDLESS).min(axis=1, initial=ENDLESS)
        return most

    def own_only(self) -> Mask:
        """Whether the topology groups that matter to each item matter to no other one."""
        items = Counter(group for touched in self.touched for group in touched.tolist())
        own = [all(items[group] == 1 for group in touched.tolist()) for touched in self.touched]
        return np.array(own, dtype=np.bool_)


class HostCounts:
    """What the limits count on some nodes, row by row, and what the pods there allow."""

    def __init__(self, hosts: HostLimits, rows: int) -> None:
        self._hosts = hosts
        self._counted: Amounts = np.zeros((rows, hosts.count), dtype=np.int64)
        self._most: Amounts = np.full((rows, hosts.count), ENDLESS, dtype=np.int64)

    def limited(self, fits: Amounts, item: int) -> Amounts:
        """How many of so many pods of an item each row may take: 0 or more."""
        if self._hosts.count:
            adds, most = self._hosts.adds[item], self._hosts.most[item]
            spare = np.minimum(self._most, most) - self._counted
            fits = np.minimum(fits, np.where(adds, spare, ENDLESS).min(axis=1))
            fits[(~adds & (most < self._counted)).any(axis=1)] = 0
        return np.maximum(fits, 0)

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Go on with copies of some rows."""
        self._counted, self._most = self._counted[rows], self._most[rows]

    def add(self, number: Amounts, item: int) -> None:
        """So many pods of an item are on the node of each row."""
        self._counted = self._counted + self._hosts.adds[item] * number[:, None]
        own = np.where(number[:, None] > 0, self._hosts.most[item], ENDLESS)
        self._most = np.minimum(self._most, own)


def _loosen_spreads(
    items: Sequence[Item], adds: Sequence[list[object]], most: Sequence[dict[object, int]]
) -> None:
    """Leave of spreads over hosts what holds however pods are bound.

    A spread looks at the pods that are there when its own pod comes. A pod that is counted and has no such
    rule itself may come after it; and of those that have one, the one that may be beside most comes last.
    """
    spreads: set[TopologyGroup] = {spread.topology_group for item in items for spread in item.rules.spread}
    for item in items:
        spreads.difference_update(anti.topology_group for anti in item.rules.anti_affinity)
        spreads.difference_update(item.rules.repelled_by)
    largest: dict[object, int] = {}
    for limits in most:
        for key, limit in limits.items():
            largest[key] = max(limit, largest.get(key, 0))
    for added, limits in zip(adds, most, strict=True):
        limits.update((key, largest[key]) for key in list(limits) if key in spreads)
        added[:] = [key for key in added if key not in spreads or key in limits]


def _limits(rules: Rules, own: set[TopologyGroup]) -> dict[object, int]:
    limits: dict[object, int] = {}

    def at_most(topology_group: TopologyGroup, number: int) -> None:
        if topology_group.key == HOSTNAME:
            limits[topology_group] = min(number, limits.get(topology_group, number))

    for spread in rules.spread:
        at_most(spread.topology_group, spread.max_skew)
    for anti in rules.anti_affinity:
        at_most(anti.topology_group, 1 if anti.counts_itself else 0)
    for topology_group in rules.repelled_by:
        at_most(topology_group, 1 if topology_group in own else 0)
    return limits
