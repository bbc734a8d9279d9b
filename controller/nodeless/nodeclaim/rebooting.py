"""A machine that is started anew in place, because a reboot mends what is broken on it.

```
RebootRequested --> fence taint, drain (at least 5 s; a grace of 0 skips it) --> asked of the cloud
RebootIssued    --> Initialized is Unknown; boot id changed and Ready --> fence off --> Rebooting=False
                --> not asked for within 5 min, or not back within 20 --> the claim is deleted
```

All of it stands on the claim: the condition `Rebooting`, the boot id before, as Karpenter 1.15 has it
(`karpenter.sh/reboot-pre-boot-id`), and when reboots were asked for (`nodeless.dev/reboots`), written before
the cloud is asked. A leader that dies between the two asks again, unless the boot id says that it is done.
Figures: Karpenter core 1.15.

Its pods wait for it: the node counts as room that boots, so no other capacity is bought for them, and a
single replica gets no successor first (there would be no room for one but here). While a disruption budget
holds a pod on it, it is no room: the pod may leave only once others of its workload run elsewhere.
"""

from nodeless.api.times import format_time, parse_time
from nodeless.model.disruption import DisruptionReason
from nodeless.model.instructions import (
    AnnotateClaim,
    DeleteClaim,
    Instruction,
    PublishEvent,
    RebootInstance,
    UpdateClaimStatus,
    UpdateNode,
    set_taints,
)
from nodeless.model.labels import REBOOTED_FROM, REBOOTS
from nodeless.model.nodes import (
    DISRUPTION_REASON,
    INITIALIZED_CONDITION,
    READY,
    REBOOT_FENCE,
    REBOOT_REQUESTED,
    REBOOTING,
    Condition,
    Node,
    NodeClaim,
)
from nodeless.nodeclaim.draining import Drain, delays_drain, grace_of, list_keys, requests_to_leave
from nodeless.nodeclaim.view import ClaimView, Step, cause_of, changed_condition

ISSUED, SUCCEEDED = "RebootIssued", "RebootSucceeded"
OBSERVED = "RebootObserved"
#: The drain takes at least so long: pods that the scheduler is binding meanwhile are seen.
SHORTEST_DRAIN = 5.0
#: Reboots older than this do not count any more.
HISTORY_SECONDS = 24 * 3600.0
_DRAIN_AGAIN = 1.0
_LOOK_AGAIN = 30.0
_ASK_AGAIN = 5.0


def reboots_of(claim: NodeClaim, now: float) -> tuple[float, ...]:
    """When reboots of a claim's machine were asked for within the last 24 hours, the oldest first."""
    times = []
    for text in claim.annotations.get(REBOOTS, "").split(","):
        try:
            times.append(parse_time(text))
        except ValueError:
            continue
    return tuple(sorted(time_ for time_ in times if now - time_ < HISTORY_SECONDS))


def rebooted_at(claim: NodeClaim) -> float:
    """When its last reboot was over; 0 when there was none."""
    condition = claim.condition(REBOOTING)
    over = condition is not None and condition.status == "False"
    return condition.last_transition_time if condition is not None and over else 0.0


def request_reboot(claim: NodeClaim, node: Node, message: str, now: float) -> tuple[Instruction, ...]:
    """The request for a reboot: from here on the claim's own steps carry it out, whoever leads."""
    cause, why = cause_of(claim), DisruptionReason.UNHEALTHY
    condition = (
        *changed_condition(claim, DISRUPTION_REASON, "True", now, reason=why, message=message),
        *changed_condition(claim, REBOOTING, "True", now, reason=REBOOT_REQUESTED, message=message),
    )
    return (
        AnnotateClaim(cause, claim.name, {REBOOTED_FROM: node.boot_id}),
        UpdateClaimStatus(cause, claim.name, condition),
        _events(claim, node, "Normal", REBOOT_REQUESTED, message),
    )


def step_rebooting(view: ClaimView, now: float) -> Step:
    """The next step of a claim whose condition `Rebooting` is true."""
    claim, node, condition = view.claim, view.node, view.claim.condition(REBOOTING)
    if node is None or condition is None:
        return Step((), now + _LOOK_AGAIN)
    if condition.reason == ISSUED or _has_booted(claim, node):
        return _await_reboot(claim, node, condition, now, view.deadlines.reboot)
    fence = () if REBOOT_FENCE in node.taints else (_fence_node(claim, node),)
    since, grace = condition.last_transition_time, grace_of(claim)
    if grace != 0:
        # After the bound what is left rides the reboot: it is evicted, and never deleted.
        drain = Drain(REBOOT_FENCE, since, None, stops=None if grace is None else since + grace)
        waiting = tuple(pod for pod in view.pods if delays_drain(pod, drain.taint, now))
        if waiting and (grace is None or now <= since + grace):
            message = f"{_fault(condition)}; waiting for {len(waiting)} pods to leave: {list_keys(waiting)}"
            status = _with_reason(claim, REBOOT_REQUESTED, message, now)
            asked, protected = requests_to_leave(claim, node, waiting, now, drain, unmarked=view.unmarked)
            held = f"cannot drain: {'; '.join(protected[:5])}"
            events = (_events(claim, node, "Warning", "FailedDraining", held),) if protected else ()
            return Step((*fence, *status, *events, *asked), now + _DRAIN_AGAIN)
        if now < since + SHORTEST_DRAIN:
            return Step(fence, since + SHORTEST_DRAIN)
    return _issue_reboot(claim, node, fence, condition, now, view.deadlines.reboot_request)


