"""How long pods take to start, and nodes and claims to come and to go, as the cluster's events tell it."""

from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.nodes import (
    DISRUPTION_REASON,
    DRAINED,
    INITIALIZED_CONDITION,
    INSTANCE_TERMINATING,
    NodeClaim,
)
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.operator.clock import wall_clock
from nodeless.operator.cluster_metrics import pool_name
from nodeless.operator.metrics import Metrics


class LifecycleMetrics:
    """Measures what the events that pass by begin and end."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        #: Pods that this process saw pending (Karpenter measures no others), by uid.
        self._starting: set[str] = set()

    def on_event(self, event: Event, before: Snapshot, _after: Snapshot) -> None:
        """Listens to the cluster (`Cluster.listen`)."""
        match event:
            case events.PodSeen(pod):
                self._pod_seen(pod)
            case events.PodGone(key) if key in before.pods:
                self._pod_gone(before.pods[key], before)
            case events.ClaimSeen(claim):
                self._claim_seen(claim, before.claims.get(claim.name))
            case events.ClaimGone(name) if name in before.claims:
                self._claim_gone(before.claims[name])
            case events.NodeGone(name) if name in before.nodes:
                self._node_gone(name, before)

    def _pod_seen(self, pod: Pod) -> None:
        if pod.ready and pod.uid in self._starting:
            self._starting.discard(pod.uid)
            if pod.ready_at is not None:
                self._metrics.nodes.startup_seconds.observe(max(pod.ready_at - pod.created_at, 0.0))
        elif pod.terminal:
            self._starting.discard(pod.uid)
        elif pod.phase == "Pending":
            self._starting.add(pod.uid)

    def _pod_gone(self, pod: Pod, before: Snapshot) -> None:
        self._starting.discard(pod.uid)
        node = before.nodes.get(pod.node_name)
        claim = before.claim_of(node) if node is not None else None
        if claim is None or claim.deletion_timestamp is None or pod.owned_by_daemon_set:
            return
        why = claim.condition(DISRUPTION_REASON)
        self._metrics.nodes.pods_drained.labels(why.reason.lower() if why is not None else "").inc()

    def _claim_seen(self, claim: NodeClaim, known: NodeClaim | None) -> None:
        """What a claim has become, seen once: it was known before without it."""
        if known is not None and claim.is_true(DRAINED) and not known.is_true(DRAINED):
            self._metrics.nodes.drained.labels(claim.pool.name).inc()
        self._replacement_seen(claim, known)

    def _replacement_seen(self, claim: NodeClaim, known: NodeClaim | None) -> None:
        if known is None or known.is_true(INITIALIZED_CONDITION) or not claim.replaces:
            return
        ready = claim.condition(INITIALIZED_CONDITION)
        if ready is not None and claim.is_true(INITIALIZED_CONDITION):
            seconds = max(ready.last_transition_time - claim.created_at, 0.0)
            self._metrics.disruption.replacement_seconds.observe(seconds)

    def _claim_gone(self, claim: NodeClaim) -> None:
        if claim.deletion_timestamp is not None:
            seconds = max(wall_clock() - claim.deletion_timestamp, 0.0)
            self._metrics.nodes.claim_termination_seconds.labels(claim.pool.name).observe(seconds)
        ending = claim.condition(INSTANCE_TERMINATING)
        if ending is not None and claim.is_true(INSTANCE_TERMINATING):
            seconds = max(wall_clock() - ending.last_transition_time, 0.0)
            self._metrics.nodes.instance_termination_seconds.labels(claim.pool.name).observe(seconds)

    def _node_gone(self, name: str, before: Snapshot) -> None:
        node, now = before.nodes[name], wall_clock()
        if node.deletion_timestamp is None or not node.terminating:
            return
        nodes = self._metrics.nodes
        nodes.termination_seconds.observe(max(now - node.deletion_timestamp, 0.0))
        nodes.lifetime_seconds.labels(pool_name(node.labels)).observe(max(now - node.created_at, 0.0))
