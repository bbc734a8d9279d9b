"""Series of nodes, pods and conditions, made from the snapshot each time that they are asked for.

Nothing is remembered: what is gone from the cluster is gone from the series. Their number is bounded by the
cluster's: six families by resource for each node, one series for each pod.

They are written here, not by the Prometheus client, which would write each of the thirty labels of each
series anew: all series of a node have all but one of them in common. So a scrape of 500 nodes takes a fifth.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.utils import floatToGoString

from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_POOL,
    PROVISIONER_NAME,
    WELL_KNOWN,
    ZONE,
)
from nodeless.model.nodes import Node
from nodeless.model.pods import Pod
from nodeless.model.resources import CPU, Resources, add
from nodeless.model.snapshot import Snapshot
from nodeless.operator.clock import wall_clock
from nodeless.operator.condition_metrics import CONDITION_FAMILIES, condition_series

UNKNOWN = "N/A"
_NODE_FAMILIES = {
    "karpenter_nodes_allocatable": "Resources of a node that pods can request.",
    "karpenter_nodes_total_pod_requests": "Requests of the pods on a node, without those of DaemonSets.",
    "karpenter_nodes_total_pod_limits": "Limits of the pods on a node, without those of DaemonSets.",
    "karpenter_nodes_total_daemon_requests": "Requests of the DaemonSet pods on a node.",
    "karpenter_nodes_total_daemon_limits": "Limits of the DaemonSet pods on a node.",
    "karpenter_nodes_system_overhead": "Capacity of a node that is not allocatable.",
}
#: v0.27's labels, and `nodepool`, by which v1's dashboards select: keys that become well known add none,
#: for each would stand on every series of every node.
_LABELS = frozenset(
    {
        *("arch", "capacity_type", "instance_type", "nodepool", "os", "provisioner_name", "region", "zone"),
        *("instance_accelerator_count", "instance_accelerator_manufacturer", "instance_accelerator_memory"),
        *("instance_accelerator_name", "instance_category", "instance_cpu", "instance_family"),
        *("instance_encryption_in_transit_supported", "instance_generation", "instance_gpu_count"),
        *("instance_gpu_manufacturer", "instance_gpu_memory", "instance_gpu_name", "instance_hypervisor"),
        *("instance_local_nvme", "instance_memory", "instance_network_bandwidth", "instance_pods"),
        "instance_size",
    }
)
_LABEL_KEYS = {
    label: key
    for key in sorted(WELL_KNOWN)
    if (label := key.partition("/")[2].replace("-", "_").replace(".", "_")) in _LABELS
}
NODE_LABELS = ("resource_type", "node_name", "provisioner", "phase", *_LABEL_KEYS)
_POD_STATE = "karpenter_pods_state"
POD_LABELS = (
    "name",
    "namespace",
    "owner",
    "node",
    "provisioner",
    "nodepool",
    "zone",
    "arch",
    "capacity_type",
    "instance_type",
    "phase",
    "scheduled",
    "ready",
    "managed",
)
_COUNTS = {
    "karpenter_cluster_state_node_count": "Number of nodes that nodeless knows.",
    "karpenter_scheduler_queue_depth": "Number of pods that wait for capacity.",
    "karpenter_cluster_state_synced": "1 once nodeless has listed the objects of every kind.",
}
FAMILIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{name: (meaning, NODE_LABELS) for name, meaning in _NODE_FAMILIES.items()},
    _POD_STATE: ("1 for each pod. The labels describe the pod and its node.", POD_LABELS),
    **{name: (meaning, ()) for name, meaning in _COUNTS.items()},
    **CONDITION_FAMILIES,
}
"""Meaning and labels by name."""


class ClusterMetrics:
    """Writes the series of the snapshot that `watch` gives; before that, there are none."""

    def __init__(self, clock: Callable[[], float] = wall_clock) -> None:
        self._clock = clock
        self._snapshot: Callable[[], Snapshot | None] = lambda: None

    def watch(self, snapshot: Callable[[], Snapshot | None]) -> None:
        """Have the series made from what a function gives; None: the cluster is not known yet."""
        self._snapshot = snapshot

    def text(self) -> str:
        """All families, in Prometheus' text format."""
        snapshot = self._snapshot()
        series: dict[str, list[str]] = {name: [] for name in FAMILIES}
        known = snapshot is not None
        series["karpenter_cluster_state_synced"].append(_line("karpenter_cluster_state_synced", "", known))
        if snapshot is not None:
            pods = snapshot.pods.values()
            depth = sum(pod.provisionable for pod in pods)
            for name, count in zip(_COUNTS, (len(snapshot.nodes), depth), strict=False):
                series[name].append(_line(name, "", count))
            for node in snapshot.nodes.values():
                _add_node(series, snapshot, node)
            places = {name: _place(name, node.labels) for name, node in snapshot.nodes.items()}
            series[_POD_STATE] += [
                _pod_line(pod, places.get(pod.node_name) or _place(pod.node_name, {})) for pod in pods
            ]
            for name, labels, value in condition_series(snapshot, self._clock()):
                series[name].append(_line(name, f"{{{_format_labels(labels)}}}", value))
        return "".join(_family(name, lines) for name, lines in series.items())


