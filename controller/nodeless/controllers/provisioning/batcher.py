"""The batch window: wait for a first pending pod, then for silence, but not for ever.

Karpenter's window: it closes one second after the last new pod, ten seconds after the
first at the latest. Only pods not seen in this window extend it.

Beyond Karpenter's: the pods of other namespaces extend it no further than three times the silence after a
namespace's own last pod, and not at all where they had pods in the window just before, too. So one tenant's
steady stream of pods does not keep everybody else waiting, and workloads that are deployed together to
several namespaces are still planned together.
"""

import asyncio

from nodeless.operator.wait_event import set_within

#: Silences that a namespace waits for at most after its own last pod, whatever others do.
_OTHERS = 3


class Batcher:
    """Collects triggers. `wait` returns when a window has closed."""

    def __init__(self, idle_seconds: float, max_seconds: float) -> None:
        self._idle = idle_seconds
        self._max = max_seconds
        self._seen: set[str] = set()
        #: Tenants of whom a trigger came that `wait` has not looked at, and when it saw each one's last.
        self._new: set[str] = set()
        self._last: dict[str, float] = {}
        #: Tenants of the window before, and when that closed.
        self._before: frozenset[str] = frozenset()
        self._closed = float("-inf")
        self._changed = asyncio.Event()

    def use(self, idle_seconds: float, max_seconds: float) -> None:
        """Have other periods, from the next silence or window on."""
        self._idle, self._max = idle_seconds, max_seconds

    def trigger(self, uid: str, tenant: str = "") -> None:
        """A pod needs capacity; `tenant` is its namespace."""
        if uid not in self._seen:
            self._seen.add(uid)
            self._new.add(tenant)
            self._changed.set()

    async def wait(self) -> int:
        """Wait for a window to open and to close; gives the number of triggers in it."""
        await self._changed.wait()
        clock = asyncio.get_running_loop().time
        opened = clock()
        if opened > self._closed + self._max:
            self._before = frozenset()
        while (left := self._closes(opened, clock()) - clock()) > 0:
            self._changed.clear()
            if not await set_within(self._changed, min(self._idle, left)):
                break
        count = len(self._seen)
        self._before, self._closed = frozenset(self._last), clock()
        for each in (self._seen, self._new, self._last):
            each.clear()
        self._changed.clear()
        return count

    def _closes(self, opened: float, now: float) -> float:
        """When the window closes at the latest, as things stand."""
        self._last.update(dict.fromkeys(self._new, now))
        self._new.clear()
        closes = min(opened + self._max, min(self._last.values()) + _OTHERS * self._idle)
        newcomers = [at for tenant, at in self._last.items() if tenant not in self._before]
        return min(closes, max(newcomers) + self._idle) if newcomers else closes
