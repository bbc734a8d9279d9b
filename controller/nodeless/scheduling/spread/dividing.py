"""How a batch is divided among options, whatever the number of limits (`sharing`, `backtracking_search`)."""

from collections.abc import Mapping, Sequence

from nodeless.scheduling.meter import Meter
from nodeless.scheduling.spread.backtracking_search import BacktrackingSearch
from nodeless.scheduling.spread.sharing import NO_ROOM, Limit, Option, share_level


def divide(
    limits: Sequence[Limit],
    usable: Sequence[int],
    options: Sequence[Option],
    room: Sequence[int],
    want: int,
    *,
    stepwise: bool = False,
    there: Mapping[str, int] = NO_ROOM,
    meter: Meter | None = None,
) -> list[tuple[list[int], int]]:
    """How a batch is divided: (options of which any will do, pods), the emptiest domains first.

    What is divided may be less than `want`, also where another call would find more. `stepwise`: in an
    order in which every limit holds after each entry, so that it can be left off anywhere. `there`: room in
    domains that costs nothing, which a single limit uses first. `meter` counts the work, and ends it early
    where it is too much.
    """
    meter = meter or Meter()
    if limits and all(options[i][limits[0].at] is not None for i in usable):
        return (
            share_level(limits[0], usable, options, room, 1 if stepwise else want, there)
            if len(limits) == 1
            else _walk(limits, usable, options, room, want, meter, stepwise=stepwise)
        )
    free = [i for i in usable if all(options[i][limit.at] is None for limit in limits)]
    number = min(want, sum(room[i] for i in free))
    if number > 0:
        return [(free, number)]
    return _walk(limits, usable, options, room, want, meter, stepwise=stepwise) if limits else []


def _walk(
    limits: Sequence[Limit],
    usable: Sequence[int],
    options: Sequence[Option],
    room: Sequence[int],
    want: int,
    meter: Meter,
    *,
    stepwise: bool,
) -> list[tuple[list[int], int]]:
    walk = BacktrackingSearch(limits, usable, options, room, meter, ordered=stepwise)
    shares = walk.run(want)
    if stepwise:
        return [([i], number) for i, number in walk.steps]
    return [([i], number) for i, number in shares.items() if number]
