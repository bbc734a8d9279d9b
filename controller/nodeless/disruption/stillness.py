"""Whether a cluster has changed since a look at it found nothing to move.

A look at a cluster in which nothing has changed finds nothing again, so that it can be spared: for five
minutes, for prices and stock change without a word to the cluster (Karpenter's `consolidated` flag); for less
where what is tolerated now will be tolerated no longer.
"""

from dataclasses import dataclass

from nodeless.model.disruption import Decisions
from nodeless.model.snapshot import Snapshot

#: Seconds after which a cluster is looked at again though nothing has changed in it.
LOOK_AGAIN_SECONDS = 300.0
_PARTS = (
    "pods",
    "nodes",
    "claims",
    "pools",
    "node_classes",
    "disruption_budgets",
    "capacity_buffers",
    "pod_sources",
)


#: Verdicts that time alone may end: a look that gave one of them finds something else a little later.
_PASSING = frozenset({"Budget", "CoolingDown", "Expecting", "Nominated", "NotQuiet", "Planning", "Restless"})


def nothing_to_do(decisions: Decisions) -> bool:
    """Whether a look found neither a move nor a node that is only left alone for now."""
    return not decisions.moves and not any(each.code in _PASSING for each in decisions.verdicts.values())


@dataclass(frozen=True, slots=True)
class Stillness:
    """The cluster as it was when a look at it found nothing."""

    seen: Snapshot
    at: float
    """Seconds of the caller's clock."""
    lasts: float = LOOK_AGAIN_SECONDS
    """Seconds after which a look finds something else though nothing has changed."""

    def holds(self, snapshot: Snapshot, now: float) -> bool:
        """Whether another look would find nothing either."""
        # Snapshots share the parts that no event has touched.
        untouched = all(getattr(self.seen, part) is getattr(snapshot, part) for part in _PARTS)
        return untouched and now - self.at <= min(self.lasts, LOOK_AGAIN_SECONDS)
