"""Capacity buffers: room that stands ready for pods that may come (`autoscaling.x-k8s.io` CapacityBuffer)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeless.model.conditions import Condition
from nodeless.model.pods import PodShape
from nodeless.model.resources import Resources

API_VERSION = "autoscaling.x-k8s.io/v1beta1"
KIND = "CapacityBuffer"
POD_TEMPLATE = "PodTemplate"
#: Workloads of group `apps` that a buffer may name.
SCALABLE_KINDS = ("Deployment", "ReplicaSet", "StatefulSet")
#: The one strategy that is known: nodes are made ahead.
ACTIVE_CAPACITY = "buffer.x-k8s.io/active-capacity"


@dataclass(frozen=True, slots=True)
class PodSource:
    """What tells how the pods of a buffer would look: a PodTemplate or a workload."""

    kind: str
    namespace: str
    name: str
    shape: PodShape
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Of its pods."""
    replicas: int = 0
    """How many pods a workload asks for."""
    generation: int = 0
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Of its pods, as far as they say what an interruption loses."""

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class CapacityBuffer:
    """How much room for pods of one kind is to be free."""

    namespace: str
    name: str
    uid: str = ""
    generation: int = 0
    source: str = ""
    """Key of the `PodSource` that it names; empty where it names none that can be used."""
    source_kind: str = ""
    """Kind of what it names, as it is written."""
    strategy: str = ACTIVE_CAPACITY
    replicas: int | None = None
    percentage: int | None = None
    """Of the workload's replicas."""
    limits: Resources = field(default_factory=dict, hash=False)
    """What all its pods together may request."""
    created_at: float = 0.0
    deletion_timestamp: float | None = None
    conditions: tuple[Condition, ...] = ()
    reported: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Its status as it is written, without conditions."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
