"""Pods that would behave differently, and why.

Cluster Autoscaler leaves a node alone for reasons that nodeless does not know (local storage, system pods,
pods without a controller), and pods may ask for what only a node group's nodes have.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nodeless.explain.migration.autoscaler import Autoscaler
from nodeless.model.events import PodSeen
from nodeless.model.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    EKS_CAPACITY_TYPE,
    NODE_POOL,
    PROVISIONER_NAME,
    ZONE,
)
from nodeless.model.pods import NodeSelectorTerm, Pod, PodShape
from nodeless.model.requirements import IN, Requirement
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of
from nodeless.scheduling.pods.selecting import selects
from nodeless.state import apply

#: As EBS has it, and as Kubernetes has it.
_ZONES = (ZONE, "topology.ebs.csi.aws.com/zone")
_SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_LOCAL = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
_GROUP_LABELS = {
    "eks.amazonaws.com/nodegroup": NODE_POOL,
    "alpha.eksctl.io/nodegroup-name": NODE_POOL,
    EKS_CAPACITY_TYPE: CAPACITY_TYPE,
    "node.kubernetes.io/lifecycle": CAPACITY_TYPE,
    PROVISIONER_NAME: NODE_POOL,
}
_CAPACITY = {"ON_DEMAND": "on-demand", "SPOT": "spot", "Ec2Spot": "spot", "normal": "on-demand"}
_OTHER_GROUP_LABELS = (
    "eks.amazonaws.com/nodegroup-image",
    "eks.amazonaws.com/sourceLaunchTemplateId",
    "eks.amazonaws.com/sourceLaunchTemplateVersion",
    "alpha.eksctl.io/cluster-name",
    "alpha.eksctl.io/instance-id",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """Pods of one workload that would behave differently.

    Attributes:
        code: Which kind of difference.
        workload: Whose pods.
        pods: How many.
        reason: What is different.
        change: What to do about it.
        annotations: What to write on the pods, where that is it.
        reselect: What of their nodeSelector to change, where that is it.
    """

    code: str
    workload: Workload
    pods: int
    reason: str
    change: str
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    reselect: "Reselection | None" = None


@dataclass(frozen=True, slots=True)
class Reselection:
    """A label of a nodeSelector, with its value, and the one that takes its place."""

    old: tuple[str, str]
    new: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Template:
    """What a manifest says of the pods of a workload."""

    workload: Workload
    annotations: Mapping[str, Any]
    spec: Mapping[str, Any]
    owned: bool
    """Whether a controller makes them anew."""


@dataclass(frozen=True, slots=True)
class PoolLabels:
    """What labels of groups are called on nodes of pools.

    Attributes:
        pools: The pool of each group, by its name; that of a Provisioner is called like it.
        own: Keys of labels that pools have of their own: pods may go on asking for them.
    """

    pools: Mapping[str, str]
    own: frozenset[str] = frozenset()

    def key(self, old: str) -> str:
        """The label of pools in the place of one that only nodes of groups have; itself for any other."""
        return old if old in self.own else _GROUP_LABELS.get(old, old)

    def value(self, key: str, old: str) -> str:
        """What the label of pools has for the value of a group's label."""
        new = self.key(key)
        if key in (new, PROVISIONER_NAME):
            return old
        return self.pools.get(old, old) if new == NODE_POOL else _CAPACITY.get(old, old)

    def is_missing(self, key: str) -> bool:
        """Whether nodes of pools lack a label that nodes of groups have."""
        return key not in self.own and (key in _GROUP_LABELS or key in _OTHER_GROUP_LABELS)


