"""Catalogs by pool: the types that the pool allows and that have an image, sold-out offerings marked.

The same tuple is given out until something changes, so that what others compute from it
can be kept too.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from nodeless.cloudprovider import CloudUnavailable, NodeClassUnresolved
from nodeless.cloudprovider.aws.caching import Clock
from nodeless.cloudprovider.aws.instance_type_builder import with_reservations
from nodeless.cloudprovider.aws.instance_type_math import MIB, capacity, overhead
from nodeless.cloudprovider.aws.instance_types import InstanceTypes
from nodeless.cloudprovider.aws.node_shape import NodeShape, shape_of
from nodeless.cloudprovider.aws.pricing import Pricing
from nodeless.cloudprovider.aws.selectors import IMAGES_NOT_FOUND
from nodeless.cloudprovider.aws.settings import AwsSettings
from nodeless.cloudprovider.recently_used import RecentlyUsed
from nodeless.launch.images import bootable, image_for
from nodeless.launch.overlays import laid_over
from nodeless.launch.placement import partition_of
from nodeless.launch.resolved import Image, ResolvedNodeClass
from nodeless.launch.unavailable import OfferingKey, Unavailable, all_of_zone, exclude_offerings
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TENANCY, RESERVED, SPOT, TENANCIES
from nodeless.model.memory_observations import MemoryObservations
from nodeless.model.overlays import NodeOverlay
from nodeless.model.placement import CapacityReservation
from nodeless.model.pools import NodeClass, Pool, kubelet_of
from nodeless.model.requirements import Requirements
from nodeless.model.resources import EPHEMERAL_STORAGE
from nodeless.operator.wait_event import set_within


@dataclass(frozen=True, slots=True)
class PoolCatalog:
    """What a pool may use, with all that it was made of."""

    everything: tuple[InstanceType, ...]
    requirements: Requirements
    labels: Mapping[str, str]
    images: tuple[Image, ...]
    reservations: tuple[CapacityReservation, ...]
    measured: MemoryObservations
    overlays: tuple[NodeOverlay, ...]
    chosen: tuple[InstanceType, ...]
    """As if nothing was sold out."""
    unavailable: frozenset[OfferingKey]
    result: tuple[InstanceType, ...]
    """The same with sold-out offerings marked."""


_MadeOf = tuple[
    tuple[InstanceType, ...],
    tuple[Image, ...],
    tuple[CapacityReservation, ...],
    tuple[NodeOverlay, ...],
]


class Catalogs:
    """Builds each pool's catalog and keeps the last one."""

    def __init__(self, settings: AwsSettings, types: InstanceTypes, pricing: Pricing, clock: Clock) -> None:
        self.settings = settings
        self._types = types
        self._pricing = pricing
        self._clock = clock
        self._entries: RecentlyUsed[str, PoolCatalog] = RecentlyUsed(clock)
        self.unavailable = Unavailable()
        #: What could not be had in a placement group (or its partition), which says nothing of elsewhere.
        self._in_groups: dict[str, Unavailable] = {}
        self.measured = MemoryObservations()
        #: For how long a catalog waits, right after the start, for the NodeOverlays.
        self.overlays_seconds = 10.0
        #: NodeOverlays that count, in their order.
        self._overlays: tuple[NodeOverlay, ...] = ()
        self._overlays_known = asyncio.Event()
        self._overlays_known.set()

    def use_overlays(self, overlays: Sequence[NodeOverlay] | None) -> None:
        """Have prices and capacity follow NodeOverlays from the next catalog on; None: not known yet."""
        if overlays is None:
            self._overlays_known.clear()
        else:
            self._overlays = tuple(overlays)
            self._overlays_known.set()

    async def _known_overlays(self) -> tuple[NodeOverlay, ...]:
        if not await set_within(self._overlays_known, self.overlays_seconds):
            raise CloudUnavailable(
                "ec2",
                "it is not known yet which NodeOverlays apply to prices and capacity",
                "nodeless tries again; the log says why the NodeOverlays could not be read",
            )
        return self._overlays

    def mark(self, offerings: tuple[OfferingKey, ...]) -> None:
        """Remember offerings as sold out."""
        if offerings:
            self.unavailable = self.unavailable.mark(offerings, self._clock())

    def mark_sold_out(
        self, pool: Pool, resolved: ResolvedNodeClass, offerings: tuple[OfferingKey, ...]
    ) -> None:
        """Remember what a launch for a pool found sold out, where it found it so."""
        group = _group(pool, resolved)
        if not group:
            self.mark(offerings)
        elif offerings:
            known = self._in_groups.get(group, Unavailable())
            self._in_groups[group] = known.mark(offerings, self._clock())

    def _sold_out(self, pool: Pool, resolved: ResolvedNodeClass) -> frozenset[OfferingKey]:
        """What nodes of the pool cannot be bought as for now."""
        now = self._clock()
        in_group = self._in_groups.get(_group(pool, resolved), Unavailable()).at(now)
        closed = resolved.shifted_zones | resolved.full_zones
        return self.unavailable.at(now) | in_group | set(map(all_of_zone, closed))

    async def get(
        self, pool: Pool, node_class: NodeClass, resolved: ResolvedNodeClass
    ) -> tuple[InstanceType, ...]:
        """The types that the pool may use, sorted by name, sold-out offerings marked. Raises as `find`."""
        return (await self.find(pool, node_class, resolved)).result

    async def find(self, pool: Pool, node_class: NodeClass, resolved: ResolvedNodeClass) -> PoolCatalog:
        """The types that the pool may use, sorted by name.

        Raises:
            NodeClassUnresolved: No image is for any of them.
            CloudUnavailable: It is not known yet which NodeOverlays count.
        """
        everything = await self._everything(pool, node_class, resolved)
        overlays = await self._known_overlays()
        reservations = _usable(pool, resolved)
        sold_out = self._sold_out(pool, resolved)
        entry = self._entries.get(pool.key)
        if entry is None or not self._same(entry, everything, pool, resolved, reservations, overlays):
            sold = with_reservations(everything, reservations) if reservations else everything
            chosen = _allowed_types(sold, pool.requirements)
            if node_class.launch_template is None:
                chosen = _bootable(pool, node_class, chosen, resolved.images)
                shape = self._shape(pool, node_class, resolved)
                chosen = tuple(
                    self._as_measured(instance_type, shape, resolved.images) for instance_type in chosen
                )
            if overlays:
                chosen = laid_over(overlays, pool, chosen)
            entry = self._keep(pool, (everything, resolved.images, reservations, overlays), chosen, sold_out)
        elif entry.unavailable != sold_out:
            made_of = (everything, resolved.images, reservations, overlays)
            entry = self._keep(pool, made_of, entry.chosen, sold_out)
        return entry

    async def list_sold_types(
        self, pool: Pool, node_class: NodeClass, resolved: ResolvedNodeClass
    ) -> tuple[InstanceType, ...]:
        """What is sold where the pool's nodes may be, whatever the pool allows, without overlays."""
        everything = await self._everything(pool, node_class, resolved)
        reservations = _usable(pool, resolved)
        return with_reservations(everything, reservations) if reservations else everything

    async def _everything(
        self, pool: Pool, node_class: NodeClass, resolved: ResolvedNodeClass
    ) -> tuple[InstanceType, ...]:
        shape = self._shape(pool, node_class, resolved)
        allowed = pool.requirements.get(CAPACITY_TYPE)
        prices, _ = await asyncio.gather(
            self._pricing.current(spot=allowed is None or allowed.allows(SPOT)), self._types.get_facts()
        )
        return await self._types.catalog(shape, resolved.zones, prices)

    def _same(
        self,
        entry: PoolCatalog,
        everything: tuple[InstanceType, ...],
        pool: Pool,
        resolved: ResolvedNodeClass,
        reservations: tuple[CapacityReservation, ...],
        overlays: tuple[NodeOverlay, ...],
    ) -> bool:
        return (
            entry.everything is everything
            and entry.requirements == pool.requirements
            and entry.labels == pool.labels
            and entry.images == resolved.images
            and entry.reservations == reservations
            and entry.measured is self.measured
            and entry.overlays == overlays
        )

    def _as_measured(
        self, instance_type: InstanceType, shape: NodeShape, images: tuple[Image, ...]
    ) -> InstanceType:
        """The type with the memory and the disk that a node of its kind had, if one was seen."""
        image = image_for(instance_type, images)
        if image is None:
            return instance_type
        memory = self.measured.memory(instance_type.name, image.id)
        planned = instance_type.capacity.get(EPHEMERAL_STORAGE, 0)
        disk = self.measured.ephemeral_storage(image.id, planned)
        facts = self._types.facts(instance_type.name) if memory is not None or disk != planned else None
        if facts is None:
            return instance_type
        # No node has more than its type: such a sight is no measurement.
        seen = None if memory is None else min(memory, facts.memory_mib * MIB)
        return replace(
            instance_type,
            capacity=capacity(facts, shape, seen, disk),
            overhead=overhead(facts, shape, seen, disk),
        )

    def _shape(self, pool: Pool, node_class: NodeClass, resolved: ResolvedNodeClass) -> NodeShape:
        return shape_of(
            node_class,
            kubelet_of(pool, node_class),
            vm_memory_overhead_percent=self.settings.vm_memory_overhead_percent,
            eni_limited_pod_density=self.settings.eni_limited_pod_density,
            pod_eni=self.settings.pod_eni,
            reserved_interfaces=self.settings.reserved_interfaces,
            prefix_delegation=self.settings.prefix_delegation,
            placement_group=resolved.placement_group,
        )

    def _keep(
        self,
        pool: Pool,
        made_of: _MadeOf,
        chosen: tuple[InstanceType, ...],
        sold_out: frozenset[OfferingKey],
    ) -> PoolCatalog:
        result = exclude_offerings(chosen, sold_out) if sold_out else chosen
        everything, images, reservations, overlays = made_of
        entry = PoolCatalog(
            everything,
            pool.requirements,
            pool.labels,
            images,
            reservations,
            self.measured,
            overlays,
            chosen,
            sold_out,
            result,
        )
        self._entries.put(pool.key, entry)
        return entry


