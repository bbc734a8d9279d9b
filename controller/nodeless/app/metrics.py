"""Prometheus metrics under Karpenter's names (v0.27), so that dashboards keep working.

One registry per process; counters carry no `_total` suffix in Karpenter, which the
Prometheus client would add, so they are gauges that only grow, and are called counters where
they are shown. `version_one_metrics` shows the same figures under v1's names, `cluster_metrics`
those of nodes and pods.
"""

from collections.abc import Iterable

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, Histogram

from nodeless import __version__
from nodeless.app.cluster_metrics import ClusterMetrics, amount_of, resource_type
from nodeless.app.disruption_metrics import DISRUPTION_COUNTERS, DisruptionMetrics
from nodeless.app.version_one_metrics import VersionOneMetrics
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.state import pool_usage

_BUCKETS = (
    *(0.005, 0.01, 0.025),
    *(step / 20 for step in range(1, 11)),
    *(step / 10 for step in range(6, 11)),
    *(1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
COUNTERS = (
    "controller_runtime_reconcile_total",
    "karpenter_cloudprovider_errors_total",
    "karpenter_interruption_actions_performed",
    "karpenter_interruption_deleted_messages",
    "karpenter_interruption_received_messages",
    "karpenter_nodes_created",
    "karpenter_nodes_terminated",
    "nodeless_aws_call_errors_total",
    *DISRUPTION_COUNTERS,
)
"""Gauges that only grow."""


class Metrics:
    """Every series that the controller exports."""

    def __init__(self) -> None:
        # The times at which series were made would double the number of histograms' series.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = self.registry = CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)
        prometheus_client.PlatformCollector(registry=registry)
        self.nodes_created = Gauge(
            "karpenter_nodes_created", "Nodes launched", ["reason", "provisioner"], registry=registry
        )
        self.nodes_terminated = Gauge(
            "karpenter_nodes_terminated", "Nodes ended", ["reason", "provisioner"], registry=registry
        )
        self.usage = Gauge(
            "karpenter_provisioner_usage",
            "Capacity of a pool's nodes (CPU in cores)",
            ["resource_type", "provisioner"],
            registry=registry,
        )
        self.limit = Gauge(
            "karpenter_provisioner_limit",
            "Limits of a pool (CPU in cores)",
            ["resource_type", "provisioner"],
            registry=registry,
        )
        self.scheduling_seconds = Histogram(
            "karpenter_provisioner_scheduling_duration_seconds",
            "Duration of one scheduling pass",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.decision_seconds = Histogram(
            "nodeless_decision_to_fleet_request_seconds",
            "From the end of the batch window to the fleet request",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.plan_cost = Gauge(
            "nodeless_plan_cost_dollars_per_hour", "Price of the last plan's new nodes", registry=registry
        )
        self.plan_bound = Gauge(
            "nodeless_plan_lower_bound_dollars_per_hour",
            "What the last plan's new nodes cost at least; not a number when it is not known",
            registry=registry,
        )
        self.plan_gap = Gauge(
            "nodeless_plan_gap_ratio",
            "By how much of its price the last plan may be above the cheapest, 0 to 1; NaN: not known",
            registry=registry,
        )
        self.pending_pods = Gauge(
            "nodeless_pods_without_capacity", "Pods that the last pass could not place", registry=registry
        )
        self.cloud_seconds = Histogram(
            "karpenter_cloudprovider_duration_seconds",
            "Duration of calls to the cloud",
            ["controller", "method", "provider"],
            registry=registry,
        )
        self.cloud_errors = Gauge(
            "karpenter_cloudprovider_errors_total",
            "Calls to the cloud that failed, by the kind of error",
            ["controller", "method", "provider", "error"],
            registry=registry,
        )
        self.aws_seconds = Histogram(
            "nodeless_aws_call_duration_seconds",
            "Duration of each call to AWS, with its retries",
            ["service", "operation"],
            buckets=(0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self.aws_errors = Gauge(
            "nodeless_aws_call_errors_total",
            "Calls that AWS refused, by its code, or that got no answer",
            ["service", "operation", "code"],
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "karpenter_cloudprovider_batcher_batch_time_seconds",
            "How long requests to the cloud are gathered",
            ["batcher"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.batch_size = Histogram(
            "karpenter_cloudprovider_batcher_batch_size",
            "How many requests to the cloud are answered by one call",
            ["batcher"],
            buckets=(1, 2, 5, 10, 25, 50, 100, 250, 500, 1000),
            registry=registry,
        )
        self.reconciles = Gauge(
            "controller_runtime_reconcile_total",
            "Reconciliations by result",
            ["controller", "result"],
            registry=registry,
        )
        self._faults: dict[str, set[str]] = {}
        self.setting_faults = Gauge(
            "nodeless_settings_invalid",
            "1 for each key of a ConfigMap whose value cannot be used",
            ["config_map", "key"],
            registry=registry,
        )
        self.leading = Gauge(
            "leader_election_master_status", "1 while this replica leads", ["name"], registry=registry
        )

        self.interruption_received = Gauge(
            "karpenter_interruption_received_messages",
            "Messages of the interruption queue, by kind",
            ["message_type"],
            registry=registry,
        )
        self.interruption_deleted = Gauge(
            "karpenter_interruption_deleted_messages",
            "Messages deleted from the interruption queue",
            registry=registry,
        )
        self.interruption_latency = Histogram(
            "karpenter_interruption_message_latency_time_seconds",
            "From an event to the handling of its message",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.interruption_actions = Gauge(
            "karpenter_interruption_actions_performed",
            "Warned instances of ours by what was done",
            ["action_type"],
            registry=registry,
        )

        Gauge("karpenter_build_info", "1, with the version that runs", ["version"], registry=registry).labels(
            __version__
        ).set(1)
        self.usage_percent = Gauge(
            "karpenter_provisioner_usage_pct",
            "Usage of a pool as a percentage of its limit, without fraction",
            ["resource_type", "provisioner"],
            registry=registry,
        )
        self.termination_seconds = Histogram(
            "karpenter_nodes_termination_time_seconds",
            "From the deletion of a node to its end",
            buckets=(*_BUCKETS, 120, 300, 600, 1800, 3600),
            registry=registry,
        )
        self.disruption = DisruptionMetrics(registry)
        self.cluster = ClusterMetrics()
        registry.register(VersionOneMetrics(dict.fromkeys(registry._collector_to_names)))
        registry.register(self.cluster)

    def show_call(self, service: str, operation: str, seconds: float, code: str) -> None:
        """Count one call to AWS; `code` is empty when it went through."""
        self.aws_seconds.labels(service, operation).observe(seconds)
        if code:
            self.aws_errors.labels(service, operation, code).inc()

    def show_batch(self, batcher: str, size: int, seconds: float) -> None:
        """Count one batch of requests to the cloud."""
        self.batch_seconds.labels(batcher).observe(seconds)
        self.batch_size.labels(batcher).observe(size)

    def show_setting_faults(self, config_map: str, keys: Iterable[str]) -> None:
        """Show which keys of a ConfigMap cannot be used, in place of those shown before."""
        shown, self._faults[config_map] = self._faults.get(config_map, set()), set(keys)
        for key in shown - self._faults[config_map]:
            self.setting_faults.remove(config_map, key)
        for key in self._faults[config_map]:
            self.setting_faults.labels(config_map, key).set(1)

    def show_pools(self, snapshot: Snapshot, pools: Iterable[Pool]) -> None:
        """Set the usage and limit series; those of pools that are gone disappear."""
        self.usage.clear()
        self.limit.clear()
        self.usage_percent.clear()
        for pool in pools:
            used = pool_usage(snapshot, pool)
            for name, amount in used.items():
                self.usage.labels(resource_type(name), pool.name).set(amount_of(name, amount))
            for name, amount in (pool.limits or {}).items():
                self.limit.labels(resource_type(name), pool.name).set(amount_of(name, amount))
                percent = used.get(name, 0) * 100 // amount if amount else 100
                self.usage_percent.labels(resource_type(name), pool.name).set(percent)

    def render(self) -> bytes:
        """The text exposition."""
        text = prometheus_client.generate_latest(self.registry)
        for name in COUNTERS:
            text = text.replace(f"# TYPE {name} gauge\n".encode(), f"# TYPE {name} counter\n".encode())
        return text
