"""Prometheus metrics under Karpenter's names (v0.27), so that dashboards keep working.

One registry per process; counters carry no `_total` suffix in Karpenter, which the
Prometheus client would add, so they are gauges that only grow.
"""

from collections.abc import Iterable

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, Histogram

from nodeless.model.pools import Pool
from nodeless.model.resources import CPU
from nodeless.model.snapshot import Snapshot
from nodeless.state import pool_usage

_BUCKETS = (
    *(0.005, 0.01, 0.025),
    *(step / 20 for step in range(1, 11)),
    *(step / 10 for step in range(6, 11)),
    *(1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)


class Metrics:
    """Every series that the controller exports."""

    def __init__(self) -> None:
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
        self.pending_pods = Gauge(
            "nodeless_pods_without_capacity", "Pods that the last pass could not place", registry=registry
        )
        self.cloud_seconds = Histogram(
            "karpenter_cloudprovider_duration_seconds",
            "Duration of calls to the cloud",
            ["controller", "method", "provider"],
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
        for pool in pools:
            for name, amount in pool_usage(snapshot, pool).items():
                self.usage.labels(_resource(name), pool.name).set(_amount(name, amount))
            for name, amount in (pool.limits or {}).items():
                self.limit.labels(_resource(name), pool.name).set(_amount(name, amount))

    def render(self) -> bytes:
        """The text exposition."""
        return prometheus_client.generate_latest(self.registry)


def _resource(name: str) -> str:
    return name.lower().replace("-", "_")


def _amount(name: str, amount: int) -> float:
    return amount / 1000 if name == CPU else float(amount)
