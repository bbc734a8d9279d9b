"""Many askers, one call: keys that arrive within a short window go to AWS together."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Batcher(Generic[T]):
    """Collects keys until none has come for `idle` seconds, at most `limit` at once.

    `carry_out` gets distinct keys and answers by key, with an exception for a key that fails alone.
    A key that it does not answer gets `missing`.
    """

    def __init__(
        self,
        carry_out: Callable[[Sequence[str]], Awaitable[Mapping[str, T | Exception]]],
        missing: T,
        *,
        idle: float,
        limit: int = 200,
    ) -> None:
        self._carry_out = carry_out
        self._missing = missing
        self._idle = idle
        self._limit = limit
        self._waiting: dict[str, asyncio.Future[T]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, key: str) -> T:
        """The answer for a key. Raises what `carry_out` raises."""
        future = self._waiting.get(key)
        if future is None:
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self._waiting[key] = future
            if self._timer is not None:
                self._timer.cancel()
            if len(self._waiting) >= self._limit:
                self._send()
            else:
                self._timer = loop.call_later(self._idle, self._send)
        return await asyncio.shield(future)

    def _send(self) -> None:
        self._timer = None
        batch, self._waiting = self._waiting, {}
        task = asyncio.get_running_loop().create_task(self._answer(batch))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, batch: dict[str, asyncio.Future[T]]) -> None:
        try:
            answers = await self._carry_out(sorted(batch))
        except Exception as error:  # handed to every asker
            answers = dict.fromkeys(batch, error)
        for key, future in batch.items():
            answer = answers.get(key, self._missing)
            if isinstance(answer, Exception):
                future.set_exception(answer)
                future.exception()  # an asker may have gone; its error is then nobody's
            else:
                future.set_result(answer)
