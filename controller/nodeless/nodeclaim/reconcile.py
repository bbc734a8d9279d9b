"""The order of the stages: ending goes before joining, joining before the rules of a working node."""

from collections.abc import Iterable

from nodeless.model.instructions import DeleteClaim, Instruction, UpdateClaimStatus
from nodeless.model.nodes import INITIALIZED_CONDITION, LAUNCHED, REBOOTING, REGISTERED_CONDITION
from nodeless.nodeclaim.consistency import step_consistency
from nodeless.nodeclaim.consolidatable import step_consolidatable
from nodeless.nodeclaim.emptiness import step_emptiness
from nodeless.nodeclaim.expiration import step_expiration
from nodeless.nodeclaim.finalizers import step_finalizers
from nodeless.nodeclaim.rebooting import step_rebooting
from nodeless.nodeclaim.registration import (
    step_initialization,
    step_launch,
    step_registration,
    step_vanished_node,
)
from nodeless.nodeclaim.startup_taints import step_opening
from nodeless.nodeclaim.termination import step_termination
from nodeless.nodeclaim.view import ClaimView, Step, cause_of


def step(view: ClaimView, now: float) -> Step:
    """What a claim needs next."""
    claim, node = view.claim, view.node
    if claim.deletion_timestamp is not None:
        return step_termination(view, now)
    if node is not None and node.deletion_timestamp is not None:
        # Deleted by kubectl or another tool: the claim ends with its node, by the same road.
        return Step((DeleteClaim(cause_of(claim), claim.name, "node_deleted"),))
    if claim.invalid:
        # Nothing is decided about what cannot be read; it stays as it is.
        return Step()
    expiration = step_expiration(view, now)
    if any(isinstance(instruction, DeleteClaim) for instruction in expiration.instructions):
        return expiration
    return _together(
        (
            expiration,
            step_finalizers(view),
            _step_living(view, now),
            step_consistency(view, now),
            step_consolidatable(view, now),
        )
    )


def _step_living(view: ClaimView, now: float) -> Step:
    claim = view.claim
    if not claim.is_true(LAUNCHED):
        return step_launch(view, now)
    if not claim.is_true(REGISTERED_CONDITION):
        return step_registration(view, now)
    if view.node is None:
        return step_vanished_node(view, now)
    if claim.is_true(REBOOTING):
        return step_rebooting(view, now)
    if not claim.is_true(INITIALIZED_CONDITION):
        opening = step_opening(view, now)
        if opening.instructions or (opening.again_at is not None and view.node.ready):
            return opening
        return _together((opening, step_initialization(view, now)))
    return step_emptiness(view, now)


def _together(steps: Iterable[Step]) -> Step:
    """All their instructions in order, neighboring writes of one status as one; the earliest time counts."""
    some = tuple(steps)
    times = [each.again_at for each in some if each.again_at is not None]
    instructions: list[Instruction] = []
    for instruction in (instruction for each in some for instruction in each.instructions):
        before = instructions[-1] if instructions else None
        if isinstance(before, UpdateClaimStatus) and isinstance(instruction, UpdateClaimStatus):
            instructions[-1] = _as_one(before, instruction)
        else:
            instructions.append(instruction)
    return Step(tuple(instructions), min(times, default=None))


def _as_one(first: UpdateClaimStatus, second: UpdateClaimStatus) -> UpdateClaimStatus:
    """Two writes of one claim's status; the later one counts where both say something."""
    return UpdateClaimStatus(
        second.cause,
        second.name,
        (*first.conditions, *second.conditions),
        first.node_name if second.node_name is None else second.node_name,
        first.last_pod_event if second.last_pod_event is None else second.last_pod_event,
    )
