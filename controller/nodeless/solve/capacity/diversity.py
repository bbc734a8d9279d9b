"""`minValues`: how many different values of a label the types of a new node must offer together.

A pool asks for it so that a launch can choose: five instance families, two zones. It holds for the
types that a planned node keeps, after every narrowing. Policy `Strict` makes no node that falls
short; `BestEffort` makes it, with the minimum lowered to what there is
(https://karpenter.sh/docs/concepts/nodepools/#min-values).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from nodeless.model.requirements import Requirements
from nodeless.solve.capacity.type_table import TypeTable

Least = tuple[tuple[str, int], ...]
"""(label key, least number of different values)."""


def least_values(requirements: Requirements) -> Least:
    """What a pool's requirements ask for, sorted by key."""
    return tuple(
        (key, requirement.min_values)
        for key, requirement in sorted(requirements.items())
        if requirement.min_values is not None
    )


def shortage(
    table: TypeTable, rows: Iterable[int], least: Least, requirements: Requirements
) -> tuple[str, int, int] | None:
    """The first key of which the types offer too few values: key, least, and how many they offer."""
    listed = list(rows)
    for key, number in least:
        offered: set[str] = set()
        for row in listed:
            offered |= table.values(row, key, requirements)
            if len(offered) >= number:
                break
        if len(offered) < number:
            return key, number, len(offered)
    return None


def most_possible(most: int, possible: Callable[[int], bool]) -> int:
    """The largest number up to `most` that is possible, where fewer are possible whenever more are."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if possible(middle):
            low = middle
        else:
            high = middle - 1
    return low


def chosen_rows(
    table: TypeTable, rows: Sequence[int], least: Least, requirements: Requirements, most: int
) -> list[int]:
    """At most so many of the rows, in their order: first those that bring the values asked for."""
    if not least or len(rows) <= most:
        return list(rows[:most])
    chosen: set[int] = set()
    for key, number in least:
        offered: set[str] = set()
        for row in rows:
            if len(offered) >= number or len(chosen) == most:
                break
            values = table.values(row, key, requirements)
            if values - offered:
                chosen.add(row)
                offered |= values
    for row in rows:
        if len(chosen) == most:
            break
        chosen.add(row)
    return [row for row in rows if row in chosen]


def lowered(
    table: TypeTable, rows: Sequence[int], least: Least, requirements: Requirements
) -> Requirements | None:
    """The requirements with every minimum that the types miss lowered to what they offer; None if none is."""
    changed = dict(requirements.items())
    short = False
    for entry in least:
        missing = shortage(table, rows, (entry,), requirements)
        if missing is not None:
            key, _, offered = missing
            changed[key] = replace(changed[key], min_values=offered or None)
            short = True
    return Requirements(changed.values()) if short else None
