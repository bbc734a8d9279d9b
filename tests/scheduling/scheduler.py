"""kube-scheduler's filters, written from their documentation and without the solver's code.

A `Cluster` holds hosts with the pods bound to them; `Cluster.obstacle` says why a pod may not be bound to a
host now. The filters: NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit,
VolumeBinding, VolumeRestrictions, PodTopologySpread, InterPodAffinity. `binding_order` looks for an order in
which all pods of a plan can be bound one by one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodeless.model.labels import HOSTNAME
from nodeless.model.pods import (
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from nodeless.model.requirements import Requirement
from nodeless.model.resources import Resources
from nodeless.model.taints import Taint, TaintEffect, Toleration
from nodeless.model.volumes import PersistentVolumeClaim, Volume

ANY_ADDRESS = ("", "0.0.0.0", "::")


@dataclass
class Host:
    """A node that is up, with the pods bound to it."""

    name: str
    labels: Mapping[str, str]
    allocatable: Resources
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    pods: list[Pod] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.labels = {HOSTNAME: self.name, **self.labels}


@dataclass
class Cluster:
    """Hosts; `to_come` are nodes without pods that only count as domains of topology spread."""

    hosts: dict[str, Host]
    to_come: tuple[Host, ...] = ()
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    volume_claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)

    def obstacle(self, pod: Pod, host: Host) -> str | None:
        """The filter that keeps a pod off a host, or None."""
        rules = (
            ("topology spread", self._spread),
            ("affinity", self._affinity),
            ("anti-affinity", self._anti_affinity),
            ("anti-affinity of others", self._not_repelled),
        )
        plain = self.plain_obstacle(pod, host)
        return plain or next((name for name, passes in rules if not passes(pod, host)), None)

    def plain_obstacle(self, pod: Pod, host: Host) -> str | None:
        """The same, what pods mean to each other left out."""
        if host.cordoned:
            return "unschedulable"
        if not _fits(pod, host):
            return "resources"
        if not tolerates(pod.shape.tolerations, host.taints):
            return "taints"
        checks = (
            ("node affinity", accepts),
            ("host ports", _ports_free),
            ("volumes", self._reachable),
            ("volume restrictions", self._not_in_use),
        )
        return next((name for name, passes in checks if not passes(pod, host)), None)

    def _reachable(self, pod: Pod, host: Host) -> bool:
        """VolumeBinding: each volume that is bound already can be reached from the host."""
        claims = [self.volume_claims.get(f"{pod.namespace}/{name}") for name in pod.shape.claims]
        return all(
            claim is not None
            and claim.volume_name in self.volumes
            and _any_term(self.volumes[claim.volume_name].terms, host)
            for claim in claims
        )

    def _not_in_use(self, pod: Pod, host: Host) -> bool:
        """VolumeRestrictions: no pod on any host uses a claim of the pod that is ReadWriteOncePod."""
        own = [f"{pod.namespace}/{name}" for name in pod.shape.claims]
        alone = {key for key in own if key in self.volume_claims and self.volume_claims[key].one_pod}
        return not alone or not any(
            f"{other.namespace}/{name}" in alone
            for _, other in self._bound()
            for name in other.shape.claims
            if other.key != pod.key
        )

    def _bound(self) -> Iterable[tuple[Host, Pod]]:
        return ((host, pod) for host in self.hosts.values() for pod in host.pods)

    def _spread(self, pod: Pod, host: Host) -> bool:
        hard = [one for one in pod.shape.spread if one.when_unsatisfiable == "DoNotSchedule"]
        return all(self._within_skew(one, hard, pod, host) for one in hard)

    def _within_skew(
        self,
        one: TopologySpreadConstraint,
        hard: Sequence[TopologySpreadConstraint],
        pod: Pod,
        host: Host,
    ) -> bool:
        if one.topology_key not in host.labels:
            return False
        counts: dict[str, int] = {}
        for other in (*self.hosts.values(), *self.to_come):
            if all(each.topology_key in other.labels for each in hard) and _takes_part(one, pod, other):
                value = other.labels[one.topology_key]
                counts.setdefault(value, 0)
                counts[value] += sum(_counted(one, pod, there) for there in other.pods)
        least = min(counts.values(), default=0) if len(counts) >= (one.min_domains or 1) else 0
        if one.topology_key == HOSTNAME and self.to_come:
            least = 0  # as Karpenter has it: another node can always come, and is empty
        there = counts.get(host.labels[one.topology_key], 0)
        return there + _counted(one, pod, pod) - least <= one.max_skew

    def _affinity(self, pod: Pod, host: Host) -> bool:
        terms = [term for term in pod.shape.affinity if term.weight is None]
        if not terms:
            return True
        if any(term.topology_key not in host.labels for term in terms):
            return False
        pairs = {
            (term.topology_key, other.labels[term.topology_key])
            for other, there in self._bound()
            if all(_meant(each, pod, there) for each in terms)
            for term in terms
            if term.topology_key in other.labels
        }
        if not pairs and all(_meant(term, pod, pod) for term in terms):
            return True
        return all((term.topology_key, host.labels[term.topology_key]) in pairs for term in terms)

    def _anti_affinity(self, pod: Pod, host: Host) -> bool:
        terms = [term for term in pod.shape.anti_affinity if term.weight is None]
        return not any(
            _meant(term, pod, there) and _same_domain(term.topology_key, host, other)
            for other, there in self._bound()
            for term in terms
        )

    def _not_repelled(self, pod: Pod, host: Host) -> bool:
        return not any(
            term.weight is None and _meant(term, there, pod) and _same_domain(term.topology_key, host, other)
            for other, there in self._bound()
            for term in there.shape.anti_affinity
        )


def _same_domain(key: str, one: Host, other: Host) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def _takes_part(one: TopologySpreadConstraint, pod: Pod, host: Host) -> bool:
    """Whether a node is one of those among which a constraint balances."""
    if one.node_affinity_policy == "Honor" and not accepts(pod, host):
        return False
    return one.node_taints_policy != "Honor" or tolerates(pod.shape.tolerations, host.taints)


def _counted(one: TopologySpreadConstraint, owner: Pod, other: Pod) -> bool:
    return (
        other.namespace == owner.namespace
        and other.deletion_timestamp is None
        and matches(one.selector, other.labels)
        and all(
            other.labels.get(key) == owner.labels[key] for key in one.match_label_keys if key in owner.labels
        )
    )


def _meant(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Whether a term of one pod speaks of another."""
    if not matches(term.selector, other.labels):
        return False
    own = not term.namespaces and term.namespace_selector is None and other.namespace == owner.namespace
    named = matches(term.namespace_selector, {"kubernetes.io/metadata.name": other.namespace})
    return own or named or other.namespace in term.namespaces


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    for key, value in selector.match_labels:
        if labels.get(key) != value:
            return False
    return all(
        _VERDICTS[operator](labels, key, values) for key, operator, values in selector.match_expressions
    )


