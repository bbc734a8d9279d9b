"""The way from groups or Karpenter to nodeless, and back: each step with how to see that it worked."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodeless.explain.migration.autoscaler import Autoscaler
from nodeless.explain.migration.behavior import Difference
from nodeless.explain.migration.node_group import MANAGED, NodeGroup
from nodeless.explain.words import count, listed
from nodeless.model.workloads import Workload

#: The file of the manifests, as the commands name it.
FILE = "pools.yaml"
#: Where workloads have their pod template that may be changed.
_TEMPLATES = {
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "DaemonSet"),
        ("spec", "template"),
    ),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
_NONE = "nothing to undo"
#: Of pools alone: Karpenter knows those of the others, and none of a pool.
_RELEASE = (
    "kubectl get nodepools,provisioners -o name | xargs -n 1 kubectl patch --type merge -p "
    """'{"metadata":{"finalizers":null}}'"""
)
_OWN_VALUES = "--values values.yaml"
_REUSED_VALUES = (
    "--reset-then-reuse-values "
    "--set controller.image.repository=ACCOUNT.dkr.ecr.REGION.amazonaws.com/nodeless "
    "--set controller.image.tag=TAG --set controller.image.digest="
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        title: What it does.
        commands: The commands, in their order.
        check: How to see that it worked.
        undo: The commands back; where there are none, why.
        caution: What to know before.
    """

    title: str
    commands: tuple[str, ...]
    check: str
    undo: tuple[str, ...]
    caution: str = ""


@dataclass(frozen=True, slots=True)
class ProposedObjects:
    """The pools and node classes of the file, each as kubectl names it.

    Attributes:
        existing: Those that the cluster has already.
        added: Those that the migration adds.
    """

    existing: tuple[str, ...]
    added: tuple[str, ...]


def steps_from_groups(
    groups: Sequence[NodeGroup],
    autoscaler: Autoscaler,
    differing: Sequence[Difference],
    nodes: dict[str, tuple[str, ...]],
    proposed: ProposedObjects,
) -> tuple[Step, ...]:
    """From Cluster Autoscaler.

    Args:
        groups: The groups that are migrated.
        autoscaler: What is known of its Deployment.
        differing: Pods that would behave differently.
        nodes: The nodes of each group, by its subject, as far as they are known.
        proposed: What the file of the manifests has.
    """
    return (
        *_protect(differing),
        _upgrade(_REUSED_VALUES) if proposed.existing else _install(),
        _apply(proposed),
        *_stop_schedules(groups),
        _stop_autoscaler(autoscaler),
        *_reselect(differing),
        *(step for group in groups for step in _move(group, nodes.get(group.subject, ()))),
        _remove(groups, autoscaler),
    )


def steps_from_karpenter(
    differing: Sequence[Difference], proposed: ProposedObjects, *, older: bool, beta: bool = False
) -> tuple[Step, ...]:
    """From Karpenter; `older`: of v1alpha5, whose nodes have no NodeClaims; `beta`: of v1beta1."""
    store = Step(
        "Upgrade Karpenter to v1, unless its objects are stored as v1 already",
        (
            "kubectl get crd nodepools.karpenter.sh nodeclaims.karpenter.sh ec2nodeclasses.karpenter.k8s.aws "
            "-o custom-columns=NAME:.metadata.name,STORED:.status.storedVersions",
        ),
        "STORED is [v1] for each",
        (_NONE,),
        "Karpenter v0.32 to v0.37 stores its objects as v1beta1: the API server refuses the definitions of "
        "nodeless, which have only v1, until Karpenter v1 has stored them anew",
    )
    stop = Step(
        "Stop Karpenter; nodes and pods keep running",
        ("kubectl -n karpenter scale deployment karpenter --replicas 0",),
        "kubectl -n karpenter get pods: no pod of Karpenter is left",
        ("kubectl -n karpenter scale deployment karpenter --replicas 2",),
        "two controllers that serve the same pending pods launch nodes twice",
    )
    replace = Step(
        "Replace the nodes that Karpenter v0 has launched, a few at a time",
        (
            "kubectl get nodes -l karpenter.sh/provisioner-name",
            "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data",
            "aws ec2 terminate-instances --instance-ids ID",
            """kubectl patch node NODE --type merge -p '{"metadata":{"finalizers":null}}'""",
            "kubectl delete node NODE",
        ),
        "kubectl get nodeclaims: a claim for the pods that moved; kubectl get pods -A: none stays pending",
        ("kubectl uncordon NODE",),
        "a node that is terminated does not come back; stop after the drain to undo it",
    )
    keep = Step(
        "Look at the nodes that Karpenter v1 has launched; nothing needs to be done",
        ("kubectl get nodeclaims",),
        "the same claims as before; they follow their pools' rules",
        (_NONE,),
    )
    return (
        *((store,) if beta else ()),
        *_protect(differing),
        stop,
        _upgrade(_OWN_VALUES if older else _REUSED_VALUES),
        _apply(proposed),
        *_reselect(differing),
        replace if older else keep,
    )


