"""Metrics of what happens to nodes and pods: how long they take to come and to go, and why nodes end."""

from prometheus_client import CollectorRegistry, Histogram

from nodeless.operator.metric_types import Count, Quantiles

#: Bounds for lives of nodes, in seconds: five minutes to a month.
_LIVES = (300, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800, 1209600, 2592000)
#: Karpenter's bounds for how long NodeClaims take to end, and instances: up to 2,048 s and 1,024 s.
_ENDS = tuple(2.0**power for power in range(12))
_ENDS_OF_INSTANCES = _ENDS[:-1]


class NodeMetrics:
    """Families of launches, terminations and evictions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.created = Count(
            "karpenter_nodes_created",
            "Nodes that were launched.",
            ["reason", "provisioner"],
            registry=registry,
        )
        self.terminated = Count(
            "karpenter_nodes_terminated",
            "Nodes that were terminated, counted when they are gone. The reason is `deleted` if somebody "
            "else deleted them, or an earlier leader.",
            ["reason", "provisioner"],
            registry=registry,
        )
        self.claims_terminated = Count(
            "karpenter_nodeclaims_terminated_total",
            "NodeClaims that were terminated, counted when they are gone, whether they became nodes or not.",
            ["reason", "nodepool"],
            registry=registry,
        )
        self.termination_seconds = Quantiles(
            "karpenter_nodes_termination_time_seconds",
            "Time from the deletion of a node until its finalizer was removed.",
            registry=registry,
        )
        self.lifetime_seconds = Histogram(
            "karpenter_nodes_lifetime_duration_seconds",
            "Time from the creation of a node until it was gone.",
            ["nodepool"],
            buckets=_LIVES,
            registry=registry,
        )
        self.claim_termination_seconds = Histogram(
            "karpenter_nodeclaims_termination_duration_seconds",
            "Time from the deletion of a NodeClaim until it was gone.",
            ["nodepool"],
            buckets=_ENDS,
            registry=registry,
        )
        self.instance_termination_seconds = Histogram(
            "karpenter_nodeclaims_instance_termination_duration_seconds",
            "Time from the request to terminate an instance until the instance was gone.",
            ["nodepool"],
            buckets=_ENDS_OF_INSTANCES,
            registry=registry,
        )
        self.drained = Count(
            "karpenter_nodes_drained_total",
            "Nodes that were drained before their termination.",
            ["nodepool"],
            registry=registry,
        )
        self.pods_drained = Count(
            "karpenter_pods_drained_total",
            "Pods that left a terminating node, by the reason of its disruption. The reason is empty if a "
            "user deleted the node.",
            ["reason"],
            registry=registry,
        )
        self.eviction_requests = Count(
            "karpenter_nodes_eviction_requests_total",
            "Eviction requests, by status of the answer.",
            ["code"],
            registry=registry,
        )
        self.consistency_errors = Count(
            "karpenter_consistency_errors",
            "Failed consistency checks: FailedInit, NodeShape, Termination. Each node counts at most once in "
            "ten minutes.",
            ["check"],
            registry=registry,
        )
        self.startup_seconds = Quantiles(
            "karpenter_pods_startup_time_seconds",
            "Time from the creation of a pod until it was ready, for pods that nodeless saw pending.",
            registry=registry,
        )
