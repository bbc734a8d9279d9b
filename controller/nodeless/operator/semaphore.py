"""So many things at a time; what only waits for something outside lends its place meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class Slots:
    """Whoever takes a place gives it back."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def take(self) -> None:
        """Wait for a place."""
        await self._free.acquire()

    async def take_for(self, wanted: Callable[[], Awaitable[T]]) -> T:
        """Wait for a place, then for what it is for; no place is kept where that fails or is cancelled."""
        await self.take()
        try:
            return await wanted()
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Let the next one in."""
        self._free.release()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Give the place away for as long as this lasts; only who has one may call it."""
        self.give_back()
        try:
            yield
        finally:
            await self.take()
