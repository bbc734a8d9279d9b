"""Other autoscalers that serve the same cluster, and what each may take from our pools.

Known are Cluster Autoscaler and Karpenter, by the images of their pods, and EKS Auto Mode, by its NodePools
and its nodes. A group or pool of theirs is a rival of a pool of ours where a pod can go to either: one that
asks for nothing, where both are without taints, or one that there is.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nodeless.api.rule_codes import RuleCode
from nodeless.explain.words import count, listed
from nodeless.model.labels import AUTO_MODE, COMPUTE_TYPE, HOSTNAME, WELL_KNOWN, canonical_key
from nodeless.model.labels import NODE_POOL as NODE_POOL_NAME
from nodeless.model.neighbors import CLUSTER_AUTOSCALER, KARPENTER
from nodeless.model.nodes import Node
from nodeless.model.pods import PodShape
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, TaintEffect, find_untolerated
from nodeless.model.workloads import workload_of

#: Reason of the event, and code of the warnings.
OTHER_AUTOSCALER = str(RuleCode.OTHER_AUTOSCALER)
#: How nodes say which group they are of: EKS' managed node groups, and eksctl's own.
_GROUP_LABELS = ("eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name")
#: EKS calls the Auto Scaling group of a managed node group `eks-NAME-UUID`.
_MANAGED = "eks-"
_SHOWN = 3
_HARD = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)
#: Marks of Cluster Autoscaler on a node that it is about to remove; no pod is kept off its group by them.
_ITS_TAINTS = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")


@dataclass(frozen=True, slots=True)
class Rivals:
    """What of a neighbor can take pods of one of our pools.

    Attributes:
        groups: Names of its groups or pools; none: it serves the pool itself, or they are not known.
        pods: How many of the pods there are, without those of daemons, can go to either.
    """

    groups: tuple[str, ...] = ()
    pods: int = 0


@dataclass(frozen=True, slots=True)
class Neighbor:
    """Another autoscaler of the cluster.

    Attributes:
        name: As people call it.
        sign: What it is known by.
        rivals: By the key of a pool of ours.
        groups: All of its groups or pools that are known.
        hint: What to do.
        leads_to: What comes of it where both serve the same pods.
    """

    name: str
    sign: str
    rivals: Mapping[str, Rivals]
    groups: tuple[str, ...]
    leads_to: str
    hint: str

    def about(self, pool: str) -> str:
        """One line about a pool of ours that it has rivals of."""
        return f"{self.finding(pool)}; hint: {self.hint}"

    def finding(self, pool: str) -> str:
        """The same without what to do."""
        rivals = self.rivals[pool]
        if rivals.groups:
            named = f"{self._word(len(rivals.groups))} {listed(rivals.groups, _SHOWN)}"
            what = f"its {named} can take pods of {pool}, too"
        elif self.shares_pools:
            what = f"it serves {pool} itself, too"
        else:
            what = f"whether its groups can take pods of {pool} is not known"
        return f"{self._begins()}: {what}; {self.leads_to}"

    def summary(self) -> str:
        """One line about all pools of ours, with how many of the pods there are can go to either."""
        return self._told(with_pods=True)

    def told(self) -> str:
        """The same without the pods, which come and go: it changes when groups or pools do."""
        return self._told(with_pods=False)

    def _told(self, *, with_pods: bool) -> str:
        if not self.rivals:
            return f"{self._begins()}: {self._none()}"
        rivals = (f"{pool}{self._rivals(self.rivals[pool], with_pods)}" for pool in sorted(self.rivals))
        told = ", ".join(rivals)
        does = "it can take pods of" if self.groups else "whether its groups can take pods is not known of"
        does = "it serves the same pools:" if self.shares_pools else does
        return f"{self._begins()}: {does} {told}; {self.leads_to}; hint: {self.hint}"

    def _begins(self) -> str:
        return f"{self.name} also serves this cluster ({self.sign})"

    @property
    def shares_pools(self) -> bool:
        """Whether it reads the very pools that we serve."""
        return self.name == KARPENTER_NAME

    def _none(self) -> str:
        if not self.groups:
            return "there is no pool of ours"
        word = self._word(len(self.groups))
        return f"its {word} {listed(self.groups, _SHOWN)} can take no pods of our pools"

    def _rivals(self, rivals: Rivals, with_pods: bool) -> str:
        pods = f", {count(rivals.pods, 'pod')} at present" if rivals.pods and with_pods else ""
        return f" ({listed(rivals.groups, _SHOWN)}{pods})" if rivals.groups else ""

    def _word(self, number: int) -> str:
        word = "pool" if self.name == AUTO_MODE_NAME else "node group"
        return word if number == 1 else f"{word}s"


AUTOSCALER_NAME, KARPENTER_NAME, AUTO_MODE_NAME = "Cluster Autoscaler", "Karpenter", "EKS Auto Mode"
_GUIDES = {
    CLUSTER_AUTOSCALER: "docs/guides/migrate-from-cluster-autoscaler.md",
    KARPENTER: "docs/guides/migrate-from-karpenter.md",
}
_BOTH_LAUNCH = "both launch nodes for the same pending pods, and pods that move empty the nodes of either"


def neighbors_of(snapshot: Snapshot) -> tuple[Neighbor, ...]:
    """The other autoscalers of a cluster, by name."""
    programs = _programs(snapshot)
    found = []
    if sign := programs.get(CLUSTER_AUTOSCALER):
        hint = (
            "use taints to separate its groups, fix their size, or scale it to 0 "
            f"({_GUIDES[CLUSTER_AUTOSCALER]})"
        )
        found.append(_neighbor(snapshot, AUTOSCALER_NAME, sign, _scaling_groups(snapshot), hint))
    if sign := _sign_of_auto_mode(snapshot):
        groups = [_group_of_pool(pool) for _, pool in sorted(snapshot.neighbor_pools.items())]
        hint = "separate its pools from those of nodeless with taints, or leave one of the two without pools"
        found.append(_neighbor(snapshot, AUTO_MODE_NAME, sign, groups, hint))
    if sign := programs.get(KARPENTER):
        pools = {pool.key: Rivals() for pool in _pools(snapshot)}
        leads_to = "both create NodeClaims for the same pods, and each terminates nodes of the other"
        hint = f"let one of the two run: scale the other's Deployment to 0 ({_GUIDES[KARPENTER]})"
        found.append(Neighbor(KARPENTER_NAME, sign, pools, (), leads_to, hint))
    return tuple(found)


def namespaces_of(snapshot: Snapshot, program: str) -> list[str]:
    """Where pods of another autoscaler run, by name."""
    pods = snapshot.pods.values()
    return sorted({pod.namespace for pod in pods if pod.program == program and not pod.terminal})


def neighbor_notes(snapshot: Snapshot) -> list[str]:
    """A line for each other autoscaler, with the code of the rule."""
    return [f"warning: {neighbor.summary()} [{OTHER_AUTOSCALER}]" for neighbor in neighbors_of(snapshot)]


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    labels: Requirements
    taints: tuple[Taint, ...]
    more: frozenset[str] | None
    """Other labels of which its nodes bear some value; None: nothing is known of them."""


def _programs(snapshot: Snapshot) -> dict[str, str]:
    """The autoscalers that run as pods, with the workloads that they are."""
    found: dict[str, set[str]] = {}
    for pod in snapshot.pods.values():
        if pod.program and not pod.terminal:
            found.setdefault(pod.program, set()).add(str(workload_of(pod)))
    return {program: listed(sorted(workloads), _SHOWN) for program, workloads in found.items()}


def _sign_of_auto_mode(snapshot: Snapshot) -> str:
    if snapshot.neighbor_pools:
        return (
            f"NodePool {listed([pool.name for _, pool in sorted(snapshot.neighbor_pools.items())], _SHOWN)}"
        )
    nodes = sorted(
        node.name for node in snapshot.nodes.values() if node.labels.get(COMPUTE_TYPE) == AUTO_MODE
    )
    return f"node {listed(nodes, _SHOWN)}" if nodes else ""


def _neighbor(snapshot: Snapshot, name: str, sign: str, groups: list[_Group], hint: str) -> Neighbor:
    counted: dict[PodShape, int] = {}
    for pod in snapshot.pods.values():
        if pod.occupies and not pod.shape.invalid:
            counted[pod.shape] = counted.get(pod.shape, 0) + 1
    rivals = {}
    for pool in _pools(snapshot):
        ours = _group_of_pool(pool)
        fits = {shape: number for shape, number in counted.items() if _can_go(shape, ours)}
        names, either = list[str](), set[PodShape]()
        for group in groups:
            shared = {shape for shape in fits if _can_go(shape, group)}
            if shared or not (_hard(ours.taints) or _hard(group.taints)):
                names.append(group.name)
                either |= shared
        if names or not groups:
            rivals[pool.key] = Rivals(tuple(names), sum(fits[shape] for shape in either))
    return Neighbor(name, sign, rivals, tuple(group.name for group in groups), _BOTH_LAUNCH, hint)


def _pools(snapshot: Snapshot) -> Iterator[Pool]:
    """Our pools of which nodes may be made."""
    for _, pool in sorted(snapshot.pools.items()):
        if not pool.invalid and pool.deletion_timestamp is None:
            yield pool


def _group_of_pool(pool: Pool) -> _Group:
    return _Group(pool.name, pool.requirements, pool.taints, None if pool.invalid else WELL_KNOWN)


def _scaling_groups(snapshot: Snapshot) -> list[_Group]:
    """The groups that Cluster Autoscaler may change: those that it names, and those that have nodes."""
    members: dict[str, list[Node]] = {}
    for _, node in sorted(snapshot.nodes.items()):
        name = next(filter(None, (node.labels.get(label) for label in _GROUP_LABELS)), "")
        if name and NODE_POOL_NAME not in node.labels:
            members.setdefault(name, []).append(node)
    found = [_group_of_nodes(name, nodes) for name, nodes in sorted(members.items())]
    for group in snapshot.autoscaler_groups:
        if not any(_is_named(group.name, name) for name in members):
            found.append(_Group(group.name, Requirements(), (), None))
    return found


def _is_named(scaling_group: str, node_group: str) -> bool:
    """Whether an Auto Scaling group is that of a node group."""
    return scaling_group == node_group or scaling_group.startswith(f"{_MANAGED}{node_group}-")


def _group_of_nodes(name: str, nodes: Iterable[Node]) -> _Group:
    """What the nodes of a group have in common; another one may bear any of the values that they bear."""
    values: dict[str, set[str]] = {}
    common: set[Taint] | None = None
    for node in nodes:
        for key, value in node.labels.items():
            if key != HOSTNAME:
                values.setdefault(canonical_key(key), set()).add(value)
        own = {taint for taint in _hard(node.taints) if not _passes(taint)}
        common = own if common is None else common & own
    labels = Requirements(Requirement(key, False, frozenset(known)) for key, known in values.items())
    return _Group(name, labels, tuple(sorted(common or ())), frozenset())


def _passes(taint: Taint) -> bool:
    """Whether a taint says how a node is, not what it is for."""
    return taint.key in _ITS_TAINTS or taint.key.startswith("node.kubernetes.io/")


def _hard(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints if taint.effect in _HARD)


def _can_go(shape: PodShape, group: _Group) -> bool:
    """Whether a group's nodes have what a pod asks of labels, and no taint against it."""
    if find_untolerated(_hard(group.taints), shape.tolerations) is not None:
        return False
    wanted = (Requirement.of(key, "In", (value,)) for key, value in shape.node_selector)
    if not all(_bears(group, requirement) for requirement in wanted):
        return False
    terms = shape.required_terms
    return not terms or any(
        all(_bears(group, requirement) for requirement in term.expressions) for term in terms
    )


def _bears(group: _Group, requirement: Requirement) -> bool:
    known = group.labels.get(requirement.key)
    if known is not None:
        return bool(known.overlaps(requirement))
    return group.more is None or requirement.key in group.more or requirement.allows_absence()