def _group(pool: Pool, resolved: ResolvedNodeClass) -> str:
    """The placement group of the pool's nodes, with its partition where the pool asks for one; else empty."""
    if resolved.placement_group is None:
        return ""
    partition = partition_of(pool.requirements, resolved.placement_group)
    return resolved.placement_group.id + (f":{partition}" if partition else "")


def _usable(pool: Pool, resolved: ResolvedNodeClass) -> tuple[CapacityReservation, ...]:
    """The reservations that nodes of the pool may be bought from: where its subnets are, on shared hosts."""
    bought, tenancy = pool.requirements.get(CAPACITY_TYPE), pool.requirements.get(INSTANCE_TENANCY)
    if bought is not None and not bought.allows(RESERVED):
        return ()
    if tenancy is not None and not tenancy.allows(TENANCIES[0]):
        return ()
    return tuple(reservation for reservation in resolved.reservations if reservation.zone in resolved.zones)


def _bootable(
    pool: Pool, node_class: NodeClass, types: tuple[InstanceType, ...], images: tuple[Image, ...]
) -> tuple[InstanceType, ...]:
    found = bootable(types, images)
    if types and not found:
        wanted = ", ".join(sorted({value for type_ in types for value in type_.requirements[ARCH].values}))
        offered = " or ".join(sorted({str(image.requirements) for image in images}))
        raise NodeClassUnresolved(
            node_class.reference,
            "amiSelector" if node_class.images else "amiFamily",
            f"no image fits the instance types of {pool.reference} ({wanted}): the images are for {offered}",
            "select an image of that architecture, or change the requirements of the pool",
            IMAGES_NOT_FOUND,
        )
    return found


def _allowed_types(types: tuple[InstanceType, ...], requirements: Requirements) -> tuple[InstanceType, ...]:
    conflict: Callable[[Requirements], object] = requirements.conflict
    return tuple(type_ for type_ in types if conflict(type_.requirements) is None)