def differences(
    snapshot: Snapshot,
    templates: Iterable[Template],
    autoscaler: Autoscaler,
    labels: PoolLabels,
    concerned: frozenset[str],
    spread: frozenset[str] = frozenset(),
) -> tuple[Difference, ...]:
    """Pods that would behave differently, by workload.

    Args:
        snapshot: The cluster.
        templates: What the manifests say of pods.
        autoscaler: The flags of Cluster Autoscaler.
        labels: What labels of groups are called on nodes of pools.
        concerned: Keys of the pods that would be placed anew, now or later.
        spread: Names of nodes whose group has several zones.
    """
    numbers: dict[Workload, int] = {}
    shapes: dict[Workload, set[PodShape]] = {}
    for key in sorted(concerned):
        pod = snapshot.pods[key]
        numbers[workload_of(pod)] = numbers.get(workload_of(pod), 0) + 1
        shapes.setdefault(workload_of(pod), set()).add(pod.shape)
    found: dict[tuple[str, Workload, str], Difference] = {}
    for template in templates:
        if (number := numbers.get(template.workload)) is None:
            continue
        made = [*_of_annotations(template), *_of_autoscaler(template, snapshot, autoscaler)]
        for code, reason, change, annotations in made:
            if annotations and _is_protected(template):
                continue
            entry = Difference(code, template.workload, number, reason, change, annotations)
            found.setdefault((code, template.workload, ""), entry)
    for workload, of_workload in shapes.items():
        for shape in of_workload:
            for selected in _selected(shape):
                key = selected.requirement.key
                if not labels.is_missing(key):
                    continue
                reason, change = _of_label(selected, labels)
                reselect = _reselection(key, shape, labels)
                entry = Difference(
                    "GroupLabel", workload, numbers[workload], reason, change, reselect=reselect
                )
                found.setdefault((entry.code, workload, key), entry)
    blocked = [*_blocked(snapshot, concerned)]
    for entry in [*blocked, *_zonal(snapshot, concerned, spread)]:
        found.setdefault((entry.code, entry.workload, ""), entry)
    return tuple(sorted(found.values(), key=lambda entry: (entry.code, entry.workload)))


def with_pool_labels(snapshot: Snapshot, concerned: Iterable[str], labels: PoolLabels) -> Snapshot:
    """The pods as if they asked for the labels of pools where they ask for those of groups.

    Args:
        snapshot: The cluster.
        concerned: Keys of pods.
        labels: What labels of groups are called on nodes of pools.
    """
    for key in concerned:
        pod = snapshot.pods[key]
        shape = _with_labels(pod.shape, labels)
        if shape != pod.shape:
            snapshot = apply(snapshot, PodSeen(replace(pod, shape=shape)))
    return snapshot


def _with_labels(shape: PodShape, labels: PoolLabels) -> PodShape:
    selector = tuple(
        sorted((labels.key(key), labels.value(key, value)) for key, value in shape.node_selector)
    )
    terms = tuple(_term(term, labels) for term in shape.required_terms)
    preferred = tuple((weight, _term(term, labels)) for weight, term in shape.preferred_terms)
    before = (tuple(sorted(shape.node_selector)), shape.required_terms, shape.preferred_terms)
    if (selector, terms, preferred) == before:
        return shape
    return replace(shape, node_selector=selector, required_terms=terms, preferred_terms=preferred)


def _term(term: NodeSelectorTerm, labels: PoolLabels) -> NodeSelectorTerm:
    return replace(term, expressions=tuple(_expression(one, labels) for one in term.expressions))


def _expression(requirement: Requirement, labels: PoolLabels) -> Requirement:
    """The requirement of a pool's label; that a group's is not there holds on nodes of pools anyway."""
    key = requirement.key
    if labels.key(key) == key or _is_absence(requirement):
        return requirement
    values = frozenset(labels.value(key, value) for value in requirement.values)
    return replace(requirement, key=labels.key(key), values=values)


def _is_absence(requirement: Requirement) -> bool:
    return not requirement.complement and not requirement.values


_Found = tuple[str, str, str, dict[str, str]]
_PROTECT = {DO_NOT_DISRUPT: "true"}
_ANNOTATE = f'annotate them {DO_NOT_DISRUPT}: "true" if they must not be moved'


def _is_protected(template: Template) -> bool:
    return str(template.annotations.get(DO_NOT_DISRUPT, "")).lower() == "true"


def _safe_to_evict(template: Template) -> str:
    return str(template.annotations.get(_SAFE, "")).lower()


