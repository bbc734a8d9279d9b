"""The end of a claim: node deleted, cordoned, drained; volumes detached; instance terminated; finalizers off.

The instance goes before the Node object and the Node before the claim, so that as long
as anything can cost money there is an object that says so. Whom a drain concerns stands in
`draining`.
"""

from dataclasses import replace

from nodeless.api.times import format_time
from nodeless.model.instructions import (
    AnnotateClaim,
    CheckInstance,
    DeleteNode,
    Instruction,
    PublishEvent,
    RemoveFinalizer,
    TerminateInstance,
    UpdateClaimStatus,
    UpdateNode,
    set_taints,
)
from nodeless.model.labels import EXCLUDE_BALANCERS, TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from nodeless.model.nodes import DRAINED, INSTANCE_TERMINATING, VOLUMES_DETACHED, Condition, Node, NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.taints import DISRUPTED
from nodeless.nodeclaim.draining import (
    deadline_of,
    delays_drain,
    grace_of,
    is_v1alpha5,
    last_drain,
    list_keys,
    requests_to_leave,
)
from nodeless.nodeclaim.view import ClaimView, Step, cause_of, changed_condition

#: How often a drain or a termination is looked at when no event wakes it.
DRAIN_AGAIN = 1.0
TERMINATE_AGAIN = 5.0
#: A NodePool's drain takes at least so long: pods that the scheduler is binding meanwhile are seen.
SHORTEST_DRAIN = 5.0
#: A Provisioner's node waits so long for its volumes: then Kubernetes itself cuts them off
#: (attach-detach controller, `maxWaitForUnmountDuration`).
DETACH_PATIENCE = 360.0


def step_termination(view: ClaimView, now: float) -> Step:
    """The next step to the end of a claim that has been deleted."""
    claim, node = view.claim, view.node
    stamp = _deadline_to_stamp(claim, now)
    if stamp:
        return Step(stamp, now)
    if node is None:
        return _terminate(view, now)
    staying = tuple(twin for twin in (node, *view.duplicates) if twin.deletion_timestamp is None)
    if staying:
        deletions = tuple(DeleteNode(cause_of(claim), pod.name, uid=pod.uid) for pod in staying)
        return Step(deletions, now + DRAIN_AGAIN)
    if view.instance_gone:
        return _terminate(view, now)
    marks = cordon(claim, node)
    taint = last_drain(claim, node, now).taint
    waiting = tuple(pod for pod in view.pods if delays_drain(pod, taint, now))
    if waiting:
        return _drain(view, marks, waiting, now)
    noted, earliest = _shortest_drain(claim, now)
    if now < earliest:
        return Step((*marks, *noted, *_check_instance(claim, node)), earliest)
    drained = changed_condition(claim, DRAINED, "True", now)
    detached, waits = _volumes_condition(view, node, now)
    conditions = (*drained, *detached)
    status = (UpdateClaimStatus(cause_of(claim), claim.name, conditions),) if conditions else ()
    if waits:
        return Step((*marks, *status, *_check_instance(claim, node)), now + TERMINATE_AGAIN)
    ended = _terminate(view, now)
    return Step(marks + status + ended.instructions, ended.again_at)


def _shortest_drain(claim: NodeClaim, now: float) -> tuple[tuple[Instruction, ...], float]:
    """What to note of a drain of no pods, and until when it goes on for those that may be on their way.

    The node may have been deleted long before it was cordoned: the time counts from the condition, which is
    written after that.
    """
    present = claim.condition(DRAINED)
    if is_v1alpha5(claim) or (present is not None and present.status != "Unknown"):
        return (), now
    if present is not None:
        return (), present.last_transition_time + SHORTEST_DRAIN
    message = "waiting for pods that kube-scheduler may still be binding"
    began = changed_condition(claim, DRAINED, "Unknown", now, reason="Draining", message=message)
    return (UpdateClaimStatus(cause_of(claim), claim.name, began),), now + SHORTEST_DRAIN


def _volumes_condition(view: ClaimView, node: Node, now: float) -> tuple[tuple[Condition, ...], bool]:
    """The condition on volumes, and whether the instance must wait for them.

    A volume that is attached cannot be attached elsewhere, and one that is cut off may lose writes.
    """
    claim, held = view.claim, view.attachments
    if not held:
        present = claim.condition(VOLUMES_DETACHED) is not None
        return (changed_condition(claim, VOLUMES_DETACHED, "True", now) if present else ()), False
    text = f"{len(held)} volumes are attached: {', '.join(held[:5])}"
    deadline, began = deadline_of(claim), node.deletion_timestamp or now
    if is_v1alpha5(claim):
        deadline = min(deadline or began + DETACH_PATIENCE, began + DETACH_PATIENCE)
    if deadline is not None and now > deadline:
        reason = "TerminationGracePeriodElapsed"
        return changed_condition(claim, VOLUMES_DETACHED, "False", now, reason=reason, message=text), False
    reason = "AwaitingVolumeDetachment"
    return changed_condition(claim, VOLUMES_DETACHED, "Unknown", now, reason=reason, message=text), True


