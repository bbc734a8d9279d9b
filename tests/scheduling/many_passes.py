"""A cluster that goes through many passes on virtual time, judged by kube-scheduler's filters.

A `World` holds what the controller sees: pods, pools, claims in every state, nodes. `look` makes a pass and
checks what it promises; `launch`, `register`, `ready`, `fail` and `vanish` are what becomes of claims and
nodes; `bind` is kube-scheduler, which puts a pod on any node that its filters let it on (`scheduler`),
wherever the plan meant it to be.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random

from nodeless.launch.claims import claims_for
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    PLANNED_PODS,
    PROVISIONER_NAME,
    REGISTERED,
    ZONE,
)
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.pods import DaemonSet, Pod
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirements
from nodeless.model.resources import Resources, total
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint
from nodeless.model.volumes import PersistentVolumeClaim, Volume
from nodeless.scheduling import Policy, solve
from nodeless.state.expected import claims_to_note
from tests.scheduling.factories import running, snapshot
from tests.scheduling.scheduler import Cluster, Host, accepts, binding_order, matches, tolerates

#: How many passes in a row may buy though nothing has changed, of a process that knows nothing of its claims.
MOST_AGAIN = 2
#: The taint of a node whose kubelet has just come up.
_STARTING = Taint("node.kubernetes.io/not-ready", "NoSchedule")


@dataclass
class World:
    """A cluster on virtual time. Everything that happens is one of its methods."""

    pools: dict[str, Pool]
    types: tuple[InstanceType, ...]
    packing: str
    chance: Random
    mixed: bool = False
    """Rules may count pods of workloads that have other rules, or none."""
    noted: bool = True
    """Claims name the pods that passes put there."""
    remembered: bool = True
    """The process that plans remembers its last pass; otherwise each pass is a new leader's first one."""
    now: float = 1_700_000_000.0
    pods: dict[str, Pod] = field(default_factory=dict)
    daemon_sets: dict[str, DaemonSet] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    claims: dict[str, NodeClaim] = field(default_factory=dict)
    volumes: list[Volume | PersistentVolumeClaim] = field(default_factory=list)
    plans_of: dict[str, PlannedNode] = field(default_factory=dict)
    """Planned nodes by the names of their claims."""
    homes: dict[str, str] = field(default_factory=dict)
    """Pods to the claims that they were last promised."""
    settled: frozenset[str] | None = None
    """The pods refused by the last pass, while nothing has happened since that could change a plan."""
    eased: bool = False
    """Whether there is room since for pods that were refused.

    A claim has become a smaller instance than its pool's limits were charged for, or nodes that were bought
    get a DaemonSet's pods for which such a pod waits.
    """
    bought: int = 0
    again: int = 0
    """How many passes in a row have bought though nothing had changed."""

    @property
    def pending(self) -> list[Pod]:
        return [pod for _, pod in sorted(self.pods.items()) if not pod.node_name]

    def seen(self) -> Snapshot:
        there = [*self.pods.values(), *self.pools.values(), *self.nodes.values(), *self.claims.values()]
        return snapshot(there, list(self.daemon_sets.values()), self.volumes)

    def add(self, pods: Iterable[Pod]) -> None:
        self.pods.update({pod.key: pod for pod in pods})
        self.settled = None

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.pods.pop(key, None)
        self.settled = None

    def look(self, *, written: bool = True) -> Plan:
        """One pass: what it plans is checked, and written as claims unless all writes fail."""
        self.now += 10
        self._start_daemons()
        before = self.seen()
        plan = solve(before, dict.fromkeys(self.pools, self.types), self.policy)
        self._checked(before, plan)
        if written:
            for name, note in claims_to_note(before, plan.placements).items() if self.noted else ():
                claim = self.claims[name]
                self.claims[name] = replace(claim, annotations={**claim.annotations, PLANNED_PODS: note})
            creates = claims_for(
                plan,
                self.pools,
                self.now,
                taken=frozenset(self.claims),
                pods=before.pods if self.noted else None,
            )
            for create, new in zip(creates, plan.new_nodes, strict=True):
                self.claims[create.claim.name] = create.claim
                self.plans_of[create.claim.name] = new
                self.homes.update(dict.fromkeys(new.pods, create.claim.name))
            self.bought += len(plan.new_nodes)
            self.homes.update(plan.placements)
            self.settled = frozenset(refusal.pod for refusal in plan.refusals)
            self.eased = bool(plan.new_nodes) and any(
                _near_daemons_in_a_domain(before.pods[key], before) for key in self.settled
            )
        return plan

    @property
    def policy(self) -> Policy:
        return Policy(packing=self.packing, time_box=0, places=self.homes if self.remembered else {})

    # What becomes of claims and nodes.

    def unlaunched(self) -> list[str]:
        return sorted(name for name, claim in self.claims.items() if not claim.provider_id)

    def unregistered(self) -> list[str]:
        return sorted(
            name for name, claim in self.claims.items() if claim.provider_id and name not in self.nodes
        )

    def booting(self) -> list[str]:
        return sorted(name for name, node in self.nodes.items() if INITIALIZED not in node.labels)

    def launch(self, name: str, which: int) -> None:
        """The claim gets an instance, of any of its types."""
        claim, new = self.claims[name], self.plans_of[name]
        chosen = new.alternatives[which % len(new.alternatives)]
        kind = self._named(chosen.instance_type)
        if self.pools[str(claim.pool)].limits and kind.capacity != self._largest(new):
            self.eased = True
        self.claims[name] = replace(
            claim,
            provider_id=f"aws:///{chosen.offering.zone}/i-{name}",
            labels={**claim.labels, **_bought(kind, chosen.offering)},
            capacity=kind.capacity,
            allocatable=kind.allocatable,
        )

    def register(self, name: str) -> None:
        """The instance's node joins; what it allocates shows later."""
        claim = self.claims[name]
        self.claims[name] = replace(claim, node_name=name)
        self.nodes[name] = Node(
            name=name,
            provider_id=claim.provider_id,
            labels={**claim.labels, REGISTERED: "true"},
            taints=(*claim.taints, _STARTING),
            allocatable=self.chance.choice([{}, claim.allocatable]),
            capacity=self.chance.choice([{}, claim.capacity]),
        )

    def ready(self, name: str) -> None:
        node, claim = self.nodes[name], self.claims[name]
        self.nodes[name] = replace(
            node,
            labels={**node.labels, INITIALIZED: "true"},
            taints=claim.taints,
            allocatable=claim.allocatable,
            capacity=claim.capacity,
        )

    def fail(self, name: str) -> None:
        """A claim comes to nothing."""
        self.claims.pop(name, None)
        self.settled = None

    def vanish(self, name: str) -> None:
        """A node is gone with its claim; its pods wait again."""
        self.claims.pop(name, None)
        self.nodes.pop(name, None)
        for key, pod in list(self.pods.items()):
            if pod.node_name == name and pod.owned_by_daemon_set:
                del self.pods[key]
            elif pod.node_name == name:
                self.pods[key] = replace(pod, node_name="", phase="Pending", unschedulable=True)
        self.settled = None

    # kube-scheduler.

    def cluster(self, seen: Snapshot | None = None) -> Cluster:
        """The nodes on which pods may be bound now, with those on them."""
        seen = seen or self.seen()
        hosts = {name: _host(node) for name, node in sorted(seen.nodes.items()) if INITIALIZED in node.labels}
        for _, pod in sorted(seen.pods.items()):
            if pod.node_name in hosts:
                hosts[pod.node_name].pods.append(pod)
        return Cluster(hosts, volumes=seen.volumes, volume_claims=seen.volume_claims)

    def bind(self, *, as_planned: bool) -> int:
        """Pods get nodes one after the other, in any order, until none may have one; how many did.

        `as_planned`: each only goes where the last pass meant it to be.
        """
        self._start_daemons()
        cluster = self.cluster()
        bound = 0
        waiting = self.pending
        self.chance.shuffle(waiting)
        progress = True
        while progress:
            progress = False
            for pod in list(waiting):
                names = [self.homes.get(pod.key, "")] if as_planned else sorted(cluster.hosts)
                names = [
                    name
                    for name in names
                    if name in cluster.hosts and cluster.obstacle(pod, cluster.hosts[name]) is None
                ]
                if names:
                    name = self.chance.choice(names)
                    self.pods[pod.key] = replace(running(pod, name), namespace=pod.namespace)
                    cluster.hosts[name].pods.append(self.pods[pod.key])
                    waiting.remove(pod)
                    bound += 1
                    progress = True
        if bound and not as_planned:
            self.settled = None
        return bound

    def settle(self, rounds: int = 30, *, as_planned: bool = False) -> None:
        """Everything that is under way comes about, pass after pass, until nothing changes.

        Pods are bound in any order, wherever they may, or `as_planned`.

        Raises:
            AssertionError: There is no end to it.
        """
        for _ in range(rounds):
            plan = self.look()
            for name in self.unlaunched():
                self.launch(name, self.chance.randrange(60))
            for name in self.unregistered():
                self.register(name)
            for name in self.booting():
                self.ready(name)
            if not self.bind(as_planned=as_planned) and not plan.new_nodes:
                return
        raise AssertionError(f"no end after {rounds} passes: {self.bought} nodes for {len(self.pods)} pods")

    # What a pass must keep.

    def _checked(self, before: Snapshot, plan: Plan) -> None:
        refused = {refusal.pod for refusal in plan.refusals}
        waiting = {pod.key for pod in self.pending}
        placed = [*plan.placements, *(key for new in plan.new_nodes for key in new.pods)]
        assert sorted([*placed, *refused]) == sorted(waiting), "each pod is placed once or refused once"
        if self.settled is None:
            self.again = 0
        else:
            more = [
                (new.pods, new.instance_type)
                for new in plan.new_nodes
                if not (self.eased and self.settled.issuperset(new.pods))
            ]
            self.again = self.again + 1 if more else 0
            # Where nothing tells what claims were planned for, the plan is searched for anew, without proof.
            allowed = 0 if self.noted or self.remembered else MOST_AGAIN
            assert self.again <= allowed, f"bought again: {more}; in flight: {sorted(self.claims)}"
            # Claims that do not tell their pods may be for others as well, where not all can have room.
            if self.remembered:
                assert refused <= self.settled, f"refused now: {refused - self.settled}"
        for which in (0, -1, self.chance.randrange(60)):
            self._bindable(before, plan, which)
        self._refused_with_reason(before, plan)

    def _bindable(self, before: Snapshot, plan: Plan, which: int) -> None:
        """Every pod can be bound where it is meant to be, in any order that the rules allow.

        Where rules count pods of workloads that have other rules, or none, the order matters to
        kube-scheduler as well: there some order will do.
        """
        tries = 3 if self.mixed else 1
        for _ in range(tries):
            cluster, wanted = self.carried_out(before, plan, which)
            waiting = [(pod, name) for name, some in sorted(wanted.items()) for pod in some]
            self.chance.shuffle(waiting)
            waiting = _bound_as_far_as_possible(cluster, waiting)
            if not waiting:
                return
        stuck = {f"{pod.key} on {name}": cluster.obstacle(pod, cluster.hosts[name]) for pod, name in waiting}
        cluster, wanted = self.carried_out(before, plan, which)
        assert self.mixed and binding_order(cluster, wanted, patience=2000) is not None, stuck

    def carried_out(self, before: Snapshot, plan: Plan, which: int) -> tuple[Cluster, dict[str, list[Pod]]]:
        """Every node and claim up, as one of its types each; and the pods meant for them."""
        hosts = {name: _host(node) for name, node in sorted(before.nodes.items())}
        for name, claim in sorted(before.claims.items()):
            self._finish(hosts, name, claim, which)
        for _, pod in sorted(before.pods.items()):
            if pod.node_name:
                hosts[pod.node_name].pods.append(pod)
        wanted: dict[str, list[Pod]] = {}
        for key, name in plan.placements.items():
            wanted.setdefault(name, []).append(before.pods[key])
        creates = claims_for(plan, self.pools, self.now, taken=frozenset(self.claims))
        for create, new in zip(creates, plan.new_nodes, strict=True):
            name = create.claim.name
            hosts[name] = self._as(name, create.claim, new, which)
            wanted[name] = [before.pods[key] for key in new.pods]
        cluster = Cluster(hosts, volumes=before.volumes, volume_claims=before.volume_claims)
        for host in hosts.values():
            host.pods.extend(self._daemons_to_come(host))
        return cluster, wanted

    def _daemons_to_come(self, host: Host) -> Iterator[Pod]:
        there = {pod.key for pod in host.pods}
        for key, one in self.daemon_sets.items():
            pod = Pod(key, one.namespace, f"{one.name}-{host.name}", one.shape, labels=one.labels)
            if pod.key not in there and accepts(pod, host) and tolerates(one.shape.tolerations, host.taints):
                yield running(pod, host.name, daemon_set=one.name)

    def _start_daemons(self) -> None:
        """Nodes that are up get the pods of their DaemonSets, where there is room."""
        cluster = self.cluster()
        for host in cluster.hosts.values():
            for pod in list(self._daemons_to_come(host)):
                if cluster.obstacle(pod, host) is None:
                    self.pods[pod.key] = pod
                    host.pods.append(pod)

    def _finish(self, hosts: dict[str, Host], name: str, claim: NodeClaim, which: int) -> None:
        if name in hosts and hosts[name].labels.get(INITIALIZED):
            return
        if not claim.provider_id:
            hosts[name] = self._as(name, claim, self.plans_of[name], which)
            return
        pods = hosts[name].pods if name in hosts else []
        hosts[name] = Host(name, claim.labels, claim.allocatable, claim.taints, pods=pods)

    def _as(self, name: str, claim: NodeClaim, new: PlannedNode, which: int) -> Host:
        chosen = new.alternatives[which % len(new.alternatives)]
        kind = self._named(chosen.instance_type)
        labels = {**claim.labels, **_bought(kind, chosen.offering)}
        return Host(name, labels, kind.allocatable, claim.taints)

    def _named(self, name: str) -> InstanceType:
        return next(kind for kind in self.types if kind.name == name)

    def _refused_with_reason(self, before: Snapshot, plan: Plan) -> None:
        """No refused pod fits on a node as the plan leaves it, or on one more that some pool could make."""
        cluster, wanted = self.carried_out(before, plan, 0)
        for name, some in wanted.items():
            cluster.hosts[name].pods.extend(some)
        candidates = list(self._for_sale())
        world = replace(cluster, to_come=tuple(host for _, _, host in candidates))
        refused = {before.pods[refusal.pod].shape: before.pods[refusal.pod] for refusal in plan.refusals}
        for pod in refused.values():
            if _undecided(pod, plan, before):
                continue
            for own, kind, host in candidates:
                if self._affordable(before, plan, own, kind):
                    alone = replace(host, pods=list(self._daemons_to_come(host)))
                    made = replace(world, hosts={**world.hosts, alone.name: alone})
                    keeps_off = made.obstacle(pod, alone) is not None
                    assert keeps_off or not self._has_room(pod, own, kind, candidates), (
                        f"a {host.name} would take {pod.key}: "
                        f"{next(str(each) for each in plan.refusals if each.pod == pod.key)}"
                    )

    def _has_room(
        self, pod: Pod, own: Pool, kind: InstanceType, candidates: Sequence[tuple[Pool, InstanceType, Host]]
    ) -> bool:
        """Whether a type has room for a pod beside every daemon that may come to one of its nodes.

        Room is counted for a type, wherever its node is and whatever it is labeled.
        """
        hosts = [host for pool, other, host in candidates if pool is own and other is kind]
        places = {(host.labels[ZONE], host.labels[CAPACITY_TYPE]) for _, _, host in candidates}
        daemons = {
            daemon.owners[0].name: daemon
            for host, (zone, capacity_type) in product(hosts, sorted(places))
            for daemon in self._daemons_to_come(
                replace(host, labels={**host.labels, ZONE: zone, CAPACITY_TYPE: capacity_type})
            )
        }
        requested = total(dict(each.shape.requests) for each in (pod, *daemons.values()))
        return all(kind.allocatable.get(name, 0) >= amount for name, amount in requested.items())

    def _for_sale(self) -> Iterator[tuple[Pool, InstanceType, Host]]:
        """Every node that any pool could make, limits apart; labels with several values once for each."""
        for own, kind in product(self.pools.values(), self.types):
            custom = {
                key: sorted(requirement.values)
                for key, requirement in own.requirements.items()
                if key.startswith("example.com/") and not requirement.complement
            }
            for offering, values in product(kind.offerings, product(*custom.values())):
                labels = {
                    **_bought(kind, offering),
                    **dict(zip(custom, values, strict=True)),
                    PROVISIONER_NAME: own.name,
                }
                if offering.for_sale and own.requirements.satisfied_by(labels):
                    name = "-".join((own.name, kind.name, offering.zone, offering.capacity_type, *values))
                    yield own, kind, Host(name, labels, kind.allocatable, own.taints)

    def _affordable(self, before: Snapshot, plan: Plan, own: Pool, kind: InstanceType) -> bool:
        used: list[Resources] = []
        for claim in before.claims.values():
            if claim.pool == own.reference:
                used.append(claim.capacity or self._largest(self.plans_of[claim.name]))
        used += [self._largest(new) for new in plan.new_nodes if new.pool == own.reference]
        for name, limit in (own.limits or {}).items():
            more = 1 if name == "nodes" else kind.capacity[name]
            if more + (len(used) if name == "nodes" else sum(one[name] for one in used)) > limit:
                return False
        return True

    def _largest(self, new: PlannedNode) -> Resources:
        capacities = [self._named(each.instance_type).capacity for each in new.alternatives]
        return {name: max(one[name] for one in capacities) for name in capacities[0]}


