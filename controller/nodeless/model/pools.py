"""Pools and node classes: one internal model for both API generations.

A `Pool` is a v1alpha5 Provisioner or a v1 NodePool, a `NodeClass` a v1alpha1
AWSNodeTemplate, a v1 EC2NodeClass, or the inline `spec.provider` of a Provisioner.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nodeless.model.conditions import Condition
from nodeless.model.hardware import ConnectionTracking, CpuOptions, NetworkInterface
from nodeless.model.labels import NODE_POOL, PROVISIONER_NAME
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import Resources
from nodeless.model.taints import Taint

PROVISIONER = "Provisioner"
NODE_POOL_KIND = "NodePool"
AWS_NODE_TEMPLATE = "AWSNodeTemplate"
EC2_NODE_CLASS = "EC2NodeClass"


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """Kind and name of a cluster-scoped object, with its uid where an owner reference needs it."""

    kind: str
    name: str
    uid: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def pool_label(self) -> str:
        """The label (and tag) key that names a pool of this kind on its nodes."""
        return PROVISIONER_NAME if self.kind == PROVISIONER else NODE_POOL


@dataclass(frozen=True, slots=True)
class Kubelet:
    """Kubelet settings that a pool gives its nodes (v1alpha5 `kubeletConfiguration`); None: not given."""

    cluster_dns: tuple[str, ...] = ()
    container_runtime: str | None = None
    max_pods: int | None = None
    pods_per_core: int | None = None
    system_reserved: tuple[tuple[str, str], ...] = ()
    kube_reserved: tuple[tuple[str, str], ...] = ()
    eviction_hard: tuple[tuple[str, str], ...] = ()
    eviction_soft: tuple[tuple[str, str], ...] = ()
    eviction_soft_grace_period: tuple[tuple[str, str], ...] = ()
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_threshold_percent: int | None = None
    image_gc_low_threshold_percent: int | None = None
    cpu_cfs_quota: bool | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """How many nodes of a pool may be disrupted at once (v1 `disruption.budgets`).

    `nodes` is a number or a percentage; no reasons: all of them; no schedule: always; `duration` in seconds.
    """

    nodes: str
    reasons: tuple[str, ...] = ()
    schedule: str = ""
    duration: int | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """What nodes may be made, and how long they live. `requirements` includes `labels`, defaults applied."""

    reference: Reference
    node_class: Reference
    weight: int = 0
    generation: int = 0
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    requirements: Requirements = field(default_factory=Requirements)
    kubelet: Kubelet = Kubelet()
    limits: Resources | None = field(default=None, hash=False)
    ttl_seconds_after_empty: int | None = None
    ttl_seconds_until_expired: int | None = None
    consolidation_enabled: bool = False
    balanced: bool = False
    """Consolidated only where the part of its price saved is worth the part of it disturbed (Balanced)."""
    deletion_timestamp: float | None = None
    finalizers: tuple[str, ...] = ()
    status_resources: Resources = field(default_factory=dict, hash=False)
    """What its status says its nodes hold now."""
    invalid: str = ""
    """Why the object cannot be used: then only its metadata is known, its nodes stay, none is made."""
    consolidate_after: int | None = None
    """Seconds without a change on a node before it is consolidated; None where nothing is consolidated."""
    termination_grace_period: int | None = None
    """Longest time in seconds that the drain of a node may take; None: as long as it takes."""
    budgets: tuple[Budget, ...] = ()
    """Limits to disruption at the same time; none: no limit. One that limits nothing does not stand here."""
    own_annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Annotations of the object itself; `annotations` are those of its nodes."""
    replicas: int | None = None
    """A static pool: so many nodes, whatever the pods are. None: nodes are made as pods need them."""
    status_nodes: int = 0
    """How many nodes its status says it has."""
    status_node_class_generation: int = 0
    """Generation of the node class that its status is about."""
    conditions: tuple[Condition, ...] = ()
    packing: str | None = None
    """How its new nodes are chosen (`model.packing`); None: as the settings say."""

    @property
    def key(self) -> str:
        return str(self.reference)

    @property
    def name(self) -> str:
        return self.reference.name

    @property
    def offered(self) -> Requirements:
        """Its requirements with its own name; the label of the other API generation never exists."""
        own = self.reference.pool_label
        other = NODE_POOL if own == PROVISIONER_NAME else PROVISIONER_NAME
        labels = [
            *self.requirements.values(),
            *Requirements.from_labels(self.labels).values(),
            Requirement(own, False, frozenset((self.name,))),
        ]
        if not any(requirement.key == other for requirement in labels):
            labels.append(Requirement(other, False))
        return Requirements(labels)

    def wants_the_same(self, other: "Pool") -> bool:
        """Whether two versions of a pool differ at most in what their status reports."""
        reported = replace(
            self,
            status_resources=other.status_resources,
            status_nodes=other.status_nodes,
            status_node_class_generation=other.status_node_class_generation,
            conditions=other.conditions,
        )
        return reported == other


