"""What happened, in the past tense: the input of `state.apply`.

Every event carries the new state of its object, never a difference, so that the same
event twice gives the same snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeless.model.buffers import CapacityBuffer, PodSource
from nodeless.model.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from nodeless.model.disruption import PodDisruptionBudget
from nodeless.model.gangs import GangSize
from nodeless.model.namespaces import Namespace
from nodeless.model.neighbors import ScalingGroup
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.overlays import NodeOverlay
from nodeless.model.pods import DaemonSet, Pod
from nodeless.model.pools import NodeClass, Pool
from nodeless.model.provisioning_requests import ProvisioningRequest
from nodeless.model.vertical_autoscaling import VerticalPodAutoscaler
from nodeless.model.volumes import CsiNode, PersistentVolumeClaim, StorageClass, Volume, VolumeAttachment


@dataclass(frozen=True, slots=True)
class PodSeen:
    pod: Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    key: str


@dataclass(frozen=True, slots=True)
class NodeSeen:
    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    name: str


@dataclass(frozen=True, slots=True)
class ClaimSeen:
    claim: NodeClaim


@dataclass(frozen=True, slots=True)
class ClaimGone:
    name: str


@dataclass(frozen=True, slots=True)
class PoolSeen:
    """`inline_class` is the node class of a Provisioner with `spec.provider`."""

    pool: Pool
    inline_class: NodeClass | None = None


@dataclass(frozen=True, slots=True)
class PoolGone:
    key: str


@dataclass(frozen=True, slots=True)
class NeighborPoolSeen:
    """A pool that EKS Auto Mode serves; its end is a `PoolGone`."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class AutoscalerGroupsSeen:
    """What Cluster Autoscaler says its groups are now."""

    groups: tuple[ScalingGroup, ...]


@dataclass(frozen=True, slots=True)
class NodeClassSeen:
    node_class: NodeClass


@dataclass(frozen=True, slots=True)
class NodeClassGone:
    key: str


@dataclass(frozen=True, slots=True)
class DaemonSetSeen:
    daemon_set: DaemonSet


@dataclass(frozen=True, slots=True)
class DaemonSetGone:
    key: str


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    namespace: Namespace


@dataclass(frozen=True, slots=True)
class NamespaceGone:
    name: str


@dataclass(frozen=True, slots=True)
class VolumeClaimSeen:
    claim: PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class VolumeClaimGone:
    key: str


@dataclass(frozen=True, slots=True)
class VolumeSeen:
    volume: Volume


@dataclass(frozen=True, slots=True)
class VolumeGone:
    name: str


@dataclass(frozen=True, slots=True)
class StorageClassSeen:
    storage_class: StorageClass


@dataclass(frozen=True, slots=True)
class StorageClassGone:
    name: str


@dataclass(frozen=True, slots=True)
class VolumeAttachmentSeen:
    attachment: VolumeAttachment


@dataclass(frozen=True, slots=True)
class VolumeAttachmentGone:
    name: str


@dataclass(frozen=True, slots=True)
class CsiNodeSeen:
    node: CsiNode


@dataclass(frozen=True, slots=True)
class CsiNodeGone:
    name: str


@dataclass(frozen=True, slots=True)
class ResourceClaimSeen:
    claim: ResourceClaim


@dataclass(frozen=True, slots=True)
class ResourceClaimGone:
    key: str


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplateSeen:
    template: ResourceClaimTemplate


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplateGone:
    key: str


@dataclass(frozen=True, slots=True)
class ResourceSliceSeen:
    resource_slice: ResourceSlice


@dataclass(frozen=True, slots=True)
class ResourceSliceGone:
    name: str


@dataclass(frozen=True, slots=True)
class ServerVersionSeen:
    """What the API server says that it is."""

    version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class DeviceClassSeen:
    device_class: DeviceClass


@dataclass(frozen=True, slots=True)
class DeviceClassGone:
    name: str


@dataclass(frozen=True, slots=True)
class PodDisruptionBudgetSeen:
    budget: PodDisruptionBudget


