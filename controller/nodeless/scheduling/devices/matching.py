"""What a claim takes of a place, as amounts of resources, and how much of these there is.

Whole devices of a type are alike: requests take a number of them. What is more than that (constraints,
devices that are allocated several times, partitions) is searched for as kube-scheduler does (`allocation`),
and becomes a resource that says how often such a claim fits. Claims of several kinds have in common what they
share: whole devices, capacity, counters. Of the latter two so much is promised as is found in whatever order
kube-scheduler allocates them (`common_room`).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from math import gcd

from nodeless.model.devices import ClaimedDevices
from nodeless.scheduling.devices.allocation import MOST_DEVICES, Allocator, Pick
from nodeless.scheduling.devices.groups import (
    DeviceGroup,
    DevicePlace,
    capacity_resource,
    claim_resource,
    counter_resource,
    counts_devices,
    driver_of,
    resource_of,
)
from nodeless.scheduling.devices.selections import Chosen, Selection

Taken = tuple[tuple[str, int], ...]
"""(resource, amount of it that is taken), sorted."""


@dataclass(frozen=True, slots=True)
class Taking:
    """What a pod takes of a place."""

    numbers: Taken
    sizes: frozenset[tuple[str, int]] = frozenset()
    """By resource of capacity and counters, what one device takes of it."""


def taken(place: DevicePlace, claimed: Sequence[ClaimedDevices], chosen: Chosen) -> Taking | None:
    """What a choice takes of a place that nobody uses; None: it has too little.

    Of no resource more is taken than is counted there (`free_for`, `common_room`), so that a place which has
    the devices has room for them; how often all of them are there is then counted, too.

    Raises:
        ClaimError: Neither has it anything for another choice.
    """
    plain = is_plain(place, claimed, chosen)
    found = _whole_devices(place, chosen) if plain else _searched(place, claimed, chosen)
    if found is None:
        return None
    amounts: dict[str, int] = {}
    for resource, amount in found:
        amounts[resource] = amounts.get(resource, 0) + amount
    sizes = frozenset(each for each in found if not counts_devices(each[0]))
    room = {resource: _room(place, resource, chosen, sizes) for resource in amounts}
    numbers = {resource: min(amount, room[resource]) for resource, amount in amounts.items() if amount}
    if found and (not plain or any(numbers[resource] < amounts[resource] for resource in numbers)):
        digest = sha256(repr((claimed, chosen)).encode()).hexdigest()[:12]
        numbers[claim_resource(min(map(driver_of, amounts)), digest)] = 1
    return Taking(tuple(sorted(numbers.items())), sizes)


def _room(place: DevicePlace, resource: str, chosen: Chosen, sizes: Iterable[tuple[str, int]]) -> int:
    """How much of a resource is counted of a place that nobody uses, for a choice that takes such sizes."""
    if counts_devices(resource):
        selections = [selection for some in chosen for selection in some]
        return free_for(place, driver_of(resource), selections, whole=True)
    own = {size for of, size in sizes if of == resource}
    return common_room(parts_of(place, resource, whole=True), own)


def has_enough(place: DevicePlace, selection: Selection) -> bool:
    """Whether a place that nobody uses has as many devices as a selection asks for."""
    groups = (group for group in place.groups if selection.accepts(group.driver, group.device))
    return sum(group.count for group in groups) >= (selection.alternative.count or 1)


def is_plain(place: DevicePlace, claimed: Sequence[ClaimedDevices], chosen: Chosen) -> bool:
    """Whether claims are met by whole devices without regard to which of them."""
    selections = [selection for some in chosen for selection in some]
    if any(one.constraints for one in claimed) or any(one.alternative.admin for one in selections):
        return False
    accepted = {frozenset(_accepted(place, selection)) for selection in selections}
    if not all(place.groups[at].plain for at in frozenset().union(*accepted)):
        return False
    return all(one == other or one.isdisjoint(other) for one in accepted for other in accepted)


def _accepted(place: DevicePlace, selection: Selection) -> list[int]:
    """The groups whose devices are as they must be."""
    return [at for at, group in enumerate(place.groups) if selection.accepts(group.driver, group.device)]


def _whole_devices(place: DevicePlace, chosen: Chosen) -> list[tuple[str, int]] | None:
    left = [group.count for group in place.groups]
    for selections in chosen:
        numbers = [_picked(place, left, selection) for selection in selections]
        if 0 in numbers or sum(numbers) > MOST_DEVICES:
            return None
    counts = ((group, group.count - now) for group, now in zip(place.groups, left, strict=True))
    return [(resource_of(group.driver), number) for group, number in counts if number]


def _picked(place: DevicePlace, left: list[int], selection: Selection) -> int:
    """How many devices a request finds in what is left of each group, from which they are taken; 0: none."""
    some = _accepted(place, selection)
    number = selection.alternative.count
    if number is None:
        selected = (group for group in place.groups if selection.selects(group.driver, group.device))
        if not all(selection.tolerates(group.device) for group in selected):
            return 0
        number = sum(place.groups[at].count for at in some)
    if number > sum(left[at] for at in some):
        return 0
    wanted = number
    for at in some:
        take = min(wanted, left[at])
        left[at] -= take
        wanted -= take
    return number


def _searched(
    place: DevicePlace, claimed: Sequence[ClaimedDevices], chosen: Chosen
) -> list[tuple[str, int]] | None:
    allocator = Allocator(place, whole=True)
    picks = allocator.allocate(claimed, chosen)
    if picks is None:
        return None
    return [each for pick in picks for each in _amounts_of(place, allocator, pick)]


def _amounts_of(place: DevicePlace, allocator: Allocator, pick: Pick) -> Iterable[tuple[str, int]]:
    """What a pick takes of what others may want, too."""
    group = place.groups[pick.group]
    if pick.selection.alternative.admin:
        return
    yield resource_of(group.driver), int(group.plain)
    for name, amount in pick.consumed or ():
        yield capacity_resource(group.driver, name), amount
    if group.device.consumes and pick.consumed is None:
        others = [_counters(place.groups[at]) for at in allocator.accepted(pick.selection)]
        for name, amount in _counters(group).items():
            yield counter_resource(group.driver, name), min([amount, *(one.get(name, 0) for one in others)])


def _counters(group: DeviceGroup) -> dict[str, int]:
    """What a device takes of counters, by name, whichever set they belong to."""
    found: dict[str, int] = {}
    for one in group.device.consumes:
        for name, amount in one.counters:
            found[name] = found.get(name, 0) + amount
    return found


def free_for(place: DevicePlace, driver: str, selections: Sequence[Selection], *, whole: bool = False) -> int:
    """How many free devices of a driver there are, as those count that look for the fewest of them.

    Nobody is promised a device that is not like that: where devices of a driver differ, the least number
    counts that anyone finds who finds any. `whole`: as if all of them were free.
    """
    groups = [group for group in place.groups if group.driver == driver and group.plain]
    matching = [
        [group for group in groups if selection.accepts(driver, group.device)] for selection in selections
    ]
    counts = (sum(group.count if whole else group.free for group in some) for some in matching if some)
    return min(counts, default=0)


def parts_of(place: DevicePlace, resource: str, *, whole: bool = False) -> list[int]:
    """What is left of a capacity in each device, or of a counter in each set; `whole`: what they have."""
    found = [
        amount if whole else amount - dict(group.consumed or ()).get(name, 0)
        for group in place.groups
        if group.device.multiple and (whole or group.free)
        for name, amount in group.device.capacity
        if capacity_resource(group.driver, name) == resource
    ]
    return found + [
        counter.whole if whole else counter.left
        for driver in place.drivers
        for counter in place.counters
        if driver_of(counter.set) == driver and counter_resource(driver, counter.name) == resource
    ]


def common_room(parts: Sequence[int], sizes: Collection[int]) -> int:
    """How much claims of several sizes may take of parts in all so that each finds a part for itself.

    kube-scheduler takes the first part that has enough. Where one of size s finds none, less than s is left
    of each part; until so much is taken nobody fails, whatever the order. Nothing is lost where each size
    divides the next larger one, and the largest all parts.
    """
    fitting = sorted({size for size in sizes if 0 < size <= max(parts, default=0)})
    if not fitting:
        return 0
    unit, largest = gcd(*fitting), fitting[-1]
    usable = [max(part, 0) // unit * unit for part in parts]
    if all(part % largest == 0 for part in usable) and all(b % a == 0 for a, b in pairwise(fitting)):
        return sum(usable)
    return sum(max(0, part - largest + unit) for part in usable) + largest - unit
