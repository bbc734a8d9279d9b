"""What it disturbs to move pods: the measure by which nodes are chosen to end."""

import re
from collections.abc import Iterable

from nodeless.model.labels import POD_DELETION_COST, POD_DISRUPTION_COST
from nodeless.model.pods import Pod

#: Kubernetes reads no other number of digits as a 32-bit integer.
_INT32 = re.compile(r"[+-]?[0-9]{1,10}")


def disturbance_of(pods: Iterable[Pod]) -> float:
    """What the end of a node disturbs: 1, and the positive eviction costs of its pods."""
    return 1.0 + sum(max(eviction_cost(pod), 0.0) for pod in pods)


def eviction_cost(pod: Pod) -> float:
    """1 for an ordinary pod; more or less by its deletion cost and its priority, from -10 to 10."""
    text = pod.annotations.get(POD_DISRUPTION_COST, pod.annotations.get(POD_DELETION_COST, "0"))
    deletion = int(text) if _INT32.fullmatch(text) else 0
    return min(max(1.0 + deletion / 2**27 + pod.priority / 2**25, -10.0), 10.0)