def _issue_reboot(
    claim: NodeClaim,
    node: Node,
    fence: tuple[Instruction, ...],
    condition: Condition,
    now: float,
    patience: float,
) -> Step:
    history = reboots_of(claim, now)
    attempts = tuple(each for each in history if each >= int(condition.last_transition_time))
    if attempts and now > attempts[0] + patience:
        return _fail_reboot(claim, node, f"could not be asked for within {patience:.0f} s")
    cause = cause_of(claim)
    noted = ",".join(format_time(at) for at in (*history, now))
    record = () if attempts else (AnnotateClaim(cause, claim.name, {REBOOTS: noted}),)
    message = f"instance {claim.instance_id} is being rebooted"
    return Step(
        (
            *fence,
            *record,
            RebootInstance(cause, claim.name, claim.instance_id),
            *_with_reason(claim, ISSUED, f"{_fault(condition)}; {message}", now),
            _events(claim, node, "Normal", ISSUED, message),
        ),
        now + _ASK_AGAIN,
    )


def _await_reboot(claim: NodeClaim, node: Node, condition: Condition, now: float, patience: float) -> Step:
    if _has_booted(claim, node) and node.ready:
        # Over only once the fence is seen to be gone: a write that meets another one is made again.
        return _lift_fence(claim, node, now) if REBOOT_FENCE in node.taints else _end_reboot(claim, node, now)
    deadline = _asked_at(claim, condition, now) + patience
    if now > deadline:
        return _fail_reboot(claim, node, f"is not back within {patience:.0f} s")
    message = f"{_fault(condition)}; instance {claim.instance_id} is being rebooted"
    return Step(_with_reason(claim, ISSUED, message, now), min(deadline + 1, now + _LOOK_AGAIN))


def _lift_fence(claim: NodeClaim, node: Node, now: float) -> Step:
    others = tuple(taint for taint in node.taints if not taint.matches(REBOOT_FENCE))
    lifted = set_taints(cause_of(claim), node, others, "node is back from its reboot")
    return Step((lifted,), now + _ASK_AGAIN)


def _end_reboot(claim: NodeClaim, node: Node, now: float) -> Step:
    message = f"instance {claim.instance_id} is back with boot id {node.boot_id}"
    over = changed_condition(claim, REBOOTING, "False", now, reason=SUCCEEDED, message=message)
    return Step(
        (
            UpdateClaimStatus(cause_of(claim), claim.name, over),
            AnnotateClaim(cause_of(claim), claim.name, {REBOOTED_FROM: None}),
            _events(claim, node, "Normal", OBSERVED, message),
        ),
        now,
    )


def _asked_at(claim: NodeClaim, condition: Condition, now: float) -> float:
    initialized = claim.condition(INITIALIZED_CONDITION)
    accepted = 0.0
    if initialized is not None and (initialized.status, initialized.reason) == ("Unknown", REBOOTING):
        accepted = initialized.last_transition_time
    return max(condition.last_transition_time, accepted, *reboots_of(claim, now)[-1:])


def _fault(condition: Condition) -> str:
    """The fault for which the reboot was requested, which all later messages begin with."""
    return condition.message.partition("; ")[0]


def _has_booted(claim: NodeClaim, node: Node) -> bool:
    """Whether the kernel is another one than when the reboot was asked for."""
    return bool(node.boot_id) and node.boot_id != claim.annotations.get(REBOOTED_FROM, node.boot_id)


def _with_reason(claim: NodeClaim, reason: str, message: str, now: float) -> tuple[Instruction, ...]:
    """The condition, and from the reboot on that the node is not known to be initialized."""
    conditions = changed_condition(claim, REBOOTING, "True", now, reason=reason, message=message)
    if reason == ISSUED:
        for type_ in (INITIALIZED_CONDITION, READY):
            conditions += changed_condition(claim, type_, "Unknown", now, reason=REBOOTING, message=message)
    return (UpdateClaimStatus(cause_of(claim), claim.name, conditions),) if conditions else ()


def _fence_node(claim: NodeClaim, node: Node) -> UpdateNode:
    return set_taints(cause_of(claim), node, (*node.taints, REBOOT_FENCE), "fenced node for its reboot")


def _fail_reboot(claim: NodeClaim, node: Node, what: str) -> Step:
    message = f"the reboot of instance {claim.instance_id} {what}: the node is ended"
    return Step(
        (
            _events(claim, node, "Warning", "RebootFailed", message),
            DeleteClaim(cause_of(claim), claim.name, "reboot_failed"),
        )
    )


def _events(claim: NodeClaim, node: Node, type_: str, reason: str, message: str) -> PublishEvent:
    return PublishEvent(cause_of(claim), "Node", node.name, type_, reason, message, uid=node.uid)
