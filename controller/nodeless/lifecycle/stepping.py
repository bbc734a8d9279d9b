"""The order of the stages: ending goes before joining, joining before emptiness."""

from nodeless.lifecycle.emptiness import step_emptiness
from nodeless.lifecycle.joining import (
    step_initialization,
    step_launch,
    step_registration,
    step_vanished_node,
)
from nodeless.lifecycle.termination import step_termination
from nodeless.lifecycle.view import ClaimView, Step, cause_of
from nodeless.model.instructions import DeleteClaim, RemoveFinalizer
from nodeless.model.labels import TERMINATION_FINALIZER
from nodeless.model.nodes import INITIALIZED_CONDITION, LAUNCHED, REGISTERED_CONDITION, Node


def step(view: ClaimView, now: float) -> Step:
    """What a claim needs next."""
    claim, node = view.claim, view.node
    if claim.deletion_timestamp is not None:
        return step_termination(view, now)
    if node is not None and node.deletion_timestamp is not None:
        # Deleted by kubectl or another tool: the claim ends with its node, by the same road.
        return Step((DeleteClaim(cause_of(claim), claim.name, "node_deleted"),))
    if not claim.is_true(LAUNCHED):
        return step_launch(view, now)
    if not claim.is_true(REGISTERED_CONDITION):
        return step_registration(view, now)
    if node is None:
        return step_vanished_node(view, now)
    if not claim.is_true(INITIALIZED_CONDITION):
        return step_initialization(view, now)
    return step_emptiness(view, now)


def step_orphan(node: Node) -> Step:
    """A node that carries our finalizer but has no claim any more: let it go once it is deleted.

    Happens only when somebody took the finalizer off the claim by hand; its instance is the collector's.
    """
    if node.deletion_timestamp is None or TERMINATION_FINALIZER not in node.finalizers:
        return Step()
    return Step((RemoveFinalizer(f"node:{node.name}", "Node", node.name, TERMINATION_FINALIZER),))
