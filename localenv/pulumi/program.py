"""The program inside this process: run for the engine, and cleaned up after.

The Automation API runs the program on an event loop of its own. When a run fails, the
engine is gone before that loop is closed, and the SDK leaves the loop, its sockets and
unfinished coroutines to the garbage collector. `InlineProgram.close` takes them down.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from pulumi.runtime import _grpc_settings

#: How long the SDK's thread may need to leave its loop once the engine is gone.
_LEAVING_SECONDS = 10.0
_POLL_SECONDS = 0.02
#: Stops that may still wait in a loop which nobody runs.
_STOPS = 5
#: Logs a traceback for each call that finds the engine gone, which after a failure is no news.
_NOISY = logging.getLogger("grpc._server")
#: Gives each channel of the SDK connections of its own. Channels of one process to the same port share
#: one otherwise, and while that of an engine that ended still waits to connect again, gRPC refuses the
#: calls to the next engine that happens to get its port.
_OWN_CONNECTIONS = ("grpc.use_local_subchannel_pool", 1)


class InlineProgram:
    """A program as the Automation API calls it; usable for one operation at a time."""

    def __init__(self, program: Callable[[], None]) -> None:
        self._program = program
        self._loops: list[asyncio.AbstractEventLoop] = []
        self._level = logging.NOTSET

    def __call__(self) -> None:
        """Run the program, without the warnings that Pulumi's packages give about their own modules."""
        self._loops.append(asyncio.get_running_loop())
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", category=DeprecationWarning, module=r"pulumi_(aws|eks|kubernetes)\b"
            )
            self._program()

    def __enter__(self) -> Self:
        self._level = _NOISY.level
        _NOISY.setLevel(logging.CRITICAL)
        # Pulumi has no public way to set the options of its channels.
        if _OWN_CONNECTIONS not in _grpc_settings._GRPC_CHANNEL_OPTIONS:
            _grpc_settings._GRPC_CHANNEL_OPTIONS.append(_OWN_CONNECTIONS)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        _NOISY.setLevel(self._level)

    def close(self) -> None:
        """End what the last run left: unfinished tasks, then its loop."""
        while self._loops:
            loop = self._loops.pop()
            deadline = time.monotonic() + _LEAVING_SECONDS
            while loop.is_running() and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            if not loop.is_closed() and not loop.is_running():
                _finish(loop)


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        ended = asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(_STOPS):
            # A stop that the SDK asked for while nobody ran the loop comes true now.
            with suppress(RuntimeError):
                loop.run_until_complete(ended)
            if ended.done():
                break
    loop.close()
