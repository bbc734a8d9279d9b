"""When pods last came to each node or left it: `consolidateAfter` counts from there.

A pod leaves when it finishes or is deleted. What it takes to end after that is no event (Karpenter's rule,
which kubelets blur: they write that a deleted pod has finished): its successor is elsewhere by then.

The time stands in the claim's status, so that the next leader knows it; it is written every
ten seconds at most (Karpenter's period).
"""

from nodeless.model.nodes import NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.pools import PROVISIONER
from nodeless.model.snapshot import Snapshot
from nodeless.operator.clock import wall_clock

WRITE_SECONDS = 10.0


class PodEvents:
    """The last event of each claim, as this process saw it."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def observe(self, pod: Pod, before: Pod | None, snapshot: Snapshot) -> None:
        """A pod was seen: an event if it has come to a node, has finished, or was deleted."""
        if before is None or not pod.node_name:
            # One that is met for the first time may have run there for long.
            return
        if before.node_name != pod.node_name or (_has_left(pod) and not _has_left(before)):
            self._note(pod, snapshot)

    def note_gone(self, pod: Pod, snapshot: Snapshot) -> None:
        """A pod is gone: an event if nothing has announced it."""
        if pod.node_name and not _has_left(pod):
            self._note(pod, snapshot)

    def forget(self, claim_name: str) -> None:
        """The claim is gone."""
        self._last.pop(claim_name, None)

    def to_write(self, claim: NodeClaim, now: float) -> tuple[float | None, float | None]:
        """The time to write now, and in how many seconds to ask again; None each: nothing, never."""
        noted, written = self._last.get(claim.name), claim.last_pod_event
        if noted is None or claim.deletion_timestamp is not None:
            return None, None
        if written is not None and int(noted) <= int(written):
            self._last.pop(claim.name)
            return None, None
        wait = 0.0 if written is None else written + WRITE_SECONDS - now
        return (None, wait) if wait > 0 else (noted, None)

    def _note(self, pod: Pod, snapshot: Snapshot) -> None:
        node = snapshot.nodes.get(pod.node_name)
        claim = snapshot.claim_of(node) if node is not None else None
        # A Provisioner has no consolidateAfter.
        if claim is None or claim.pool.kind == PROVISIONER or pod.owned_by_daemon_set or pod.owned_by_node:
            return
        self._last[claim.name] = wall_clock()


def _has_left(pod: Pod) -> bool:
    return pod.terminal or pod.deletion_timestamp is not None