def _protect(differing: Iterable[Difference]) -> Iterator[Step]:
    """Annotations that must be there before anything is moved."""
    patches: dict[Workload, dict[str, str]] = {}
    for entry in differing:
        if entry.annotations and entry.code in ("SafeToEvict", "DoNotEvict"):
            patches.setdefault(entry.workload, {}).update(entry.annotations)
    commands, undo, by_hand = [], [], []
    for workload, annotations in sorted(patches.items()):
        if there := _annotating(workload):
            commands.append(f"{there} {' '.join(f'{key}={value}' for key, value in annotations.items())}")
            undo.append(f"{there} {' '.join(f'{key}-' for key in annotations)}")
        elif workload.kind in _TEMPLATES:
            commands.append(_patch(workload, {"metadata": {"annotations": annotations}}))
            undo.append(_patch(workload, {"metadata": {"annotations": dict.fromkeys(annotations)}}))
        else:
            by_hand.append(str(workload))
    if commands or by_hand:
        yield Step(
            f"Carry over the annotations that keep pods where they are{_by_hand(by_hand)}",
            tuple(commands),
            "kubectl describe pod: the annotation is on the pods",
            tuple(undo) or ("the old annotations, where the pods are created",),
            "a changed pod template restarts the pods of a workload; do it when they may restart",
        )


def _annotating(workload: Workload) -> str:
    """The command that annotates pods whose template cannot be changed; empty for any other kind."""
    there = f"kubectl -n {workload.namespace} annotate"
    return {
        "Pod": f"{there} pod {workload.name}",
        "Job": f"{there} pods -l job-name={workload.name}",
    }.get(workload.kind, "")


def _patch(workload: Workload, template: Mapping[str, Any]) -> str:
    """The command that changes the pod template of a workload."""
    change: Mapping[str, Any] = template
    for member in reversed(_TEMPLATES[workload.kind]):
        change = {member: change}
    there = f"kubectl -n {workload.namespace} patch {workload.kind.lower()} {workload.name}"
    return f"{there} --type merge -p {shlex.quote(json.dumps(change, separators=(',', ':')))}"


def _by_hand(workloads: Sequence[str]) -> str:
    return f"; by hand, where the pods are created: {listed(workloads)}" if workloads else ""


def _reselect(differing: Iterable[Difference]) -> Iterator[Step]:
    """Selectors of labels that only groups have, once the pools are there."""
    commands, undo, by_hand = [], [], []
    for entry in differing:
        if entry.code != "GroupLabel":
            continue
        workload = entry.workload
        if entry.reselect is None or workload.kind not in _TEMPLATES:
            by_hand.append(str(workload))
            continue
        (old, before), (new, after) = entry.reselect.old, entry.reselect.new
        commands.append(_patch(workload, {"spec": {"nodeSelector": {old: None, new: after}}}))
        undo.append(_patch(workload, {"spec": {"nodeSelector": {old: before, new: None}}}))
    if not commands and not by_hand:
        return
    yield Step(
        f"Have pods select pools instead of groups{_by_hand(by_hand)}",
        tuple(commands),
        "kubectl get nodeclaims: claims for these pods, which restart on the nodes of pools",
        tuple(undo) or ("the old value, where the pods are created",),
        "a changed pod template restarts the pods of a workload",
    )


def _install() -> Step:
    return Step(
        "Install nodeless (docs/guides/install-with-helm.md, or with Pulumi or Terraform)",
        (
            "helm upgrade --install karpenter-crd charts/nodeless-crd --namespace karpenter "
            "--create-namespace",
            "helm upgrade --install karpenter charts/nodeless --namespace karpenter --values values.yaml",
        ),
        "kubectl -n karpenter rollout status deployment/karpenter; without pools it launches nothing",
        ("helm uninstall karpenter karpenter-crd --namespace karpenter",),
    )


def _upgrade(values: str) -> Step:
    """In place of Karpenter, whose release, objects and nodes stay."""
    return Step(
        "Replace Karpenter's charts with those of nodeless "
        "(docs/guides/migrate-from-karpenter.md, or with Pulumi)",
        (
            "kubectl annotate crd capacitybuffers.autoscaling.x-k8s.io helm.sh/resource-policy=keep",
            "helm upgrade --install karpenter-crd charts/nodeless-crd --namespace karpenter "
            "--take-ownership --force-conflicts",
            f"helm upgrade karpenter charts/nodeless --namespace karpenter {values}",
        ),
        "kubectl -n karpenter rollout status deployment/karpenter; kubectl get nodeclaims: the same claims "
        "as before, which nodeless manages from here on",
        (
            "kubectl -n karpenter scale deployment karpenter --replicas 0",
            "helm rollback karpenter --namespace karpenter",
            _RELEASE,
        ),
        "never uninstall karpenter-crd while it is Karpenter's chart: every pool and node would be deleted; "
        "that the first command finds no such CRD is no problem",
    )


