"""Counts claims that are disrupted as they are deleted, and claims and nodes that end once they are gone."""

from nodeless.disruption.candidates import claims_by_replacement
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimGone, Event, NodeGone
from nodeless.model.labels import CAPACITY_TYPE
from nodeless.model.nodes import DISRUPTION_REASON, NodeClaim
from nodeless.model.snapshot import Snapshot
from nodeless.operator.cluster_metrics import pool_name
from nodeless.operator.disruption_metrics import method_and_action
from nodeless.operator.metrics import Metrics

#: The reason of an end that this process did not begin: somebody else did, or an earlier leader.
DELETED = "deleted"
#: Reasons for which a claim goes because of what it belongs to, or on demand: that disrupts nothing.
_NO_DISRUPTION = frozenset(("node_deleted", "pool_deleted", "scaled_down", "teardown"))


class DeletionCounts:
    """Remembers why claims were deleted until they are gone."""

    def __init__(self, cluster: Cluster, metrics: Metrics) -> None:
        self._cluster = cluster
        self._metrics = metrics
        #: What ends claims that are still there, by their name, in v0.27's words.
        self._reasons: dict[str, str] = {}
        cluster.listen(self._on_event)

    def note(self, claim: NodeClaim, reason: str) -> None:
        """A claim was deleted for a reason."""
        replaced = any(claim.name in old for old in claims_by_replacement(self._cluster.snapshot).values())
        self._reasons[claim.name] = method_and_action(reason, replaced=replaced)
        if reason not in _NO_DISRUPTION:
            capacity_type = claim.labels.get(CAPACITY_TYPE, "")
            self._metrics.disruption.disrupted.labels(reason, claim.pool.name, capacity_type).inc()

    def _on_event(self, event: Event, before: Snapshot, _after: Snapshot) -> None:
        match event:
            case NodeGone(name) if name in before.nodes:
                node = before.nodes[name]
                if node.terminating:
                    reason = self._reason_of(before.claim_of(node))
                    self._metrics.nodes.terminated.labels(reason, pool_name(node.labels)).inc()
            case ClaimGone(name) if name in before.claims:
                claim = before.claims[name]
                self._metrics.nodes.claims_terminated.labels(self._reason_of(claim), claim.pool.name).inc()
                self._reasons.pop(name, None)

    def _reason_of(self, claim: NodeClaim | None) -> str:
        if claim is None:
            return DELETED
        known = claim.condition(DISRUPTION_REASON)
        return self._reasons.get(claim.name) or (known.reason.lower() if known is not None else DELETED)
