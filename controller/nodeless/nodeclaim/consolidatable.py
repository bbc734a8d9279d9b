"""The condition `Consolidatable`: nothing has changed on the node for as long as its pool wants."""

from nodeless.model.instructions import UpdateClaimStatus
from nodeless.model.nodes import CONSOLIDATABLE, INITIALIZED_CONDITION
from nodeless.nodeclaim.view import ClaimView, Step, cause_of, changed_condition
from nodeless.state.last_pod_event_time import consolidates_after, last_pod_event_time


def step_consolidatable(view: ClaimView, now: float) -> Step:
    """Keep the condition true to the claim; a pool that never consolidates has claims without it."""
    claim, pool = view.claim, view.pool
    if pool is None or pool.invalid or not claim.is_true(INITIALIZED_CONDITION):
        return Step()
    after, present = consolidates_after(pool), claim.condition(CONSOLIDATABLE)
    if after is None:
        if present is None:
            return Step()
        condition = changed_condition(claim, CONSOLIDATABLE, "False", now, reason="ConsolidationDisabled")
        return Step((UpdateClaimStatus(cause_of(claim), claim.name, condition),) if condition else ())
    wait = last_pod_event_time(claim) + after - now
    if wait <= 0:
        condition = changed_condition(claim, CONSOLIDATABLE, "True", now)
    elif present is not None:
        condition = changed_condition(claim, CONSOLIDATABLE, "False", now, reason="NotQuiet")
    else:
        condition = ()
    status = (UpdateClaimStatus(cause_of(claim), claim.name, condition),) if condition else ()
    return Step(status, now + wait if wait > 0 else None)
