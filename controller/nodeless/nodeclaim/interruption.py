"""What follows from a warning about an instance: its claim is deleted, so that the node is drained in time.

| warning | event on the node | claim |
|---|---|---|
| spot interruption | InstanceSpotInterrupted | deleted; its spot offering is left alone for a while |
| rebalance recommendation | InstanceSpotRebalanceRecommendation | kept: EC2 only guesses |
| scheduled change | InstanceUnhealthy | deleted |
| state: stopping, stopped | InstanceStopping | deleted |
| state: shutting-down, terminated | InstanceTerminating | deleted |
| reservation interruption | InstanceReservationInterrupted | deleted; the reservation is left alone a while |
| status checks fail | InstanceUnhealthy | deleted, without waiting for its drain; kept while it is rebooted |

A claim that is being deleted already is left to its own end: our own terminations come
back as warnings, and a warning may come twice. Only the drain of an instance whose status
checks fail is cut short then, too. Where pods of its node take time to save their work
(`checkpoints`), the claim is told when its instance ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nodeless.api.times import format_time
from nodeless.model.instructions import AnnotateClaim, DeleteClaim, Instruction, PublishEvent
from nodeless.model.interruptions import Interruption, InterruptionKind
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_TYPE,
    INSTANCE_ENDS,
    INSTANCE_TYPE,
    SPOT,
    TERMINATION_TIMESTAMP,
    ZONE,
)
from nodeless.model.nodes import REBOOTING, NodeClaim
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.checkpoints import checkpoint_grace, instance_ends
from nodeless.nodeclaim.draining import deadline_of
from nodeless.nodeclaim.view import cause_of

#: Reason of the deletion, as in the label of `karpenter_nodes_terminated`.
REASON = "interruption"
#: Seconds from EC2's notice to the end of the instance, by what the notice says; others name no moment.
_NOTICE = {
    InterruptionKind.SPOT_INTERRUPTION: 120.0,
    InterruptionKind.RESERVATION_INTERRUPTION: 120.0,
    InterruptionKind.STATE_CHANGE: 0.0,
}


@dataclass(frozen=True, slots=True)
class Reaction:
    """What to do about one warning.

    `offerings` are (instance type, zone, capacity type) to leave alone, `reservations` ids of capacity
    reservations; `drained` and `ignored` count the warned instances that are ours.
    """

    instructions: tuple[Instruction, ...] = ()
    offerings: tuple[tuple[str, str, str], ...] = ()
    drained: int = 0
    ignored: int = 0
    reservations: tuple[str, ...] = ()


def claims_by_instance(snapshot: Snapshot) -> dict[str, NodeClaim]:
    """Claims that have an instance, by its id."""
    return {claim.instance_id: claim for claim in snapshot.claims.values() if claim.provider_id}


def react_to_warning(snapshot: Snapshot, claims: Mapping[str, NodeClaim], warning: Interruption) -> Reaction:
    """The reaction to a warning; instances that are not in `claims` are somebody else's."""
    instructions: list[Instruction] = []
    offerings: list[tuple[str, str, str]] = []
    reservations: list[str] = []
    drained = ignored = 0
    for instance_id in warning.instance_ids:
        claim = claims.get(instance_id)
        if claim is None:
            continue
        if warning.kind is InterruptionKind.SPOT_INTERRUPTION:
            offerings += _spot_offering(claim)
        if warning.kind is InterruptionKind.RESERVATION_INTERRUPTION:
            reservations += filter(None, (claim.labels.get(CAPACITY_RESERVATION_ID),))
        ends = warning.kind is not InterruptionKind.REBALANCE_RECOMMENDATION
        # Status checks fail while a machine boots: a reboot has a deadline of its own.
        rebooting = warning.kind is InterruptionKind.IMPAIRED and claim.is_true(REBOOTING)
        if claim.deletion_timestamp is not None or rebooting:
            ignored += 1
            instructions += _end_of_instance(snapshot, claim, warning)
            if not rebooting and (stamp := _end_of_drain(claim, warning)):
                instructions += (*_warning_events(snapshot, claim, warning), *stamp)
            continue
        instructions += _warning_events(snapshot, claim, warning)
        if not ends:
            ignored += 1
            continue
        drained += 1
        instructions += _end_of_instance(snapshot, claim, warning)
        instructions += _end_of_drain(claim, warning)
        instructions.append(DeleteClaim(cause_of(claim), claim.name, REASON))
        instructions += _events(
            snapshot,
            claim,
            "Warning",
            "NodeTerminatingOnInterruption",
            f"draining: instance {instance_id} is about to go",
        )
    return Reaction(tuple(instructions), tuple(offerings), drained, ignored, tuple(reservations))


