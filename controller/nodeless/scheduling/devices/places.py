"""The devices of nodes and of instance types, published or expected, looked up for one solve.

What a type publishes is what nodes of it publish, and before there is one what a user says of it
(NodeOverlays, which may be for some pools alone) or what is known of it (`known_devices`). A node of such a
type that has published none yet is expected to: bought again would be what its driver is about to announce.
Where a device plugin announces them instead, there are none.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from nodeless.model.devices import EFA_DRIVER, Device, DriverDevices, ResourceSlice
from nodeless.model.efa import launched_with_efa
from nodeless.model.identity import Identity
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.labels import NODE_POOL, PROVISIONER_NAME
from nodeless.model.nodes import Node
from nodeless.model.pools import NODE_POOL_KIND, PROVISIONER
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.devices.common_devices import CommonDevices
from nodeless.scheduling.devices.groups import (
    NO_DEVICES,
    DeviceGroup,
    DevicePlace,
    Held,
    merged,
    pool_place,
    typical,
)
from nodeless.scheduling.devices.known_devices import (
    PLUGIN_RESOURCES,
    known_devices,
    with_said_devices,
)

_Key = TypeVar("_Key", bound=Hashable)
Pools = frozenset[str]
"""Keys of the pools in which types have some devices; none: in all."""
ALL_POOLS: Pools = frozenset()
POOL_LABELS = ((PROVISIONER_NAME, PROVISIONER), (NODE_POOL, NODE_POOL_KIND))


class DevicePlaces:
    """The devices of one cluster and its catalog."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog) -> None:
        self._snapshot = snapshot
        self._catalog = catalog
        self._by_type: dict[tuple[str, str], DevicePlace] = {}
        self._asked: dict[str, bool] = {}

    @property
    def published(self) -> Mapping[str, DevicePlace]:
        """By node, the devices that it publishes."""
        return self._heard[0]

    @property
    def speaking(self) -> Mapping[str, set[str]]:
        """By node, the drivers that have published what they have there."""
        return self._heard[1]

    def is_plugged(self, node: Node, driver: str) -> bool:
        """Whether a device plugin announces on a node what the driver would serve."""
        resource = PLUGIN_RESOURCES.get(driver)
        speaks = driver in self.speaking.get(node.name, ())
        return bool(resource and node.allocatable.get(resource)) and not speaks

    @cached_property
    def by_node(self) -> Mapping[str, DevicePlace]:
        """By node, its devices: published, or expected of its type where a driver has published none yet."""
        return {name: self._place_of(node) for name, node in self._snapshot.nodes.items()}

    def _place_of(self, node: Node) -> DevicePlace:
        published = self.published.get(node.name, NO_DEVICES)
        expected = self.of_type(pool_of(node), node.instance_type)
        lacking = {
            driver
            for driver in expected.drivers
            if driver not in self.speaking.get(node.name, ())
            and not self.is_plugged(node, driver)
            and (driver != EFA_DRIVER or node.name in self._with_efa)
        }
        if not published and len(lacking) == len(expected.drivers):
            return expected
        return published + expected.of(lacking) if lacking else published

    @cached_property
    def _with_efa(self) -> frozenset[str]:
        """The nodes that are launched with EFA interfaces."""
        return frozenset(
            claim.node_name
            for claim in self._snapshot.claims.values()
            if launched_with_efa(claim, self._snapshot.node_classes)
        )

    @cached_property
    def _without_efa(self) -> frozenset[str]:
        """The nodes that are launched without: what is published of EFA there is no word about their type."""
        launched = frozenset(claim.node_name for claim in self._snapshot.claims.values())
        return launched - self._with_efa

    def of_type(self, pool: str, name: str) -> DevicePlace:
        """What a node of a type will publish in a pool."""
        said = self._said.get((pool, name), ())
        key = (pool, name) if said else ("", name)
        if key not in self._by_type:
            place = _instead(self._known.get(name, NO_DEVICES), self._learned.get(name, {}))
            place = with_said_devices(place, said) if said else place
            place = _instead(place, self._learned_in_pools.get(key, {})) if said else place
            self._by_type[key] = place
        return self._by_type[key]

    def drivers_of(self, pool: str, name: str) -> frozenset[str]:
        """The drivers that are known to publish something on nodes of a type, or to publish nothing there."""
        return frozenset(
            (
                *self._known.get(name, NO_DEVICES).drivers,
                *self._learned.get(name, ()),
                *self._learned_in_pools.get((pool, name), ()),
                *(one.driver for one in self._said.get((pool, name), ())),
            )
        )

    @cached_property
    def _said(self) -> Mapping[tuple[str, str], tuple[DriverDevices, ...]]:
        """By pool and type of the catalog, what NodeOverlays say of its devices."""
        return {
            (pool, each.name): each.devices
            for pool, types in self._catalog.items()
            for each in types
            if each.devices
        }

    @cached_property
    def _known(self) -> Mapping[str, DevicePlace]:
        """By type of the catalog, what is known of its devices."""
        types = {each.name: each for kinds in self._catalog.values() for each in kinds}
        places: dict[Identity, DevicePlace] = {}
        found = {}
        for name, each in types.items():
            if place := known_devices(each):
                same = Identity(place)
                if same not in places:
                    groups = merged(map(self._group_without_unasked, place.groups))
                    places[same] = replace(place, groups=groups)
                found[name] = places[same]
        return found

    def _group_without_unasked(self, group: DeviceGroup) -> DeviceGroup:
        return replace(group, device=self._without_unasked(group.device))

    @cached_property
    def _learned(self) -> Mapping[str, Mapping[str, DevicePlace]]:
        """By type and driver, the devices of its newest node with the driver, as another would have them.

        They may be none: bought again, the next node would have none either. Nodes of pools for which a user
        says something else of the type tell nothing of others.
        """
        nodes = (node for node in self._publishing if (pool_of(node), node.instance_type) not in self._said)
        return self._newest((node.instance_type, node.name) for node in nodes)

    @cached_property
    def _learned_in_pools(self) -> Mapping[tuple[str, str], Mapping[str, DevicePlace]]:
        """The same by pool and type, where a user says something of its devices."""
        keys = (((pool_of(node), node.instance_type), node.name) for node in self._publishing)
        return self._newest((key, name) for key, name in keys if key in self._said)

    def _newest(self, nodes: Iterable[tuple[_Key, str]]) -> dict[_Key, dict[str, DevicePlace]]:
        """By key and driver, what the last node of a key publishes."""
        found: dict[_Key, dict[str, DevicePlace]] = {}
        for key, name in nodes:
            place = typical(self.published[name])
            for driver in self.speaking[name]:
                if driver != EFA_DRIVER or name not in self._without_efa:
                    found.setdefault(key, {})[driver] = place.of({driver})
        return found

    @cached_property
    def _publishing(self) -> list[Node]:
        """The nodes that publish devices, the newest last."""
        nodes = (self._snapshot.nodes[name] for name in self.published)
        return sorted(nodes, key=lambda node: (node.created_at, node.name))

    @cached_property
    def types_by_place(self) -> Mapping[DevicePlace, Mapping[Pools, list[InstanceType]]]:
        """The types of the catalog by what they have of devices, in some pools alone or in all."""
        places: dict[str, dict[str, DevicePlace]] = {}
        types: dict[str, InstanceType] = {}
        seen: set[Identity] = set()
        for pool, kinds in self._catalog.items():
            if Identity(kinds) in seen and not self._said:
                continue
            seen.add(Identity(kinds))
            for each in kinds:
                types.setdefault(each.name, each)
                places.setdefault(each.name, {})[pool] = self.of_type(pool, each.name)
        found: dict[DevicePlace, dict[Pools, list[InstanceType]]] = {}
        for name, by_pool in places.items():
            for place in dict.fromkeys(by_pool.values()):
                pools = frozenset(pool for pool, other in by_pool.items() if other == place)
                if place:
                    key = pools if len(pools) < len(by_pool) else ALL_POOLS
                    found.setdefault(place, {}).setdefault(key, []).append(types[name])
        return found

    @cached_property
    def nodes_by_place(self) -> Mapping[DevicePlace, list[str]]:
        """The nodes that publish devices by what they have."""
        found: dict[DevicePlace, list[str]] = {}
        for name in self.published:
            found.setdefault(self.by_node[name], []).append(name)
        return found

    @cached_property
    def _asked_for(self) -> tuple[str, ...]:
        """Everything by which devices may be told apart: expressions, and attributes of constraints."""
        claims = (*self._snapshot.resource_claims.values(), *self._snapshot.resource_claim_templates.values())
        texts = {selector for known in self._snapshot.device_classes.values() for selector in known.selectors}
        for claim in claims:
            texts.update(
                constraint.match_attribute or constraint.distinct_attribute
                for constraint in claim.devices.constraints
            )
            for request in claim.devices.requests:
                texts.update(selector for one in request.alternatives for selector in one.selectors)
        return tuple(texts)

    def _without_unasked(self, device: Device) -> Device:
        """A device without attributes that nobody asks for: alike but for their identifiers are alike."""
        kept = tuple(each for each in device.attributes if self._is_asked_for(each.name.rpartition("/")[2]))
        return replace(device, attributes=kept) if len(kept) < len(device.attributes) else device

    def _is_asked_for(self, name: str) -> bool:
        if name not in self._asked:
            self._asked[name] = any(name in text for text in self._asked_for)
        return self._asked[name]

    @cached_property
    def _held(self) -> Held:
        """What claims have, and those among them whose pods are not bound yet."""
        held = Held()
        for claim in self._snapshot.resource_claims.values():
            if claim.allocation is not None:
                held.add(claim.allocation.devices, claim.allocation.shares)
        return held

    @cached_property
    def common(self) -> CommonDevices:
        """The devices of no single node."""
        slices = self._snapshot.resource_slices.values()
        return CommonDevices(pools_of(slices), self._held, self._without_unasked)

    @cached_property
    def _heard(self) -> tuple[Mapping[str, DevicePlace], Mapping[str, set[str]]]:
        """By node, the devices that it publishes, and the drivers that do."""
        speaking: dict[str, set[str]] = {}
        found: dict[str, DevicePlace] = {}
        numbers: dict[tuple[str, str], int] = {}
        for slices in map(PoolSlices, pools_of(self._snapshot.resource_slices.values())):
            driver = slices.driver
            for name in slices.nodes:
                current = slices.complete(name) if name in self._snapshot.nodes else []
                if current:
                    speaking.setdefault(name, set()).add(driver)
                    reached = {one.name: devices_of_node(one, name) for one in current}
                    known = {key: list(map(self._without_unasked, some)) for key, some in reached.items()}
                    number = numbers.get((name, driver), 0)
                    numbers[name, driver] = number + 1
                    place = pool_place(current, known, self._held, number)
                    found[name] = found.get(name, NO_DEVICES) + place
        return found, speaking