@dataclass(frozen=True, slots=True)
class SelectorTerm:
    """One way to select AWS objects; all members of a term must match.

    `tags`: key to pattern (`*`: any value; wildcards `*` and `?`; several patterns are alternatives).
    """

    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    """Names of SSM parameters that hold ids."""
    match_criteria: str = ""
    """`open` or `targeted`, of capacity reservations; empty: both."""


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """One EBS mapping; `volume_size` in bytes."""

    device_name: str
    volume_size: int | None = None
    volume_type: str | None = None
    iops: int | None = None
    throughput: int | None = None
    encrypted: bool | None = None
    kms_key_id: str | None = None
    snapshot_id: str | None = None
    delete_on_termination: bool | None = None
    initialization_rate: int | None = None
    """MiB per second at which a snapshot's blocks are fetched."""
    root: bool = False
    """The kubelet's directory is on it, whatever device the family uses by default."""


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    http_endpoint: str | None = None
    http_protocol_ipv6: str | None = None
    http_put_response_hop_limit: int | None = None
    http_tokens: str | None = None


@dataclass(frozen=True, slots=True)
class NodeClass:
    """How an instance is made: where, from which image, with which disks, tags and start-up data."""

    reference: Reference
    ami_family: str = "AL2"
    subnets: tuple[SelectorTerm, ...] = ()
    security_groups: tuple[SelectorTerm, ...] = ()
    images: tuple[SelectorTerm, ...] = ()
    instance_profile: str | None = None
    user_data: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    block_devices: tuple[BlockDevice, ...] = ()
    metadata_options: MetadataOptions | None = None
    detailed_monitoring: bool = False
    launch_template: str | None = None
    context: str | None = None
    generation: int = 0
    deletion_timestamp: float | None = None
    invalid: str = ""
    """Why the object cannot be used; then only its metadata is known."""
    role: str | None = None
    """IAM role of the nodes, where it is given instead of an instance profile."""
    image_family: str = ""
    """Family whose published images are used, where it is not `ami_family`."""
    image_release: str = ""
    """Release of the published images; empty: the newest."""
    kubelet: Kubelet | None = None
    """Kubelet settings of generation v1, in place of the pool's."""
    instance_store_raid: bool = False
    """The disks inside the host become one volume, which holds containers and the kubelet."""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    """None: one ordinary interface, and those that EFA needs."""
    public_address: bool | None = None
    """Whether instances get one; None: as the subnet says."""
    ipv4_prefixes: int | None = None
    """How many /28 prefixes the first network interface gets at launch."""
    connection_tracking: ConnectionTracking | None = None
    cpu_options: CpuOptions | None = None
    enclaves: bool = False
    """Whether instances can hold Nitro enclaves."""
    conditions: tuple[Condition, ...] = ()
    capacity_reservations: tuple[SelectorTerm, ...] = ()
    """Capacity reservations that its instances may be bought from."""
    placement_group: str = ""
    """Name or id (`pg-...`) of the placement group of its instances; empty: none."""
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return str(self.reference)


def kubelet_of(pool: Pool, node_class: NodeClass) -> Kubelet:
    """The kubelet settings of a pool's nodes: v1alpha5 gives them in the pool, v1 in the node class."""
    return pool.kubelet if node_class.kubelet is None else node_class.kubelet
