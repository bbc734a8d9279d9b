"""An EC2NodeClass stays until its last claim is gone and what was made for it in the cloud is deleted.

An AWSNodeTemplate has nothing of its own in the cloud, and is let go at once.
"""

from nodeless.model.instructions import (
    AddFinalizer,
    CleanUpNodeClass,
    Instruction,
    PublishEvent,
    RemoveFinalizer,
)
from nodeless.model.labels import NODE_CLASS_FINALIZER
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass
from nodeless.model.snapshot import Snapshot

_MOST_SHOWN = 3


def step_node_class(snapshot: Snapshot, node_class: NodeClass) -> tuple[Instruction, ...]:
    """Protect a living node class; clean up after a deleted one that no claim uses, then let it go."""
    if node_class.reference.kind != EC2_NODE_CLASS:
        return ()
    cause, name = node_class.key, node_class.reference.name
    held = NODE_CLASS_FINALIZER in node_class.finalizers
    if node_class.deletion_timestamp is None:
        if held or snapshot.teardown:
            return ()
        return (AddFinalizer(cause, EC2_NODE_CLASS, name, NODE_CLASS_FINALIZER),)
    if not held:
        return ()
    waiting = sorted(
        claim.name for claim in snapshot.claims.values() if claim.node_class == node_class.reference
    )
    if not waiting:
        return release(cause, node_class)
    more = f", {len(waiting) - _MOST_SHOWN} more" if len(waiting) > _MOST_SHOWN else ""
    text = f"waits for the end of {', '.join(waiting[:_MOST_SHOWN])}{more}"
    uid = node_class.reference.uid
    return (
        PublishEvent(cause, EC2_NODE_CLASS, name, "Normal", "WaitingOnNodeClaimTermination", text, uid=uid),
    )


def release(cause: str, node_class: NodeClass) -> tuple[Instruction, ...]:
    """Clean up after a node class and let it go."""
    name = node_class.reference.name
    return (
        CleanUpNodeClass(cause, node_class),
        RemoveFinalizer(cause, EC2_NODE_CLASS, name, NODE_CLASS_FINALIZER),
    )


def protected_classes(snapshot: Snapshot) -> tuple[NodeClass, ...]:
    """The node classes that wait for a clean-up before they go, by name."""
    return tuple(
        each for _, each in sorted(snapshot.node_classes.items()) if NODE_CLASS_FINALIZER in each.finalizers
    )