def _family(name: str, lines: Iterable[str]) -> str:
    return f"# HELP {name} {FAMILIES[name][0]}\n# TYPE {name} gauge\n{''.join(lines)}"


def _line(name: str, labels: str, value: float) -> str:
    written = floatToGoString(value)  # type: ignore[no-untyped-call]
    return f"{name}{labels} {written}\n"


def _format_labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())


def _escape(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return value


def resource_type(name: str) -> str:
    """A resource's name as a label's value."""
    return name.lower().replace("-", "_")


def amount_of(name: str, amount: int) -> float:
    """An amount in cores, bytes or pieces."""
    return amount / 1000 if name == CPU else float(amount)


def pool_name(labels: Mapping[str, str]) -> str:
    """The pool that a node's labels name, of either generation."""
    return labels.get(PROVISIONER_NAME) or labels.get(NODE_POOL) or UNKNOWN


def _add_node(series: Mapping[str, list[str]], snapshot: Snapshot, node: Node) -> None:
    pods = [pod for pod in snapshot.pods_on(node.name) if not pod.terminal]
    daemons = [pod for pod in pods if pod.owned_by_daemon_set]
    others = [pod for pod in pods if not pod.owned_by_daemon_set]
    overhead = {name: amount - node.allocatable.get(name, 0) for name, amount in node.capacity.items()}
    figures: tuple[Resources, ...] = (
        node.allocatable,
        add({}, *(pod.requests for pod in others)),
        add({}, *(dict(pod.limits) for pod in others)),
        add({}, *(pod.requests for pod in daemons)),
        add({}, *(dict(pod.limits) for pod in daemons)),
        overhead,
    )
    common = _format_labels(
        {
            "node_name": node.name,
            "provisioner": pool_name(node.labels),
            "phase": "",
            **{label: node.labels.get(key, UNKNOWN) for label, key in _LABEL_KEYS.items()},
        }
    )
    for name, amounts in zip(_NODE_FAMILIES, figures, strict=True):
        series[name] += [
            _line(name, f'{{resource_type="{_escape(resource_type(resource))}",{common}}}', figure)
            for resource, figure in (
                (each, amount_of(each, amount)) for each, amount in _sort_amounts(amounts)
            )
        ]


def _sort_amounts(amounts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    return iter(sorted(amounts.items()))


def _place(name: str, labels: Mapping[str, str]) -> str:
    """What its pods' labels say of a node."""
    return _format_labels(
        {
            "node": name,
            "provisioner": pool_name(labels),
            "nodepool": labels.get(NODE_POOL, UNKNOWN),
            "zone": labels.get(ZONE, UNKNOWN),
            "arch": labels.get(ARCH, UNKNOWN),
            "capacity_type": labels.get(CAPACITY_TYPE, UNKNOWN),
            "instance_type": labels.get(INSTANCE_TYPE, UNKNOWN),
            "managed": _truth(pool_name(labels) != UNKNOWN),
        }
    )


def _truth(holds: bool) -> str:
    return "true" if holds else "false"


def _pod_line(pod: Pod, place: str) -> str:
    owner = ""
    if pod.owners:
        first = pod.owners[0]
        owner = f"/apis/{first.api_version}/namespaces/{pod.namespace}/{first.kind.lower()}s/{first.name}"
    labels = _format_labels(
        {
            "name": pod.name,
            "namespace": pod.namespace,
            "owner": owner,
            "phase": pod.phase,
            "scheduled": _truth(bool(pod.node_name)),
            "ready": _truth(pod.ready),
        }
    )
    return _line(_POD_STATE, f"{{{labels},{place}}}", 1)
