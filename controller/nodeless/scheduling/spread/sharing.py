"""How many pods each domain gets: the arithmetic of topology spread, whole batches at a time.

Problem: domains i with n_i pods and room for r_i more; W pods to add; no domain may end above
the emptiest domain by more than s. Filling the emptiest first raises them to a common level L:

    x_i(L) = clamp(L - n_i, 0, r_i),   L <= min(n_j of closed domains j, n_i + r_i, floor) + s

so the batch needs no step for each pod: L is the least level with sum x_i(L) >= W, or the
highest that is allowed. What is left at the last level goes to the first domains in order.

Room t_i that is there already costs nothing. It is used as far as the emptiest domain allows, at level h:

    y_i(h) = max(x_i(h), min(clamp(h + s - n_i, 0, t_i), r_i)),   h the least with sum y_i(h) >= W
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

#: Room without end.
ENDLESS = 2**40

Option = tuple[str | None, ...]
"""A choice of domains: one value for each topology key, None where the label is absent."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """A rule that each pod of a batch tightens: at most `max_skew` above the emptiest domain."""

    at: int
    """Which value of an option it looks at."""
    counts: dict[str, int]
    """Pods by domain; the limit's own copy."""
    universe: Sequence[str]
    """The domains among which the emptiest is found."""
    first_fit: int
    """The emptiest domain is taken to hold at most so many."""
    max_skew: int
    unsure: Mapping[str, int] = field(default_factory=dict)
    """Pods of `counts` that raise no minimum."""

    def emptiest(self, domains: Iterable[str]) -> int:
        """Pods that surely are in the emptiest of some domains."""
        return min(
            [self.first_fit, *(self.counts.get(other, 0) - self.unsure.get(other, 0) for other in domains)]
        )

    def most(self) -> int:
        """How many pods any domain may hold now."""
        return self.emptiest(self.universe) + self.max_skew

    def left(self, option: Option, most: int) -> int:
        """How many more pods go into an option's domain, of which each may hold at most so many (`most`).

        Without the label nothing is counted.
        """
        value = option[self.at]
        return ENDLESS if value is None else most - self.counts.get(value, 0)

    def held(self, option: Option) -> int:
        return self.counts.get(option[self.at] or "", 0)

    def take(self, option: Option, number: int) -> None:
        value = option[self.at]
        if value is not None:
            self.counts[value] = self.counts.get(value, 0) + number


#: No domain has room that is there.
NO_ROOM: Mapping[str, int] = MappingProxyType({})


def share_level(
    limit: Limit,
    usable: Sequence[int],
    options: Sequence[Option],
    room: Sequence[int],
    want: int,
    there: Mapping[str, int] = NO_ROOM,
) -> list[tuple[list[int], int]]:
    """Divide under one limit, whose label every option has: all domains at once.

    `there`: of the room in each domain, what is there already and costs nothing.
    """
    groups: dict[str, list[int]] = {}
    for i in usable:
        groups.setdefault(options[i][limit.at] or "", []).append(i)
    values = sorted(groups, key=lambda value: (limit.counts.get(value, 0), value))
    counts = [limit.counts.get(value, 0) for value in values]
    rooms = [min(ENDLESS, sum(room[i] for i in groups[value])) for value in values]
    lowest_closed = limit.emptiest(value for value in limit.universe if value not in groups)
    unsure = [limit.unsure.get(value, 0) for value in values]
    free = [there.get(value, 0) for value in values]
    if any(free) and not any(unsure):
        numbers = _level_with_room(
            want, counts, rooms, free, lowest_closed=lowest_closed, max_skew=limit.max_skew
        )
    else:
        numbers = level(
            want, counts, rooms, lowest_closed=lowest_closed, max_skew=limit.max_skew, unsure=unsure
        )
    return [(groups[value], number) for value, number in zip(values, numbers, strict=True) if number]


def level(
    want: int,
    counts: Sequence[int],
    room: Sequence[int],
    *,
    lowest_closed: int,
    max_skew: int,
    unsure: Sequence[int] = (),
) -> list[int]:
    """Pods for each domain.

    Args:
        want: How many to add.
        counts: Pods in each domain that may get more.
        room: The most that each may get.
        lowest_closed: The least count of the domains that get none (`ENDLESS`: there are none).
        max_skew: How far above the emptiest domain any may end.
        unsure: Pods of each count that raise no minimum; more than `max_skew` keep it down for good.

    Returns:
        A number for each domain, in total at most `want`.
    """
    if not counts or want <= 0:
        return [0] * len(counts)
    doubts = unsure or [0] * len(counts)
    reach = min(
        lowest_closed,
        *(
            count - doubt + (more if doubt <= max_skew else 0)
            for count, more, doubt in zip(counts, room, doubts, strict=True)
        ),
    )
    top = min(reach + max_skew, max(counts) + want)

    def at(height: int) -> list[int]:
        return _raised(counts, room, height)

    low, high = min(counts), max(top, min(counts))
    if sum(at(high)) <= want:
        return at(high)
    height = _least_height(at, want, low, high)
    shares, last = at(height - 1), at(height)
    left = want - sum(shares)
    for index, more in enumerate(last):
        if left > 0 and more > shares[index]:
            shares[index] += 1
            left -= 1
    return shares


def _level_with_room(
    want: int,
    counts: Sequence[int],
    room: Sequence[int],
    there: Sequence[int],
    *,
    lowest_closed: int,
    max_skew: int,
) -> list[int]:
    """The same where some domains have room that is there already: `there`, of the `room` in each."""

    def at(height: int) -> list[int]:
        free = [
            min(max(height + max_skew - count, 0), some, more)
            for count, some, more in zip(counts, there, room, strict=True)
        ]
        return list(map(max, _raised(counts, room, height), free))

    def divided(some: int, placed: Sequence[int], rooms: Sequence[int], least: int) -> list[int]:
        now = [count + number for count, number in zip(counts, placed, strict=True)]
        more = level(some, now, rooms, lowest_closed=least, max_skew=max_skew)
        return [number + further for number, further in zip(placed, more, strict=True)]

    low = min(lowest_closed, *counts)
    reach = min(lowest_closed, *(count + more for count, more in zip(counts, room, strict=True)))
    high = min(reach, max(counts) + want)
    if sum(at(low)) >= want:
        return divided(want, [0] * len(counts), list(map(min, there, room)), low)
    if sum(highest := at(high)) < want:
        left = [more - number for more, number in zip(room, highest, strict=True)]
        return divided(want - sum(highest), highest, left, lowest_closed)
    height = _least_height(at, want, low, high)
    shares = at(height - 1)
    # Room that is there takes more once the emptiest domains have been raised.
    for most in (_raised(counts, room, height), at(height)):
        for index, number in enumerate(most):
            shares[index] += min(max(number - shares[index], 0), want - sum(shares))
    return shares


def _raised(counts: Sequence[int], room: Sequence[int], height: int) -> list[int]:
    """What raises each domain to a height, as far as it has room."""
    return [min(max(height - count, 0), more) for count, more in zip(counts, room, strict=True)]


def _least_height(at: Callable[[int], list[int]], want: int, low: int, high: int) -> int:
    """The least height above `low` that holds as many as are wanted; `high` does, and `low` does not."""
    return bisect_left(range(low + 1, high), want, key=lambda height: sum(at(height))) + low + 1