def _instead(place: DevicePlace, published: Mapping[str, DevicePlace]) -> DevicePlace:
    """A place with what is published by some drivers, instead of what was expected of these."""
    if not published:
        return place
    place = place.of(set(place.drivers) - set(published))
    for _, of_driver in sorted(published.items()):
        place += of_driver
    return place


def pool_of(node: Node) -> str:
    """The key of a node's pool; empty: it has none."""
    return next((f"{kind}/{node.labels[label]}" for label, kind in POOL_LABELS if label in node.labels), "")


def pools_of(slices: Iterable[ResourceSlice]) -> list[list[ResourceSlice]]:
    """The slices of each pool, by name; pools in the order in which kube-scheduler goes through them."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for one in slices:
        pools.setdefault((one.driver, one.pool), []).append(one)
    return [sorted(some, key=lambda one: one.name) for _, some in sorted(pools.items())]


def own_nodes(slices: Sequence[ResourceSlice]) -> list[str]:
    """The nodes that a pool has devices for, of each one alone."""
    names = {one.node_name for one in slices}
    names.update(device.access.node for one in slices for device in one.devices if device.access is not None)
    return sorted(names - {""})


def is_common(one: ResourceSlice) -> bool:
    """Whether several nodes reach devices of a slice."""
    if one.node_name:
        return False
    return one.access is not None or any(
        device.access is not None and not device.access.node for device in one.devices
    )


def devices_of_node(one: ResourceSlice, node: str) -> list[Device]:
    """The devices of a slice that are of one node alone."""
    if one.node_name:
        return list(one.devices) if one.node_name == node else []
    return [device for device in one.devices if device.access is not None and device.access.node == node]


class PoolSlices:
    """The slices of one pool, by the nodes that they have devices of."""

    def __init__(self, slices: Sequence[ResourceSlice]) -> None:
        """`slices`: all of the pool, by name."""
        self.driver = slices[0].driver
        self._newest = max(one.generation for one in slices)
        self._current = [one for one in slices if one.generation == self._newest]
        self._of_node: dict[str, list[ResourceSlice]] = {name: [] for name in own_nodes(slices)}
        for one in slices:
            for name in self._of_node if one.counter_sets else own_nodes([one]):
                self._of_node[name].append(one)

    @property
    def nodes(self) -> Iterable[str]:
        """The nodes that it has devices for, of each one alone."""
        return self._of_node

    def complete(self, node: str) -> Sequence[ResourceSlice]:
        """The slices of its newest generation that are about a node, if all are there and none is newer.

        Where they have counters these are all slices: devices of other nodes take of them, too.
        """
        concerned = self._of_node.get(node, [])
        newest = max((one.generation for one in concerned), default=self._newest)
        own = [one for one in concerned if one.generation == newest]
        if not own or len(own) == own[0].slices:
            return own
        if newest < self._newest or len(self._current) != own[0].slices:
            return []
        return self._current if any(one.counter_sets for one in own) else own
