"""Nodes without work end after `ttlSecondsAfterEmpty` (v1alpha5 Provisioner).

The moment at which a node became empty stands on it as annotation, so that a restart
of the controller does not begin the wait anew.
"""

from nodeless.api.times import format_time, parse_time
from nodeless.model.instructions import DeleteClaim, PublishEvent, UpdateNode
from nodeless.model.labels import EMPTINESS_TIMESTAMP, LAUNCHED_FOR_GANG, PAUSE
from nodeless.model.nodes import Node
from nodeless.model.pools import PROVISIONER
from nodeless.nodeclaim.view import ClaimView, Step, cause_of


def step_emptiness(view: ClaimView, now: float) -> Step:
    """Mark an empty node, unmark one that got work, end one whose time is up."""
    node, pool = view.node, view.pool
    if node is None or pool is None or pool.invalid or pool.reference.kind != PROVISIONER:
        # Without readable rules nothing ends, and what was counted so far stands. The empty nodes of a
        # NodePool end within its budgets: package `disruption`.
        return Step()
    marked = EMPTINESS_TIMESTAMP in node.annotations
    ttl = pool.ttl_seconds_after_empty
    cause = cause_of(view.claim)
    # Those of a gang that is not whole have a time of their own: `disruption.gangs`.
    kept = view.buffered or bool(view.claim.annotations.get(LAUNCHED_FOR_GANG))
    if ttl is None or kept or any(pod.occupies for pod in view.pods):
        if not marked:
            return Step()
        return Step(
            (
                UpdateNode(
                    cause, node.name, annotations={EMPTINESS_TIMESTAMP: None}, stage="removed TTL from node"
                ),
            )
        )
    if view.nominated_until > now:
        return Step(again_at=view.nominated_until)
    if not marked:
        stamp = {EMPTINESS_TIMESTAMP: format_time(now)}
        mark = UpdateNode(cause, node.name, annotations=stamp, stage="added TTL to empty node")
        return Step((mark,), now + ttl + 1)
    ends_at = _emptied_at(node) + ttl
    if now < ends_at:
        return Step(again_at=ends_at)
    if any(annotations.get(PAUSE) == "true" for annotations in (node.annotations, pool.own_annotations)):
        # The mark stays: once the brake is off, the time that the node has been empty counts.
        return Step()
    message = f"empty for {ttl} s (ttlSecondsAfterEmpty of {pool.reference})"
    return Step(
        (
            PublishEvent(
                cause, "Node", node.name, "Normal", "DeprovisioningTerminating", message, uid=node.uid
            ),
            DeleteClaim(cause, view.claim.name, "emptiness"),
        )
    )


def _emptied_at(node: Node) -> float:
    """When the annotation says; an unreadable one counts as long ago, as Karpenter has it."""
    try:
        return parse_time(node.annotations[EMPTINESS_TIMESTAMP])
    except ValueError:
        return 0.0
