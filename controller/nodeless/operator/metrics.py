"""Prometheus metrics under Karpenter's names (v0.27), so that dashboards keep working.

One registry per process. Here are the families of pools, plans, calls and settings; beside it those of loops,
queues and API calls (`work_metrics`), of coming and going (`node_metrics`), of voluntary moves
(`disruption_metrics`), of nodes and pods as they are (`cluster_metrics`), of what pools can buy
(`offering_metrics`), and the same figures under v1's names (`v1_metrics`).
"""

from collections.abc import Iterable

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, Histogram

from nodeless import __version__
from nodeless.model.object_names import LEASE_NAME
from nodeless.model.snapshot import Snapshot
from nodeless.operator.cluster_metrics import ClusterMetrics, amount_of, resource_type
from nodeless.operator.disruption_metrics import DisruptionMetrics
from nodeless.operator.metric_types import DURATIONS, Count, GaugeTable, counters
from nodeless.operator.node_metrics import NodeMetrics
from nodeless.operator.offering_metrics import OfferingMetrics
from nodeless.operator.v1_metrics import VersionOneMetrics
from nodeless.operator.work_metrics import WorkMetrics
from nodeless.scheduling.capacity.pool_table import NODES
from nodeless.state import pool_members, pool_usage

#: Karpenter's upper bounds for numbers of requests.
_BATCH_SIZES = (
    *(1, 2, 4),
    *range(5, 30, 5),
    *range(30, 100, 10),
    *range(100, 300, 25),
    *range(300, 600, 50),
    *range(600, 1001, 100),
)


