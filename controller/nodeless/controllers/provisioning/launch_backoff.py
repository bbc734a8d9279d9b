"""Slow down where new nodes do not help.

A node may turn out to offer less than its type promised, or the scheduler may know a
reason that the plan does not. Then the pod stays pending beside a node that was launched
for it, and every pass would launch one more. From the second such node on, the next one
waits: 20 seconds, then twice as long each time, five minutes at most.
"""

from dataclasses import dataclass

from nodeless.model.nodes import REGISTERED_CONDITION
from nodeless.model.plan import PlannedNode
from nodeless.model.snapshot import Snapshot

_FIRST_WAIT = 20.0
_LONGEST_WAIT = 300.0


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The last node launched for a pod; `in_vain` counts those before it that joined and were no help."""

    claim: str
    in_vain: int
    not_before: float


class LaunchBackoff:
    """Remembers, by pod uid, which claim was made for it."""

    def __init__(self) -> None:
        self._attempts: dict[str, _Attempt] = {}

    def wait_for(self, node: PlannedNode, snapshot: Snapshot, now: float) -> float:
        """Seconds to wait before launching for these pods; 0 when one of them may have its node now."""
        waits = [self._wait(snapshot.pods[key].uid, now) for key in node.pods if key in snapshot.pods]
        return min(waits, default=0.0)

    def _wait(self, uid: str, now: float) -> float:
        attempt = self._attempts.get(uid)
        return 0.0 if attempt is None else max(attempt.not_before - now, 0.0)

    def note_launch(self, claim_name: str, node: PlannedNode, snapshot: Snapshot, now: float) -> None:
        """A claim was made for a planned node."""
        for key in node.pods:
            pod = snapshot.pods.get(key)
            if pod is None or pod.node_name:
                continue
            before = self._attempts.get(pod.uid)
            in_vain = 0 if before is None else before.in_vain + _has_joined(snapshot, before.claim)
            wait = min(_FIRST_WAIT * 2 ** (in_vain - 1), _LONGEST_WAIT) if in_vain else 0.0
            self._attempts[pod.uid] = _Attempt(claim_name, in_vain, now + wait)

    def forget(self, uid: str) -> None:
        """The pod has a node, or is gone."""
        self._attempts.pop(uid, None)


def _has_joined(snapshot: Snapshot, claim_name: str) -> bool:
    claim = snapshot.claims.get(claim_name)
    return claim is not None and claim.is_true(REGISTERED_CONDITION)
