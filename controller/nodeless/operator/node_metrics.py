"""Metrics of what happens to nodes and pods: how long they take to come and to go, and why nodes end."""

from prometheus_client import CollectorRegistry, Histogram

from nodeless.operator.metric_types import DURATIONS, Count, Quantiles

#: Bounds for lives of nodes, in seconds: five minutes to a month.
_LIVES = (300, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800, 1209600, 2592000)


class NodeMetrics:
    """Families of launches, terminations and evictions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.created = Count(
            "karpenter_nodes_created", "Nodes launched", ["reason", "provisioner"], registry=registry
        )
        self.terminated = Count(
            "karpenter_nodes_terminated", "Nodes ended", ["reason", "provisioner"], registry=registry
        )
        self.termination_seconds = Quantiles(
            "karpenter_nodes_termination_time_seconds",
            "From the deletion of a node to the end of its finalizer",
            registry=registry,
        )
        self.lifetime_seconds = Histogram(
            "karpenter_nodes_lifetime_duration_seconds",
            "From the creation of a node to its end",
            ["nodepool"],
            buckets=_LIVES,
            registry=registry,
        )
        self.claim_termination_seconds = Histogram(
            "karpenter_nodeclaims_termination_duration_seconds",
            "From the deletion of a claim to its end",
            ["nodepool"],
            buckets=DURATIONS,
            registry=registry,
        )
        self.instance_termination_seconds = Histogram(
            "karpenter_nodeclaims_instance_termination_duration_seconds",
            "From the request to end an instance to its being gone",
            ["nodepool"],
            buckets=DURATIONS,
            registry=registry,
        )
        self.drained = Count(
            "karpenter_nodes_drained_total",
            "Nodes that pods have left before their end",
            ["nodepool"],
            registry=registry,
        )
        self.pods_drained = Count(
            "karpenter_pods_drained_total",
            "Pods that left a terminating node, by the reason; empty: a user deleted it",
            ["reason"],
            registry=registry,
        )
        self.eviction_requests = Count(
            "karpenter_nodes_eviction_requests_total",
            "Evictions asked for, by the status of the answer",
            ["code"],
            registry=registry,
        )
        self.consistency_errors = Count(
            "karpenter_consistency_errors",
            "Consistency checks that failed, once in ten minutes a node: FailedInit, NodeShape, Termination",
            ["check"],
            registry=registry,
        )
        self.startup_seconds = Quantiles(
            "karpenter_pods_startup_time_seconds",
            "From the creation of a pod that was seen pending to its being ready",
            registry=registry,
        )
