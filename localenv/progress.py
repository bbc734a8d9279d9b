"""One line that says how a slow step stands, on standard error.

On a terminal the line is rewritten in place; elsewhere (a log of continuous
integration) a *transient* line is printed at most every fifteen seconds, so that a
build of minutes is neither silent nor a flood. It knows nothing of what is being
reported; `cache`, `golang` and `control_plane` call it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

#: Seconds between two transient lines where lines cannot be rewritten.
QUIET_SECONDS = 15.0


class Report(Protocol):
    """Takes one line of progress; a `transient` line may be overwritten by the next or left out."""

    def __call__(self, line: str, *, transient: bool = False) -> None: ...


class StreamReport:
    """A `Report` that writes to a text stream."""

    def __init__(self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._in_place = self._stream.isatty()
        self._last = -QUIET_SECONDS
        self._width = 0

    def __call__(self, line: str, *, transient: bool = False) -> None:
        """Write `line`; a transient one in place on a terminal, else rarely."""
        if self._in_place:
            self._stream.write("\r" + line.ljust(self._width) + ("" if transient else "\n"))
            self._width = len(line) if transient else 0
        else:
            if transient and self._clock() - self._last < QUIET_SECONDS:
                return
            self._last = self._clock()
            self._stream.write(line + "\n")
        self._stream.flush()


def silent(line: str, *, transient: bool = False) -> None:
    """A `Report` that says nothing."""
    del line, transient
