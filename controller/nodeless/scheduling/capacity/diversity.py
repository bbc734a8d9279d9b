"""`minValues` of planned nodes: it holds for the types that a node keeps, after every narrowing.

Policy `Strict` makes no node that falls short; `BestEffort` makes it, with the minimum lowered to
what there is (https://karpenter.sh/docs/concepts/nodepools/#min-values).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from nodeless.model.min_values import Least, bringing, too_few
from nodeless.model.requirements import Requirements
from nodeless.scheduling.capacity.type_table import TypeTable


def shortage(
    table: TypeTable, rows: Iterable[int], least: Least, requirements: Requirements
) -> tuple[str, int, int] | None:
    """The first key of which the types offer too few values: key, least, and how many they offer."""
    listed = list(rows)
    for key, number in least:
        offered = too_few((table.values(row, key, requirements) for row in listed), number)
        if offered is not None:
            return key, number, offered
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
    places = bringing(least, len(rows), most, lambda place, key: table.values(rows[place], key, requirements))
    return [rows[place] for place in places]


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