def _of_annotations(template: Template) -> Iterator[_Found]:
    """What annotations say to other autoscalers only."""
    if _safe_to_evict(template) == "false":
        yield (
            "SafeToEvict",
            f'the annotation {_SAFE}: "false" keeps them where they are; nodeless does not read it',
            f'annotate them {DO_NOT_DISRUPT}: "true"',
            _PROTECT,
        )
    if _DELAY in template.annotations:
        yield (
            "ScaleUpDelay",
            f"{_DELAY} is not read: they are planned at once",
            "nothing, or start them later",
            {},
        )
    if str(template.annotations.get(DO_NOT_EVICT, "")).lower() == "true":
        yield (
            "DoNotEvict",
            f"{DO_NOT_EVICT} is a name of v1alpha5: nodeless reads it, but in v1 it is {DO_NOT_DISRUPT}",
            f'annotate them {DO_NOT_DISRUPT}: "true" as well',
            _PROTECT,
        )


def _of_autoscaler(template: Template, snapshot: Snapshot, autoscaler: Autoscaler) -> Iterator[_Found]:
    """What only Cluster Autoscaler does or does not do."""
    if not autoscaler.found:
        return
    if _safe_to_evict(template) not in ("true", "false"):
        local = _local_volumes(template)
        if autoscaler.skips_local_storage and local:
            yield (
                "LocalStorage",
                f"Cluster Autoscaler keeps their node for the volume {local[0]}; nodeless moves them, "
                "and what is in the volume is lost",
                _ANNOTATE,
                _PROTECT,
            )
        if autoscaler.skips_system_pods and _is_system(template, snapshot):
            yield (
                "SystemPod",
                "Cluster Autoscaler keeps nodes of pods in kube-system that have no disruption budget; "
                "nodeless moves them",
                f"give them a PodDisruptionBudget, or {_ANNOTATE}",
                _PROTECT,
            )
        if not template.owned:
            yield (
                "NoController",
                "Cluster Autoscaler keeps nodes of pods that no controller recreates; nodeless evicts "
                "them, and nothing recreates them",
                f"run them by a Deployment or Job, or {_ANNOTATE}",
                _PROTECT,
            )
    priority = template.spec.get("priority")
    if isinstance(priority, int) and priority < autoscaler.expendable_below:
        yield (
            "Expendable",
            f"their priority {priority} is below {autoscaler.expendable_below}: Cluster Autoscaler adds no "
            f"node for "
            "them; nodeless does",
            "keep them off all pools: give the pools a taint that they do not tolerate",
            {},
        )
    elif _is_pause(template) and isinstance(priority, int) and priority < 0:
        yield (
            "Overprovisioning",
            "they reserve room because they can be preempted, which works as before: nodes are launched "
            "for them when "
            "they are "
            "pending",
            "a CapacityBuffer (autoscaling.x-k8s.io/v1beta1) keeps the same room without pods",
            {},
        )


def _local_volumes(template: Template) -> list[str]:
    """Volumes that end with the pod or stay on the node, but for those in memory or marked as safe."""
    safe = {name.strip() for name in str(template.annotations.get(_LOCAL, "")).split(",")}
    volumes = template.spec.get("volumes")
    found = []
    for volume in volumes if isinstance(volumes, list) else []:
        if not isinstance(volume, Mapping) or volume.get("name") in safe:
            continue
        empty = volume.get("emptyDir")
        if isinstance(empty, Mapping) and empty.get("medium") == "Memory":
            continue
        if "emptyDir" in volume or "hostPath" in volume:
            found.append(str(volume.get("name")))
    return found


def _is_system(template: Template, snapshot: Snapshot) -> bool:
    if template.workload.namespace != "kube-system":
        return False
    return not any(
        selects(budget.selector, pod.labels)
        for pod in snapshot.pods.values()
        if workload_of(pod) == template.workload
        for budget in snapshot.disruption_budgets.values()
        if budget.namespace == "kube-system"
    )


def _is_pause(template: Template) -> bool:
    containers = template.spec.get("containers")
    images = [str(one.get("image") or "") for one in containers or [] if isinstance(one, Mapping)]
    return bool(images) and all("pause" in image.rpartition("/")[2].partition(":")[0] for image in images)


@dataclass(frozen=True, slots=True)
class _Selected:
    """A label of nodes that pods ask for, or prefer."""

    requirement: Requirement
    required: bool = True


