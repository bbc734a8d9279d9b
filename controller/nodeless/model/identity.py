"""Keys of caches that go by which objects they are asked about, not by what these are equal to.

Arrays have no hash, and to hash a catalog or a pod's shape by value costs more than what the cache saves. The
bare `id` of an object is no key: once the object is gone, another one may get its number, and with it the
answer that was meant for the first. An `Identity` keeps its objects, so it stays right as long as it is held.
"""

from collections.abc import Sequence
from operator import is_


class Identity:
    """Equal to another one of the very same objects, in the same order."""

    __slots__ = ("_hash", "objects")

    def __init__(self, *objects: object) -> None:
        #: What it stands for.
        self.objects = objects
        self._hash = hash(tuple(map(id, objects)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity):
            return NotImplemented
        mine, others = self.objects, other.objects
        return len(mine) == len(others) and all(map(is_, mine, others))


def places_of_same(rows: Sequence[tuple[object, ...]]) -> list[list[int]]:
    """At which places the very same objects are in the same order, by the first of these places.

    For many rows: it costs less than an `Identity` for each. Whoever calls it keeps the objects meanwhile, so
    that their numbers are theirs alone.
    """
    places: dict[tuple[int, ...], list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(tuple(map(id, row)), []).append(place)
    return list(places.values())
