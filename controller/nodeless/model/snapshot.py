"""The cluster at one moment: immutable, cheap to derive the next one from.

The maps are persistent (HAMT): setting one entry shares all the others, so an event
costs a logarithm and an old snapshot stays valid while a solve runs on it. Room
`state` makes the next snapshot out of an event.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from immutables import Map

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
class Snapshot:
    """Everything known of the cluster."""

    pods: Map[str, Pod] = Map()
    """By `namespace/name`."""
    pods_of_node: Map[str, frozenset[str]] = Map()
    #: Exactly the keys of `pods` whose `node_name` is the key.
    nodes: Map[str, Node] = Map()
    """By name."""
    node_names: Map[str, str] = Map()
    #: Provider id to the name of the one node in `nodes` that has it.
    claims: Map[str, NodeClaim] = Map()
    """By name."""
    claim_names: Map[str, str] = Map()
    #: Provider id to the name of the one claim in `claims` that has it.
    pools: Map[str, Pool] = Map()
    """By key, `Provisioner/default`."""
    node_classes: Map[str, NodeClass] = Map()
    """By key, `AWSNodeTemplate/default`; an inline provider is `Provisioner/<name>`."""
    daemon_sets: Map[str, DaemonSet] = Map()
    """By `namespace/name`."""
    namespaces: Map[str, Namespace] = Map()
    """By name."""
    volume_claims: Map[str, PersistentVolumeClaim] = Map()
    """By `namespace/name`."""
    volumes: Map[str, Volume] = Map()
    """By name."""
    storage_classes: Map[str, StorageClass] = Map()
    """By name."""
    attachments: Map[str, VolumeAttachment] = Map()
    """By name."""
    csi_nodes: Map[str, CsiNode] = Map()
    """By the name of their node."""
    resource_claims: Map[str, ResourceClaim] = Map()
    """By `namespace/name`."""
    resource_claim_templates: Map[str, ResourceClaimTemplate] = Map()
    """By `namespace/name`."""
    resource_slices: Map[str, ResourceSlice] = Map()
    """By name."""
    device_classes: Map[str, DeviceClass] = Map()
    """By name."""
    server_version: tuple[int, int] | None = None
    """The API server's, major and minor; None: not known."""
    disruption_budgets: Map[str, PodDisruptionBudget] = Map()
    """By `namespace/name`."""
    nominations: Map[str, float] = Map()
    """Claim or node name to the time until which pods are expected on it."""
    capacity_buffers: Map[str, CapacityBuffer] = Map()
    """By `namespace/name`."""
    provisioning_requests: Map[str, ProvisioningRequest] = Map()
    """By `namespace/name`."""
    pod_sources: Map[str, PodSource] = Map()
    """What capacity buffers and provisioning requests may name, by `Kind/namespace/name`."""
    gang_sizes: Map[str, GangSize] = Map()
    """What PodGroups, Jobs and JobSets say of their gangs, by `Kind/namespace/name`."""
    paused_gangs: Map[str, str] = Map()
    """Gangs for which nothing is launched now, by name, each with why."""
    booked: tuple[str, ...] = ()
    """Keys of the pods that stand for booked room and have no place yet, in order."""
    buffered: Map[str, bool] = Map()
    """Names of nodes and claims on which the last plan keeps room for buffers and provisioning requests."""
    room_placed: bool = False
    """Whether a pass has said so since this process started: before, a node with booked room looks empty."""
    node_overlays: Map[str, NodeOverlay] = Map()
    """By name."""
    applied_overlays: tuple[str, ...] = ()
    """NodeOverlays that prices and capacity of instance types follow, in the order in which they count."""
    vertical_autoscalers: Map[str, VerticalPodAutoscaler] = Map()
    """By `namespace/name`; watched where consolidation leaves room for what they recommend."""
    neighbor_pools: Map[str, Pool] = Map()
    """By key, the pools that EKS Auto Mode serves: nothing is made of them."""
    autoscaler_groups: tuple[ScalingGroup, ...] = ()
    """What Cluster Autoscaler says its groups are, where that could be read."""
    teardown: bool = False
    """The stack is being destroyed: no new capacity, everything must go."""
    teardown_drain: float | None = None
    """Seconds that the drain of a node may take then; None: the usual."""

    def pods_on(self, node_name: str) -> Iterator[Pod]:
        """The pods bound to a node, in the order of their keys."""
        for key in sorted(self.pods_of_node.get(node_name, frozenset())):
            yield self.pods[key]

    def node_of(self, claim: NodeClaim) -> Node | None:
        """The node that a claim's instance became, found by provider id."""
        name = self.node_names.get(claim.provider_id) if claim.provider_id else None
        return None if name is None else self.nodes[name]

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The claim whose instance a node is, or None for a node that is not ours."""
        name = self.claim_names.get(node.provider_id) if node.provider_id else None
        return None if name is None else self.claims[name]

    @property
    def room_unknown(self) -> bool:
        """Whether something asks for room to be kept, and no pass has placed it yet."""
        if self.room_placed:
            return False
        requests = self.provisioning_requests.values()
        return bool(self.capacity_buffers) or any(request.is_open for request in requests)

    def duplicates_of(self, node: Node) -> tuple[Node, ...]:
        """Other nodes with the same provider id, by name: a machine that joined again under another name."""
        if not node.provider_id:
            return ()
        same = (name for name, other in self.nodes.items() if other.provider_id == node.provider_id)
        return tuple(self.nodes[name] for name in sorted(same) if name != node.name)

    def is_nominated(self, name: str, now: float) -> bool:
        """Whether pods are still expected on a claim or node."""
        return self.nominations.get(name, 0.0) > now
