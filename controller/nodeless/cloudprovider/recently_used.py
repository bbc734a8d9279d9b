"""Answers that are kept for as long as somebody asks for them, however many there are.

A limit of entries would be wrong for whoever asks for more than that in the same order again and again: each
answer would be dropped just before it is asked for.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Seconds: three times the longest period after which all catalogs are looked at again (drift).
UNUSED_SECONDS = 900.0


class RecentlyUsed(Generic[K, V]):
    """Values by key; each is dropped once nobody has asked for it for a while."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        """The value of a key, which counts as used now; None: there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries[key] = (self._clock(), found[1])
        return found[1]

    def put(self, key: K, value: V) -> None:
        """Keep a value, in place of the key's last one; drop those that nobody uses."""
        now = self._clock()
        unused = [old for old, (used, _) in self._entries.items() if now - used > UNUSED_SECONDS]
        for old in unused:
            del self._entries[old]
        self._entries[key] = (now, value)

    def items(self) -> Iterator[tuple[K, V]]:
        """All that is kept."""
        return ((key, value) for key, (_, value) in self._entries.items())
