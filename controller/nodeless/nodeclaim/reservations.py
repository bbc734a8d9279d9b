"""What follows when the capacity reservation of a node ends, and labels that only EC2 can tell.

| what is seen | what is done |
|---|---|
| the instance is in its reservation no more | claim and node become on-demand, which is what EC2 charges |
| the instance is in a capacity block whose end is known | the claim says when its instance ends |
| the capacity block ends in 40 minutes | the claim is deleted: EC2 ends its instances 10 minutes later |
| a pod needs longer to save its work (`checkpoints`) | the claim is deleted so much sooner |
| EC2 chose a partition of the placement group | claim and node say which |
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeless.api.times import format_time
from nodeless.model.instructions import (
    AnnotateClaim,
    DeleteClaim,
    Instruction,
    LabelClaim,
    PublishEvent,
    UpdateNode,
)
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_TYPE,
    INSTANCE_ENDS,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    RESERVATION_LABELS,
    RESERVED,
)
from nodeless.model.nodes import LAUNCHED, Instance, Node, NodeClaim
from nodeless.model.placement import DRAIN_AHEAD, END_AHEAD, CapacityReservation
from nodeless.model.pods import Pod
from nodeless.nodeclaim.checkpoints import checkpoint_grace
from nodeless.nodeclaim.view import cause_of

#: Reason of the deletion, as in the label of `karpenter_nodes_terminated`.
REASON = "capacity_reservation_expiring"


@dataclass(frozen=True, slots=True)
class ReservationView:
    """A claim with what EC2 says of its instance and of the reservations of its node class."""

    claim: NodeClaim
    node: Node | None
    instance: Instance | None
    reservations: Mapping[str, CapacityReservation]
    pods: tuple[Pod, ...] = ()
    """Those of the node."""


def is_concerned(claim: NodeClaim) -> bool:
    """Whether there is anything to look at: a reservation, or a partition that is not known."""
    if not claim.is_true(LAUNCHED) or claim.deletion_timestamp is not None:
        return False
    labels = claim.labels
    unknown = PLACEMENT_GROUP_ID in labels and PLACEMENT_GROUP_PARTITION not in labels
    return labels.get(CAPACITY_TYPE) == RESERVED or unknown


def step_reservation(view: ReservationView, now: float) -> tuple[Instruction, ...]:
    """What to do about one claim."""
    claim = view.claim
    if not is_concerned(claim):
        return ()
    reservation = view.reservations.get(claim.labels.get(CAPACITY_RESERVATION_ID, ""))
    ends = reservation.instances_end if reservation is not None else None
    noted = _note_end(claim, ends)
    if reservation is not None and ends is not None and now >= ends - _drain_seconds(view.pods):
        return (*noted, *_end(view, reservation))
    return (*noted, *_step_labels(view))


def _note_end(claim: NodeClaim, ends: float | None) -> tuple[Instruction, ...]:
    """A block may be extended: what EC2 says last counts."""
    text = format_time(ends) if ends is not None else None
    if text is None or claim.annotations.get(INSTANCE_ENDS) == text:
        return ()
    return (AnnotateClaim(cause_of(claim), claim.name, {INSTANCE_ENDS: text}),)


def _drain_seconds(pods: Iterable[Pod]) -> float:
    """How long before the end of the instance its drain begins: as long as a pod needs to save its work."""
    needed = (checkpoint_grace(pod) + pod.grace_period_seconds for pod in pods if checkpoint_grace(pod))
    return max(DRAIN_AHEAD - END_AHEAD, *needed, 0.0)


def _step_labels(view: ReservationView) -> tuple[Instruction, ...]:
    claim = view.claim
    if view.instance is None:
        return ()
    if claim.labels.get(CAPACITY_TYPE) == RESERVED and view.instance.capacity_type != RESERVED:
        gone: dict[str, str | None] = dict.fromkeys(RESERVATION_LABELS)
        text = "not in its capacity reservation any more: runs on as on-demand"
        return _label(view, {CAPACITY_TYPE: view.instance.capacity_type, **gone}, text)
    partition = view.instance.labels.get(PLACEMENT_GROUP_PARTITION)
    if partition and PLACEMENT_GROUP_PARTITION not in claim.labels:
        return _label(view, {PLACEMENT_GROUP_PARTITION: partition}, f"in partition {partition}")
    return ()


def _label(view: ReservationView, labels: Mapping[str, str | None], stage: str) -> tuple[Instruction, ...]:
    """The node first: a claim that is told apart already is not looked at again."""
    cause = cause_of(view.claim)
    on_node = () if view.node is None else (UpdateNode(cause, view.node.name, labels=labels, stage=stage),)
    return (*on_node, LabelClaim(cause, view.claim.name, labels))


def _end(view: ReservationView, reservation: CapacityReservation) -> tuple[Instruction, ...]:
    claim, cause = view.claim, cause_of(view.claim)
    text = f"draining: capacity block {reservation.id} ends, and EC2 ends its instances half an hour before"
    events = PublishEvent(
        cause, "NodeClaim", claim.name, "Warning", "CapacityReservationExpiring", text, uid=claim.uid
    )
    return (events, DeleteClaim(cause, claim.name, REASON))
