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
from nodeless.scheduling.devices.allocation import Allocator, Pick
from nodeless.scheduling.devices.groups import (
    DeviceGroup,
    DevicePlace,
    capacity_resource,
    claim_resource,
    counter_resource,
    driver_of,
    resource_of,
)
from nodeless.scheduling.devices.selections import Chosen, Selection

Taken = tuple[tuple[str, int], ...]
"""(resource, amount of it that is taken), sorted."""


@dataclass(frozen=True, slots=True)
class _Pick:
    request: str
    selection: Selection


def taken(place: DevicePlace, claimed: Sequence[ClaimedDevices], chosen: Chosen) -> Taken | None:
    """What a choice takes of a place that nobody uses; None: it has too little.

    Raises:
        ClaimError: Neither has it anything for another choice.
    """
    if is_plain(place, claimed, chosen):
        return _whole_devices(place, claimed, chosen)
    allocator = Allocator(place, whole=True)
    picks = allocator.allocate(claimed, chosen)
    if picks is None:
        return None
    amounts: dict[str, int] = {}
    for pick in picks:
        for resource, amount in _amounts_of(place, allocator, pick):
            amounts[resource] = amounts.get(resource, 0) + amount
    drivers = sorted({place.groups[pick.group].driver for pick in picks})
    if drivers and not all(pick.selection.alternative.admin for pick in picks):
        digest = sha256(repr((claimed, chosen)).encode()).hexdigest()[:12]
        amounts[claim_resource(drivers[0], digest)] = 1
    return tuple(sorted((resource, amount) for resource, amount in amounts.items() if amount))


def has_enough(place: DevicePlace, selection: Selection) -> bool:
    """Whether a place that nobody uses has as many devices as a selection asks for."""
    groups = (group for group in place.groups if selection.accepts(group.driver, group.device))
    return sum(group.count for group in groups) >= (selection.alternative.count or 1)


def is_plain(place: DevicePlace, claimed: Sequence[ClaimedDevices], chosen: Chosen) -> bool:
    """Whether claims are met by whole devices without regard to which of them."""
    if any(one.constraints for one in claimed):
        return False
    return all(group.plain for group in place.groups) or all(
        group.plain or not selection.accepts(group.driver, group.device)
        for selections in chosen
        for selection in selections
        for group in place.groups
    )


def _whole_devices(place: DevicePlace, claimed: Sequence[ClaimedDevices], chosen: Chosen) -> Taken | None:
    left = [group.count for group in place.groups]
    total: dict[str, int] = {}
    for one, selections in zip(claimed, chosen, strict=True):
        picks = [
            _Pick(request.name, selection)
            for request, selection in zip(one.requests, selections, strict=True)
        ]
        after = _picked(place, left, picks)
        if after is None:
            return None
        for group, before, now in zip(place.groups, left, after, strict=True):
            resource = resource_of(group.driver)
            total[resource] = total.get(resource, 0) + before - now
        left = after
    return tuple(sorted((resource, number) for resource, number in total.items() if number))


def _picked(place: DevicePlace, left: list[int], picks: Sequence[_Pick]) -> list[int] | None:
    """What is left of each group after all picks, those first for which the fewest devices will do."""
    groups = place.groups
    matching: list[tuple[_Pick, list[int]]] = [
        (
            pick,
            [at for at, group in enumerate(groups) if pick.selection.accepts(group.driver, group.device)],
        )
        for pick in picks
    ]
    after = list(left)
    for pick, some in sorted(matching, key=lambda entry: sum(groups[at].count for at in entry[1])):
        alternative = pick.selection.alternative
        whole = sum(groups[at].count for at in some)
        if alternative.count is None and any(
            pick.selection.selects(group.driver, group.device) and not pick.selection.tolerates(group.device)
            for group in groups
        ):
            return None
        number = alternative.count if alternative.count is not None else whole
        if alternative.admin:
            if whole < max(number, 1):
                return None
            continue
        if not some or number > sum(after[at] for at in some):
            return None
        for at in some:
            take = min(number, after[at])
            after[at] -= take
            number -= take
    return after


def _amounts_of(place: DevicePlace, allocator: Allocator, pick: Pick) -> Iterable[tuple[str, int]]:
    """What a pick takes of what others may want, too."""
    group = place.groups[pick.group]
    if pick.selection.alternative.admin:
        return
    if group.plain:
        yield resource_of(group.driver), 1
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


def free_for(place: DevicePlace, driver: str, selections: Sequence[Selection]) -> int:
    """How many free devices of a driver there are, as those count that look for the fewest of them.

    Nobody is promised a device that is not like that: where devices of a driver differ, the least number
    counts that anyone finds who finds any.
    """
    groups = [group for group in place.groups if group.driver == driver and group.plain]
    matching = [
        [group for group in groups if selection.accepts(driver, group.device)] for selection in selections
    ]
    return min((sum(group.free for group in some) for some in matching if some), default=0)


def parts_of(place: DevicePlace, resource: str) -> list[int]:
    """What is left of a capacity in each device, or of a counter in each set."""
    found = [
        whole - dict(group.consumed or ()).get(name, 0)
        for group in place.groups
        if group.device.multiple and group.free
        for name, whole in group.device.capacity
        if capacity_resource(group.driver, name) == resource
    ]
    return found + [
        counter.left
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
