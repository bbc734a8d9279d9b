"""Whether a kubelet admits a pod: what it requests against what the node has left.

Pure. The kubelet is the last to check what scheduler or provisioner promised; a pod that does not fit ends as
Failed with the reason `OutOf<resource>`, so over-packing shows instead of being played away.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from localenv.kubelets.quantities import Resources, total


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a kubelet turned a pod away, in the words of its status."""

    reason: str
    message: str


def admit(
    requests: Resources, held: Iterable[Resources], allocatable: Mapping[str, Decimal]
) -> Refusal | None:
    """Return why a pod does not fit beside those that hold resources already, None if it does."""
    used = total(held)
    for resource, wanted in sorted(requests.items()):
        if wanted == 0:
            continue
        taken = used.get(resource, Decimal(0))
        whole = allocatable.get(resource, Decimal(0))
        if taken + wanted > whole:
            scale = 1000 if resource == "cpu" else 1
            return Refusal(
                f"OutOf{resource}",
                f"Pod was rejected: Node didn't have enough resource: {resource}, "
                f"requested: {int(wanted * scale)}, used: {int(taken * scale)}, "
                f"capacity: {int(whole * scale)}",
            )
    return None
