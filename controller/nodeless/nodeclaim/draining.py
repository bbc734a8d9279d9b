"""Which pods a drain waits for, and how each of them is asked to leave.

Both API generations drain by the eviction API, ordinary pods before critical ones. They
differ in whom they leave alone: on nodes of a Provisioner the pods that tolerate a cordon
(daemons as a rule) stay, on nodes of a NodePool those that tolerate `karpenter.sh/disrupted`.
A NodePool's drain may have a deadline (`terminationGracePeriod`): each pod is deleted past
budgets and annotations early enough to have its own grace period before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from nodeless.api.times import LONGEST_SPAN, parse_time
from nodeless.model.instructions import DeletePod, EvictPod, Instruction, RestartDeployment
from nodeless.model.labels import DRAIN_GRACE, TERMINATION_TIMESTAMP
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.numbers import whole_number
from nodeless.model.pods import Pod
from nodeless.model.pools import PROVISIONER, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import DISRUPTED, Taint, find_untolerated
from nodeless.model.workloads import workload_of
from nodeless.nodeclaim.checkpoints import checkpoint_grace, instance_ends, request_checkpoint, told_at
from nodeless.nodeclaim.surging import SURGE_PATIENCE
from nodeless.nodeclaim.view import cause_of
from nodeless.state.protection import protection

#: A pod this long past the end of its grace period holds nothing back (its kubelet is gone).
STUCK_AFTER = 60.0
#: Seconds from the beginning of a drain for which small pods leave after large ones.
ORDERED_FOR = 10.0
#: So many times larger is a pod that leaves before another one: each wave takes some tenths of a second.
_LARGER = 1.25
CORDON = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
_CRITICAL = ("system-cluster-critical", "system-node-critical")
#: The group (`_group`) that leaves first.
_ORDINARY = (False, False)


@dataclass(frozen=True, slots=True)
class Drain:
    """What a drain is like: who may stay, since when it goes on, and when it must be over."""

    taint: Taint
    """Pods that tolerate it stay."""
    began: float
    deadline: float | None = None
    stops: float | None = None
    """When the machine stops whatever its pods do: none is given time to save its work beyond that."""


def is_v1alpha5(claim: NodeClaim) -> bool:
    """Whether the claim's pool is a Provisioner."""
    return claim.pool.kind == PROVISIONER


def deadline_of(claim: NodeClaim) -> float | None:
    """When its drain must be over, as its annotation says; None: never, or the annotation is unreadable."""
    text = claim.annotations.get(TERMINATION_TIMESTAMP)
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError:
        return None


def grace_of(claim: NodeClaim) -> int | None:
    """Seconds that a drain of the claim's node may take, by its pool or by what it is drained for."""
    text = claim.annotations.get(DRAIN_GRACE, "")
    bounds = [claim.termination_grace_period, whole_number(text, LONGEST_SPAN)]
    return min((bound for bound in bounds if bound is not None), default=None)


def last_drain(claim: NodeClaim, node: Node, now: float) -> Drain:
    """The drain of a node that is being deleted."""
    return Drain(drain_taint(claim.pool), node.deletion_timestamp or now, deadline_of(claim))


def drain_taint(pool: Reference) -> Taint:
    """The mark of the drain of a pool's node: pods that tolerate it stay."""
    return CORDON if pool.kind == PROVISIONER else DISRUPTED


def may_stay(pod: Pod, taint: Taint) -> bool:
    """Whether the pod is static or tolerates the mark of the drain."""
    return pod.owned_by_node or find_untolerated((taint,), pod.shape.tolerations) is None


def _is_stuck(pod: Pod, now: float) -> bool:
    return pod.deletion_timestamp is not None and now > pod.deletion_timestamp + STUCK_AFTER


def delays_drain(pod: Pod, taint: Taint, now: float) -> bool:
    """Whether the drain must wait for the pod: not finished, not stuck, and without the right to stay."""
    return not (pod.terminal or _is_stuck(pod, now) or may_stay(pod, taint))


def requests_to_leave(
    claim: NodeClaim,
    node: Node,
    waiting: Sequence[Pod],
    now: float,
    drain: Drain,
    surge_pending: frozenset[str] = frozenset(),
    surge_started: frozenset[str] = frozenset(),
    unmarked: frozenset[str] = frozenset(),
    first_bulk: float = 0.0,
) -> tuple[tuple[Instruction, ...], tuple[str, ...]]:
    """What to ask of the pods now, and why some of them are asked nothing.

    Those in `surge_pending` (by key) leave once their Deployment has made another one; for those in
    `surge_started` it has been asked to, and nothing is to be done but to wait. On those in `unmarked` it
    cannot be noted when they were told to save their work: their time counts from the beginning of the drain.
    Those that are smaller than `first_bulk`, a size like `Pod.bulk`, leave later (`leaves_later`).
    """
    cause, deadline = cause_of(claim), drain.deadline
    bounds = (deadline, drain.stops, instance_ends(claim))
    latest = min((bound for bound in bounds if bound is not None), default=inf)
    patient = now < drain.began + SURGE_PATIENCE
    staying: list[Pod] = []
    instructions: list[Instruction] = []
    for pod in waiting:
        if deadline is not None and now > deadline - pod.grace_period_seconds:
            grace = max(int(deadline - now), 1)
            # One that is leaving already is hastened when its time would end after the deadline.
            if pod.deletion_timestamp is None or pod.deletion_timestamp > max(deadline, now + 1):
                instructions.append(DeletePod(cause, pod.namespace, pod.name, pod.uid, grace, node.name))
        elif pod.deletion_timestamp is None:
            staying.append(pod)
    protected: list[str] = []
    # On a NodePool's node no group begins before the last pod of the one before it is gone; on a
    # Provisioner's, pods that are leaving hold back none (Karpenter v0.27).
    first = min(map(_group, staying if is_v1alpha5(claim) else waiting), default=None)
    # Small pods fit in what large ones leave, not the other way round.
    for pod in sorted((pod for pod in staying if _group(pod) == first), key=lambda pod: -pod.bulk):
        annotation = "" if is_v1alpha5(claim) else protection(pod, now)
        if annotation:
            protected.append(f"pod {pod.key} has {annotation}")
        elif leaves_later(pod, claim, drain, now, first_bulk):
            continue
        elif (saving := _checkpoint(cause, pod, node, drain, unmarked, latest, now)) is not None:
            instructions += saving
        elif pod.key in surge_pending and patient:
            if pod.key not in surge_started:
                owner = workload_of(pod).name
                restart = RestartDeployment(cause, pod.namespace, owner, pod.name, pod.uid, node.name)
                instructions.append(restart)
        else:
            instructions.append(EvictPod(cause, pod.namespace, pod.name, pod.uid, node.name))
    return tuple(instructions), tuple(protected)