_VERDICTS: Mapping[str, Callable[[Mapping[str, str], str, Sequence[str]], bool]] = {
    "In": lambda labels, key, values: labels.get(key) in values,
    "NotIn": lambda labels, key, values: labels.get(key) not in values,
    "Exists": lambda labels, key, _: key in labels,
    "DoesNotExist": lambda labels, key, _: key not in labels,
}


def accepts(pod: Pod, host: Host) -> bool:
    """Whether the node selector and the required node affinity of a pod accept a host."""
    if any(host.labels.get(key) != value for key, value in pod.shape.node_selector):
        return False
    terms = pod.shape.required_terms
    return not terms or any(
        bool(term.expressions) and all(_holds(one, host.labels) for one in term.expressions) for term in terms
    )


def _any_term(terms: Sequence[NodeSelectorTerm], host: Host) -> bool:
    return not terms or any(all(_holds(one, host.labels) for one in term.expressions) for term in terms)


def _holds(one: Requirement, labels: Mapping[str, str]) -> bool:
    if one.key not in labels:
        return one.allows_absence()
    return one.allows(labels[one.key])


def tolerates(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    hard = [taint for taint in taints if taint.effect != TaintEffect.PREFER_NO_SCHEDULE]
    return all(any(one.tolerates(taint) for one in tolerations) for taint in hard)


def _ports_free(pod: Pod, host: Host) -> bool:
    taken = [port for other in host.pods for port in other.shape.host_ports]
    return not any(
        want.port == have.port
        and want.protocol == have.protocol
        and (want.ip == have.ip or want.ip in ANY_ADDRESS or have.ip in ANY_ADDRESS)
        for want in pod.shape.host_ports
        for have in taken
    )


def _fits(pod: Pod, host: Host) -> bool:
    for name, amount in pod.shape.requests:
        used = sum(other.requests.get(name, 0) for other in host.pods)
        if amount and used + amount > host.allocatable.get(name, 0):
            return False
    return True


def binding_order(
    cluster: Cluster, wanted: Mapping[str, list[Pod]], patience: int | None = None
) -> list[tuple[str, str]] | None:
    """An order in which pods can be bound one by one to the hosts meant for them, or None.

    `wanted` maps a host's name to its pods. The cluster is left with all of them bound, or as it was. After
    `patience` dead ends the search is given up, and what it has is returned as if it were an order.
    """
    kinds: dict[tuple[object, ...], list[Pod]] = {}
    for name, pods in sorted(wanted.items()):
        for pod in pods:
            kind = (name, pod.namespace, pod.shape, tuple(sorted(pod.labels.items())))
            kinds.setdefault(kind, []).append(pod)
    groups = [(str(kind[0]), pods) for kind, pods in kinds.items()]
    dead: set[tuple[int, ...]] = set()
    order: list[tuple[str, str]] = []

    def bind(done: tuple[int, ...]) -> bool:
        if all(count == len(pods) for count, (_, pods) in zip(done, groups, strict=True)):
            return True
        if done in dead:
            return False
        if patience is not None and len(dead) > patience:
            return True
        for index, (name, pods) in enumerate(groups):
            if done[index] == len(pods):
                continue
            host, pod = cluster.hosts[name], pods[done[index]]
            if cluster.obstacle(pod, host) is None:
                host.pods.append(pod)
                order.append((pod.key, name))
                if bind((*done[:index], done[index] + 1, *done[index + 1 :])):
                    return True
                host.pods.pop()
                order.pop()
        dead.add(done)
        return False

    return order if bind((0,) * len(groups)) else None
