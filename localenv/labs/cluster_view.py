"""The cluster at one moment, as a person wants to see it: nodes, their pods, what they cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from localenv.aws import price_book
from localenv.kubernetes import KubernetesApi
from nodeless.api.times import parse_time
from nodeless.model.quantity import parse_milli

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
FARGATE = "eks.amazonaws.com/compute-type"


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node.

    Attributes:
        price: US dollars an hour of the instance alone, 0 for Fargate's nodes (which are billed by pod).
        pods: Names of the pods on it that no DaemonSet owns.
        cpu_used: Requested share of the allocatable CPU, daemons included, 0 to 1.
        age: Seconds since its Node object was made.
        state: Ready, NotReady, or Terminating.
    """

    name: str
    instance_type: str
    zone: str
    capacity_type: str
    price: float
    pods: tuple[str, ...]
    cpu_used: float
    age: float
    state: str

    def to_json(self) -> dict[str, Any]:
        """The row as the demo's JSON has it."""
        return {
            "name": self.name,
            "instanceType": self.instance_type,
            "zone": self.zone,
            "capacityType": self.capacity_type,
            "pricePerHour": self.price,
            "pods": list(self.pods),
        }


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Nodes by name, and the pods that have none yet."""

    nodes: tuple[NodeRow, ...]
    pending: tuple[str, ...]

    @property
    def cost_per_hour(self) -> float:
        """US dollars an hour of all instances."""
        return round(sum(node.price for node in self.nodes), 6)

    @property
    def instances(self) -> tuple[NodeRow, ...]:
        """The nodes that are EC2 instances."""
        return tuple(node for node in self.nodes if node.instance_type != "fargate")


def take(api: KubernetesApi) -> ClusterView:
    """Look at the cluster now."""
    pods = api.list("/api/v1/pods")
    rows = tuple(
        _row(node, [pod for pod in pods if pod["spec"].get("nodeName") == node["metadata"]["name"]])
        for node in sorted(api.list("/api/v1/nodes"), key=lambda node: node["metadata"]["name"])
    )
    pending = tuple(sorted(pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")))
    return ClusterView(rows, pending)


def _row(node: Mapping[str, Any], pods: list[dict[str, Any]]) -> NodeRow:
    metadata, labels = node["metadata"], node["metadata"].get("labels", {})
    fargate = labels.get(FARGATE) == "fargate"
    instance_type = "fargate" if fargate else labels.get(INSTANCE_TYPE, "")
    zone = labels.get(ZONE, "")
    capacity_type = "fargate" if fargate else labels.get(CAPACITY_TYPE, "on-demand")
    living = [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    allocatable = parse_milli(node["status"].get("allocatable", {}).get("cpu", "0"))
    requested = sum(map(_cpu, living))
    return NodeRow(
        name=metadata["name"],
        instance_type=instance_type,
        zone=zone,
        capacity_type=capacity_type,
        price=0.0 if fargate else price_of(instance_type, zone, capacity_type),
        pods=tuple(sorted(pod["metadata"]["name"] for pod in living if not _is_daemon(pod))),
        cpu_used=requested / allocatable if allocatable else 0.0,
        age=time.time() - parse_time(metadata["creationTimestamp"]),
        state=_state(node),
    )


def _state(node: Mapping[str, Any]) -> str:
    if node["metadata"].get("deletionTimestamp"):
        return "Terminating"
    conditions = node["status"].get("conditions") or []
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return "Ready" if ready else "NotReady"


def _is_daemon(pod: Mapping[str, Any]) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", []))


def _cpu(pod: Mapping[str, Any]) -> int:
    containers = pod["spec"]["containers"]
    return sum(
        parse_milli(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
        for container in containers
    )


def price_of(instance_type: str, zone: str, capacity_type: str) -> float:
    """US dollars an hour by the price book of the local AWS; 0 for a type that is not in it."""
    book = _book()
    found = (
        book.spot(instance_type, zone)
        if capacity_type == "spot"
        else book.on_demand(instance_type, zone[:-1])
    )
    return found or 0.0


@cache
def _book() -> price_book.PriceBook:
    return price_book.load()
