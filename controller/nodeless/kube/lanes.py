"""Lanes to the API server: requests of one kind never wait behind those of another.

Each lane has connections of its own. However many evictions hang in a slow webhook, the lease is renewed, the
watches go on and claims are written. What the API server's priority and fairness answers (429 with
Retry-After) holds the lane that it was answered to, and no other.
"""

import asyncio
from enum import Enum

#: Seconds for which a lane pauses when the server says longer, or nothing that can be read.
_LONGEST_PAUSE, _USUAL_PAUSE = 10.0, 1.0
#: A lease that waits longer is lost.
_LEASE_PAUSE = 1.0
_LEASES = "/apis/coordination.k8s.io/"


class Lane(Enum):
    """A kind of requests; the value is the most connections that it has."""

    LEASE = ("lease", 4)
    WATCHES = ("watches", 64)
    EVICTIONS = ("evictions", 50)
    CALLS = ("calls", 64)

    @property
    def connections(self) -> int:
        return self.value[1]


def lane_of(method: str, path: str) -> Lane:
    """The lane of a request that is no watch. Pods are deleted where they would not be evicted in time."""
    if path.startswith(_LEASES):
        return Lane.LEASE
    if path.endswith("/eviction") or (method == "DELETE" and "/pods/" in path):
        return Lane.EVICTIONS
    return Lane.CALLS


class Pauses:
    """Until when each lane must rest, by the event loop's clock."""

    def __init__(self) -> None:
        self._until: dict[Lane, float] = {}

    def pause(self, lane: Lane, retry_after: str) -> float:
        """Hold a lane for as long as the server's header says; gives back the seconds."""
        seconds = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else _USUAL_PAUSE
        seconds = min(seconds, _LEASE_PAUSE if lane is Lane.LEASE else _LONGEST_PAUSE)
        until = asyncio.get_running_loop().time() + seconds
        self._until[lane] = max(until, self._until.get(lane, 0.0))
        return seconds

    async def over(self, lane: Lane) -> None:
        """Wait until a lane need not rest any more."""
        await asyncio.sleep(max(self._until.get(lane, 0.0) - asyncio.get_running_loop().time(), 0.0))