class Metrics:
    """Every series that the controller exports."""

    def __init__(self) -> None:
        # The times at which series were made would double the number of histograms' series.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = self.registry = CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)
        prometheus_client.PlatformCollector(registry=registry)
        prometheus_client.GCCollector(registry=registry)
        self.work = WorkMetrics(registry)
        self.nodes = NodeMetrics(registry)
        self.disruption = DisruptionMetrics(registry)
        self.usage = GaugeTable(
            Gauge(
                "karpenter_provisioner_usage",
                "Capacity of a pool's nodes, and their number (`nodes`). CPU is in cores.",
                ["resource_type", "provisioner"],
                registry=registry,
            )
        )
        self.limit = GaugeTable(
            Gauge(
                "karpenter_provisioner_limit",
                "Limits of a pool. CPU is in cores.",
                ["resource_type", "provisioner"],
                registry=registry,
            )
        )
        self.scheduling_seconds = Histogram(
            "karpenter_provisioner_scheduling_duration_seconds",
            "Duration of one scheduling pass.",
            buckets=DURATIONS,
            registry=registry,
        )
        self.decision_seconds = Histogram(
            "nodeless_decision_to_fleet_request_seconds",
            "Time from the end of the batch window to the fleet request.",
            buckets=DURATIONS,
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "karpenter_cloudprovider_batcher_batch_time_seconds",
            "How long a call to AWS waits to be batched with others of the same kind.",
            ["batcher"],
            buckets=DURATIONS,
            registry=registry,
        )
        self.batch_size = Histogram(
            "karpenter_cloudprovider_batcher_batch_size",
            "Number of requests that are batched into one call to AWS.",
            ["batcher"],
            buckets=_BATCH_SIZES,
            registry=registry,
        )
        self.plan_cost = Gauge(
            "nodeless_plan_cost_dollars_per_hour",
            "Price of the new nodes in the last plan.",
            registry=registry,
        )
        self.plan_bound = Gauge(
            "nodeless_plan_lower_bound_dollars_per_hour",
            "Lower bound for the price of the new nodes in the last plan. NaN if it is not known.",
            registry=registry,
        )
        self.plan_realized = Gauge(
            "nodeless_plan_realized_ratio",
            "Price of a plan divided by the price of the nodes to which its pods were bound one minute "
            "later. NaN if there was no such plan in the last 50 minutes.",
            registry=registry,
        )
        self.plan_gap = Gauge(
            "nodeless_plan_gap_ratio",
            "How much the last plan may cost above the cheapest possible plan, as a fraction of its price (0 "
            "to 1). NaN if it is not known.",
            registry=registry,
        )
        for figure in (self.plan_bound, self.plan_realized, self.plan_gap):
            # Of no plan nothing is known: a replica that does not lead makes none, and 0 would be a figure.
            figure.set(float("nan"))
        self.pending_pods = Gauge(
            "nodeless_pods_without_capacity", "Pods that the last pass could not place.", registry=registry
        )
        self.provisioning_requests = Gauge(
            "nodeless_provisioning_requests",
            "ProvisioningRequests that nodeless handles, by phase: pending, booked (their capacity is "
            "reserved) or over.",
            ["phase"],
            registry=registry,
        )
        self.cloud_seconds = Histogram(
            "karpenter_cloudprovider_duration_seconds",
            "Duration of calls to the cloud provider.",
            ["controller", "method", "provider"],
            registry=registry,
        )
        self.cloud_errors = Count(
            "karpenter_cloudprovider_errors_total",
            "Failed calls to the cloud provider, by kind of error.",
            ["controller", "method", "provider", "error"],
            registry=registry,
        )
        self.aws_seconds = Histogram(
            "nodeless_aws_call_duration_seconds",
            "Duration of each call to AWS, including its retries.",
            ["aws_service", "operation"],
            buckets=(0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self.aws_errors = Count(
            "nodeless_aws_call_errors_total",
            "Calls that AWS rejected or did not answer, by error code.",
            ["aws_service", "operation", "code"],
            registry=registry,
        )
        self.quarantined = Gauge(
            "nodeless_quarantined_units",
            "Units of work (objects, messages, lines of a watch) that nodeless has set aside after a "
            "failure.",
            ["unit"],
            registry=registry,
        )
        self.unit_failures = Count(
            "nodeless_unit_failures_total",
            "Failures of single units of work. They did not affect other units.",
            ["unit"],
            registry=registry,
        )
        self._faults: dict[str, set[str]] = {}
        self.setting_faults = Gauge(
            "nodeless_settings_invalid",
            "1 for each key of a ConfigMap that has an invalid value.",
            ["config_map", "key"],
            registry=registry,
        )
        self.leading = Gauge(
            "leader_election_master_status",
            "1 while this replica is the leader.",
            ["name"],
            registry=registry,
        )
        self.leading.labels(LEASE_NAME).set(0)
        self.interruption_received = Count(
            "karpenter_interruption_received_messages",
            "Messages received from the interruption queue, by kind.",
            ["message_type"],
            registry=registry,
        )
        self.interruption_deleted = Count(
            "karpenter_interruption_deleted_messages",
            "Messages deleted from the interruption queue.",
            registry=registry,
        )
        self.interruption_latency = Histogram(
            "karpenter_interruption_message_latency_time_seconds",
            "Time from an event until its message was handled.",
            buckets=DURATIONS,
            registry=registry,
        )
        self.interruption_actions = Count(
            "karpenter_interruption_actions_performed",
            "Instances of this cluster that received an interruption notice, by the action taken.",
            ["action_type"],
            registry=registry,
        )

        Gauge(
            "karpenter_build_info",
            "Always 1. The label is the running version.",
            ["version"],
            registry=registry,
        ).labels(__version__).set(1)
        self.usage_percent = GaugeTable(
            Gauge(
                "karpenter_provisioner_usage_pct",
                "Usage of a pool as a percentage of its limit, rounded down.",
                ["resource_type", "provisioner"],
                registry=registry,
            )
        )
        self.cluster = ClusterMetrics()
        self.offerings = OfferingMetrics()
        registry.register(VersionOneMetrics(dict.fromkeys(registry._collector_to_names)))

    def show_call(self, service: str, operation: str, seconds: float, code: str) -> None:
        """Count one call to AWS; `code` is empty when it went through."""
        self.aws_seconds.labels(service, operation).observe(seconds)
        if code:
            self.aws_errors.labels(service, operation, code).inc()

    def show_batch(self, batcher: str, requests: int, seconds: float) -> None:
        """Count one call to AWS that answers several requests, and how long the first of them waited."""
        self.batch_size.labels(batcher).observe(requests)
        self.batch_seconds.labels(batcher).observe(seconds)

    def show_setting_faults(self, config_map: str, keys: Iterable[str]) -> None:
        """Show which keys of a ConfigMap cannot be used, in place of those shown before."""
        shown, self._faults[config_map] = self._faults.get(config_map, set()), set(keys)
        for key in shown - self._faults[config_map]:
            self.setting_faults.remove(config_map, key)
        for key in self._faults[config_map]:
            self.setting_faults.labels(config_map, key).set(1)

    def show_pools(self, snapshot: Snapshot, name: str) -> None:
        """Show usage and limits of the pools of a name, which is one as a rule; none of one that is gone."""
        usage: dict[tuple[str, ...], float] = {}
        limits: dict[tuple[str, ...], float] = {}
        percents: dict[tuple[str, ...], float] = {}
        for pool in (pool for _, pool in sorted(snapshot.pools.items()) if pool.name == name):
            living = sum(claim.deletion_timestamp is None for claim, _ in pool_members(snapshot, pool))
            used = pool_usage(snapshot, pool) | ({NODES: living} if living else {})
            for resource, amount in used.items():
                usage[resource_type(resource), name] = amount_of(resource, amount)
            for resource, amount in (pool.limits or {}).items():
                limits[resource_type(resource), name] = amount_of(resource, amount)
                percent = used.get(resource, 0) * 100 // amount if amount else 100
                percents[resource_type(resource), name] = percent
        self.usage.show(usage, name)
        self.limit.show(limits, name)
        self.usage_percent.show(percents, name)

    def render(self) -> bytes:
        """The text exposition."""
        text = prometheus_client.generate_latest(self.registry)
        for name in counters(self.registry):
            text = text.replace(f"# TYPE {name} gauge\n".encode(), f"# TYPE {name} counter\n".encode())
        return text + self.cluster.text().encode() + self.offerings.text().encode()
