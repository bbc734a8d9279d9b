"""Devices that drivers publish and pods claim: dynamic resource allocation (`resource.k8s.io/v1`).

A ResourceSlice lists devices of one node, or of several, with attributes and capacity; a ResourceClaim asks
for some of them by CEL expressions. Amounts of capacity and of counters are in thousandths: whole numbers,
whatever the quantity.
"""

from dataclasses import dataclass

from nodeless.model.pods import NodeSelectorTerm
from nodeless.model.taints import Taint, Toleration


@dataclass(frozen=True, slots=True, order=True)
class DeviceAttribute:
    """One attribute; exactly one of the values is given."""

    name: str
    """With its domain: `gpu.nvidia.com/productName`."""
    string: str | None = None
    integer: int | None = None
    boolean: bool | None = None
    version: str | None = None
    """A semantic version, `8.0.0`."""


#: AWS' driver for EFA, and the resource that counts its devices: a node must be launched with them.
EFA_DRIVER = "dra.net"
EFA_INTERFACES = f"{EFA_DRIVER}/devices"


def qualified(name: str, driver: str) -> str:
    """A name with its domain: without one of its own it belongs to the driver."""
    return name if "/" in name else f"{driver}/{name}"


Amounts = tuple[tuple[str, int], ...]
"""(name, thousandths of its unit), sorted by name."""


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """How much of a capacity requests consume of a device that is allocated several times; thousandths."""

    default: int | None = None
    """What a request consumes that does not name the capacity; None: all of it."""
    values: tuple[int, ...] = ()
    """What may be consumed, ascending; none: anything that the range allows."""
    minimum: int | None = None
    maximum: int | None = None
    step: int | None = None

    def consumed(self, asked: int) -> int | None:
        """What a request for an amount consumes; None: the device does not give so much at once."""
        if self.values:
            return next((value for value in self.values if value >= asked), None)
        if self.minimum is None:
            return asked
        amount = max(asked, self.minimum)
        if self.step and asked >= self.minimum:
            # kube-scheduler counts steps in whole units.
            least, step = _in_whole_units(self.minimum), _in_whole_units(self.step)
            amount = least - (least - _in_whole_units(asked)) // step * step
        return None if self.maximum is not None and amount > self.maximum else amount


def _in_whole_units(amount: int) -> int:
    return -(-amount // 1000) * 1000


@dataclass(frozen=True, slots=True)
class CounterSet:
    """Something of which devices of a pool are parts, as a GPU of its partitions."""

    name: str
    counters: Amounts = ()


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """The nodes that reach a device: one, those that a term matches, or all."""

    node: str = ""
    terms: tuple[NodeSelectorTerm, ...] = ()
    every: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """One device; attributes and capacity sorted by name."""

    name: str
    attributes: tuple[DeviceAttribute, ...] = ()
    capacity: Amounts = ()
    """By name with its domain."""
    taints: tuple[Taint, ...] = ()
    multiple: bool = False
    """It may be allocated several times, as long as its capacity is enough."""
    policies: tuple[tuple[str, RequestPolicy], ...] = ()
    """How requests consume its capacity, by name with its domain."""
    consumes: tuple[CounterSet, ...] = ()
    """What it takes of counters of its pool once it is allocated."""
    unqualified: tuple[str, ...] = ()
    """The capacities, by name with their domain, that the driver publishes without one."""
    access: NodeAccess | None = None
    """The nodes that reach it, where its slice leaves that to each device."""

    def consumed(self, asked: Amounts) -> Amounts | None:
        """What a request consumes of each capacity; None: the device lacks one, or does not give so much.

        Names are compared as they are written, as kube-scheduler does: one without a domain is met by a
        capacity that is published without.
        """
        own = {
            name.partition("/")[2] if name in self.unqualified else name: name for name, _ in self.capacity
        }
        named = {own.get(name, ""): amount for name, amount in asked}
        if "" in named:
            return None
        policies = dict(self.policies)
        found = []
        for name, whole in self.capacity:
            policy = policies.get(name, _NO_POLICY)
            amount: int | None = whole if policy.default is None else policy.default
            if name in named:
                amount = policy.consumed(named[name])
            if amount is None or amount > whole:
                return None
            found.append((name, amount))
        return tuple(found)


_NO_POLICY = RequestPolicy()


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """Devices of one driver, on one node or within reach of several; or counters of its pool."""

    name: str
    driver: str
    pool: str
    """Slices of one pool and generation belong together."""
    generation: int = 0
    slices: int = 1
    """How many slices the pool has in this generation."""
    node_name: str = ""
    """Empty: not of one node alone."""
    devices: tuple[Device, ...] = ()
    access: NodeAccess | None = None
    """The nodes that reach its devices, where it is not one alone; None: each device says it."""
    counter_sets: tuple[CounterSet, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverDevices:
    """The devices of one driver that nodes of a type will publish, as a user says."""

    driver: str
    devices: tuple[Device, ...] = ()
    counter_sets: tuple[CounterSet, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    name: str
    selectors: tuple[str, ...] = ()
    """CEL expressions, all of which a device must meet."""
    extended_resource: str = ""
    """The extended resource that its devices serve (`spec.extendedResourceName`); empty: none by a name."""
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class DeviceAlternative:
    """What one request, or one of the alternatives of a request, asks for."""

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    """None: all that match on a node."""
    admin: bool = False
    """Access for administration, which allocates nothing."""
    tolerations: tuple[Toleration, ...] = ()
    capacity: Amounts = ()
    """What each device must have left of its capacity, by name as it is written."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One request of a claim: the first of its alternatives that a node has counts."""

    name: str
    alternatives: tuple[DeviceAlternative, ...]


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """What devices of several requests must have in common, or no two of them."""

    requests: tuple[str, ...] = ()
    """None: all requests of the claim."""
    match_attribute: str = ""
    distinct_attribute: str = ""


@dataclass(frozen=True, slots=True)
class ClaimedDevices:
    """The specification of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class AllocatedDevice:
    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """What one claim has of a device that is allocated several times."""

    device: AllocatedDevice
    consumed: Amounts = ()
    """By name with its domain."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The devices that kube-scheduler has given a claim, and where they can be used."""

    devices: tuple[AllocatedDevice, ...] = ()
    terms: tuple[NodeSelectorTerm, ...] = ()
    """Alternatives; none: everywhere."""
    shares: tuple[DeviceShare, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    namespace: str
    name: str
    devices: ClaimedDevices
    allocation: Allocation | None = None
    deletion_timestamp: float | None = None
    serves_pod: str = ""
    """Uid of the pod whose extended resources kube-scheduler made it for; empty: somebody claimed devices."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplate:
    """What the claims are that are made for pods which name it."""

    namespace: str
    name: str
    devices: ClaimedDevices

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