def leaves_in_order(pod: Pod, claim: NodeClaim, drain: Drain, now: float) -> bool:
    """Whether a pod of a draining node is one of those of which the large ones leave first.

    Those are ordinary pods that were not told to leave yet, that no annotation protects, and that do not ask
    for time to save their work.
    """
    return (
        pod.deletion_timestamp is None
        and delays_drain(pod, drain.taint, now)
        and _group(pod) == _ORDINARY
        and not checkpoint_grace(pod)
        and (is_v1alpha5(claim) or not protection(pod, now))
    )


def leaves_later(pod: Pod, claim: NodeClaim, drain: Drain, now: float, first_bulk: float) -> bool:
    """Whether a pod stays for now, since larger ones leave first, or have just left.

    `first_bulk` is the size of the largest one on any node that drains; 0: there is none.
    """
    return (
        _LARGER * pod.bulk < first_bulk
        and now < drain.began + ORDERED_FOR
        and leaves_in_order(pod, claim, drain, now)
    )


def _checkpoint(
    cause: str,
    pod: Pod,
    node: Node,
    drain: Drain,
    unmarked: frozenset[str],
    latest: float,
    now: float,
) -> tuple[Instruction, ...] | None:
    """What to ask of a pod that has time to save its work, or nothing while it does; None: it may leave."""
    leaves_by = latest - pod.grace_period_seconds
    told = drain.began if pod.key in unmarked else told_at(pod, drain.began)
    if told is None:
        request = request_checkpoint(cause, pod, node.name, began=drain.began, latest=leaves_by, now=now)
        return None if request is None else (request,)
    return () if now < min(told + checkpoint_grace(pod), leaves_by) else None


def pods_saving_work(claim: NodeClaim, node: Node, pods: Iterable[Pod], now: float) -> dict[str, float]:
    """By key, the pods of a node that is drained which save their work now, and until when they may."""
    if node.deletion_timestamp is None:
        return {}
    drain = last_drain(claim, node, now)
    bounds = (drain.deadline, instance_ends(claim))
    latest = min((bound for bound in bounds if bound is not None), default=inf)
    found = {}
    for pod in pods:
        told = told_at(pod, drain.began)
        if told is None or pod.terminal or pod.deletion_timestamp is not None:
            continue
        until = min(told + checkpoint_grace(pod), latest - pod.grace_period_seconds)
        if until > now:
            found[pod.key] = until
    return found


def _group(pod: Pod) -> tuple[bool, bool]:
    """Ordinary pods, then ordinary daemons, then critical pods, then critical daemons."""
    return pod.priority_class in _CRITICAL, pod.owned_by_daemon_set


def attachments_of(snapshot: Snapshot, claim: NodeClaim, node: Node, now: float) -> tuple[str, ...]:
    """PersistentVolumes attached to a node, by name, without those of pods that the drain does not wait for.

    A volume that stands in a pod's spec has no PersistentVolume: none of it counts, as in Karpenter.

    A volume stays attached as long as its pod is there, and a stuck pod as long as its node: waiting for
    that volume would never end. Those of finished pods count: an evicted pod finishes before its volumes
    are unmounted, and Kubernetes detaches them then by itself.
    """
    taint = last_drain(claim, node, now).taint
    staying = {
        snapshot.volume_claims[key].volume_name
        for pod in snapshot.pods_on(node.name)
        if _is_stuck(pod, now) or may_stay(pod, taint)
        for key in _volume_claims(pod)
        if key in snapshot.volume_claims
    }
    return tuple(
        sorted(
            attachment.volume
            for attachment in snapshot.attachments.values()
            if attachment.node_name == node.name and attachment.volume and attachment.volume not in staying
        )
    )


def _volume_claims(pod: Pod) -> Iterable[str]:
    yield from (f"{pod.namespace}/{name}" for name in pod.shape.claims)
    yield from (f"{pod.namespace}/{pod.name}-{volume}" for volume, _ in pod.shape.ephemeral_volumes)


def list_keys(pods: tuple[Pod, ...]) -> str:
    """The keys of the first pods, and how many others there are."""
    keys = sorted(pod.key for pod in pods)
    return ", ".join(keys[:5]) + (f" and {len(keys) - 5} others" if len(keys) > 5 else "")
