"""The search of kube-scheduler for devices that meet claims, one claim after the other.

It goes through requests in their order and through devices in theirs, takes the first that will do and
comes back where what follows finds none. An exclusive device goes to one claim; of one that may be allocated
several times each claim consumes capacity, by the device's policy; a partition takes counters of its pool,
for which others look, too, and a device that is allocated several times takes them once. Constraints hold for
all devices of a claim. "All devices" are those that are selected, also such as others have or that have a
taint: then there is no allocation, nor one by another alternative where it is a constraint that one of them
breaks. Where the search takes too many steps, nothing is found.

`distinctAttribute` holds for every two devices, as the API has it. (kube-scheduler 1.36 compares devices of
one request with the last of each request alone: it allocates whatever is found here.)
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from nodeless.model.devices import Amounts, ClaimedDevices, DeviceAttribute, DeviceConstraint
from nodeless.scheduling.devices.groups import DevicePlace
from nodeless.scheduling.devices.selections import Selection, is_about

#: Steps of one search, and devices that a claim may get (the API's `AllocationResultsMaxSize`).
_MOST_STEPS, MOST_DEVICES = 20_000, 32
#: As often as any claim is counted: more pods than a node runs.
MOST_OFTEN = 1024


@dataclass(frozen=True, slots=True)
class Pick:
    """A device of a group, for a request."""

    group: int
    selection: Selection
    consumed: Amounts | None = None
    """Of a device that is allocated several times."""


class ClaimError(Exception):
    """kube-scheduler gives up a claim, whatever the alternatives that are left."""


@dataclass(slots=True)
class _Request:
    claim: int
    selection: Selection
    candidates: list[int]
    """Groups, each as often as it has devices."""
    count: int
    constraints: list[int]
    """Positions of the constraints that it is under."""


@dataclass(slots=True)
class _Taken:
    """A pick, and what was before it."""

    request: _Request
    pick: Pick
    consumed: dict[str, int] | None
    """Of the device's capacity."""
    charged: bool
    """Whether it took counters."""
    spent: int
    """How many devices fewer are left by it for others."""


