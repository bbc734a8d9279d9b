"""Events of a command under way: what each of its nodes waits for; and of annotations that say nothing.

v0.27 knows the former as Deprovisioning..., v1 as Disruption...: a node's are called as the generation of
its pool calls them.
"""

from collections.abc import Iterator

from nodeless.disruption.candidates import claims_by_replacement
from nodeless.model.instructions import PublishEvent
from nodeless.model.labels import CHECKPOINT_GRACE, DO_NOT_DISRUPT
from nodeless.model.nodes import INITIALIZED_CONDITION, Node, NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.pools import PROVISIONER, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.checkpoints import invalid_checkpoint_grace
from nodeless.scheduling.pods.lost_work import invalid_lost_work
from nodeless.state.protection import unreadable_protection

BLOCKED = "Blocked"


def reason_of(pool: Reference, what: str) -> str:
    """How the generation of a pool calls an event such as `Blocked`."""
    return f"{'Deprovisioning' if pool.kind == PROVISIONER else 'Disruption'}{what}"


def command_events(snapshot: Snapshot) -> tuple[PublishEvent, ...]:
    """The events of every command under way; equal ones are for the recorder to hold back."""
    return tuple(
        event for name in claims_by_replacement(snapshot) for event in _of_replacement(snapshot, name)
    )


def invalid_annotation_events(snapshot: Snapshot) -> tuple[PublishEvent, ...]:
    """A warning for each annotation of a pod whose value means nothing, once it is looked at.

    What interruptions lose is looked at before the pod has a node, all else while it runs.
    """
    pods = [pod for pod in snapshot.pods.values() if pod.annotations and not pod.terminal]
    return tuple(event for pod in sorted(pods, key=lambda pod: pod.key) for event in _invalid(pod))


def _invalid(pod: Pod) -> Iterator[PublishEvent]:
    if (problem := invalid_lost_work(pod)) is not None:
        yield _warning(pod, "InvalidLostWork", problem)
    if not pod.node_name:
        return
    if (value := unreadable_protection(pod)) is not None:
        message = f"{DO_NOT_DISRUPT}={value!r} protects nothing; hint: write true, or a duration such as 30m"
        yield _warning(pod, "InvalidDoNotDisruptAnnotation", message)
    if (value := invalid_checkpoint_grace(pod)) is not None:
        message = f"{CHECKPOINT_GRACE}={value[:64]!r} gives no time; hint: write a duration such as 10m"
        yield _warning(pod, "InvalidCheckpointGrace", message)


def _warning(pod: Pod, reason: str, message: str) -> PublishEvent:
    return PublishEvent(
        "disruption", "Pod", pod.name, "Warning", reason, message, namespace=pod.namespace, uid=pod.uid
    )


def _of_replacement(snapshot: Snapshot, name: str) -> Iterator[PublishEvent]:
    claim = snapshot.claims[name]
    olds = [snapshot.claims[old] for old in claim.replaces if old in snapshot.claims]
    nodes = ", ".join(old.node_name for old in olds)
    node, is_ready = snapshot.node_of(claim), claim.is_true(INITIALIZED_CONDITION)
    if node is not None:
        yield _event(claim, node, "Launching", f"launched to replace {nodes}")
        # One that is interrupted meanwhile waits for nobody.
        staying = ", ".join(old.node_name for old in olds if old.deletion_timestamp is None)
        if staying and not is_ready:
            yield _event(claim, node, "WaitingReadiness", f"not initialized yet; {staying} stay until it is")
    for old in olds:
        leaving = snapshot.node_of(old)
        if is_ready and leaving is not None and old.deletion_timestamp is not None:
            yield _event(old, leaving, "WaitingDeletion", f"being removed; {name} has taken its place")


def _event(claim: NodeClaim, node: Node, what: str, message: str) -> PublishEvent:
    reason = reason_of(claim.pool, what)
    return PublishEvent(
        f"disruption:{claim.name}", "Node", node.name, "Normal", reason, message, uid=node.uid
    )
