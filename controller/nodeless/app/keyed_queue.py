"""A queue of keys: a key waits at most once, is worked on by one worker at a time, and may be due later.

The semantics are those of client-go's workqueue: a key added while it is being worked on
is worked on once more afterwards, so that no change is missed and none is handled twice
at the same time.
"""

import asyncio
import heapq
import time


class KeyedQueue:
    """Keys in the order in which they became due. `length` counts those waiting now."""

    def __init__(self) -> None:
        self._ready: dict[str, None] = {}
        self._working: set[str] = set()
        self._again: set[str] = set()
        self._later: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._wake = asyncio.Event()

    def add(self, key: str) -> None:
        """Make a key due now."""
        self._due.pop(key, None)
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._wake.set()

    def add_in(self, key: str, seconds: float) -> None:
        """Make a key due in some seconds, unless it is due earlier anyway."""
        at = time.monotonic() + max(seconds, 0.0)
        if self._due.get(key, float("inf")) <= at:
            return
        self._due[key] = at
        heapq.heappush(self._later, (at, key))
        self._wake.set()

    async def get(self) -> str:
        """Wait for the next due key and take it; `done` must follow."""
        while True:
            now = time.monotonic()
            while self._later and self._later[0][0] <= now:
                at, key = heapq.heappop(self._later)
                if self._due.get(key) == at:
                    self.add(key)
            for key in self._ready:
                del self._ready[key]
                self._working.add(key)
                return key
            self._wake.clear()
            timeout = self._later[0][0] - now if self._later else None
            try:
                await asyncio.wait_for(self._wake.wait(), timeout)
            except TimeoutError:
                continue

    def done(self, key: str) -> None:
        """The key's work is finished; it is due again if it was added meanwhile."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    @property
    def length(self) -> int:
        return len(self._ready)
