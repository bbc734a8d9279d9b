"""The end of a claim's life span.

A NodePool's claim that is older than its `expireAfter` is deleted at once, whatever budgets
say. A Provisioner's node is only marked `expired`: package `disruption` replaces it first.
"""

from nodeless.model.instructions import DeleteClaim, PublishEvent, UpdateNode
from nodeless.model.labels import VOLUNTARY_DISRUPTION
from nodeless.nodeclaim.draining import is_v1alpha5
from nodeless.nodeclaim.view import ClaimView, Step, cause_of

_EXPIRED = "expired"


def expires_at(view: ClaimView) -> float | None:
    """When the claim's life ends; None: never.

    A NodePool's life span stands in the claim. A Provisioner's counts as it is now, from the
    creation of the node.
    """
    claim, pool = view.claim, view.pool
    if not is_v1alpha5(claim):
        return None if claim.expire_after is None else claim.created_at + claim.expire_after
    if pool is None or pool.invalid or pool.ttl_seconds_until_expired is None or view.node is None:
        return None
    return view.node.created_at + pool.ttl_seconds_until_expired


def step_expiration(view: ClaimView, now: float) -> Step:
    """Nothing before its time; then the end of a NodePool's claim, or the mark on a Provisioner's node."""
    claim, node = view.claim, view.node
    at = expires_at(view)
    if is_v1alpha5(claim):
        return _mark(view, at is not None and now > at, None if at is None or now > at else at)
    if at is None or now <= at:
        return Step(again_at=at)
    cause = cause_of(claim)
    message = f"claim {claim.name} has lived its {claim.expire_after} s (expireAfter)"
    kind, name, uid = ("Node", node.name, node.uid) if node else ("NodeClaim", claim.name, claim.uid)
    return Step(
        (
            PublishEvent(cause, kind, name, "Normal", "DisruptionTerminating", message, uid=uid),
            DeleteClaim(cause, claim.name, _EXPIRED),
        )
    )


def _mark(view: ClaimView, expired: bool, again_at: float | None) -> Step:
    node, pool = view.node, view.pool
    if node is None or pool is None or pool.invalid:
        return Step(again_at=again_at)
    present = node.annotations.get(VOLUNTARY_DISRUPTION)
    if present not in (None, _EXPIRED) or expired == (present == _EXPIRED):
        return Step(again_at=again_at)
    value = _EXPIRED if expired else None
    stage = "marked node expired" if expired else "node is not expired any more"
    update = UpdateNode(
        cause_of(view.claim), node.name, annotations={VOLUNTARY_DISRUPTION: value}, stage=stage
    )
    return Step((update,), again_at)