@dataclass(frozen=True, slots=True)
class PodDisruptionBudgetGone:
    key: str


@dataclass(frozen=True, slots=True)
class VerticalPodAutoscalerSeen:
    autoscaler: VerticalPodAutoscaler


@dataclass(frozen=True, slots=True)
class VerticalPodAutoscalerGone:
    key: str


@dataclass(frozen=True, slots=True)
class Nominated:
    """Pods are expected on a claim or node until a time."""

    name: str
    until: float


@dataclass(frozen=True, slots=True)
class GuardSeen:
    """The teardown guard of a stack; `deleting` once the stack is being destroyed."""

    deleting: bool
    drain: float | None = None
    """Seconds that a drain may take then; None: the usual."""


@dataclass(frozen=True, slots=True)
class GuardGone:
    key: str


@dataclass(frozen=True, slots=True)
class CapacityBufferSeen:
    buffer: CapacityBuffer


@dataclass(frozen=True, slots=True)
class CapacityBufferGone:
    key: str


@dataclass(frozen=True, slots=True)
class ProvisioningRequestSeen:
    request: ProvisioningRequest


@dataclass(frozen=True, slots=True)
class ProvisioningRequestGone:
    key: str


@dataclass(frozen=True, slots=True)
class PodSourceSeen:
    source: PodSource


@dataclass(frozen=True, slots=True)
class PodSourceGone:
    key: str


@dataclass(frozen=True, slots=True)
class BuffersPlaced:
    """The nodes on which a plan keeps room for capacity buffers, and no others."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeOverlaySeen:
    overlay: NodeOverlay


@dataclass(frozen=True, slots=True)
class NodeOverlayGone:
    name: str


@dataclass(frozen=True, slots=True)
class OverlaysApplied:
    """The NodeOverlays by which prices and capacity are from now on, and no others."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GangSizeSeen:
    size: GangSize


@dataclass(frozen=True, slots=True)
class GangSizeGone:
    key: str


@dataclass(frozen=True, slots=True)
class GangsPaused:
    """The gangs for which nothing is launched now, each with why, and no others."""

    gangs: Mapping[str, str] = field(hash=False)


BufferEvent = (
    CapacityBufferSeen
    | CapacityBufferGone
    | ProvisioningRequestSeen
    | ProvisioningRequestGone
    | PodSourceSeen
    | PodSourceGone
    | BuffersPlaced
)
DeviceEvent = (
    ResourceClaimSeen
    | ResourceClaimGone
    | ResourceClaimTemplateSeen
    | ResourceClaimTemplateGone
    | ResourceSliceSeen
    | ResourceSliceGone
    | DeviceClassSeen
    | DeviceClassGone
)
GangEvent = GangSizeSeen | GangSizeGone | GangsPaused
OverlayEvent = NodeOverlaySeen | NodeOverlayGone | OverlaysApplied
StorageEvent = (
    VolumeClaimSeen
    | VolumeClaimGone
    | VolumeSeen
    | VolumeGone
    | StorageClassSeen
    | StorageClassGone
    | VolumeAttachmentSeen
    | VolumeAttachmentGone
    | CsiNodeSeen
    | CsiNodeGone
)
Event = (
    PodSeen
    | PodGone
    | NodeSeen
    | NodeGone
    | ClaimSeen
    | ClaimGone
    | PoolSeen
    | PoolGone
    | NeighborPoolSeen
    | AutoscalerGroupsSeen
    | ServerVersionSeen
    | NodeClassSeen
    | NodeClassGone
    | DaemonSetSeen
    | DaemonSetGone
    | NamespaceSeen
    | NamespaceGone
    | VerticalPodAutoscalerSeen
    | VerticalPodAutoscalerGone
    | StorageEvent
    | BufferEvent
    | GangEvent
    | OverlayEvent
    | DeviceEvent
    | PodDisruptionBudgetSeen
    | PodDisruptionBudgetGone
    | Nominated
    | GuardSeen
    | GuardGone
)
