"""The most pods that can be placed, and the least that it costs, with rules over zones and other domains.

An integer program (HiGHS) for worlds of a dozen pods, written on kube-scheduler's filters (`scheduler`)
without the solver's code. Beside what `exact` knows: required affinity, anti-affinity and hard topology
spread (maxSkew, minDomains, nodeAffinityPolicy, nodeTaintsPolicy) over any label, pods that run, claims in
flight, volumes that one zone reaches.

    x[c, p]       pods of class c on place p, a host or a new node; m[c, p] = 1 where there are any
    z[k, o]       new node k is made as offer o (pool, type, zone, capacity type, rack)
    y[c, k, a, v] those of x[c, k] where the node's value on axis a is v: the label of a topology key, or no
                  value where the node takes no part in a spread
    N[c, a, v]    pods of class c in domain v of axis a; M[c, a, v] = 1 where there are any

What counts as placeable: an assignment in which every rule holds at the end, and in which required affinity
is reached in some order (each pod beside one that was there before: t[c, a, v] are the steps). Where each
workload spreads its own pods only, such an assignment can be bound one by one, which `Program.bindable` shows
with kube-scheduler's filters. It is no promise for every order: with hard spread kube-scheduler may bind
other pods first, and these then wait for later nodes. A domain that pools could make nodes in counts for the
emptiest domain, as in Karpenter: nobody is placed on the strength of a zone's having no nodes yet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import highspy
import numpy as np

from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, PROVISIONER_NAME, ZONE
from nodeless.model.pods import Pod, PodAffinityTerm, TopologySpreadConstraint
from nodeless.model.pools import Pool
from nodeless.model.resources import Resources
from nodeless.model.snapshot import Snapshot
from tests.scheduling.scheduler import Cluster, Host, accepts, binding_order, matches, tolerates

Entries = Iterable[tuple[int, float]]


class GaveUp(Exception):
    """The program is not solved in its time."""


@dataclass(frozen=True)
class Best:
    """How many pods run, for how many dollars an hour, on how many new nodes."""

    placed: int
    price: float
    nodes: int
    bindable: bool
    """Whether kube-scheduler can bind the pods of the answer one by one."""


@dataclass(frozen=True)
class Offer:
    """One thing that a new node may be."""

    pool: Pool
    kind: InstanceType
    host: Host
    price: float


@dataclass(eq=False)
class _Model:
    """Variables and rows of an integer program."""

    upper: list[float] = field(default_factory=list)
    continuous: set[int] = field(default_factory=set)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def variable(self, most: float = 1.0, *, whole: bool = True) -> int:
        self.upper.append(most)
        if not whole:
            self.continuous.add(len(self.upper) - 1)
        return len(self.upper) - 1

    def most(self, entries: Entries, right: float) -> None:
        """The entries sum up to no more than `right`."""
        self.row(entries, -highspy.kHighsInf, right)

    def row(self, entries: Entries, left: float, right: float) -> None:
        summed: dict[int, float] = {}
        for at, factor in entries:
            summed[at] = summed.get(at, 0.0) + factor
        self.rows.append((summed, left, right))

    def best(self, gain: dict[int, float], seconds: float, gap: float) -> np.ndarray | None:
        """The values for which the gain is most; None where nothing fits."""
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.upper), len(self.rows)
        lp.col_cost_ = np.array([gain.get(at, 0.0) for at in range(len(self.upper))])
        lp.col_lower_, lp.col_upper_ = np.zeros(len(self.upper)), np.array(self.upper)
        lp.row_lower_ = np.array([left for _, left, _ in self.rows])
        lp.row_upper_ = np.array([right for _, _, right in self.rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(row) for row, _, _ in self.rows)])
        lp.a_matrix_.index_ = np.array([at for row, _, _ in self.rows for at in row], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for row, _, _ in self.rows for value in row.values()])
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.integrality_ = [
            highspy.HighsVarType.kContinuous if at in self.continuous else highspy.HighsVarType.kInteger
            for at in range(len(self.upper))
        ]
        # Presolve takes some programs for infeasible that are not: there only the search is believed.
        for presolve in ("on", "off"):
            solver = _solver(seconds, gap, presolve)
            solver.passModel(lp)
            solver.run()
            status = solver.getModelStatus()
            if status != highspy.HighsModelStatus.kInfeasible:
                break
        else:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise GaveUp(str(status))
        return np.round(np.array(solver.getSolution().col_value)).astype(int)


def _solver(seconds: float, gap: float, presolve: str) -> highspy.Highs:
    solver = highspy.Highs()
    solver.silent()
    options = {
        "threads": 1,
        "presolve": presolve,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": gap,
        "time_limit": seconds,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver


@dataclass(eq=False)
class World:
    """Who waits, what is there, what can be bought."""

    seen: Snapshot
    types: Sequence[InstanceType]
    classes: list[list[Pod]] = field(init=False)
    hosts: list[Host] = field(init=False)
    offers: list[Offer] = field(init=False)
    every: list[Offer] = field(init=False)
    """Offers before those that others are as good as in everything were left out."""

    def __post_init__(self) -> None:
        by_class: dict[object, list[Pod]] = {}
        for _, pod in sorted(self.seen.pods.items()):
            if not pod.node_name:
                by_class.setdefault((pod.namespace, pod.shape, tuple(sorted(pod.labels.items()))), []).append(
                    pod
                )
        self.classes = list(by_class.values())
        self.hosts = list(_hosts(self.seen, self.types))
        self.every = list(_offers(self.seen, self.types))
        self.offers = list(_worth_having(self.every, self.classes, self.seen))

    def accepts(self, pod: Pod, host: Host) -> bool:
        """Whether a host takes a pod, what pods mean to each other left out."""
        cluster = Cluster({host.name: host}, (), self.seen.volumes, self.seen.volume_claims)
        return cluster.plain_obstacle(pod, host) is None


def _hosts(seen: Snapshot, types: Sequence[InstanceType]) -> Iterator[Host]:
    """What is there or on its way, each claim as the one thing that it will be."""
    for name, node in sorted(seen.nodes.items()):
        running = [seen.pods[key] for key in sorted(seen.pods) if seen.pods[key].node_name == name]
        yield Host(name, node.labels, node.allocatable, node.taints, node.unschedulable, running)
    named = {kind.name: kind for kind in types}
    for name, claim in sorted(seen.claims.items()):
        kind = named[next(iter(claim.requirements[INSTANCE_TYPE].values))]
        labels = {**kind.requirements.single_values(), **claim.requirements.single_values(), **claim.labels}
        own = {PROVISIONER_NAME: claim.pool.name}
        yield Host(name, {**own, **labels}, kind.allocatable, claim.taints)


def _offers(seen: Snapshot, types: Sequence[InstanceType]) -> Iterator[Offer]:
    """What pools can buy; where a pool allows several values of a label, once for each."""
    for own in seen.pools.values():
        custom = {
            key: sorted(label.values)
            for key, label in own.requirements.items()
            if not label.complement and key not in (ZONE, CAPACITY_TYPE, INSTANCE_TYPE)
        }
        for kind, values in product(types, product(*custom.values())):
            for offering in kind.offerings:
                labels = {
                    **kind.requirements.single_values(),
                    **dict(zip(custom, values, strict=True)),
                    ZONE: offering.zone,
                    CAPACITY_TYPE: offering.capacity_type,
                    PROVISIONER_NAME: own.name,
                }
                if offering.for_sale and own.requirements.satisfied_by(labels):
                    host = Host("new", {**own.labels, **labels}, kind.allocatable, own.taints)
                    yield Offer(own, kind, host, offering.price)


def _worth_having(offers: Sequence[Offer], classes: Sequence[list[Pod]], seen: Snapshot) -> Iterator[Offer]:
    """The offers without those that others are as good as in everything that matters here."""
    looked_at = sorted({key for pods in classes for key in _keys_of(pods[0], seen)} | _keys_of_running(seen))
    names = sorted({name for pods in classes for name, amount in pods[0].shape.requests if amount})
    alike: dict[object, list[Offer]] = {}
    for offer in sorted(offers, key=lambda offer: (offer.price, offer.kind.name)):
        seen_labels = tuple(offer.host.labels.get(key) for key in looked_at if key != HOSTNAME)
        kept = alike.setdefault((offer.pool.name, seen_labels), [])
        if not any(_as_good(other, offer, names) for other in kept):
            kept.append(offer)
    for some in alike.values():
        yield from some


def _as_good(one: Offer, other: Offer, names: Sequence[str]) -> bool:
    return all(
        one.kind.allocatable.get(name, 0) >= other.kind.allocatable.get(name, 0) for name in names
    ) and all(
        one.kind.capacity.get(name, 0) <= other.kind.capacity.get(name, 0) for name in one.pool.limits or ()
    )


def _keys_of(pod: Pod, seen: Snapshot) -> set[str]:
    shape = pod.shape
    terms = [*shape.required_terms]
    for name in shape.claims:
        claim = seen.volume_claims.get(f"{pod.namespace}/{name}")
        if claim is not None and claim.volume_name in seen.volumes:
            terms += seen.volumes[claim.volume_name].terms
    return {
        *(key for key, _ in shape.node_selector),
        *(one.key for term in terms for one in term.expressions),
        *(one.topology_key for one in (*shape.spread, *shape.affinity, *shape.anti_affinity)),
    }


def _keys_of_running(seen: Snapshot) -> set[str]:
    return {
        term.topology_key for pod in seen.pods.values() if pod.node_name for term in pod.shape.anti_affinity
    }


def _required(terms: Iterable[PodAffinityTerm]) -> list[PodAffinityTerm]:
    return [term for term in terms if term.weight is None]


def _hard(pod: Pod) -> list[TopologySpreadConstraint]:
    return [one for one in pod.shape.spread if one.when_unsatisfiable == "DoNotSchedule"]


Axis = tuple[str, int | None]
"""A topology key; for the spread of a class with its index: only nodes that take part have a value there."""


class Program:
    """The program of one world."""

    def __init__(self, seen: Snapshot, types: Sequence[InstanceType], seconds: float = 60.0) -> None:
        self.world = world = World(seen, types)
        self._seconds = seconds
        self._model = model = _Model()
        self.waiting = [len(pods) for pods in world.classes]
        self._pods = [pods[0] for pods in world.classes]
        self._led = (
            [one for one, number in enumerate(self.waiting) for _ in range(number)] if world.offers else []
        )
        self._slots = len(world.hosts)
        self._places = self._slots + len(self._led)
        self._x = [[model.variable(number) for _ in range(self._places)] for number in self.waiting]
        self._m = [[model.variable() for _ in range(self._places)] for _ in self.waiting]
        self._z = [[model.variable() for _ in world.offers] for _ in self._led]
        self._inside: dict[tuple[int, Axis, str], tuple[int, int]] = {}
        """By class, axis and domain: how many pods are there, and whether there are any."""
        self._begins: dict[object, dict[str, int]] = {}
        self._steps: dict[tuple[int, str, str], int] = {}
        self._everybody()
        self._rooms()
        self._nodes()
        self._limits()
        for one in range(len(self.waiting)):
            self._ports(one)
            self._anti_affinity(one)
            self._affinity(one)
            self._spread(one)

    # Solving.

    def most_placed(self) -> int:
        """How many pods can be placed."""
        every = {at: 1.0 for row in self._x for at in row}
        self.values = self._model.best(every, self._seconds, 0.5)
        assert self.values is not None  # nobody placed is an answer, too
        return int(sum(self.values[at] for at in every))

    def least_price(self, below: float = float("inf")) -> Best | None:
        """The least price of a plan that places everybody; None where none is cheaper than `below`."""
        price = {
            at: offer.price for made in self._z for at, offer in zip(made, self.world.offers, strict=True)
        }
        for one, row in enumerate(self._x):
            self._model.row(((at, 1.0) for at in row), self.waiting[one], self.waiting[one])
        if below < float("inf"):
            self._model.most(price.items(), below)
        values = self._model.best({at: -paid for at, paid in price.items()}, self._seconds, 1e-6)
        self.values = values
        if values is None:
            return None
        return Best(
            sum(self.waiting),
            sum(price[at] * int(values[at]) for at in price),
            sum(int(values[at]) for at in price),
            self.bindable(values),
        )

    def bindable(self, values: np.ndarray) -> bool:
        """Whether the pods of an answer can be bound one by one."""
        cluster, wanted = self.as_cluster(values)
        return binding_order(cluster, wanted) is not None

    def as_cluster(self, values: np.ndarray) -> tuple[Cluster, dict[str, list[Pod]]]:
        hosts = {host.name: replace(host, pods=list(host.pods)) for host in self.world.hosts}
        names = [host.name for host in self.world.hosts]
        for node, made in enumerate(self._z):
            names.append(f"new-{node}")
            for at, offer in zip(made, self.world.offers, strict=True):
                if values[at]:
                    labels = {key: value for key, value in offer.host.labels.items() if key != HOSTNAME}
                    hosts[names[-1]] = Host(names[-1], labels, offer.host.allocatable, offer.host.taints)
        wanted: dict[str, list[Pod]] = {}
        for pods, row in zip(self.world.classes, self._x, strict=True):
            left = list(pods)
            for name, at in zip(names, row, strict=True):
                for _ in range(int(values[at])):
                    wanted.setdefault(name, []).append(left.pop())
        to_come = tuple(offer.host for offer in self.world.every)
        seen = self.world.seen
        return Cluster(hosts, to_come, seen.volumes, seen.volume_claims), wanted

    # What holds.

    def _everybody(self) -> None:
        for one, number in enumerate(self.waiting):
            self._model.most(((at, 1.0) for at in self._x[one]), number)
            for at, mark in zip(self._x[one], self._m[one], strict=True):
                self._model.most([(at, 1.0), (mark, -float(number))], 0)
                self._model.most([(mark, 1.0), (at, -1.0)], 0)
            for place, host in enumerate(self.world.hosts):
                if not self.world.accepts(self._pods[one], host):
                    self._model.upper[self._x[one][place]] = 0

    def _rooms(self) -> None:
        names = sorted({name for pod in self._pods for name, amount in pod.shape.requests if amount})
        for name in names:
            asked = [float(pod.requests.get(name, 0)) for pod in self._pods]
            unit = max(asked)
            for place in range(self._places):
                used = [(row[place], amount / unit) for row, amount in zip(self._x, asked, strict=True)]
                if place < self._slots:
                    host = self.world.hosts[place]
                    free = host.allocatable.get(name, 0) - sum(pod.requests.get(name, 0) for pod in host.pods)
                    self._model.most(used, max(0, free) / unit)
                else:
                    room = [
                        (at, -offer.kind.allocatable.get(name, 0) / unit)
                        for at, offer in zip(self._z[place - self._slots], self.world.offers, strict=True)
                    ]
                    self._model.most([*used, *room], 0)

    def _nodes(self) -> None:
        """Each new node is one thing, is led by its class, and takes who is accepted there."""
        accepted = [
            [self.world.accepts(pod, offer.host) for offer in self.world.offers] for pod in self._pods
        ]
        for node, (leader, made) in enumerate(zip(self._led, self._z, strict=True)):
            place = self._slots + node
            self._model.most([*((at, 1.0) for at in made), (self._m[leader][place], -1.0)], 0)
            for one, number in enumerate(self.waiting):
                if one < leader:
                    self._model.upper[self._x[one][place]] = 0
                    continue
                fitting = [(at, -float(number)) for at, yes in zip(made, accepted[one], strict=True) if yes]
                self._model.most([(self._x[one][place], 1.0), *fitting], 0)
                marks = [(at, -1.0) for at, yes in zip(made, accepted[one], strict=True) if yes]
                self._model.most([(self._m[one][place], 1.0), *marks], 0)
            if node and self._led[node - 1] == leader:
                before = [(at, -(number + 1.0)) for number, at in enumerate(self._z[node - 1])]
                self._model.most([*((at, number + 1.0) for number, at in enumerate(made)), *before], 0)

    def _limits(self) -> None:
        named = {kind.name: kind for kind in self.world.types}
        for own in self.world.seen.pools.values():
            living: list[Resources] = [
                node.capacity
                for node in self.world.seen.nodes.values()
                if node.labels.get(PROVISIONER_NAME) == own.name
            ]
            living += [
                named[next(iter(claim.requirements[INSTANCE_TYPE].values))].capacity
                for claim in self.world.seen.claims.values()
                if claim.pool.name == own.name
            ]
            for name, limit in (own.limits or {}).items():
                used = len(living) if name == "nodes" else sum(one.get(name, 0) for one in living)
                unit = max(float(limit), 1.0)
                charged = [
                    (at, (1.0 if name == "nodes" else float(offer.kind.capacity.get(name, 0))) / unit)
                    for made in self._z
                    for at, offer in zip(made, self.world.offers, strict=True)
                    if offer.pool is own
                ]
                if charged:
                    self._model.most(charged, max(0, limit - used) / unit)

    def _ports(self, one: int) -> None:
        mine = {(port.port, port.protocol) for port in self._pods[one].shape.host_ports}
        if not mine:
            return
        for other in range(one, len(self._pods)):
            if mine & {(port.port, port.protocol) for port in self._pods[other].shape.host_ports}:
                for place in range(self._places):
                    self._apart(
                        (self._x[one][place], self._m[one][place]), self._m[other][place], one == other
                    )

    def _apart(self, mine: tuple[int, int], others: int, itself: bool) -> None:
        if itself:
            self._model.most([(mine[0], 1.0)], 1)
        else:
            self._model.most([(mine[1], 1.0), (others, 1.0)], 1)

    # Domains.

    def _value(self, axis: Axis, host: Host) -> str | None:
        key, spreads = axis
        if spreads is None:
            return host.labels.get(key)
        pod = self._pods[spreads]
        part = next(one for one in _hard(pod) if one.topology_key == key)
        if any(one.topology_key != HOSTNAME and one.topology_key not in host.labels for one in _hard(pod)):
            return None
        if part.node_affinity_policy == "Honor" and not accepts(pod, host):
            return None
        if part.node_taints_policy == "Honor" and not tolerates(pod.shape.tolerations, host.taints):
            return None
        return host.labels.get(key)

    def _domains(self, axis: Axis) -> list[str]:
        """The values on an axis of what is there and of what pools could make."""
        there = {self._value(axis, host) for host in self.world.hosts}
        to_come = {self._value(axis, offer.host) for offer in self.world.every}
        return sorted(value for value in there | to_come if value is not None)

    def _in(self, one: int, axis: Axis, domain: str) -> tuple[int, int]:
        """The variables of a class in a domain: how many pods, and whether any."""
        if axis[0] == HOSTNAME:
            return self._x[one][int(domain)], self._m[one][int(domain)]
        if (one, axis, domain) not in self._inside:
            for each in self._domains(axis):
                number = self._model.variable(self.waiting[one])
                mark = self._model.variable()
                self._inside[one, axis, each] = (number, mark)
                self._model.most([(number, 1.0), (mark, -float(self.waiting[one]))], 0)
                self._model.most([(mark, 1.0), (number, -1.0)], 0)
            counted: dict[str, list[int]] = {each: [] for each in self._domains(axis)}
            for place, host in enumerate(self.world.hosts):
                value = self._value(axis, host)
                if value is not None:
                    counted[value].append(self._x[one][place])
            values = [self._value(axis, offer.host) for offer in self.world.offers]
            for node, made in enumerate(self._z):
                if self._led[node] > one:
                    continue
                parts = []
                for each in {*values}:
                    part = self._model.variable(self.waiting[one])
                    parts.append((part, -1.0))
                    some = [
                        (at, -float(self.waiting[one]))
                        for at, value in zip(made, values, strict=True)
                        if value == each
                    ]
                    self._model.most([(part, 1.0), *some], 0)
                    if each is not None:
                        counted[each].append(part)
                self._model.row([(self._x[one][self._slots + node], 1.0), *parts], 0, 0)
            for each, some in counted.items():
                number = self._inside[one, axis, each][0]
                self._model.row([(number, 1.0), *((at, -1.0) for at in some)], 0, 0)
        return self._inside[one, axis, domain]

    def _each(self, key: str) -> Iterator[tuple[str, list[Pod]]]:
        """The domains of a topology key, with the pods that run there."""
        if key == HOSTNAME:
            for place in range(self._places):
                yield str(place), self.world.hosts[place].pods if place < self._slots else []
            return
        for domain in self._domains((key, None)):
            yield (
                domain,
                [pod for host in self.world.hosts if host.labels.get(key) == domain for pod in host.pods],
            )

    def _selected(self, owner: Pod, term: PodAffinityTerm | TopologySpreadConstraint) -> list[int]:
        return [one for one, pod in enumerate(self._pods) if _selects(owner, term, pod)]

    def _anti_affinity(self, one: int) -> None:
        pod = self._pods[one]
        for term in _required(pod.shape.anti_affinity):
            selected = self._selected(pod, term)
            for domain, running in self._each(term.topology_key):
                mine = self._in(one, (term.topology_key, None), domain)
                if any(_selects(pod, term, other) for other in running):
                    self._model.most([(mine[0], 1.0)], 0)
                for other in selected:
                    theirs = self._in(other, (term.topology_key, None), domain)
                    self._apart(mine, theirs[1], one == other)
        for host in self.world.hosts:
            for other in host.pods:
                for term in _required(other.shape.anti_affinity):
                    if not _selects(other, term, pod):
                        continue
                    if term.topology_key == HOSTNAME:
                        self._model.upper[self._x[one][self.world.hosts.index(host)]] = 0
                    elif term.topology_key in host.labels:
                        domain = host.labels[term.topology_key]
                        self._model.most([(self._in(one, (term.topology_key, None), domain)[0], 1.0)], 0)

    def _affinity(self, one: int) -> None:
        pod = self._pods[one]
        for term in _required(pod.shape.affinity):
            key = term.topology_key
            selected = self._selected(pod, term)
            there = {
                domain: any(_selects(pod, term, other) for other in running)
                for domain, running in self._each(key)
            }
            begins = self._begin(pod, term) if one in selected and not any(there.values()) else {}
            for domain, _ in self._each(key):
                mine = self._in(one, (key, None), domain)
                if there[domain]:
                    continue
                support = [(begins[domain], -1.0)] if begins else []
                for other in selected:
                    if other != one:
                        joined = self._model.variable()
                        theirs = self._in(other, (key, None), domain)
                        self._model.most([(joined, 1.0), (theirs[1], -1.0)], 0)
                        self._later(one, other, key, domain, joined)
                        support.append((joined, -1.0))
                self._model.most([(mine[1], 1.0), *support], 0)
            self._nowhere_else(one, key)

    def _begin(self, pod: Pod, term: PodAffinityTerm) -> dict[str, int]:
        """Where the group begins of which nobody runs: in one domain."""
        memo = (pod.namespace, term)
        if memo not in self._begins:
            self._begins[memo] = {
                domain: self._model.variable() for domain, _ in self._each(term.topology_key)
            }
            self._model.most(((at, 1.0) for at in self._begins[memo].values()), 1)
        return self._begins[memo]

    def _later(self, one: int, other: int, key: str, domain: str, joined: int) -> None:
        """Where one joins the other in a domain, the other was there first."""
        most = float(len(self.waiting))
        steps = [
            self._steps.setdefault((each, key, domain), self._model.variable(most, whole=False))
            for each in (one, other)
        ]
        self._model.most([(steps[1], 1.0), (steps[0], -1.0), (joined, most + 1)], most)

    def _nowhere_else(self, one: int, key: str) -> None:
        """No pod of a class on nodes without a label."""
        if key != HOSTNAME:
            inside = [(self._in(one, (key, None), domain)[0], -1.0) for domain in self._domains((key, None))]
            self._model.most([*((at, 1.0) for at in self._x[one]), *inside], 0)

    def _spread(self, one: int) -> None:
        pod = self._pods[one]
        for constraint in _hard(pod):
            selected, skew = self._selected(pod, constraint), constraint.max_skew
            spare = float(sum(self.waiting)) + 50
            axis: Axis = (constraint.topology_key, one)
            if constraint.topology_key == HOSTNAME:
                for place in range(self._places):
                    running = self.world.hosts[place].pods if place < self._slots else []
                    there = sum(_selects(pod, constraint, other) for other in running)
                    counted = [(self._x[other][place], 1.0) for other in selected]
                    self._model.most([*counted, (self._m[one][place], spare)], skew - there + spare)
                continue
            domains = self._domains(axis)
            least = self._model.variable(1000 if len(domains) >= (constraint.min_domains or 1) else 0)
            for domain in domains:
                there = sum(
                    _selects(pod, constraint, other)
                    for host in self.world.hosts
                    if self._value(axis, host) == domain
                    for other in host.pods
                )
                counted = [(self._in(other, axis, domain)[0], 1.0) for other in selected]
                self._model.most([(least, 1.0), *((at, -1.0) for at, _ in counted)], there)
                mine = self._in(one, axis, domain)
                self._model.most([*counted, (least, -1.0), (mine[1], spare)], skew - there + spare)
            inside = [(self._in(one, axis, domain)[0], -1.0) for domain in domains]
            self._model.most([*((at, 1.0) for at in self._x[one]), *inside], 0)


def _selects(owner: Pod, term: PodAffinityTerm | TopologySpreadConstraint, other: Pod) -> bool:
    return owner.namespace == other.namespace and matches(term.selector, other.labels)
