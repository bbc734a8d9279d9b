"""How kube-scheduler would bind the pods of a plan where nobody tells it which node was meant for whom.

The scheduler takes pods one by one (by priority, then by age; what takes the place of pods that leave their
nodes as these are evicted: the large ones of a node first, the nodes in any order), keeps the nodes that pass
its filters, and of those the one with the best score. This is a simulation of that, on the nodes that a plan
leaves: those that are there, and those to come as the type that is meant to be bought, all at once. What then
has no room is the plan's spill; it costs further nodes.

Filters: resources, requirements, taints, host ports, and the required rules between pods.

Scores, with the weights of the default profile (kube-scheduler's plugins `NodeResourcesFit`,
`NodeResourcesBalancedAllocation` and `PodTopologySpread`):

    least allocated   1 * mean over cpu, memory of 100 * (allocatable - requested) / allocatable
    balanced          1 * 100 * (1 - |cpu's fraction - memory's fraction| / 2)
    spread            2 * 100 * (most + least - here) / most, where `here` is the sum over host and zone of
                      pods of the same workload there, each times log(domains + 2)

Pods without requests count as 100m and 200 MiB in scores. Left out: image locality, preferred affinities,
PreferNoSchedule, the sampling of nodes in clusters of more than a hundred, and that nodes become ready one
after the other.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from nodeless.model.pods import HostPort, Pod
from nodeless.model.requirements import Conflict
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim
from nodeless.scheduling.first_fit.filling import Existing
from nodeless.scheduling.first_fit.plan import SchedulingInput, topology_of
from nodeless.scheduling.first_fit.relaxing import beside_daemons
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass, ports_conflict
from nodeless.scheduling.pods.constraints import NodeRequirements
from nodeless.scheduling.pods.nominated_spread import kept_from_their_node
from nodeless.scheduling.pods.rules import Rules, TopologyGroup
from nodeless.scheduling.pods.selecting import Namespaces

_Scores = NDArray[np.float64]
#: Requests that kube-scheduler assumes in scores: 100m of CPU, 200 MiB of memory.
_ASSUMED = np.array([100, 200 * 2**20], dtype=np.float64)
_CPU_AND_MEMORY = 2
_FULL = 100.0
_SPREAD_WEIGHT = 2.0
#: Owners whose pods kube-scheduler spreads though they do not ask for it.
_SPREAD_OWNERS = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))
#: No pod is nominated.
_NOBODY: Mapping[str, int] = MappingProxyType({})
#: Pods times nodes up to which a plan is simulated: some seconds.
MOST_LOOKS = 3_000_000


def spill(
    inputs: SchedulingInput,
    nodes: Sequence[InFlightNodeClaim],
    placed: Iterable[str],
    nominated: Mapping[str, int] = _NOBODY,
) -> tuple[str, ...] | None:
    """Keys of the pods for which kube-scheduler finds no room, in the order in which it tries them.

    Args:
        inputs: What the plan started from.
        nodes: The nodes that it buys.
        placed: Keys of the pods that it places anywhere; no others are tried.
        nominated: Keys of those that get their planned place whatever the scores are, as it is kept for them,
            to the number of the slot or, after these, of the node.

    Returns:
        None where the plan is too large to be simulated.
    """
    wanted = set(placed)
    classes = [pods for pods in inputs.classes if not pods.shape.placeholder]
    queue = [
        (inputs.snapshot.pods[key], index)
        for index, pods in enumerate(classes)
        for key in pods.pods
        if key in wanted
    ]
    hosts = len(inputs.slots) + len(nodes)
    orders = _orders({pod.node_name for pod, _ in queue})
    if len(queue) * hosts * len(orders) > MOST_LOOKS:
        return None
    for drained in orders:
        turns = sorted(queue, key=lambda each: (each[0].key not in nominated, _turn(each[0], drained)))
        left = _bound(inputs, nodes, turns, classes, nominated)
        if left:
            return left
    return ()


def nominated_places(
    inputs: SchedulingInput, nodes: Sequence[InFlightNodeClaim], placements: Mapping[str, str]
) -> dict[str, int]:
    """The pods of a plan that are nominated, to the numbers that their places have for `spill`.

    Args:
        inputs: What the plan started from.
        nodes: The nodes that it buys.
        placements: Where it puts pods on slots, by pod key.
    """
    numbers = {slot.name: number for number, slot in enumerate(inputs.slots)}
    here: dict[int, list[str]] = {len(numbers) + number: node.pods for number, node in enumerate(nodes)}
    for key, name in placements.items():
        here.setdefault(numbers[name], []).append(key)
    namespaces = Namespaces(inputs.snapshot)
    found: dict[str, int] = {}
    for number, keys in here.items():
        kept_off = kept_from_their_node((inputs.snapshot.pods[key] for key in keys), namespaces)
        found.update((key, number) for key in keys if key not in kept_off)
    return found


def _orders(leaving: Collection[str]) -> list[Mapping[str, int]]:
    """Turns of the nodes that pods leave: together, and one by one, since no drain waits for another."""
    names = sorted(name for name in leaving if name)
    together: Mapping[str, int] = dict.fromkeys(names, 0)
    if len(names) < 2:
        return [together]
    return [together, *({name: turn for turn, name in enumerate(some)} for some in (names, names[::-1]))]


def _turn(pod: Pod, drained: Mapping[str, int]) -> tuple[int, float, int, float, str]:
    """By priority, then by age; what takes the place of pods that still run comes last, as drains evict."""
    leaves = bool(pod.node_name)
    age = inf if leaves else pod.created_at
    return -pod.priority, age, drained.get(pod.node_name, 0), -pod.bulk if leaves else 0.0, pod.key


def _bound(
    inputs: SchedulingInput,
    nodes: Sequence[InFlightNodeClaim],
    queue: Iterable[tuple[Pod, int]],
    classes: Sequence[PodClass],
    nominated: Mapping[str, int],
) -> tuple[str, ...]:
    """The pods without room, when they are taken in this order; each comes with the index of its class."""
    scheduler = _Scheduler(inputs, nodes)
    known: dict[int, _Member] = {}
    left = []
    for pod, index in queue:
        if index not in known:
            known[index] = scheduler.member(classes[index], spread=_is_spread(pod))
        if pod.key in nominated:
            scheduler.put(known[index], nominated[pod.key])
        elif not scheduler.bind(known[index]):
            left.append(pod.key)
    return tuple(left)


def _is_spread(pod: Pod) -> bool:
    return not pod.shape.spread and any(owner.kind in _SPREAD_OWNERS for owner in pod.owners)


@dataclass(slots=True, eq=False)
class _Member:
    """One class as the scheduler sees it."""

    pods: PodClass
    accepted: Mask
    """The hosts that pass the filters which do not change."""
    scored: Amounts
    """CPU and memory as they count in scores."""
    spread: bool
    """Whether the scheduler spreads it by default."""
    here: _Scores
    """How many of it are on each host."""
    beside_daemons: Mask
    """The new nodes that get pods of DaemonSets which its affinity selects."""


class _Scheduler:
    """Hosts, and what is on them."""

    def __init__(self, inputs: SchedulingInput, nodes: Sequence[InFlightNodeClaim]) -> None:
        meter = Meter()
        self._inputs, self._nodes = inputs, nodes
        self._topology = topology_of(inputs, meter)
        self._existing = Existing(inputs.slots, inputs.resources, self._topology, meter)
        self._count = len(inputs.slots) + len(nodes)
        rows = [node.by_price()[0] for node in nodes]
        fresh = [node.table.room[row] for node, row in zip(nodes, rows, strict=True)]
        whole = [node.table.table.allocatable[row] for node, row in zip(nodes, rows, strict=True)]
        self._rows = rows
        self._offerings = _offerings(nodes, rows)
        self._free: Amounts = np.array([*(slot.free for slot in inputs.slots), *fresh], dtype=np.int64)
        self._free = self._free.reshape(self._count, inputs.resources)
        allocatable = [*self._of_slots(), *(each[:_CPU_AND_MEMORY] for each in whole)]
        whole_rows = np.array(allocatable, dtype=np.float64).reshape(self._count, _CPU_AND_MEMORY)
        self._whole: _Scores = np.maximum(whole_rows, 1.0)
        self._scored: _Scores = np.maximum(self._whole - self._free[:, :_CPU_AND_MEMORY], 0.0)
        self._ports: list[list[HostPort]] = [list(slot.ports) for slot in inputs.slots]
        self._ports += [list(node.table.daemon_ports([row])) for node, row in zip(nodes, rows, strict=True)]
        self._values = {key: self._values_of(key) for key in {*self._topology.keys, ZONE}}
        self._zones = self._numbered(ZONE)
        self._counts: dict[TopologyGroup, _Counted] = {}

    def member(self, pods: PodClass, *, spread: bool) -> _Member:
        accepted = np.zeros(self._count, dtype=np.bool_)
        slots = len(self._inputs.slots)
        if slots:
            accepted[:slots] = self._existing.accepts(pods, include_prefer_no_schedule=True)
        for index, node in enumerate(self._nodes):
            accepted[slots + index] = self._would_take(node, index, pods)
        asked = pods.requests[:_CPU_AND_MEMORY].astype(np.float64)
        scored = np.where(asked > 0, asked, _ASSUMED)
        beside = np.zeros(self._count, dtype=np.bool_)
        alternatives, _ = beside_daemons(pods, pods.demand.required, pods.hard_rules)
        for index, node in enumerate(self._nodes) if alternatives else ():
            beside[slots + index] = any(self._meets(node, index, each) for each in alternatives)
        return _Member(pods, accepted, scored, spread, np.zeros(self._count), beside)

    def bind(self, member: _Member) -> bool:
        """Bind one pod of a class; whether there was room."""
        feasible = member.accepted & (self._free >= member.pods.requests).all(axis=1)
        ports = member.pods.shape.host_ports
        if ports:
            for index in np.flatnonzero(feasible):
                feasible[index] = not ports_conflict(ports, self._ports[index])
        if member.pods.hard_rules:
            feasible &= self._let_in(member.pods.hard_rules, member.beside_daemons)
        chosen = np.flatnonzero(feasible)
        if not chosen.size:
            return False
        self.put(member, int(chosen[np.argmax(self._score(member, chosen))]))
        return True

    def put(self, member: _Member, host: int) -> None:
        """Bind one pod of a class to a host."""
        self._free[host] -= member.pods.requests
        self._scored[host] += member.scored
        self._ports[host] += member.pods.shape.host_ports
        member.here[host] += 1
        for topology_group in member.pods.adds:
            self._counted(topology_group).add(host)

    def _score(self, member: _Member, hosts: NDArray[np.intp]) -> _Scores:
        used = np.minimum((self._scored[hosts] + member.scored) / self._whole[hosts], 1.0)
        least = np.floor(_FULL * (1 - used)).mean(axis=1)
        balanced = np.floor(_FULL * (1 - np.abs(used[:, 0] - used[:, 1]) / 2))
        score: _Scores = least + balanced
        if member.spread:
            score = score + _SPREAD_WEIGHT * self._spread_score(member.here, hosts)
        for rule in member.pods.rules.spread:
            if rule.soft and rule.counts_itself:
                score = score + _SPREAD_WEIGHT * self._spread_score(member.here, hosts)
                break
        return score

    def _spread_score(self, here: _Scores, hosts: NDArray[np.intp]) -> _Scores:
        zones = np.bincount(self._zones, weights=here)
        distinct = np.unique(self._zones[hosts]).size
        raw = here[hosts] * log(hosts.size + 2) + zones[self._zones[hosts]] * log(distinct + 2)
        most, least = raw.max(), raw.min()
        return np.full(hosts.size, _FULL) if not most else np.floor(_FULL * (most + least - raw) / most)

    def _let_in(self, rules: Rules, beside_daemons: Mask) -> Mask:
        """The hosts on which required rules allow one more pod; `beside_daemons` satisfy its affinity."""
        allowed = np.ones(self._count, dtype=np.bool_)
        for spread in rules.spread:
            counted = self._counted(spread.topology_group)
            least = counted.least() if counted.domains >= spread.min_domains else 0
            allowed &= counted.known & (counted.there() + spread.counts_itself - least <= spread.max_skew)
        for affinity in rules.affinity:
            topology_groups = [self._counted(topology_group) for topology_group in affinity.topology_groups]
            first = affinity.counts_itself and not any(counted.total for counted in topology_groups)
            for counted in topology_groups:
                allowed &= counted.known & (first | beside_daemons | (counted.there() > 0))
        for topology_group in (*(rule.topology_group for rule in rules.anti_affinity), *rules.repelled_by):
            counted = self._counted(topology_group)
            allowed &= ~counted.known | (counted.there() == 0)
        return allowed

    def _counted(self, topology_group: TopologyGroup) -> "_Counted":
        if topology_group not in self._counts:
            counter = self._topology.counters[topology_group]
            if topology_group.key == HOSTNAME:
                own: list[str | None] = [str(index) for index in range(self._count)]
                start = {str(index): int(number) for index, number in enumerate(counter.slots)}
            else:
                own, start = self._values[topology_group.key], counter.domains
            self._counts[topology_group] = _Counted(own, start, counter.total)
        return self._counts[topology_group]

    def _would_take(self, node: InFlightNodeClaim, index: int, pods: PodClass) -> bool:
        """Whether a node, once bought as what it is meant to be, meets what a class requires."""
        if node.table.refuses(pods.shape.tolerations, soft=True) is not None:
            return False
        return any(self._meets(node, index, node_requirements) for node_requirements in pods.demand.required)

    def _meets(self, node: InFlightNodeClaim, index: int, node_requirements: NodeRequirements) -> bool:
        terms = node.table.grow(node.terms, node_requirements)
        if isinstance(terms, Conflict) or not terms.types[self._rows[index]]:
            return False
        offering = self._offerings[index]
        where = {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
        return all(
            expression.key not in where or expression.allows(where[expression.key])
            for expression in node_requirements.expressions
        )

    def _of_slots(self) -> Iterable[Amounts]:
        """CPU and memory that each slot has for pods: a claim has what is free of it."""
        for slot in self._inputs.slots:
            node = self._inputs.snapshot.nodes.get(slot.name)
            free = slot.free[:_CPU_AND_MEMORY]
            if node is None:
                yield free
            else:
                own = (node.allocatable.get("cpu", 0), node.allocatable.get("memory", 0))
                yield np.maximum(np.array(own, dtype=np.int64), free)

    def _values_of(self, key: str) -> list[str | None]:
        """The value of a label on each host; None: it has none, or nobody knows which."""
        values = [_only(slot.domains(key)) for slot in self._inputs.slots]
        for node, row, offering in zip(self._nodes, self._rows, self._offerings, strict=True):
            if key == ZONE:
                values.append(offering.zone)
            elif key == CAPACITY_TYPE:
                values.append(offering.capacity_type)
            else:
                carried = node.table.table.types[row].requirements.get(key)
                required = node.terms.requirements.get(key) or carried
                known = required is not None and not required.complement
                values.append(_only(required.values) if required is not None and known else None)
        return values

    def _numbered(self, key: str) -> NDArray[np.intp]:
        return np.unique([value or "" for value in self._values[key]], return_inverse=True)[1]


class _Counted:
    """Pods that one topology group has counted in each domain of its key."""

    def __init__(self, values: Sequence[str | None], start: dict[str, int], total: int) -> None:
        names = sorted({value for value in values if value is not None} | start.keys())
        at = {name: index for index, name in enumerate(names)}
        self.known: Mask = np.array([value is not None for value in values], dtype=np.bool_)
        """The hosts that bear the label."""
        self._domain = np.array([0 if value is None else at[value] for value in values], dtype=np.intp)
        self._numbers = np.array([start.get(name, 0) for name in names] or [0], dtype=np.int64)
        self._present = np.unique(self._domain[self.known])
        self.domains = int(self._present.size)
        """How many domains hosts are in."""
        self.total = total
        """All pods that count."""

    def there(self) -> Amounts:
        """The number in the domain of each host."""
        numbers: Amounts = self._numbers[self._domain]
        return numbers

    def least(self) -> int:
        """The number in the emptiest domain that a host is in."""
        return int(self._numbers[self._present].min(initial=2**62)) if self._present.size else 0

    def add(self, host: int) -> None:
        """Count one pod on a host."""
        if self.known[host]:
            self._numbers[self._domain[host]] += 1
            self.total += 1


def _offerings(nodes: Sequence[InFlightNodeClaim], rows: Sequence[int]) -> list[Offering]:
    return [
        node.table.table.cheapest_offerings((row,), node.terms.requirements)[0]
        for node, row in zip(nodes, rows, strict=True)
    ]


def _only(values: Iterable[str]) -> str | None:
    found = tuple(values)
    return found[0] if len(found) == 1 else None
