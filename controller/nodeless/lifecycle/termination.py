"""The end of a claim: node deleted, cordoned, drained; instance terminated; finalizers off.

The instance goes before the Node object and the Node before the claim, so that as long
as anything can cost money there is an object that says so.
"""

from nodeless.lifecycle.view import ClaimView, Step, cause_of, changed_condition
from nodeless.model.instructions import (
    DeleteNode,
    EvictPod,
    Instruction,
    LookForInstance,
    PublishEvent,
    RemoveFinalizer,
    TerminateInstance,
    UpdateClaimStatus,
    UpdateNode,
)
from nodeless.model.labels import EXCLUDE_BALANCERS, TERMINATION_FINALIZER
from nodeless.model.nodes import DRAINED, INSTANCE_TERMINATING, Claim, Node
from nodeless.model.pods import Pod
from nodeless.model.taints import Taint, untolerated

#: How often a drain or a termination is looked at when no event wakes it.
DRAIN_AGAIN = 1.0
TERMINATE_AGAIN = 5.0
#: A pod this long past the end of its grace period holds nothing back (its kubelet is gone).
STUCK_AFTER = 60.0

_CORDON = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
_CRITICAL = ("system-cluster-critical", "system-node-critical")


def step_termination(view: ClaimView, now: float) -> Step:
    """The next step to the end of a claim that has been deleted."""
    claim, node = view.claim, view.node
    if node is None:
        return _terminate(view, now)
    if node.deletion_timestamp is None:
        return Step((DeleteNode(cause_of(claim), node.name),), now + DRAIN_AGAIN)
    if view.instance_gone:
        return _terminate(view, now)
    cordon = _cordon(claim, node)
    waiting = tuple(pod for pod in view.pods if _holds_back(pod, now))
    if waiting:
        return _drain(view, cordon, waiting, now)
    drained = changed_condition(claim, DRAINED, "True", now)
    ended = _terminate(view, now)
    status = (UpdateClaimStatus(cause_of(claim), claim.name, drained),) if drained else ()
    return Step(cordon + status + ended.instructions, ended.again_at)


def _cordon(claim: Claim, node: Node) -> tuple[Instruction, ...]:
    if node.unschedulable and EXCLUDE_BALANCERS in node.labels:
        return ()
    labels = {EXCLUDE_BALANCERS: "karpenter"}
    return (UpdateNode(cause_of(claim), node.name, labels=labels, unschedulable=True, stage="cordoned node"),)


def _holds_back(pod: Pod, now: float) -> bool:
    """Whether a drain waits for the pod: not finished, not static, not a daemon's, not stuck."""
    if pod.terminal or pod.owned_by_node or untolerated((_CORDON,), pod.shape.tolerations) is None:
        return False
    return pod.deletion_timestamp is None or now <= pod.deletion_timestamp + STUCK_AFTER


def _drain(view: ClaimView, cordon: tuple[Instruction, ...], waiting: tuple[Pod, ...], now: float) -> Step:
    claim, node = view.claim, view.node
    assert node is not None  # noqa: S101 - only nodes are drained
    cause = cause_of(claim)
    staying = [pod for pod in waiting if pod.deletion_timestamp is None]
    ordinary = [pod for pod in staying if pod.priority_class not in _CRITICAL]
    message = f"waiting for {len(waiting)} pods to leave: {_listed(waiting)}"
    draining = changed_condition(claim, DRAINED, "Unknown", now, reason="Draining", message=message)
    status: tuple[Instruction, ...] = ()
    if draining:
        status = (
            UpdateClaimStatus(cause, claim.name, draining),
            PublishEvent(cause, "Node", node.name, "Normal", "Draining", message, uid=node.uid),
        )
    evictions = tuple(
        EvictPod(cause, pod.namespace, pod.name, pod.uid, node.name) for pod in ordinary or staying
    )
    if node.ready:
        return Step(cordon + status + evictions, now + DRAIN_AGAIN)
    # Perhaps there is no machine any more on which anything could end: then no pod and no budget holds it.
    look = LookForInstance(cause, claim.name, claim.instance_id)
    return Step((*cordon, *status, *evictions, look), now + TERMINATE_AGAIN)


def _listed(pods: tuple[Pod, ...]) -> str:
    keys = sorted(pod.key for pod in pods)
    return ", ".join(keys[:5]) + (f" and {len(keys) - 5} others" if len(keys) > 5 else "")


def _terminate(view: ClaimView, now: float) -> Step:
    """Terminate until the cloud says that nothing lives, then let the objects go, node first."""
    claim, node = view.claim, view.node
    cause = cause_of(claim)
    if not view.instance_gone:
        conditions = changed_condition(claim, INSTANCE_TERMINATING, "True", now)
        status = (UpdateClaimStatus(cause, claim.name, conditions),) if conditions else ()
        terminate = TerminateInstance(cause, claim.name, claim.instance_id)
        return Step((*status, terminate), now + TERMINATE_AGAIN)
    instructions: list[Instruction] = []
    if node is not None and TERMINATION_FINALIZER in node.finalizers:
        instructions.append(RemoveFinalizer(cause, "Node", node.name, TERMINATION_FINALIZER))
    if TERMINATION_FINALIZER in claim.finalizers:
        instructions.append(RemoveFinalizer(cause, "NodeClaim", claim.name, TERMINATION_FINALIZER))
    return Step(tuple(instructions), now + TERMINATE_AGAIN)
