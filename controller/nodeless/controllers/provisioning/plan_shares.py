"""What a plan says of each capacity buffer or provisioning request.

A plan may have as many placeholders as there are objects that ask for them, so it is divided among all of
them at once.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nodeless.model.plan import Plan, Refusal


@dataclass(slots=True)
class Share:
    """What a plan says of the pods of one object."""

    places: list[str] = field(default_factory=list)
    """The existing nodes and claims under way that take them, one name for each pod."""
    refusals: list[Refusal] = field(default_factory=list)
    coming: int = 0
    """How many of them new nodes take."""


def shares_of(plan: Plan, owner_of: Callable[[str], str]) -> Mapping[str, Share]:
    """What a plan says of each object, by its key; of those that are missing it says nothing.

    Args:
        plan: Of a pass.
        owner_of: The key of the object whose placeholder the key of a pod is; empty for other pods.
    """
    shares: defaultdict[str, Share] = defaultdict(Share)
    for pod, name in plan.placements.items():
        if owner := owner_of(pod):
            shares[owner].places.append(name)
    for refusal in plan.refusals:
        if owner := owner_of(refusal.pod):
            shares[owner].refusals.append(refusal)
    for owner in (owner_of(pod) for node in plan.new_nodes for pod in node.pods):
        if owner:
            shares[owner].coming += 1
    return dict(shares)