class Allocator:
    """The devices of a place, while claims are allocated."""

    def __init__(self, place: DevicePlace, *, whole: bool = False) -> None:
        """`whole`: as if no claim had any of them."""
        self._groups = place.groups
        self._free = [group.count if whole else group.free for group in place.groups]
        self._consumed: list[dict[str, int] | None] = [
            None if whole or group.consumed is None else dict(group.consumed) for group in place.groups
        ]
        self._counters = {
            (counter.set, counter.name): counter.whole if whole else counter.left
            for counter in place.counters
        }
        self._accepted: dict[Selection, list[int]] = {}
        self._requests: list[_Request] = []
        self._constraints: list[tuple[DeviceConstraint, list[DeviceAttribute]]] = []
        self._taken: list[_Taken] = []
        self._marked: dict[tuple[int, int], int] = {}
        """By claim and group, the exclusive devices that the claim has."""
        self._steps = 0

    def allocate(
        self,
        claimed: Sequence[ClaimedDevices],
        chosen: Sequence[Sequence[Selection]],
        within: Container[int] | None = None,
    ) -> tuple[Pick, ...] | None:
        """Devices for all requests of some claims, which are taken from then on; None: there are none.

        `within`: the groups that they may be of; None: any.

        Raises:
            ClaimError: There are none by any other alternative either.
        """
        requests = self._wanted(claimed, chosen, within)
        if requests is None:
            return None
        self._requests, self._taken, self._steps = requests, [], _MOST_STEPS
        self._marked = {}
        try:
            found = self._search(0, 0, 0)
        except ClaimError:
            self._give_all_back()
            raise
        if not found:
            return None
        taken = list(self._taken)
        if any(one.pick.selection.alternative.admin for one in taken):
            # Others find what access for administration has been given to.
            self._give_all_back()
            for one in taken:
                if not one.pick.selection.alternative.admin:
                    self._take(one.request, one.pick.group)
        return tuple(one.pick for one in taken)

    def _wanted(
        self,
        claimed: Sequence[ClaimedDevices],
        chosen: Sequence[Sequence[Selection]],
        within: Container[int] | None,
    ) -> list[_Request] | None:
        """All requests; None where one has too few devices, or a claim asks for too many."""
        wanted: list[_Request] = []
        self._constraints = []
        for number, (one, selections) in enumerate(zip(claimed, chosen, strict=True)):
            first = len(self._constraints)
            self._constraints += [(constraint, []) for constraint in one.constraints]
            for request, selection in zip(one.requests, selections, strict=True):
                alternative = selection.alternative
                some = self.accepted(selection) if alternative.count is not None else self._all(selection)
                some = some if within is None else [at for at in some if at in within]
                candidates = [at for at in some for _ in range(self._groups[at].count)]
                count = len(candidates) if alternative.count is None else alternative.count
                about = [
                    first + at
                    for at, constraint in enumerate(one.constraints)
                    if is_about(constraint, request.name, alternative.name)
                ]
                if not candidates or count > len(candidates):
                    return None
                wanted.append(_Request(number, selection, candidates, count, about))
            if sum(request.count for request in wanted if request.claim == number) > MOST_DEVICES:
                return None
        return wanted

    def accepted(self, selection: Selection) -> list[int]:
        """The groups whose devices are as they must be."""
        if selection not in self._accepted:
            self._accepted[selection] = [
                at for at, group in enumerate(self._groups) if selection.accepts(group.driver, group.device)
            ]
        return self._accepted[selection]

    def _all(self, selection: Selection) -> list[int]:
        """The groups that a request for all devices means: those that have room for it now."""
        return [
            at
            for at, group in enumerate(self._groups)
            if selection.selects(group.driver, group.device) and self._amounts(selection, at) is not None
        ]

    def _search(self, at: int, number: int, start: int) -> bool:
        """Whether devices are found from a request on, of which so many have been found."""
        if at == len(self._requests):
            return True
        request = self._requests[at]
        if number == request.count:
            return self._search(at + 1, 0, 0)
        failed = -1
        for position in range(start, len(request.candidates)):
            group = request.candidates[position]
            if self._steps <= 0:
                return False
            if group == failed:
                continue
            self._steps -= 1
            if self._take(request, group):
                if self._search(at, number + 1, position + 1):
                    return True
                self._give_back()
            if request.selection.alternative.count is None:
                return False
            failed = group
        return False

    def _take(self, request: _Request, at: int) -> bool:
        """Whether a device of a group can be had; if so, it is taken."""
        group, selection = self._groups[at], request.selection
        spent = self._spent_by(request, at)
        if spent is None:
            return False
        charges = bool(group.device.consumes) and (not group.device.multiple or self._consumed[at] is None)
        if (charges and not self._has_counters(at)) or not selection.tolerates(group.device):
            return False
        if not all(self._holds(number, at) for number in request.constraints):
            if selection.alternative.count is None:
                raise ClaimError
            return False
        before = self._consumed[at]
        amounts = self._amounts(selection, at)
        if amounts is None:
            return False
        if group.device.multiple:
            consumed = before or {}
            self._consumed[at] = {name: consumed.get(name, 0) + amount for name, amount in amounts}
        else:
            self._mark(request, at, spent, 1)
        if charges:
            self._charge(at)
        for number in request.constraints:
            self._constraints[number][1].extend(self._attribute(number, at))
        pick = Pick(at, selection, amounts if group.device.multiple else None)
        self._taken.append(_Taken(request, pick, before, charges, spent))
        return True

    def _spent_by(self, request: _Request, at: int) -> int | None:
        """How many devices of a group are no longer free once a request has one; None: it gets none.

        A device serves one request of a claim, also where it is for administration. That is best had on one
        that is not free; on one that was free, no other request finds it free any more.
        """
        group, free = self._groups[at], self._free[at]
        if group.device.multiple:
            return 0 if free else None
        if not request.selection.alternative.admin:
            return 1 if free else None
        marked = self._marked.get((request.claim, at), 0)
        if marked >= group.count:
            return None
        return int(group.count - free <= marked)

    def _mark(self, request: _Request, at: int, spent: int, sign: int) -> None:
        self._free[at] -= sign * spent
        self._marked[request.claim, at] = self._marked.get((request.claim, at), 0) + sign

    def _give_back(self) -> None:
        """Undo what was taken last."""
        taken = self._taken.pop()
        at = taken.pick.group
        for number in taken.request.constraints:
            self._constraints[number][1].pop()
        if taken.pick.consumed is not None:
            self._consumed[at] = taken.consumed
        else:
            self._mark(taken.request, at, taken.spent, -1)
        if taken.charged:
            self._charge(at, -1)

    def _give_all_back(self) -> None:
        while self._taken:
            self._give_back()

    def _amounts(self, selection: Selection, at: int) -> Amounts | None:
        """What a request consumes of a device's capacity; None: not so much is left."""
        device = self._groups[at].device
        amounts = device.consumed(selection.alternative.capacity)
        if amounts is None or not device.multiple:
            return amounts
        consumed, whole = self._consumed[at] or {}, dict(device.capacity)
        enough = all(consumed.get(name, 0) + amount <= whole[name] for name, amount in amounts)
        return amounts if enough else None

    def _has_counters(self, at: int) -> bool:
        return all(self._counters.get(key, 0) >= amount for key, amount in self._needed(at))

    def _charge(self, at: int, sign: int = 1) -> None:
        for key, amount in self._needed(at):
            self._counters[key] -= sign * amount

    def _needed(self, at: int) -> list[tuple[tuple[str, str], int]]:
        needed: dict[tuple[str, str], int] = {}
        for one in self._groups[at].device.consumes:
            for name, amount in one.counters:
                needed[one.name, name] = needed.get((one.name, name), 0) + amount
        return list(needed.items())

    def _attribute(self, number: int, at: int) -> list[DeviceAttribute]:
        constraint, _ = self._constraints[number]
        name = constraint.match_attribute or constraint.distinct_attribute
        return [each for each in self._groups[at].device.attributes if each.name == name]

    def _holds(self, number: int, at: int) -> bool:
        """Whether a constraint allows another device of a group."""
        constraint, values = self._constraints[number]
        found = self._attribute(number, at)
        if not found:
            return False
        if constraint.match_attribute:
            return not values or values[0] == found[0]
        return found[0] not in values


def how_often(
    place: DevicePlace, claimed: Sequence[ClaimedDevices], chosen: Sequence[Sequence[Selection]]
) -> int:
    """How often claims of one kind are allocated of what is free, in turn; `MOST_OFTEN` at most."""
    allocator = Allocator(place)
    for number in range(MOST_OFTEN):
        try:
            picks = allocator.allocate(claimed, chosen)
        except ClaimError:
            return number
        if picks is None:
            return number
        if not any(map(_takes_any, picks)):
            break
    return MOST_OFTEN


def is_free(
    place: DevicePlace, claimed: Sequence[ClaimedDevices], chosen: Sequence[Sequence[Selection]]
) -> bool:
    """Whether a place has devices for some claims now."""
    try:
        return Allocator(place).allocate(claimed, chosen) is not None
    except ClaimError:
        return False


def _takes_any(pick: Pick) -> bool:
    """Whether others find less after a pick."""
    if pick.selection.alternative.admin:
        return False
    return pick.consumed is None or any(amount for _, amount in pick.consumed)
