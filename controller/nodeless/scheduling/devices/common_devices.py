"""Devices of no single node: slices that all nodes reach, or those that a selector matches.

What is allocated of them is counted once for the cluster, so no node can promise them: each claim gets its
own while pods are looked up, in their order, and the pod's node is then any that reaches them. A request gets
all of its devices here or none, and "all devices" are never those. Of a claim that needs devices of its
node as well, those requests are met here which the devices of no node meet.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from nodeless.model.devices import (
    ClaimedDevices,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    NodeAccess,
    ResourceSlice,
)
from nodeless.model.pods import NodeSelectorTerm
from nodeless.scheduling.devices.allocation import Allocator, ClaimError
from nodeless.scheduling.devices.groups import NO_DEVICES, DevicePlace, Held, pool_place
from nodeless.scheduling.devices.matching import has_enough
from nodeless.scheduling.devices.selections import combinations

_EVERYWHERE = NodeAccess(every=True)


class CommonDevices:
    """The devices that several nodes reach, while claims are allocated."""

    def __init__(
        self,
        pools: Sequence[Sequence[ResourceSlice]],
        held: Held,
        without_unasked: Callable[[Device], Device],
    ) -> None:
        """`pools`: the slices of each pool, in kube-scheduler's order."""
        self.place: DevicePlace = NO_DEVICES
        self._accesses: list[NodeAccess] = []
        for number, slices in enumerate(map(_complete, pools)):
            for access in dict.fromkeys(_accesses(slices)):
                reached = {
                    one.name: [
                        without_unasked(device) for device in one.devices if _access(one, device) == access
                    ]
                    for one in slices
                }
                place = pool_place(slices, reached, held, number)
                self.place += place
                self._accesses += [access] * len(place.groups)
        self._allocator = Allocator(self.place)

    def allocate(
        self, claimed: ClaimedDevices, classes: Mapping[str, DeviceClass]
    ) -> tuple[NodeSelectorTerm, ...] | None:
        """The nodes that reach the devices which a claim gets here, none for all; None: it gets none."""
        return self._allocated(self._allocator, claimed, classes)

    def part(
        self,
        claimed: ClaimedDevices,
        classes: Mapping[str, DeviceClass],
        is_met_by_nodes: Callable[[ClaimedDevices], bool],
    ) -> tuple[ClaimedDevices, ClaimedDevices] | None:
        """What a claim asks for here, and what of its node; None: it is of one of them alone.

        So it is, too, where a constraint is about devices of both: those of a node to come cannot be
        compared with these.

        Args:
            claimed: A claim that gets no devices here as it is.
            classes: By name.
            is_met_by_nodes: Whether some node, or one that a type would become, has what is asked for.
        """
        common: list[DeviceRequest] = []
        own: list[DeviceRequest] = []
        for request in claimed.requests:
            alone = ClaimedDevices((request,))
            here = self.would_do(alone, classes) and not is_met_by_nodes(alone)
            (common if here else own).append(request)
        if not common or not own:
            return None
        names = {request.name for request in common}
        parts: tuple[list[DeviceConstraint], list[DeviceConstraint]] = ([], [])
        for constraint in claimed.constraints:
            about = {name.partition("/")[0] for name in constraint.requests}
            if not about or (about & names and about - names):
                return None
            parts[0 if about & names else 1].append(constraint)
        return ClaimedDevices(tuple(common), tuple(parts[0])), ClaimedDevices(tuple(own), tuple(parts[1]))

    def would_do(self, claimed: ClaimedDevices, classes: Mapping[str, DeviceClass]) -> bool:
        """Whether a claim would get devices here if no other had any."""
        return self._allocated(Allocator(self.place, whole=True), claimed, classes) is not None

    def _allocated(
        self, allocator: Allocator, claimed: ClaimedDevices, classes: Mapping[str, DeviceClass]
    ) -> tuple[NodeSelectorTerm, ...] | None:
        if not self.place or not claimed.requests:
            return None
        for chosen in combinations([claimed], classes, partial(has_enough, self.place)):
            if any(selection.alternative.count is None for selections in chosen for selection in selections):
                continue
            for access in sorted(set(self._accesses), key=lambda access: (not access.every, repr(access))):
                within = {at for at, own in enumerate(self._accesses) if own in (access, _EVERYWHERE)}
                try:
                    picks = allocator.allocate([claimed], chosen, within)
                except ClaimError:
                    return None
                if picks is not None:
                    return access.terms
        return None


def _complete(slices: Sequence[ResourceSlice]) -> Sequence[ResourceSlice]:
    """A pool's slices of its newest generation, if all of them are there."""
    newest = max(one.generation for one in slices)
    current = [one for one in slices if one.generation == newest]
    return current if len(current) == current[0].slices else []


def _access(one: ResourceSlice, device: Device) -> NodeAccess | None:
    return device.access if one.access is None else one.access


def _accesses(slices: Sequence[ResourceSlice]) -> list[NodeAccess]:
    """What nodes reach devices of some slices, but for those of one node alone."""
    found = [_access(one, device) for one in slices if not one.node_name for device in one.devices]
    return [
        access
        for access in found
        if access is not None and not access.node and (access.every or access.terms)
    ]