def _selected(shape: PodShape) -> Iterator[_Selected]:
    for key, value in shape.node_selector:
        yield _Selected(Requirement.of(key, IN, [value]))
    for term in shape.required_terms:
        yield from map(_Selected, term.expressions)
    for _, term in shape.preferred_terms:
        yield from (_Selected(requirement, required=False) for requirement in term.expressions)


def _of_label(selected: _Selected, labels: PoolLabels) -> tuple[str, str]:
    """Why a label that only nodes of groups have makes a difference, and what to do."""
    requirement, key = selected.requirement, selected.requirement.key
    values = sorted(requirement.values)
    named = f"the label {' '.join(filter(None, (key, ', '.join(values))))}, which nodes of pools do not have"
    new = labels.key(key)
    other = ", ".join(dict.fromkeys(labels.value(key, value) for value in values)) or "any value"
    if _is_absence(requirement):
        return (
            f"they are kept off nodes with {named}: nothing keeps them off these",
            f"require that {new if new != key else 'a label of the pool'} does not exist, if they must not "
            "run there",
        )
    if requirement.complement and values:
        why, verb = f"they avoid {named}: nothing keeps them off these", "avoid"
    elif selected.required:
        why, verb = f"they require {named}: without a change they stay pending", "ask for"
    else:
        why, verb = f"they prefer {named}: without a change the preference has no effect", "prefer"
    if new == key:
        return why, f"{verb} a label of the pool's template instead"
    return why, f"{verb} {new}: {other} instead; the plan assumes this change"


def _reselection(key: str, shape: PodShape, labels: PoolLabels) -> Reselection | None:
    """The change of a nodeSelector that names a label of groups; None where affinity names it."""
    chosen = dict(shape.node_selector)
    if key not in chosen or labels.key(key) == key:
        return None
    return Reselection((key, chosen[key]), (labels.key(key), labels.value(key, chosen[key])))


def _blocked(snapshot: Snapshot, concerned: frozenset[str]) -> Iterator[Difference]:
    """Pods that a drain waits for, whoever drains."""
    for budget in snapshot.disruption_budgets.values():
        pods = [
            snapshot.pods[key]
            for key in sorted(concerned)
            if snapshot.pods[key].namespace == budget.namespace
            and selects(budget.selector, snapshot.pods[key].labels)
        ]
        running = [pod for pod in pods if pod.node_name and budget.refuses(pod)]
        for workload in sorted({workload_of(pod) for pod in running}):
            number = sum(workload_of(pod) == workload for pod in running)
            yield Difference(
                "BudgetExhausted",
                workload,
                number,
                f"PodDisruptionBudget {budget.key} allows no eviction: a drain waits, as it did before",
                "allow one during the migration, or restart the workload when its new nodes are ready",
            )


def _zonal(snapshot: Snapshot, concerned: frozenset[str], spread: frozenset[str]) -> Iterator[Difference]:
    """Pods whose volumes are in one zone: groups of several zones might have grown in another."""
    zones: dict[Workload, set[str]] = {}
    pods: dict[Workload, int] = {}
    for key in sorted(concerned):
        pod = snapshot.pods[key]
        bound = _zones_of(snapshot, pod)
        if bound and pod.node_name in spread:
            zones.setdefault(workload_of(pod), set()).update(bound)
            pods[workload_of(pod)] = pods.get(workload_of(pod), 0) + 1
    for workload, names in zones.items():
        yield Difference(
            "ZonalVolume",
            workload,
            pods[workload],
            f"their volumes are in {', '.join(sorted(names))}: new nodes for them are launched there, "
            "while a group of several zones may grow in another zone",
            "nothing, as long as the pool has these zones",
        )


def _zones_of(snapshot: Snapshot, pod: Pod) -> set[str]:
    found: set[str] = set()
    for name in pod.shape.claims:
        claim = snapshot.volume_claims.get(f"{pod.namespace}/{name}")
        volume = snapshot.volumes.get(claim.volume_name) if claim is not None and claim.volume_name else None
        for term in volume.terms if volume is not None else ():
            for requirement in term.expressions:
                if requirement.key in _ZONES:
                    found |= requirement.values
    return found
