"""A queue of keys: a key waits at most once, is worked on by one worker at a time, and may be due later.

The semantics are those of client-go's workqueue: a key added while it is being worked on
is worked on once more afterwards, so that no change is missed and none is handled twice
at the same time.
"""

import asyncio
import heapq
import time

from nodeless.operator.wait_event import set_within
from nodeless.operator.work_metrics import QueueMetrics

#: Appointments that do not count any more are cleared away once there are so many beyond those that do.
_STALE = 64


class KeyedQueue:
    """Keys in the order in which they became due. `length` counts those waiting now."""

    def __init__(self, metrics: QueueMetrics | None = None) -> None:
        #: Since when each waits.
        self._ready: dict[str, float] = {}
        #: Since when each is worked on.
        self._working: dict[str, float] = {}
        self._metrics = metrics
        if metrics is not None:
            metrics.follow(self)
        self._again: set[str] = set()
        #: A heap of appointments; only those that stand in `_due`, too, still count.
        self._later: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._wake = asyncio.Event()

    def add(self, key: str) -> None:
        """Make a key due now."""
        self._due.pop(key, None)
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = time.monotonic()
            self._wake.set()
            if self._metrics is not None:
                self._metrics.record_added()

    def add_in(self, key: str, seconds: float) -> None:
        """Make a key due in some seconds, unless it is due earlier anyway."""
        at = time.monotonic() + max(seconds, 0.0)
        if self._due.get(key, float("inf")) <= at:
            return
        self._due[key] = at
        heapq.heappush(self._later, (at, key))
        if len(self._later) > 2 * len(self._due) + _STALE:
            # Each would stay until its time comes: for a claim's expiry that is weeks.
            self._later = [(at, key) for key, at in self._due.items()]
            heapq.heapify(self._later)
        self._wake.set()
        if self._metrics is not None:
            self._metrics.record_retried()

    async def get(self) -> str:
        """Wait for the next due key and take it; `done` must follow."""
        while True:
            now = time.monotonic()
            while self._later and self._later[0][0] <= now:
                at, key = heapq.heappop(self._later)
                if self._due.get(key) == at:
                    self.add(key)
            if self._ready:
                return self._take(next(iter(self._ready)))
            self._wake.clear()
            timeout = self._later[0][0] - now if self._later else None
            await set_within(self._wake, timeout)

    def _take(self, key: str) -> str:
        since, now = self._ready.pop(key), time.monotonic()
        self._working[key] = now
        if self._metrics is not None:
            self._metrics.record_taken(now - since)
        return key

    def done(self, key: str) -> None:
        """The key's work is finished; it is due again if it was added meanwhile."""
        started = self._working.pop(key, None)
        if self._metrics is not None and started is not None:
            self._metrics.record_finished(time.monotonic() - started)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    @property
    def length(self) -> int:
        return len(self._ready)

    @property
    def appointments(self) -> int:
        """How many appointments are kept, those that do not count any more among them."""
        return len(self._later)

    def ages(self) -> list[float]:
        """For how many seconds each key under way has been worked on."""
        now = time.monotonic()
        return [now - since for since in list(self._working.values())]