def _deadline_to_stamp(claim: NodeClaim, now: float) -> tuple[Instruction, ...]:
    """The drain's deadline goes onto the claim; an earlier one that stands there already counts."""
    grace = grace_of(claim)
    if grace is None:
        return ()
    deadline = (claim.deletion_timestamp or now) + grace
    present = deadline_of(claim)
    if present is not None and present <= deadline:
        return ()
    return (AnnotateClaim(cause_of(claim), claim.name, {TERMINATION_TIMESTAMP: format_time(deadline)}),)


def cordon(claim: NodeClaim, node: Node) -> tuple[Instruction, ...]:
    """What a node lacks of the marks of a drain.

    No new pods, no traffic from load balancers: as each API generation marks it.
    """
    cause, labels = cause_of(claim), {EXCLUDE_BALANCERS: "karpenter"}
    if is_v1alpha5(claim):
        if node.unschedulable and EXCLUDE_BALANCERS in node.labels:
            return ()
        return (UpdateNode(cause, node.name, labels=labels, unschedulable=True, stage="cordoned node"),)
    if any(taint.matches(DISRUPTED) for taint in node.taints) and EXCLUDE_BALANCERS in node.labels:
        return ()
    taints = (*(taint for taint in node.taints if not taint.matches(DISRUPTED)), DISRUPTED)
    return (replace(set_taints(cause, node, taints, "tainted node"), labels=labels),)


def _drain(view: ClaimView, marks: tuple[Instruction, ...], waiting: tuple[Pod, ...], now: float) -> Step:
    claim, node = view.claim, view.node
    assert node is not None  # noqa: S101 - only nodes are drained
    cause = cause_of(claim)
    drain = last_drain(claim, node, now)
    asked, protected = requests_to_leave(
        claim,
        node,
        waiting,
        now,
        drain,
        view.surge_pending,
        view.surge_started,
        view.unmarked,
        view.first_bulk,
    )
    message = f"waiting for {len(waiting)} pods to leave: {list_keys(waiting)}"
    draining = changed_condition(claim, DRAINED, "Unknown", now, reason="Draining", message=message)
    status: tuple[Instruction, ...] = ()
    if draining:
        status = (
            UpdateClaimStatus(cause, claim.name, draining),
            PublishEvent(cause, "Node", node.name, "Normal", "Draining", message, uid=node.uid),
        )
    if protected:
        held = f"cannot drain: {'; '.join(protected[:5])}"
        status += (PublishEvent(cause, "Node", node.name, "Warning", "FailedDraining", held, uid=node.uid),)
    again = DRAIN_AGAIN if node.ready else TERMINATE_AGAIN
    return Step((*marks, *status, *asked, *_check_instance(claim, node)), now + again)


def _check_instance(claim: NodeClaim, node: Node) -> tuple[Instruction, ...]:
    """Perhaps a silent node has no machine any more on which anything could end: then nothing holds it."""
    return () if node.ready else (CheckInstance(cause_of(claim), claim.name, claim.instance_id),)


def _terminate(view: ClaimView, now: float) -> Step:
    """Terminate until the cloud says that nothing lives, then let the objects go: the claim after its node.

    Another's finalizer may hold the Node; as long as it is there its claim says what it was for.
    """
    claim, node = view.claim, view.node
    cause = cause_of(claim)
    if not view.instance_gone:
        conditions = changed_condition(claim, INSTANCE_TERMINATING, "True", now)
        status = (UpdateClaimStatus(cause, claim.name, conditions),) if conditions else ()
        terminate = TerminateInstance(cause, claim.name, claim.instance_id)
        return Step((*status, terminate), now + TERMINATE_AGAIN)
    nodes = [twin for twin in (node, *view.duplicates) if twin is not None]
    instructions: list[Instruction] = [
        RemoveFinalizer(cause, "Node", node.name, TERMINATION_FINALIZER, node.uid)
        for node in nodes
        if TERMINATION_FINALIZER in node.finalizers
    ]
    if not nodes and TERMINATION_FINALIZER in claim.finalizers:
        instructions.append(RemoveFinalizer(cause, "NodeClaim", claim.name, TERMINATION_FINALIZER, claim.uid))
    return Step(tuple(instructions), now + TERMINATE_AGAIN)
