"""Time to save work: a pod says how long it needs before an eviction, and is told when that begins.

Opt-in, by the annotation `nodeless.dev/checkpoint-grace` (a duration, an hour at most). When such a pod is
about to be evicted it gets the condition `nodeless.dev/CheckpointRequested` and an event instead; it is
evicted once its grace is over. The condition is where the moment is kept: another leader goes on from it.
Nothing is waited for beyond the moment at which the pod must have left: the deadline of its drain, or the end
of the instance (`nodeless.dev/instance-ends` on the claim), less the pod's own grace period.
"""

import math

from nodeless.api.times import parse_life_span, parse_time
from nodeless.model.instructions import RequestCheckpoint
from nodeless.model.labels import CHECKPOINT_GRACE, INSTANCE_ENDS
from nodeless.model.nodes import NodeClaim
from nodeless.model.pods import Pod

#: Seconds that a pod is given at most, whatever it asks for.
LONGEST_GRACE = 3600


def checkpoint_grace(pod: Pod) -> int:
    """Seconds that a pod asks for before an eviction, `LONGEST_GRACE` at most; 0: it asks for none."""
    try:
        span = parse_life_span(pod.annotations.get(CHECKPOINT_GRACE, "0s"))
    except ValueError:
        return 0
    return LONGEST_GRACE if span is None else min(span, LONGEST_GRACE)


def invalid_checkpoint_grace(pod: Pod) -> str | None:
    """The value of a pod's annotation that is no duration; None where there is nothing wrong."""
    value = pod.annotations.get(CHECKPOINT_GRACE)
    if value is None:
        return None
    try:
        parse_life_span(value)
    except ValueError:
        return value
    return None


def instance_ends(claim: NodeClaim) -> float | None:
    """When a claim's instance ends whatever we do, in seconds since the epoch; None: not known."""
    try:
        return parse_time(claim.annotations.get(INSTANCE_ENDS, ""))
    except ValueError:
        return None


def told_at(pod: Pod, began: float) -> float | None:
    """When a pod was told to save its work in the drain that began then; what it was told before is over."""
    requested = pod.checkpoint_requested_at
    return requested if requested is not None and requested >= math.floor(began) else None


def request_checkpoint(
    cause: str, pod: Pod, node_name: str, *, began: float, latest: float, now: float
) -> RequestCheckpoint | None:
    """The request to a pod to save its work; None where it asks for no time, or there is none left.

    Args:
        cause: Of the instruction.
        pod: It is about to be evicted.
        node_name: Its node.
        began: When the drain of its node began.
        latest: When the pod must be asked to leave whatever it is doing.
        now: Seconds since the epoch.
    """
    # In whole seconds, as Kubernetes keeps it, and never before the drain, however clocks differ.
    at = float(math.ceil(max(now, began)))
    until = min(at + checkpoint_grace(pod), latest)
    if not checkpoint_grace(pod) or until <= now:
        return None
    return RequestCheckpoint(cause, pod.namespace, pod.name, pod.uid, node_name, began, at, until)
