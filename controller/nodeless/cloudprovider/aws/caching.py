"""A cache for answers of the cloud: one call for many askers, and no waiting for a refresh.

An entry is fresh for its time to live. After that it is still given out, up to a limit,
while one task in the background fetches the next: whoever launches a node does not
wait for a description that hardly ever changes. Errors are never kept.

An answer is believed for that long once it came twice. One that says another thing than the answer before
(the first one does, too) is asked for again after a minute: a part of it may have been lost on the way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from nodeless.cloudprovider import CloudError, CloudUnavailable
from nodeless.model.quarantine import ProcessMustEnd

T = TypeVar("T")
Clock = Callable[[], float]


#: Seconds for which an answer is fresh that differs from the one before.
DOUBTED = 60.0


class Cache(Generic[T]):
    """Values by key. `fresh`: seconds without asking; `usable`: seconds for which an old value will do."""

    def __init__(self, clock: Clock, fresh: float, usable: float) -> None:
        self._clock = clock
        self._fresh = fresh
        self._usable = usable
        self._values: dict[Hashable, tuple[float, T]] = {}
        #: Keys whose value no second answer has confirmed.
        self._doubted: set[Hashable] = set()
        #: Keys whose value was found wrong: it serves only where the cloud cannot be asked.
        self._expired: set[Hashable] = set()
        self._fetches: dict[Hashable, asyncio.Task[T]] = {}

    def keep(self, fresh: float) -> None:
        """Have values be fresh for so many seconds from now on, and then do for as long as before."""
        self._usable += fresh - self._fresh
        self._fresh = fresh

    async def get(self, key: Hashable, fetch: Callable[[], Awaitable[T]]) -> T:
        """The value of a key, fetched when there is none that will do. Raises what `fetch` raises."""
        present = self._values.get(key)
        age = self._clock() - present[0] if present else None
        fresh = min(self._fresh, DOUBTED) if key in self._doubted else self._fresh
        expired = key in self._expired
        if present is not None and age is not None and age < fresh and not expired:
            return present[1]
        task = self._fetch(key, fetch)
        usable = present if age is not None and age < self._usable else None
        if usable is not None and not expired:
            return usable[1]
        try:
            return await asyncio.shield(task)
        except CloudUnavailable:
            if usable is None:
                raise
            return usable[1]

    async def refresh(self, key: Hashable, fetch: Callable[[], Awaitable[T]]) -> T:
        """Fetch now, whatever is there."""
        return await asyncio.shield(self._fetch(key, fetch))

    def peek(self, key: Hashable) -> T | None:
        """The value that is there, however old."""
        present = self._values.get(key)
        return present[1] if present else None

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value that was found elsewhere, fresh from now on."""
        self._values[key] = (self._clock(), value)
        self._doubted.discard(key)

    def expire(self, key: Hashable) -> None:
        """Have the next who asks for a key wait for a new value; the old one serves if none can be had."""
        if key in self._values:
            self._expired.add(key)

    def forget(self, key: Hashable | None = None) -> None:
        """Drop one key's value, or all."""
        if key is None:
            self._values.clear()
        else:
            self._values.pop(key, None)

    def _fetch(self, key: Hashable, fetch: Callable[[], Awaitable[T]]) -> "asyncio.Task[T]":
        task = self._fetches.get(key)
        if task is None:
            task = asyncio.create_task(self._store(key, fetch))
            self._fetches[key] = task
            task.add_done_callback(report_failure)
        return task

    async def _store(self, key: Hashable, fetch: Callable[[], Awaitable[T]]) -> T:
        try:
            value = await fetch()
        finally:
            self._fetches.pop(key, None)
        now = self._clock()
        for old in [each for each, (time, _) in self._values.items() if now - time > 10 * self._usable]:
            del self._values[old]
            self._doubted.discard(old)
            self._expired.discard(old)
        self._expired.discard(key)
        before = self._values.get(key)
        if before is not None and before[1] == value:
            self._doubted.discard(key)
        else:
            self._doubted.add(key)
        self._values[key] = (now, value)
        return value


def report_failure(task: "asyncio.Task[T]") -> None:
    """Tell of a fetch that failed for no reason of the cloud's: to be called when its task is done.

    A CloudError is raised for an asker that waits. After a refresh in the background the old value
    stands until it is too old, and then the next asker waits and gets the error. That nothing may be
    asked any more (ProcessMustEnd) is told by whoever ends the process.
    """
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, CloudError | ProcessMustEnd):
        context = {"message": "a refresh of cloud data failed", "exception": error}
        task.get_loop().call_exception_handler(context)
