"""`minValues`: how many different values of a label the types of a new node must offer together.

A pool asks for it so that a launch can choose: five instance families, two zones
(https://karpenter.sh/docs/concepts/nodepools/#min-values).
"""

from collections.abc import Callable, Iterable, Set

from nodeless.model.requirements import Requirements

Least = tuple[tuple[str, int], ...]
"""(label key, least number of different values)."""


def least_values(requirements: Requirements) -> Least:
    """What requirements ask for, sorted by key."""
    return tuple(
        (key, requirement.min_values)
        for key, requirement in sorted(requirements.items())
        if requirement.min_values is not None
    )


def too_few(offered: Iterable[Set[str]], number: int) -> int | None:
    """How many different values are offered, where they are fewer than the number; else None."""
    values: set[str] = set()
    for some in offered:
        values |= some
        if len(values) >= number:
            return None
    return len(values) if len(values) < number else None


def bringing(least: Least, count: int, most: int, offered: Callable[[int, str], Set[str]]) -> list[int]:
    """At most so many of the places 0 to `count - 1`, in order: first those that bring the values asked for.

    `offered` says which values of a label the type at a place offers.
    """
    chosen: dict[int, None] = {}
    for key, number in least if count > most else ():
        values: set[str] = set()
        for place in range(count):
            if len(values) >= number:
                break
            if not (brought := offered(place, key)) <= values:
                chosen[place] = None
                values |= brought
    return sorted([*chosen, *(place for place in range(count) if place not in chosen)][:most])
