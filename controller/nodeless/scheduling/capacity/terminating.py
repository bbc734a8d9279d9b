"""Room that is free in a moment: that of pods that terminate.

A terminating pod keeps its requests until its containers have ended: about as long as its grace period at the
most (`metadata.deletionTimestamp`). In a rollout that is what new pods wait for. A new node is there no
sooner than after the default of `Policy.termination_wait`.
"""

from collections.abc import Iterable, Mapping
from functools import reduce

from nodeless.model.events import PodGone
from nodeless.model.nodes import Node
from nodeless.model.pods import Pod, PodShape
from nodeless.model.resources import Resources, subtract, total
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.existing import initialized
from nodeless.scheduling.pods.gangs import gang_of
from nodeless.scheduling.pods.volumes import mounts
from nodeless.state import apply

#: Seconds after a grace period within which a pod is deleted: the kubelet grants two more to containers whose
#: preStop hook took all of it (`minimumGracePeriodInSeconds`), and the timestamp is cut to whole seconds.
_DELETED_WITHIN = 5.0


def with_room_to_come(snapshot: Snapshot, now: float, longest: float) -> tuple[Snapshot, frozenset[str]]:
    """The cluster without the pods that are soon gone (`soon_gone`), and the names of their nodes."""
    gone = soon_gone(snapshot, now, longest)
    freed = reduce(apply, map(PodGone, gone), snapshot)
    return freed, frozenset(snapshot.pods[key].node_name for key in gone)


def soon_gone(snapshot: Snapshot, now: float, longest: float) -> frozenset[str]:
    """Keys of the pods whose room other pods may use within so many seconds, about; with 0, of none.

    Left out are those to whose room somebody else has a claim: pods of DaemonSets and StatefulSets, whose
    successors come only once they are gone, and pods on nodes to which kube-scheduler has nominated a pod
    (they may have been preempted for that pod). Left out, too, are pods with volumes or claims on devices,
    which are free later than the pod is gone; pods with host ports, which are no amounts (`waiting`); and
    members of gangs, which count as long as they are there.
    """
    going = [
        pod
        for pod in snapshot.pods.values()
        if longest and _ends_soon(pod, now, longest) and _frees_room(snapshot, pod)
    ]
    if not going:
        return frozenset()
    claimed = {pod.nominated_node_name for pod in snapshot.pods.values() if not pod.node_name}
    return frozenset(pod.key for pod in going if pod.node_name not in claimed)


def lasts(pod: Pod, now: float, longest: float) -> bool:
    """Whether a terminating pod is not gone within so many seconds, about; with 0, any.

    Until it is gone kube-scheduler keeps off its node whom its anti-affinity selects, or who keeps off it
    (plugin InterPodAffinity), though it counts for no topology spread any more.
    """
    return not (longest and _ends_soon(pod, now, longest))


def _ends_soon(pod: Pod, now: float, longest: float) -> bool:
    ends = pod.deletion_timestamp
    return ends is not None and now - _DELETED_WITHIN <= ends <= now + longest


def _frees_room(snapshot: Snapshot, pod: Pod) -> bool:
    node = snapshot.nodes.get(pod.node_name)
    return (
        node is not None
        and node.ready
        and initialized(node, snapshot.claim_of(node))
        and pod.occupies
        and not pod.reschedulable
        and not _holds_more_than_room(pod.shape)
        and not gang_of(pod, snapshot.gang_sizes)
    )


def _holds_more_than_room(shape: PodShape) -> bool:
    return mounts(shape) or bool(shape.resource_claims or shape.host_ports)


def waiting(snapshot: Snapshot, nodes: Iterable[str], placements: Mapping[str, str]) -> dict[str, str]:
    """The pods that have no room yet where they are placed, each with its node.

    Args:
        snapshot: The cluster with all of its pods.
        nodes: The nodes on which room is to come.
        placements: Pod key to node, as planned with that room. The room that is free goes to the pods that
            kube-scheduler tries first; after them come those that it does not try, which run elsewhere still
            or stand for pods that may come.
    """
    found: dict[str, str] = {}
    placed: dict[str, list[Pod]] = {name: [] for name in nodes}
    for key, name in placements.items():
        if name in placed:
            placed[name].append(snapshot.pods[key])
    for name, pods in placed.items():
        free = _free(snapshot, snapshot.nodes[name])
        for pod in sorted(pods, key=_turn):
            left = subtract(free, pod.requests)
            if any(left[resource] < 0 for resource in pod.requests):
                found[pod.key] = name
            else:
                free = left
    return found


def _turn(pod: Pod) -> tuple[bool, int, float, str]:
    return bool(pod.node_name) or pod.shape.placeholder, -pod.priority, pod.created_at, pod.key


def _free(snapshot: Snapshot, node: Node) -> Resources:
    used = (pod.requests for pod in snapshot.pods_on(node.name) if not pod.terminal)
    return subtract(node.allocatable, total(used))