def _apply(proposed: ProposedObjects) -> Step:
    return Step(
        "Apply the proposed pools and node classes",
        (f"nodeless validate {FILE}", f"kubectl apply -f {FILE}"),
        "kubectl get ec2nodeclasses,nodepools: READY is True for each",
        _undo_apply(proposed),
        "from here on pending pods get nodes of the pools; deleting a pool drains and terminates its nodes",
    )


def _undo_apply(proposed: ProposedObjects) -> tuple[str, ...]:
    """Without a deletion of what was there before: it would terminate every node of the pools."""
    if not proposed.existing:
        return (f"kubectl delete -f {FILE}",)
    delete = (f"kubectl delete {' '.join(proposed.added)}",) if proposed.added else ()
    return (
        *delete,
        f"apply your own manifests of {listed(proposed.existing)} again; do not delete these objects",
    )


def _stop_schedules(groups: Sequence[NodeGroup]) -> Iterator[Step]:
    names = [
        (group.scaling_groups[0], name)
        for group in groups
        for name in group.scheduled
        if group.scaling_groups
    ]
    if names:
        yield Step(
            "Stop the scheduled actions, which would set the sizes of groups again",
            tuple(
                f"aws autoscaling delete-scheduled-action --auto-scaling-group-name {shlex.quote(group)} "
                f"--scheduled-action-name {shlex.quote(name)}"
                for group, name in names
            ),
            "aws autoscaling describe-scheduled-actions: none is left",
            (
                "aws autoscaling put-scheduled-update-group-action, with the sizes and times of the list "
                "above",
            ),
        )


def _stop_autoscaler(autoscaler: Autoscaler) -> Step:
    namespace, _, name = (autoscaler.deployment or "kube-system/cluster-autoscaler").partition("/")
    there = f"kubectl -n {namespace} scale deployment {name} --replicas"
    return Step(
        "Stop Cluster Autoscaler; its nodes keep running",
        (f"{there} 0",),
        f"kubectl -n {namespace} get deployment {name}: 0 ready; a new pending pod gets a NodeClaim",
        (f"{there} {max(autoscaler.replicas, 1)}",),
        "both would add nodes for the same pending pods",
    )


def _move(group: NodeGroup, nodes: Sequence[str]) -> Iterator[Step]:
    chosen = f"-l eks.amazonaws.com/nodegroup={group.name}" if group.kind == MANAGED else " ".join(nodes)
    about = f"{group.subject} ({count(len(nodes), 'node')})" if nodes else group.subject
    find: tuple[str, ...] = ()
    if not chosen:
        chosen = "NODE..."
        find = (
            "aws autoscaling describe-auto-scaling-groups --auto-scaling-group-names "
            f"{shlex.quote(group.name)} --query 'AutoScalingGroups[].Instances[].InstanceId'",
        )
    yield Step(
        f"Move the pods of {about}",
        (
            *find,
            f"kubectl cordon {chosen}",
            f"kubectl drain {chosen} --ignore-daemonsets --delete-emptydir-data",
        ),
        "kubectl get nodeclaims, kubectl get pods -A --field-selector status.phase=Pending: all pods have "
        "a node",
        (f"kubectl uncordon {chosen}",),
        "PodDisruptionBudgets are respected; pods that wait for one delay the drain",
    )
    yield Step(
        f"Set {group.subject} to no nodes",
        (_resize(group, 0, 0),),
        f"kubectl get nodes {chosen}: none is left",
        (_resize(group, group.minimum, group.desired),),
        "its instances are terminated; if you undo this, it launches new ones, and pods return when you "
        "drain the pool's nodes",
    )


def _resize(group: NodeGroup, minimum: int, desired: int) -> str:
    if group.kind == MANAGED:
        sizes = f"minSize={minimum},maxSize={max(group.maximum or 0, 1)},desiredSize={desired}"
        return (
            f"aws eks update-nodegroup-config --cluster-name {group.cluster} --nodegroup-name {group.name} "
            f"--scaling-config {sizes}"
        )
    return (
        f"aws autoscaling update-auto-scaling-group --auto-scaling-group-name {shlex.quote(group.name)} "
        f"--min-size {minimum} --max-size {group.maximum or 0} --desired-capacity {desired}"
    )


def _remove(groups: Sequence[NodeGroup], autoscaler: Autoscaler) -> Step:
    namespace, _, name = (autoscaler.deployment or "kube-system/cluster-autoscaler").partition("/")
    commands = [f"kubectl -n {namespace} delete deployment {name}"]
    for group in groups:
        if group.kind == MANAGED:
            commands.append(
                f"aws eks delete-nodegroup --cluster-name {group.cluster} --nodegroup-name {group.name}"
            )
        else:
            commands.append(
                f"aws autoscaling delete-auto-scaling-group --auto-scaling-group-name "
                f"{shlex.quote(group.name)}"
            )
    return Step(
        "Remove the groups and Cluster Autoscaler, when you no longer need to go back",
        tuple(commands),
        f"no group is left: {listed([group.subject for group in groups])}",
        ("create the groups again from your templates; there is no other way to undo this step",),
        "keep the groups at 0 nodes for as long as you may want to go back: they cost nothing",
    )
