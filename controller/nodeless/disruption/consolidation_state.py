"""Whether a cluster has changed since a pass over it found nothing to move.

A look at a cluster in which nothing has changed finds nothing again, so that it can be spared: until the
next moment at which time alone changes what is found (`requeue`), and for five minutes at most, for prices
and stock change without a word to the cluster (Karpenter's `consolidated` flag).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from immutables import Map

from nodeless.disruption.command_history import NOTHING_REMEMBERED, CommandHistory
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.requeue import last_to_be_quiet, next_requeue_at
from nodeless.model.disruption import Decisions, VerdictCode
from nodeless.model.nodes import CONSOLIDATABLE, Node, NodeClaim
from nodeless.model.snapshot import Snapshot

#: Seconds after which a cluster is looked at again though nothing has changed in it.
LOOK_AGAIN_SECONDS = 300.0
#: Seconds for which nodes are waited for that become candidates one after the other, as pods came to them.
TOGETHER_SECONDS = 3.0
#: Seconds for which a command waits at least that only the age of its nodes makes worth it: one pass for
#: many.
LEAST_PAUSE = 30.0
_PARTS = (
    "pods",
    "nodes",
    "claims",
    "pools",
    "node_classes",
    "daemon_sets",
    "namespaces",
    "volume_claims",
    "volumes",
    "storage_classes",
    "csi_nodes",
    "resource_claims",
    "resource_claim_templates",
    "resource_slices",
    "device_classes",
    "disruption_budgets",
    "capacity_buffers",
    "provisioning_requests",
    "pod_sources",
    "vertical_autoscalers",
    "applied_overlays",
    "teardown",
)
#: Those of which objects are written again and again though they stay the same.
_WRITTEN_WITHOUT_CHANGE = ("pods", "nodes", "claims")
#: A cluster that a budget holds does not count as consolidated (Karpenter's rule), nor does one of which a
#: part is still to be looked at.
_PASSING = frozenset({VerdictCode.BUDGET, VerdictCode.NOT_REACHED})


def is_unchanged(before: Snapshot, after: Snapshot) -> bool:
    """Whether nothing has changed between two snapshots of a cluster that a pass depends on.

    Kubelets write the status of each node every five minutes though it stays the same, and claims are written
    for what only we note on them: that is no change.
    """
    # Snapshots share the parts that no event has touched.
    touched = [part for part in _PARTS if getattr(before, part) is not getattr(after, part)]
    return all(
        part in _WRITTEN_WITHOUT_CHANGE and _is_same(getattr(before, part), getattr(after, part))
        for part in touched
    )


def _is_same(before: Map[str, object], after: Map[str, object]) -> bool:
    return len(before) == len(after) and all(
        key in before and _says_the_same(before[key], entry) for key, entry in after.items()
    )


def _says_the_same(before: object, after: object) -> bool:
    match before, after:
        case _ if before is after:
            return True
        case Node(), Node():
            return replace(before, resource_version=after.resource_version) == after
        case NodeClaim(), NodeClaim():
            return _with_what_counts(before) == _with_what_counts(after)
    return before == after


def _with_what_counts(claim: NodeClaim) -> NodeClaim:
    """The claim without what says from when on its node is a candidate: a state ends then (`requeue`)."""
    conditions = tuple(condition for condition in claim.conditions if condition.type != CONSOLIDATABLE)
    return replace(claim, resource_version="", last_pod_event=None, conditions=conditions)


def is_consolidated(decisions: Decisions) -> bool:
    """Whether a pass came to every node, and found neither a command nor one that only a budget holds."""
    return not decisions.commands and not any(
        verdict.code in _PASSING for verdict in decisions.verdicts.values()
    )


@dataclass(frozen=True, slots=True)
class ConsolidationState:
    """The cluster as it was when a pass over it found nothing."""

    seen: Snapshot
    at: float
    """When the pass was made, in seconds of the caller's clock."""
    lasts: float = LOOK_AGAIN_SECONDS
    """Seconds after which a pass finds something else though nothing has changed."""
    awaited: float = math.inf
    """When a command that the pass refused becomes worth it (`Decisions.again_at`); infinity: none does."""

    @classmethod
    def after(
        cls,
        snapshot: Snapshot,
        policy: DisruptionPolicy,
        now: float,
        at: float,
        memory: CommandHistory = NOTHING_REMEMBERED,
        since: ConsolidationState | None = None,
        again_at: float = math.inf,
    ) -> ConsolidationState:
        """The state after a pass that found nothing.

        Args:
            snapshot: The cluster that was looked at.
            policy: How commands were judged.
            now: Seconds since the epoch; the time of the pass.
            at: The same time, in seconds of the caller's clock.
            memory: What earlier passes had decided.
            since: The state in which the round of passes began that this pass is part of.
            again_at: When a command is worth it that the pass has refused (`Decisions.again_at`).
        """
        moment = min(next_requeue_at(snapshot, policy, now, memory), max(again_at, now + LEAST_PAUSE))
        moment = last_to_be_quiet(snapshot, moment, moment + TOGETHER_SECONDS)
        lasts = min(moment - now, LOOK_AGAIN_SECONDS)
        if since is not None:
            lasts, again_at = min(lasts, since.ends - at), min(again_at, since.awaited)
        return cls(snapshot, at, lasts, again_at)

    @property
    def ends(self) -> float:
        """When it is over, in seconds of the caller's clock."""
        return self.at + self.lasts

    def holds(self, snapshot: Snapshot, now: float) -> bool:
        """Whether another pass would find nothing either."""
        return is_unchanged(self.seen, snapshot) and now < self.ends
