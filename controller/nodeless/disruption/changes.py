"""What changed in a cluster between two passes, as far as it can matter to a command: the object by name.

A command that was right and is not any more was made wrong by something: a pod that came, left or asks for
something else, a node that came, went or is closed, a pool, a budget. What lies nearest to the command is
told first: the pods of its own nodes, these nodes themselves, other pods, other nodes, and then the rules.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.model.disruption import Command
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot

#: Said where everything in the cluster is as it was.
NO_OBJECT = "no object of the cluster: prices, stock or the time"
#: Parts of a snapshot that are rules, with what each of their objects is called.
_RULES = {
    "pools": "pool",
    "node_classes": "node class",
    "disruption_budgets": "PodDisruptionBudget",
    "daemon_sets": "DaemonSet",
    "volume_claims": "PersistentVolumeClaim",
    "volumes": "PersistentVolume",
    "storage_classes": "StorageClass",
    "csi_nodes": "CSINode",
    "resource_claims": "ResourceClaim",
    "resource_claim_templates": "ResourceClaimTemplate",
    "resource_slices": "ResourceSlice",
    "device_classes": "DeviceClass",
    "capacity_buffers": "CapacityBuffer",
    "provisioning_requests": "ProvisioningRequest",
    "node_overlays": "NodeOverlay",
    "vertical_autoscalers": "VerticalPodAutoscaler",
}


def what_changed(before: Snapshot, after: Snapshot, command: Command) -> str:
    """The first change that may have made a command wrong, in one sentence without a full stop.

    Args:
        before: The cluster in which the command was found.
        after: The cluster during validation.
        command: The command.
    """
    return next(_changes(before, after, command), NO_OBJECT)


def _changes(before: Snapshot, after: Snapshot, command: Command) -> Iterator[str]:
    mine = frozenset(
        before.claims[name].node_name for name in command.claims if name in before.claims
    ) or frozenset(command.claims)
    pods = list(_differing_keys(before.pods, after.pods))
    yield from (text for text, places in _of_pods(before, after, pods) if places & mine)
    nodes = [*_of_claims(before, after), *_of_nodes(before, after)]
    yield from (text for name, text in nodes if name in mine or name in command.claims)
    yield from (text for text, places in _of_pods(before, after, pods) if not places & mine)
    yield from (text for _, text in nodes)
    for part, kind in _RULES.items():
        for name in _differing_keys(getattr(before, part), getattr(after, part)):
            yield f"{kind} {name} {_how(name, getattr(before, part), getattr(after, part))}"


def _differing_keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Keys whose values differ, in their order; parts that no event has touched are the same object."""
    if before is after:
        return
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield key


def _of_pods(before: Snapshot, after: Snapshot, keys: list[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Each change of a pod, with the nodes that it concerns."""
    for key in keys:
        was, now = before.pods.get(key), after.pods.get(key)
        text = _of_pod(was, now)
        if text:
            yield f"pod {key} {text}", frozenset(pod.node_name for pod in (was, now) if pod is not None)


def _of_pod(was: Pod | None, now: Pod | None) -> str:
    if now is None:
        return f"has left {was.node_name or 'the queue'}" if was is not None else ""
    where = f"on node {now.node_name}" if now.node_name else "without a node"
    if was is None or was.uid != now.uid:
        return f"came, {where}"
    if was.node_name != now.node_name:
        return f"was bound to node {now.node_name}" if now.node_name else "lost its node"
    if now.terminal != was.terminal:
        return f"has ended, {where}"
    if now.deletion_timestamp is not None and was.deletion_timestamp is None:
        return f"is being deleted, {where}"
    if (was.shape, was.annotations, was.labels) != (now.shape, now.annotations, now.labels):
        return f"was changed, {where}"
    return ""


def _of_claims(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, str]]:
    for name in _differing_keys(before.claims, after.claims):
        was, now = before.claims.get(name), after.claims.get(name)
        if was is None or now is None or _matters(was) != _matters(now):
            yield name, f"claim {name} {_how(name, before.claims, after.claims)}"


def _matters(claim: NodeClaim) -> object:
    """What of a claim commands depend on; the dates of its conditions are not of it."""
    conditions = tuple((condition.type, condition.status) for condition in claim.conditions)
    return claim.deletion_timestamp, claim.annotations, claim.labels, claim.last_pod_event, conditions


def _of_nodes(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, str]]:
    for name in _differing_keys(before.nodes, after.nodes):
        was, now = before.nodes.get(name), after.nodes.get(name)
        if was is None or now is None:
            yield name, f"node {name} {_how(name, before.nodes, after.nodes)}"
        elif text := _of_node(was, now):
            yield name, f"node {name} {text}"


def _of_node(was: Node, now: Node) -> str:
    if now.deletion_timestamp is not None and was.deletion_timestamp is None:
        return "is being deleted"
    if was.taints != now.taints or was.unschedulable != now.unschedulable:
        return "has other taints"
    if was.ready != now.ready:
        return "is Ready" if now.ready else "is not Ready"
    if was.allocatable != now.allocatable:
        return "reports other resources"
    return "has other labels or annotations" if _words(was) != _words(now) else ""


def _words(node: Node) -> object:
    return node.labels, node.annotations


def _how(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if name not in after:
        return "is gone"
    return "was changed" if name in before else "is new"
