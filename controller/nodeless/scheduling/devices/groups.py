"""Devices that are alike, on a node or on one that a type would become; and their resources.

What claims take of devices is counted by resources, which are requests like any other from there on. All of
their names end alike: `<driver>/devices` counts whole devices, `<driver>/<capacity>/devices` what is
consumed of devices that are allocated several times, `<driver>/counter-<name>/devices` what partitions take
of what they are parts of, and `<driver>/claim-<digest>/devices` how often a claim of one kind fits.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodeless.model.devices import (
    EFA_INTERFACES,
    AllocatedDevice,
    Amounts,
    Device,
    DeviceAttribute,
    DeviceShare,
    ResourceSlice,
)
from nodeless.model.resources import Resources

_DEVICES = "/devices"
_CLAIM = "/claim-"


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Devices of one driver that are alike; their device has no name.

    One that is allocated several times is a group of its own, for what is left of it.
    """

    driver: str
    device: Device
    count: int
    """How many there are."""
    free: int
    """How many of them may be allocated."""
    consumed: Amounts | None = None
    """What claims have of its capacity; None: it is not allocated."""

    @property
    def plain(self) -> bool:
        """Whether its devices are whole: nothing else is part of them, and one claim at a time has one."""
        return not self.device.multiple and not self.device.consumes


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter of a counter set: how much there is, and how much is left."""

    set: str
    """With the driver, and the pool of it on the node."""
    name: str
    whole: int
    left: int


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """The devices of one node, or of a node that a type would become, in kube-scheduler's order."""

    groups: tuple[DeviceGroup, ...] = ()
    counters: tuple[Counter, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.groups)

    @property
    def drivers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group.driver for group in self.groups))

    def of(self, drivers: Container[str]) -> "DevicePlace":
        """The devices of some drivers alone."""
        return DevicePlace(
            tuple(group for group in self.groups if group.driver in drivers),
            tuple(counter for counter in self.counters if driver_of(counter.set) in drivers),
        )

    def __add__(self, other: "DevicePlace") -> "DevicePlace":
        return DevicePlace(self.groups + other.groups, self.counters + other.counters)


NO_DEVICES = DevicePlace()


@dataclass(slots=True)
class Held:
    """What claims have of all devices."""

    whole: set[AllocatedDevice] = field(default_factory=set)
    shares: dict[AllocatedDevice, dict[str, int]] = field(default_factory=dict)
    """Consumed capacity by name, of devices that are allocated several times."""

    def add(self, devices: Iterable[AllocatedDevice], shares: Iterable[DeviceShare]) -> None:
        """Count what one claim has."""
        self.whole.update(devices)
        for share in shares:
            consumed = self.shares.setdefault(share.device, {})
            for name, amount in share.consumed:
                consumed[name] = consumed.get(name, 0) + amount

    def __contains__(self, device: AllocatedDevice) -> bool:
        return device in self.whole or device in self.shares


def resource_of(driver: str) -> str:
    """The resource that counts the devices of a driver."""
    return driver + _DEVICES


def capacity_resource(driver: str, capacity: str) -> str:
    """The resource that counts what is consumed of a capacity, which is named with its domain."""
    return f"{driver}/{capacity.rpartition('/')[2]}{_DEVICES}"


def counter_resource(driver: str, counter: str) -> str:
    """The resource that counts what partitions take of a counter."""
    return f"{driver}/counter-{counter}{_DEVICES}"


def claim_resource(driver: str, digest: str) -> str:
    """The resource that counts how often claims of one kind fit."""
    return f"{driver}{_CLAIM}{digest}{_DEVICES}"


def counts_claims(resource: str) -> bool:
    """Whether a resource counts how often claims fit; no capacity has a name with a dash."""
    return _CLAIM in resource


def counts_devices(resource: str) -> bool:
    """Whether a resource counts whole devices."""
    return resource == resource_of(driver_of(resource))


def driver_of(resource: str) -> str:
    """The driver that a resource is about."""
    return resource.partition("/")[0]


def without_devices(resources: Resources) -> dict[str, int]:
    """What is asked of the cloud: devices are a matter of the node's drivers, but for EFA's interfaces."""
    return {
        name: amount
        for name, amount in resources.items()
        if not name.endswith(_DEVICES) or name == EFA_INTERFACES
    }


def pool_place(
    slices: Sequence[ResourceSlice], reached: Mapping[str, Sequence[Device]], held: Held, number: int = 0
) -> DevicePlace:
    """The devices of one pool that a node reaches.

    Args:
        slices: All slices of the pool's newest generation, by name.
        reached: By name of a slice, the devices of it that the node reaches, without what is unasked for.
        held: What claims have.
        number: Tells the counters of the driver's pools on the node apart.
    """
    driver, pool = slices[0].driver, slices[0].pool
    left = {
        (one.name, name): whole
        for each in slices
        for one in each.counter_sets
        for name, whole in one.counters
    }
    if _is_invalid(slices, left):
        return NO_DEVICES
    whole = dict(left)
    for each in slices:
        for device in each.devices:
            if device.consumes and AllocatedDevice(driver, pool, device.name) in held:
                for one in device.consumes:
                    for name, amount in one.counters:
                        left[one.name, name] -= amount
    groups = _grouped(
        driver, pool, (device for each in slices for device in reached.get(each.name, ())), held, number
    )
    used = any(group.device.consumes for group in groups)
    counters = (
        Counter(_set(driver, number, key), name, whole[key, name], amount)
        for (key, name), amount in left.items()
    )
    return DevicePlace(groups, tuple(counters) if used else ())


