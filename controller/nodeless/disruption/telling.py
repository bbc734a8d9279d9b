"""Events of a move under way: what each of its nodes waits for.

v0.27 knows them as Deprovisioning..., v1 as Disruption...: a node's are called as the generation of its pool
calls them.
"""

from collections.abc import Iterator

from nodeless.disruption.candidates import replacing
from nodeless.model.instructions import PublishEvent
from nodeless.model.nodes import INITIALIZED_CONDITION, Claim, Node
from nodeless.model.pools import PROVISIONER, Reference
from nodeless.model.snapshot import Snapshot

BLOCKED = "Blocked"


def reason_of(pool: Reference, what: str) -> str:
    """How the generation of a pool calls an event such as `Blocked`."""
    return f"{'Deprovisioning' if pool.kind == PROVISIONER else 'Disruption'}{what}"


def told(snapshot: Snapshot) -> tuple[PublishEvent, ...]:
    """The events of every move under way; equal ones are for the recorder to hold back."""
    return tuple(event for name in replacing(snapshot) for event in _of_replacement(snapshot, name))


def _of_replacement(snapshot: Snapshot, name: str) -> Iterator[PublishEvent]:
    claim = snapshot.claims[name]
    olds = [snapshot.claims[old] for old in claim.replaces if old in snapshot.claims]
    nodes = ", ".join(old.node_name for old in olds)
    node = snapshot.node_of(claim)
    if node is not None:
        yield _event(claim, node, "Launching", f"launched to replace {nodes}")
        if not claim.is_true(INITIALIZED_CONDITION):
            yield _event(claim, node, "WaitingReadiness", f"not initialised yet; {nodes} stay until it is")
    for old in olds:
        leaving = snapshot.node_of(old)
        if leaving is not None and old.deletion_timestamp is not None:
            yield _event(old, leaving, "WaitingDeletion", f"being removed; {name} has taken its place")


def _event(claim: Claim, node: Node, what: str, message: str) -> PublishEvent:
    reason = reason_of(claim.pool, what)
    return PublishEvent(
        f"disruption:{claim.name}", "Node", node.name, "Normal", reason, message, uid=node.uid
    )
