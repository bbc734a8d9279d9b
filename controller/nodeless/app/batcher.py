"""The batch window: wait for a first pending pod, then for silence, but not for ever.

Karpenter's window: it closes one second after the last new pod, ten seconds after the
first at the latest. Only pods not seen in this window extend it.
"""

import asyncio

from nodeless.app.wakes import set_within


class Batcher:
    """Collects triggers. `wait` returns when a window has closed."""

    def __init__(self, idle_seconds: float, max_seconds: float) -> None:
        self._idle = idle_seconds
        self._max = max_seconds
        self._seen: set[str] = set()
        self._changed = asyncio.Event()

    def use(self, idle_seconds: float, max_seconds: float) -> None:
        """Have other periods, from the next silence or window on."""
        self._idle, self._max = idle_seconds, max_seconds

    def trigger(self, uid: str) -> None:
        """A pod needs capacity."""
        if uid not in self._seen:
            self._seen.add(uid)
            self._changed.set()

    async def wait(self) -> int:
        """Wait for a window to open and to close; gives the number of triggers in it."""
        await self._changed.wait()
        clock = asyncio.get_running_loop().time
        opened = clock()
        while (left := opened + self._max - clock()) > 0:
            self._changed.clear()
            if not await set_within(self._changed, min(self._idle, left)):
                break
        count = len(self._seen)
        self._seen.clear()
        self._changed.clear()
        return count