def _spot_offering(claim: NodeClaim) -> list[tuple[str, str, str]]:
    labels = claim.labels
    if labels.get(CAPACITY_TYPE) != SPOT or ZONE not in labels or INSTANCE_TYPE not in labels:
        return []
    return [(labels[INSTANCE_TYPE], labels[ZONE], SPOT)]


def _end_of_instance(snapshot: Snapshot, claim: NodeClaim, warning: Interruption) -> tuple[Instruction, ...]:
    """The end of its instance goes onto a claim whose drain gives pods time; an earlier one there counts."""
    node = snapshot.node_of(claim)
    if node is None or warning.kind not in _NOTICE:
        return ()
    if not any(checkpoint_grace(pod) for pod in snapshot.pods_on(node.name) if not pod.terminal):
        return ()
    ends = (warning.sent_at or 0.0) + _NOTICE[warning.kind]
    known = instance_ends(claim)
    if known is not None and known <= ends:
        return ()
    return (AnnotateClaim(cause_of(claim), claim.name, {INSTANCE_ENDS: format_time(ends)}),)


def _end_of_drain(claim: NodeClaim, warning: Interruption) -> tuple[Instruction, ...]:
    """The drain of an instance that fails is over at once: nobody is left on it to end the pods."""
    ends, known = warning.sent_at or 0.0, deadline_of(claim)
    if warning.kind is not InterruptionKind.IMPAIRED or (known is not None and known <= ends):
        return ()
    return (AnnotateClaim(cause_of(claim), claim.name, {TERMINATION_TIMESTAMP: format_time(ends)}),)


def _warning_events(snapshot: Snapshot, claim: NodeClaim, warning: Interruption) -> list[Instruction]:
    instance = f"instance {claim.instance_id}"
    match warning.kind:
        case InterruptionKind.SPOT_INTERRUPTION:
            text = ("Warning", "InstanceSpotInterrupted", f"EC2 takes spot {instance} back in two minutes")
        case InterruptionKind.REBALANCE_RECOMMENDATION:
            reason = "InstanceSpotRebalanceRecommendation"
            text = ("Normal", reason, f"spot {instance} is more likely than others to be interrupted")
        case InterruptionKind.SCHEDULED_CHANGE:
            text = ("Warning", "InstanceUnhealthy", f"AWS has scheduled maintenance of {instance}")
        case InterruptionKind.IMPAIRED:
            text = (
                "Warning",
                "InstanceUnhealthy",
                f"the status checks of {instance} have failed for minutes",
            )
        case InterruptionKind.RESERVATION_INTERRUPTION:
            reason = "InstanceReservationInterrupted"
            text = ("Warning", reason, f"the capacity reservation of {instance} is being taken back")
        case _ if warning.state in {"stopping", "stopped"}:
            text = ("Warning", "InstanceStopping", f"{instance} is {warning.state}")
        case _:
            text = ("Warning", "InstanceTerminating", f"{instance} is {warning.state}")
    return _events(snapshot, claim, *text)


def _events(snapshot: Snapshot, claim: NodeClaim, type_: str, reason: str, message: str) -> list[Instruction]:
    """The same event on the claim and, once it has joined, on its node."""
    cause = cause_of(claim)
    events: list[Instruction] = [
        PublishEvent(cause, "NodeClaim", claim.name, type_, reason, message, uid=claim.uid)
    ]
    node = snapshot.node_of(claim)
    if node is not None:
        events.append(PublishEvent(cause, "Node", node.name, type_, reason, message, uid=node.uid))
    return events
