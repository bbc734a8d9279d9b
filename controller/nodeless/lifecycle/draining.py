"""Which pods a drain waits for, and how each of them is asked to leave.

Both API generations drain by the eviction API, ordinary pods before critical ones. They
differ in whom they leave alone: on nodes of a Provisioner the pods that tolerate a cordon
(daemons as a rule) stay, on nodes of a NodePool those that tolerate `karpenter.sh/disrupted`.
A NodePool's drain may have a deadline (`terminationGracePeriod`): each pod is deleted past
budgets and annotations early enough to have its own grace period before it.
"""

from collections.abc import Iterable

from nodeless.api.times import parse_time
from nodeless.lifecycle.surging import SURGE_PATIENCE
from nodeless.lifecycle.view import cause_of
from nodeless.model.instructions import DeletePod, EvictPod, Instruction, RestartDeployment
from nodeless.model.labels import DISRUPTED_TAINT, TERMINATION_TIMESTAMP
from nodeless.model.nodes import Claim, Node
from nodeless.model.pods import Pod
from nodeless.model.pools import PROVISIONER
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, untolerated
from nodeless.model.workloads import workload_of
from nodeless.state.protection import protection

#: A pod this long past the end of its grace period holds nothing back (its kubelet is gone).
STUCK_AFTER = 60.0
CORDON = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
DISRUPTED = Taint(DISRUPTED_TAINT, "NoSchedule")
_CRITICAL = ("system-cluster-critical", "system-node-critical")


def first_generation(claim: Claim) -> bool:
    """Whether the claim's pool is a Provisioner."""
    return claim.pool.kind == PROVISIONER


def deadline_of(claim: Claim) -> float | None:
    """When its drain must be over, as its annotation says; None: never, or the annotation is unreadable."""
    text = claim.annotations.get(TERMINATION_TIMESTAMP)
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError:
        return None


def drainable(claim: Claim, pod: Pod) -> bool:
    """Whether a drain concerns the pod at all: not finished, not static, and without the right to stay."""
    if pod.terminal or pod.owned_by_node:
        return False
    taint = CORDON if first_generation(claim) else DISRUPTED
    return untolerated((taint,), pod.shape.tolerations) is not None


def holds_back(claim: Claim, pod: Pod, now: float) -> bool:
    """Whether the drain must wait for the pod."""
    if not drainable(claim, pod):
        return False
    return pod.deletion_timestamp is None or now <= pod.deletion_timestamp + STUCK_AFTER


def requests_to_leave(
    claim: Claim,
    node: Node,
    waiting: Iterable[Pod],
    now: float,
    alone: frozenset[str] = frozenset(),
    succeeded: frozenset[str] = frozenset(),
) -> tuple[tuple[Instruction, ...], tuple[str, ...]]:
    """What to ask of the pods now, and why some of them are asked nothing.

    Those in `alone` (by key) leave once their Deployment has made another one; for those in `succeeded` it
    has been asked to, and nothing is to be done but to wait.
    """
    cause, deadline = cause_of(claim), deadline_of(claim)
    patient = now < (node.deletion_timestamp or now) + SURGE_PATIENCE
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
    for pod in _first_group(staying):
        annotation = "" if first_generation(claim) else protection(pod, now)
        if annotation:
            protected.append(f"pod {pod.key} has {annotation}")
        elif pod.key in alone and patient:
            if pod.key not in succeeded:
                owner = workload_of(pod).name
                restart = RestartDeployment(cause, pod.namespace, owner, pod.name, pod.uid, node.name)
                instructions.append(restart)
        else:
            instructions.append(EvictPod(cause, pod.namespace, pod.name, pod.uid, node.name))
    return tuple(instructions), tuple(protected)


def _first_group(staying: list[Pod]) -> list[Pod]:
    """Ordinary pods, then ordinary daemons, then critical pods, then critical daemons."""
    groups: dict[tuple[bool, bool], list[Pod]] = {}
    for pod in staying:
        groups.setdefault((pod.priority_class in _CRITICAL, pod.owned_by_daemon_set), []).append(pod)
    return groups[min(groups)] if groups else []


def attachments_of(snapshot: Snapshot, claim: Claim, node: Node) -> tuple[str, ...]:
    """Volumes attached to a node, by name, without those of pods that the drain does not concern."""
    staying = {
        snapshot.volume_claims[key].volume_name
        for pod in snapshot.pods_on(node.name)
        if not pod.terminal and not drainable(claim, pod)
        for key in _volume_claims(pod)
        if key in snapshot.volume_claims
    }
    return tuple(
        sorted(
            attachment.volume or attachment.name
            for attachment in snapshot.attachments.values()
            if attachment.node_name == node.name and attachment.volume not in staying
        )
    )


def _volume_claims(pod: Pod) -> Iterable[str]:
    yield from (f"{pod.namespace}/{name}" for name in pod.shape.claims)
    yield from (f"{pod.namespace}/{pod.name}-{volume}" for volume, _ in pod.shape.ephemeral_volumes)
