"""Nodes of the cluster, claims on capacity, and the instances behind them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeless.model.conditions import READY, Condition
from nodeless.model.labels import (
    AUTO_MODE,
    CAPACITY_TYPE,
    COMPUTE_TYPE,
    EKS_CAPACITY_TYPE,
    INITIALIZED,
    INSTANCE_TYPE,
    LAUNCH_GROUP,
    LAUNCH_GROUP_SIZE,
    NODE_POOL,
    ON_DEMAND,
    PROVISIONER_NAME,
    REBOOTING_TAINT,
    REGISTERED,
    REPLACES,
    RESERVED,
    SPOT,
    TERMINATION_FINALIZER,
    ZONE,
)
from nodeless.model.pods import Owner
from nodeless.model.pools import NODE_POOL_KIND, PROVISIONER, Reference
from nodeless.model.requirements import Requirements
from nodeless.model.resources import Resources
from nodeless.model.taints import Taint

__all__ = [
    "CONSISTENT_STATE_FOUND",
    "CONSOLIDATABLE",
    "DISRUPTION_REASON",
    "DRAINED",
    "DRIFTED",
    "EMPTY",
    "EXPIRED",
    "INITIALIZED_CONDITION",
    "INSTANCE_TERMINATING",
    "LAUNCHED",
    "READY",
    "REBOOTING",
    "REBOOT_FENCE",
    "REBOOT_REQUESTED",
    "REGISTERED_CONDITION",
    "VOLUMES_DETACHED",
    "Condition",
    "Instance",
    "Node",
    "NodeClaim",
    "capacity_type_of",
]

LAUNCHED = "Launched"
REGISTERED_CONDITION = "Registered"
INITIALIZED_CONDITION = "Initialized"
EMPTY = "Empty"
DRAINED = "Drained"
VOLUMES_DETACHED = "VolumesDetached"
INSTANCE_TERMINATING = "InstanceTerminating"
CONSOLIDATABLE = "Consolidatable"
CONSISTENT_STATE_FOUND = "ConsistentStateFound"
DRIFTED = "Drifted"
EXPIRED = "Expired"
DISRUPTION_REASON = "DisruptionReason"
REBOOTING = "Rebooting"
#: Its reason while the node is drained for the reboot.
REBOOT_REQUESTED = "RebootRequested"
#: Keeps pods off it from then until it is back.
REBOOT_FENCE = Taint(REBOOTING_TAINT, "NoSchedule")

_EKS_CAPACITY_TYPES = {"ON_DEMAND": ON_DEMAND, "SPOT": SPOT, "CAPACITY_BLOCK": RESERVED}


def capacity_type_of(labels: Mapping[str, str]) -> str:
    """The capacity type by the labels of a node, Karpenter's or those of EKS; empty: it has none."""
    return labels.get(CAPACITY_TYPE) or _EKS_CAPACITY_TYPES.get(labels.get(EKS_CAPACITY_TYPE, ""), "")


def is_node_of_others(labels: Mapping[str, str], provider_id: str) -> bool:
    """Whether a node is EKS Auto Mode's, or of another cloud: its id, once it has one, is no `aws:///ZONE/ID`."""
    of_another_cloud = bool(provider_id) and not provider_id.startswith("aws:")
    return labels.get(COMPUTE_TYPE) == AUTO_MODE or of_another_cloud


