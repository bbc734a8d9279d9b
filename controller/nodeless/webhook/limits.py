"""What one request may cost, and all of them together (docs/limits.md): the port is open to who reaches it.

A request is counted before it is read, and read before it is believed: first its length, then the values in
it (`api.bounds`), then the faults that are looked for. Large reviews wait for one another, so that memory
holds one of them; small ones pass by.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from nodeless.api.bounds import DocumentBounds

MIB = 1024 * 1024
#: A review holds two objects of at most 1.5 MiB each (etcd's limit), and a little around them.
LARGEST_BODY = 8 * MIB
#: Two objects of 1.5 MiB that consist of values of two letters; and ten times what our kinds nest.
BOUNDS = DocumentBounds(values=800_000, depth=100)
#: A review of this size takes milliseconds. It is answered where it arrives: a thread's start and end would
#: cost more, above all while another thread computes. What is larger must not hold up the probes.
SMALL_BODY = 32 * 1024
SMALL_VALUES = 1000
#: Bodies of more than `SMALL_BODY` that are in memory or on their way at once.
LARGE_BODIES = 4
#: Large requests that wait for one of these places; one more is told to come again.
WAITING = 16


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client is waited for, in seconds; the API server itself waits 10 s for a whole answer.

    Attributes:
        handshake: For TLS.
        head: For the first byte of a request and for the last of its head, each time.
        body: For a body, from its head on.
        request: For a whole request, until the client has taken the answer.
        idle: Between two requests. Go's clients close their own connections after 90 s: later than they do,
            so that no question meets a connection that is being closed.
    """

    handshake: float = 5
    head: float = 5
    body: float = 5
    request: float = 30
    idle: float = 120


class BusyError(Exception):
    """Too many large requests wait already."""


@dataclass(slots=True)
class Places:
    """Where large requests are read and answered."""

    _bodies: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_BODIES))
    _thread: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    _waiting: int = 0

    @asynccontextmanager
    async def body(self, size: int | None) -> AsyncIterator[None]:
        """Hold a place for a body of this size (None: not announced). Raises BusyError."""
        if size is not None and size <= SMALL_BODY:
            yield
            return
        if self._waiting >= WAITING:
            raise BusyError
        self._waiting += 1
        try:
            await self._bodies.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._bodies.release()

    @property
    def thread(self) -> asyncio.Semaphore:
        """Held while a large review is parsed and judged."""
        return self._thread
