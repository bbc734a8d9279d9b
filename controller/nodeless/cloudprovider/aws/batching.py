"""Many askers, one call: what arrives within a short window goes to AWS together.

A window opens with the first asker. It closes when nobody has come for a while, when it
has been open for long, or as soon as it holds all that can come.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

A = TypeVar("A")
T = TypeVar("T")

BatchObserver = Callable[[str, int, float], None]
"""Told of each batch: the batcher's name, how many askers it has, and how many seconds it was open."""


@dataclass
class _Window(Generic[A, T]):
    opened: float
    asked: dict[str, A] = field(default_factory=dict)
    waiting: dict[str, "asyncio.Future[T]"] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None


class Batcher(Generic[A, T]):
    """Collects keys, each with what its asker gives; one window for each bucket.

    `carry_out` gets the bucket's askers by key, sorted, and answers by key, with an exception for a key that
    fails alone. A key that it does not answer gets `missing`, which is raised when it is an exception.
    """

    def __init__(
        self,
        name: str,
        carry_out: Callable[[Mapping[str, A]], Awaitable[Mapping[str, T | Exception]]],
        missing: T | Exception,
        *,
        idle: float,
        longest: float = 1.0,
        limit: int = 500,
        observe: BatchObserver | None = None,
    ) -> None:
        self._name = name
        self._carry_out = carry_out
        self._missing = missing
        self._idle = idle
        self._longest = longest
        self._limit = limit
        self._observe = observe
        self._windows: dict[Hashable, _Window[A, T]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, key: str, asked: A, *, bucket: Hashable = None, enough: int | None = None) -> T:
        """The answer for a key; `enough` askers close the window at once. Raises what `carry_out` raises."""
        loop = asyncio.get_running_loop()
        window = self._windows.get(bucket)
        if window is None:
            window = self._windows[bucket] = _Window(loop.time())
        future = window.waiting.get(key)
        if future is None:
            future = window.waiting[key] = loop.create_future()
            window.asked[key] = asked
            if window.timer is not None:
                window.timer.cancel()
            if len(window.waiting) >= min(self._limit, enough or self._limit):
                self._send(bucket)
            else:
                closes = min(loop.time() + self._idle, window.opened + self._longest)
                window.timer = loop.call_at(closes, self._send, bucket)
        return await asyncio.shield(future)

    def _send(self, bucket: Hashable) -> None:
        window = self._windows.pop(bucket)
        loop = asyncio.get_running_loop()
        if self._observe is not None:
            self._observe(self._name, len(window.waiting), loop.time() - window.opened)
        task = loop.create_task(self._answer(window))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, window: _Window[A, T]) -> None:
        answers: Mapping[str, T | Exception]
        try:
            answers = await self._carry_out({key: window.asked[key] for key in sorted(window.asked)})
        except Exception as error:  # handed to every asker
            answers = dict.fromkeys(window.asked, error)
        for key, future in window.waiting.items():
            answer = answers.get(key, self._missing)
            if isinstance(answer, Exception):
                future.set_exception(answer)
                future.exception()  # an asker may have gone; its error is then nobody's
            else:
                future.set_result(answer)