def _bound_as_far_as_possible(cluster: Cluster, waiting: list[tuple[Pod, str]]) -> list[tuple[Pod, str]]:
    """Bind pods to the hosts meant for them, again and again in their order; those that are left."""
    progress = True
    while waiting and progress:
        left = []
        for pod, name in waiting:
            if cluster.obstacle(pod, cluster.hosts[name]) is None:
                cluster.hosts[name].pods.append(pod)
            else:
                left.append((pod, name))
        progress = len(left) < len(waiting)
        waiting = left
    return waiting


def _host(node: Node) -> Host:
    return Host(node.name, node.labels, node.allocatable, node.taints, node.unschedulable)


def _bought(kind: InstanceType, offering: Offering) -> dict[str, str]:
    return {
        **kind.requirements.single_values(),
        INSTANCE_TYPE: kind.name,
        ZONE: offering.zone,
        CAPACITY_TYPE: offering.capacity_type,
    }


def _near_daemons_in_a_domain(pod: Pod, seen: Snapshot) -> bool:
    """Whether a pod must be in a zone, or other domain, in which a DaemonSet has a pod."""
    return any(
        term.topology_key != HOSTNAME and term.weight is None and matches(term.selector, daemon.labels)
        for term in pod.shape.affinity
        for daemon in seen.daemon_sets.values()
    )


def _undecided(pod: Pod, plan: Plan, before: Snapshot) -> bool:
    """Whether it is open in which domain a node to come will be that rules of a pod look at.

    Such a pod may have to wait until that node is launched. So may one that asks for a DaemonSet's pod in its
    zone: those of the nodes of a pass are counted by the next one.
    """
    if plan.new_nodes and _near_daemons_in_a_domain(pod, before):
        return True
    spread = [one for one in pod.shape.spread if one.when_unsatisfiable == "DoNotSchedule"]
    keys = {one.topology_key for one in (*spread, *pod.shape.affinity, *pod.shape.anti_affinity)} - {HOSTNAME}
    if spread:
        keys |= {one.key for each in pod.shape.required_terms for one in each.expressions}
        keys |= {key for key, _ in pod.shape.node_selector}
    to_come: list[Requirements] = [new.requirements for new in plan.new_nodes]
    to_come += [claim.requirements for claim in before.claims.values() if not claim.provider_id]
    return any(keys - known.single_values().keys() for known in to_come)
