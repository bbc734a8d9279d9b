"""The same figures under the names of Karpenter v1, for dashboards of that generation.

Each family here mirrors one of v0.27's: labels are renamed, and what v1 does not tell apart is summed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True)
class Mirror:
    """One family of v1; `labels` maps its labels to those of the family that it mirrors."""

    name: str
    of: str
    labels: Mapping[str, str]
    type: str = "gauge"


_POOL = {"nodepool": "provisioner"}
MIRRORS = (
    Mirror("karpenter_nodes_created_total", "karpenter_nodes_created", _POOL, "counter"),
    Mirror("karpenter_nodes_terminated_total", "karpenter_nodes_terminated", _POOL, "counter"),
    Mirror(
        "karpenter_nodeclaims_created_total",
        "karpenter_nodes_created",
        {"reason": "reason", **_POOL},
        "counter",
    ),
    Mirror(
        "karpenter_nodepools_usage",
        "karpenter_provisioner_usage",
        {"resource_type": "resource_type", **_POOL},
    ),
    Mirror(
        "karpenter_nodepools_limit",
        "karpenter_provisioner_limit",
        {"resource_type": "resource_type", **_POOL},
    ),
    Mirror(
        "karpenter_scheduler_scheduling_duration_seconds",
        "karpenter_provisioner_scheduling_duration_seconds",
        {},
        "histogram",
    ),
    Mirror(
        "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
        "karpenter_deprovisioning_evaluation_duration_seconds",
        {},
        "histogram",
    ),
    Mirror(
        "karpenter_nodes_termination_duration_seconds",
        "karpenter_nodes_termination_time_seconds",
        {},
        "summary",
    ),
    Mirror("karpenter_pods_startup_duration_seconds", "karpenter_pods_startup_time_seconds", {}, "summary"),
    Mirror(
        "karpenter_pods_eviction_requests_total",
        "karpenter_nodes_eviction_requests_total",
        {"code": "code"},
        "counter",
    ),
    Mirror("karpenter_scheduler_unschedulable_pods_count", "nodeless_pods_without_capacity", {}),
    Mirror(
        "karpenter_interruption_received_messages_total",
        "karpenter_interruption_received_messages",
        {"message_type": "message_type"},
        "counter",
    ),
    Mirror(
        "karpenter_interruption_deleted_messages_total",
        "karpenter_interruption_deleted_messages",
        {},
        "counter",
    ),
    Mirror(
        "karpenter_interruption_message_queue_duration_seconds",
        "karpenter_interruption_message_latency_time_seconds",
        {},
        "histogram",
    ),
)


class VersionOneMetrics(Collector):
    """Mirrors the families of other collectors."""

    def __init__(self, sources: Iterable[Collector]) -> None:
        self._sources = tuple(sources)

    def collect(self) -> Iterable[Metric]:
        """All mirrors of the families that there are."""
        families = {family.name: family for source in self._sources for family in source.collect()}
        for mirror in MIRRORS:
            if mirror.of in families:
                yield _mirror_family(mirror, families[mirror.of])

    def describe(self) -> Iterable[Metric]:
        """None: names are told apart by MIRRORS."""
        return []


def _mirror_family(mirror: Mirror, source: Metric) -> Metric:
    family = Metric(mirror.name.removesuffix("_total"), source.documentation, mirror.type)
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = defaultdict(float)
    for sample in source.samples:
        name = mirror.name + sample.name.removeprefix(mirror.of)
        labels = {new: sample.labels[old] for new, old in mirror.labels.items()}
        labels |= {own: sample.labels[own] for own in ("le", "quantile") if own in sample.labels}
        sums[name, tuple(labels.items())] += sample.value
    for (name, labels_of), value in sums.items():
        family.add_sample(name, dict(labels_of), value)
    return family
