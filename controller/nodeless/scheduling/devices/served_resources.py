"""Extended resources that devices serve, while pods are looked up for one solve.

A pod that requests one keeps its request, and has requests for devices beside it. A node that announces the
resource has devices without limit for it; one that publishes devices has the resource without limit: so each
is limited by what it has, and pods that claim the same devices take them of the same number. A node to come
has as many of both as its type has, whichever it will be. What is known to have neither is left out by terms.

| | the resource | devices |
|---|---|---|
| a node that announces it, a type where nodes of the pool do | as announced | no limit |
| a node that publishes devices of the class | no limit | counted |
| a node or type that will have some | at least as many | counted |
| a node or type that the drivers of such devices speak of, with others | none | none |
| another type that is known to have the resource | as announced | no limit |
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from nodeless.model.devices import (
    ClaimedDevices,
    DeviceAlternative,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
)
from nodeless.model.identity import Identity
from nodeless.model.instance_types import Catalog
from nodeless.model.nodes import Node
from nodeless.model.pods import Pod, PodShape
from nodeless.model.resources import Resources
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.devices.extended_resources import serving_classes
from nodeless.scheduling.devices.groups import NO_DEVICES, DevicePlace, driver_of
from nodeless.scheduling.devices.known_devices import PLUGIN_RESOURCES
from nodeless.scheduling.devices.matching import Taken
from nodeless.scheduling.devices.places import ALL_POOLS, DevicePlaces, Pools, pool_of
from nodeless.scheduling.devices.selections import selected_by
from nodeless.scheduling.pods.classes import UNBOUNDED

Asked = tuple[str, ClaimedDevices]
"""An extended resource, and what is claimed for it where devices serve it."""
_NO_LIMIT = int(UNBOUNDED)


@dataclass(frozen=True, slots=True)
class Announced:
    """Where an extended resource is, or will be, announced by the nodes."""

    nodes: frozenset[str]
    pools: frozenset[str]
    """Those of which a node announces it."""
    types: Mapping[Pools, frozenset[str]]
    """Types whose nodes do, or will as far as is known, in some pools alone or in all."""
    lacking: frozenset[str]
    """Nodes on which a driver speaks that publishes such devices, and has none there."""

    def __bool__(self) -> bool:
        return bool(self.nodes or self.types)


class ServedResources:
    """The extended resources that devices of one cluster serve."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, places: DevicePlaces) -> None:
        self._snapshot = snapshot
        self._catalog = catalog
        self._places = places
        self._serving = serving_classes(snapshot)
        self._asked: dict[str, dict[tuple[Taken, int], None]] = {}
        """By resource, what pods take of devices, and how much of the resource."""
        self._of_shapes: dict[Identity, tuple[tuple[str, int], ...]] = {}
        self._claimed: dict[tuple[str, tuple[int, ...]], ClaimedDevices] = {}
        self._announced: dict[str, Announced] = {}
        self._drivers: dict[str, frozenset[str]] = {}
        self._accepting: dict[tuple[str, DevicePlace], bool] = {}
        self.beyond: dict[str, set[str]] = {}
        """By resource, the types that have more of it by devices than EC2 and overlays say."""

    def requested(self, shape: PodShape) -> tuple[tuple[str, int], ...]:
        """The resources that a pod requests, with their amounts, which a class serves."""
        if not self._serving:
            return ()
        same = Identity(shape)
        if same not in self._of_shapes:
            self._of_shapes[same] = tuple(
                (name, amount) for name, amount in shape.requests if amount > 0 and name in self._serving
            )
        return self._of_shapes[same]

    def asked_by(self, pod: Pod) -> tuple[Asked, ...]:
        """What a pod asks for: devices for each of its containers (`Pod.extended_parts`)."""
        parts = dict(pod.extended_parts)
        return tuple(
            (name, self._claim(name, parts.get(name, (amount,))))
            for name, amount in self.requested(pod.shape)
        )

    def claim_of(self, pod: Pod) -> ResourceClaim | None:
        """The claim by which kube-scheduler has given a pod, which it is about to bind, its devices."""
        return self._claims.get(pod.uid) if self._serving and not pod.node_name else None

    def class_of(self, resource: str) -> DeviceClass:
        return self._serving[resource]

    def announced(self, resource: str) -> Announced:
        """Where a resource is announced, or will be."""
        if resource not in self._announced:
            self._announced[resource] = self._look_for(resource)
        return self._announced[resource]

    @cached_property
    def unpooled(self) -> frozenset[str]:
        """Nodes of no pool that announce a resource which devices serve elsewhere."""
        named = [each.extended_resource for each in self._snapshot.device_classes.values()]
        served = [name for name in named if name in self._serving]
        return frozenset(
            name
            for name, node in (self._snapshot.nodes.items() if served else ())
            if not pool_of(node) and any(node.allocatable.get(resource) for resource in served)
        )

    def note(self, resource: str, numbers: Taken, amount: int) -> None:
        """Have a resource counted beside the devices that pods take for so much of it."""
        self._asked.setdefault(resource, {})[numbers, amount] = None

    @property
    def asks(self) -> bool:
        """Whether any has to be counted."""
        return bool(self._counted)

    def plugged_in(self, pool: str) -> tuple[str, ...]:
        """The resources in question that nodes of a pool announce."""
        return tuple(name for name in self._counted if pool in self.announced(name).pools)

    @cached_property
    def _counted(self) -> Mapping[str, Mapping[tuple[Taken, int], None]]:
        """What pods have been found to ask for, and what daemons request, once all are looked up."""
        found: dict[str, Mapping[tuple[Taken, int], None]] = dict(self._asked)
        for daemon_set in self._snapshot.daemon_sets.values() if self._serving else ():
            for name, _ in self.requested(daemon_set.shape):
                found.setdefault(name, {})
        return found

    def at_node(self, node: Node, devices: Resources) -> Resources:
        """What a node has of the resources in question, and of devices, which are counted so far."""
        found = dict(devices)
        place = self._places.by_node[node.name]
        for resource, kinds in self._counted.items():
            if not node.allocatable.get(resource):
                # What runs there may have devices that are not published now, or had the resource announced.
                held = self._held.get((node.name, resource), 0)
                if self._accepts(resource, place):
                    published = self._places.published.get(node.name, NO_DEVICES)
                    known = self._accepts(resource, published)
                    found[resource] = _NO_LIMIT if known else max(held, _served(kinds, found))
                    continue
                if held:
                    found[resource] = held
                if node.name in self.announced(resource).lacking:
                    continue
            for numbers, _ in kinds:
                found |= {name: _NO_LIMIT for name, _ in numbers if driver_of(name) not in place.drivers}
        return found

    def at_type(
        self, pool: str, name: str, place: DevicePlace, capacity: Resources, devices: Resources
    ) -> Resources:
        """What a node to come has of the resources in question, and of devices, which are counted so far.

        Args:
            pool: The key of its pool.
            name: Its type.
            place: The devices that are expected on it.
            capacity: What it is known to announce.
            devices: By resource of devices, how many there are.
        """
        found = dict(devices)
        for resource, kinds in self._counted.items():
            amount, announced = capacity.get(resource, 0), self.announced(resource)
            if any(name in types and (not some or pool in some) for some, types in announced.types.items()):
                for numbers, asked in kinds:
                    for device, number in numbers:
                        found[device] = max(found.get(device, 0), -(-amount * number // asked))
            elif pool not in announced.pools and self._accepts(resource, place):
                served = _served(kinds, found)
                if served > amount:
                    found[resource] = served
                    self.beyond.setdefault(resource, set()).add(name)
        return found

    def _claim(self, resource: str, parts: tuple[int, ...]) -> ClaimedDevices:
        key = (resource, parts)
        if key not in self._claimed:
            name = self._serving[resource].name
            self._claimed[key] = ClaimedDevices(
                tuple(
                    DeviceRequest(f"container-{at}", (DeviceAlternative("", name, (), count),))
                    for at, count in enumerate(parts)
                )
            )
        return self._claimed[key]

    @cached_property
    def _claims(self) -> Mapping[str, ResourceClaim]:
        """By uid of a pod, the claim that is allocated for its extended resources."""
        claims = self._snapshot.resource_claims.values()
        return {each.serves_pod: each for each in claims if each.serves_pod and each.allocation is not None}

    @cached_property
    def _held(self) -> Mapping[tuple[str, str], int]:
        """By node and resource in question, what pods on the node request."""
        held: dict[tuple[str, str], int] = {}
        for pod in self._snapshot.pods.values():
            for name, amount in self.requested(pod.shape) if pod.node_name and not pod.terminal else ():
                if name in self._counted:
                    held[pod.node_name, name] = held.get((pod.node_name, name), 0) + amount
        return held

    def _accepts(self, resource: str, place: DevicePlace) -> bool:
        """Whether a place has any device of the class that serves a resource."""
        key = (resource, place)
        if key not in self._accepting:
            device_class = self._serving[resource]
            self._accepting[key] = any(
                selected_by(device_class, group.driver, group.device) for group in place.groups
            )
        return self._accepting[key]

    def _drivers_of(self, resource: str) -> frozenset[str]:
        """The drivers that publish devices of a resource's class, or that its device plugin stands for."""
        if resource not in self._drivers:
            device_class = self._serving[resource]
            places = (*self._places.types_by_place, *self._places.nodes_by_place)
            self._drivers[resource] = frozenset(
                [driver for driver, plugin in PLUGIN_RESOURCES.items() if plugin == resource]
                + [
                    group.driver
                    for place in places
                    for group in place.groups
                    if selected_by(device_class, group.driver, group.device)
                ]
            )
        return self._drivers[resource]

    def _look_for(self, resource: str) -> Announced:
        drivers = self._drivers_of(resource)
        nodes = frozenset(
            name for name, node in self._snapshot.nodes.items() if node.allocatable.get(resource)
        )
        pools = frozenset(pool_of(self._snapshot.nodes[name]) for name in nodes) - {""}
        lacking = frozenset(
            name
            for name, speaking in self._places.speaking.items()
            if speaking & drivers
            and name not in nodes
            and not self._accepts(resource, self._places.by_node[name])
        )
        sold: dict[str, set[str]] = {}
        announcing: dict[str, set[str]] = {}
        for pool, types in self._catalog.items():
            for each in types:
                if each.capacity.get(resource):
                    sold.setdefault(each.name, set()).add(pool)
                    if pool in pools or not self._places.drivers_of(pool, each.name) & drivers:
                        announcing.setdefault(each.name, set()).add(pool)
        found: dict[Pools, set[str]] = {}
        for name, some in announcing.items():
            key = ALL_POOLS if some == sold[name] else frozenset(some)
            found.setdefault(key, set()).add(name)
        return Announced(nodes, pools, {key: frozenset(names) for key, names in found.items()}, lacking)


def _served(kinds: Iterable[tuple[Taken, int]], devices: Resources) -> int:
    """How much of a resource devices serve, to those who take the most of it."""
    return max(
        (
            min(devices.get(device, 0) // number for device, number in numbers) * asked
            for numbers, asked in kinds
            if numbers
        ),
        default=0,
    )