@dataclass(frozen=True, slots=True)
class NodeClaim:
    """A v1 NodeClaim: the request for one node, written before its instance exists.

    `name` is deterministic: it is also the instance's tag, and with `uid` the fleet request's client token.
    """

    name: str
    pool: Reference
    node_class: Reference
    requirements: Requirements = field(default_factory=Requirements)
    requests: Resources = field(default_factory=dict, hash=False)
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    created_at: float = 0.0
    deletion_timestamp: float | None = None
    finalizers: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    provider_id: str = ""
    node_name: str = ""
    image_id: str = ""
    capacity: Resources = field(default_factory=dict, hash=False)
    allocatable: Resources = field(default_factory=dict, hash=False)
    expire_after: int | None = None
    """Seconds of life that its pool meant for it when it was made; None: no end."""
    termination_grace_period: int | None = None
    """Longest time in seconds that its drain may take; None: as long as it takes."""
    last_pod_event: float | None = None
    """When a pod was last bound to its node, ended or left."""
    invalid: str = ""
    """Why the object cannot be read: then little more than its metadata is known, and nothing ends it."""

    def condition(self, type_: str) -> Condition | None:
        # Asked for every claim at every step: a generator would take twice the time.
        for condition in self.conditions:
            if condition.type == type_:
                return condition
        return None

    def is_true(self, type_: str) -> bool:
        condition = self.condition(type_)
        return condition is not None and condition.status == "True"

    @property
    def is_standalone(self) -> bool:
        """Whether it belongs to no pool: a user made it, and it is launched as it stands."""
        return not self.pool.name

    @property
    def instance_id(self) -> str:
        """The EC2 instance id of `aws:///ZONE/ID`; empty before launch."""
        return self.provider_id.rsplit("/", 1)[-1]

    @property
    def launch_group(self) -> str:
        """The claims that share its fleet request; empty for one that is launched by itself."""
        return self.annotations.get(LAUNCH_GROUP, "")

    @property
    def launch_group_size(self) -> int:
        """How many claims its group had when it was made; 1 without a group."""
        text = self.annotations.get(LAUNCH_GROUP_SIZE, "1")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1

    @property
    def replaces(self) -> tuple[str, ...]:
        """The claims in whose place it was made."""
        text = self.annotations.get(REPLACES)
        return tuple(name for name in text.split(",") if name) if text else ()

    @property
    def instance_type(self) -> str:
        return self.labels.get(INSTANCE_TYPE, "")


@dataclass(frozen=True, slots=True)
class Node:
    """A Node object, the part that we act on."""

    name: str
    uid: str = ""
    resource_version: str = ""
    provider_id: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    capacity: Resources = field(default_factory=dict, hash=False)
    allocatable: Resources = field(default_factory=dict, hash=False)
    ready: bool = False
    created_at: float = 0.0
    deletion_timestamp: float | None = None
    finalizers: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    conditions: tuple[Condition, ...] = ()
    """What the kubelet and other watchers of the machine report, without the times at which they did."""
    boot_id: str = ""
    """Of the kernel that runs: another one after each boot; empty until the kubelet has said it."""

    @property
    def initialized(self) -> bool:
        return self.labels.get(INITIALIZED) == "true"

    @property
    def registered(self) -> bool:
        return self.labels.get(REGISTERED) == "true"

    @property
    def pool(self) -> Reference | None:
        """The pool that its labels name."""
        for key, kind in ((PROVISIONER_NAME, PROVISIONER), (NODE_POOL, NODE_POOL_KIND)):
            if key in self.labels:
                return Reference(kind, self.labels[key])
        return None

    @property
    def terminating(self) -> bool:
        """Whether it is deleted and kept until its drain is over: until our finalizer goes."""
        return self.deletion_timestamp is not None and TERMINATION_FINALIZER in self.finalizers

    @property
    def instance_type(self) -> str:
        return self.labels.get(INSTANCE_TYPE, "")

    @property
    def zone(self) -> str:
        return self.labels.get(ZONE, "")

    @property
    def capacity_type(self) -> str:
        return capacity_type_of(self.labels)


@dataclass(frozen=True, slots=True)
class Instance:
    """An EC2 instance that belongs to this cluster, as the cloud describes it."""

    id: str
    provider_id: str
    instance_type: str
    zone: str
    capacity_type: str
    state: str
    launched_at: float
    image_id: str = ""
    private_dns_name: str = ""
    subnet_id: str = ""
    security_groups: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Labels that the instance determines: type, zone, capacity type, image and all that its type implies."""
    capacity: Resources = field(default_factory=dict, hash=False)
    allocatable: Resources = field(default_factory=dict, hash=False)
    instance_profile: str = ""
    """Name of its instance profile, where the cloud has told it."""