def _is_invalid(slices: Sequence[ResourceSlice], counters: Mapping[tuple[str, str], int]) -> bool:
    """Whether kube-scheduler allocates nothing of a pool: a name twice, or a counter that is not there."""
    sets = [one.name for each in slices for one in each.counter_sets]
    devices = [device for each in slices for device in each.devices]
    if len(set(sets)) < len(sets) or len({device.name for device in devices}) < len(devices):
        return True
    return any(
        (one.name, name) not in counters
        for device in devices
        for one in device.consumes
        for name, _ in one.counters
    )


def _set(driver: str, number: int, name: str) -> str:
    return f"{driver}/{number}/{name}"


def _grouped(
    driver: str, pool: str, devices: Iterable[Device], held: Held, number: int
) -> tuple[DeviceGroup, ...]:
    """The devices by what they have in common."""
    counts: dict[tuple[Device, Amounts | None, int], tuple[int, int]] = {}
    for at, device in enumerate(devices):
        allocated = AllocatedDevice(driver, pool, device.name)
        share = held.shares.get(allocated)
        alike = replace(
            device,
            name="",
            access=None,
            consumes=tuple(replace(one, name=_set(driver, number, one.name)) for one in device.consumes),
        )
        key = (alike, None if share is None else tuple(sorted(share.items())), at if device.multiple else -1)
        count, free = counts.get(key, (0, 0))
        counts[key] = (count + 1, free + (allocated not in held.whole))
    return tuple(
        DeviceGroup(driver, device, count, free, consumed)
        for (device, consumed, _), (count, free) in counts.items()
    )


def typical(place: DevicePlace) -> DevicePlace:
    """The devices as another node of the type would have them, all free: without what tells each one apart.

    An attribute does so where every device of the driver has another value of it, as an identifier or a bus
    address has. One that says what devices are connected by gets numbers for its values: on another node
    others stand there, in the same places.
    """
    place = _with_numbered_connections(place)
    counts: dict[tuple[str, Device, int], int] = {}
    for driver in place.drivers:
        groups = [group for group in place.groups if group.driver == driver]
        own = _own_attributes(groups)
        for at, group in enumerate(groups):
            device = group.device
            kept = tuple(attribute for attribute in device.attributes if attribute.name not in own)
            key = (driver, replace(device, attributes=kept, taints=()), at if device.multiple else -1)
            counts[key] = counts.get(key, 0) + group.count
    return DevicePlace(
        tuple(DeviceGroup(driver, device, number, number) for (driver, device, _), number in counts.items()),
        tuple(replace(counter, left=counter.whole) for counter in place.counters),
    )


#: Of a single device nothing tells what is its own.
_IDENTIFIERS = frozenset(("uuid", "parentUUID", "pcieBusID", "pciBusID", "serial", "index", "minor"))
#: What devices are connected by, those of several drivers, too.
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
DEVICE_GROUPS = tuple(f"resource.aws.com/devicegroup{size}_id" for size in (1, 4, 8, 16))
_CONNECTIONS = frozenset((PCIE_ROOT, *DEVICE_GROUPS))


def _with_numbered_connections(place: DevicePlace) -> DevicePlace:
    numbers: dict[DeviceAttribute, DeviceAttribute] = {}
    counts: dict[str, int] = {}

    def numbered(attribute: DeviceAttribute) -> DeviceAttribute:
        if attribute.name not in _CONNECTIONS:
            return attribute
        if attribute not in numbers:
            number = counts.get(attribute.name, 0)
            counts[attribute.name] = number + 1
            numbers[attribute] = connection(attribute.name, number)
        return numbers[attribute]

    groups = (
        replace(group, device=replace(group.device, attributes=tuple(map(numbered, group.device.attributes))))
        for group in place.groups
    )
    return replace(place, groups=tuple(groups))


def connection(name: str, number: int) -> DeviceAttribute:
    """An attribute that says what a device of a node to come is connected by."""
    return DeviceAttribute(name, string=f"#{number}")


def merged(groups: Iterable[DeviceGroup]) -> tuple[DeviceGroup, ...]:
    """Groups of exclusive devices that are alike become one."""
    found: dict[tuple[str, Device, int], DeviceGroup] = {}
    for at, group in enumerate(groups):
        key = (group.driver, group.device, at if group.device.multiple else -1)
        other = found.get(key)
        found[key] = (
            group
            if other is None
            else replace(group, count=group.count + other.count, free=group.free + other.free)
        )
    return tuple(found.values())


def _own_attributes(groups: list[DeviceGroup]) -> frozenset[str]:
    values: dict[str, list[object]] = {}
    for group in groups:
        for attribute in group.device.attributes:
            values.setdefault(attribute.name, []).append(attribute)
    number = sum(group.count for group in groups)
    return frozenset(
        name
        for name, found in values.items()
        if name.rpartition("/")[2] in _IDENTIFIERS
        or (name not in _CONNECTIONS and number > 1 and len(set(found)) == len(found) == number)
    )


def devices_of(places: Iterable[DevicePlace]) -> Iterator[tuple[str, Device]]:
    """Each device of some places with its driver, those that are alike once for each place."""
    yield from ((group.driver, group.device) for place in places for group in place.groups)
