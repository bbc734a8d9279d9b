"""What a command is doing, on a terminal, once that takes longer than two seconds.

The line is on stderr, goes away when the work is done, and is never in a pipe. Its library is loaded when the
line is shown, so that short commands do without it.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds of work before anything is shown of it.
PATIENCE = 2.0


class Work:
    """Work under way, as it is shown."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = 0
        self._total: int | None = None
        self._shown: Progress | None = None
        self._over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True

    def step(self, done: int, total: int) -> None:
        """So many parts of the work are done, of so many."""
        with self._lock:
            self._done, self._total = done, total
            if self._shown is not None:
                self._shown.update(self._shown.task_ids[0], completed=done, total=total)

    def begin(self) -> None:
        """Show it after a while."""
        self._timer.start()

    def end(self) -> None:
        """Show it no more."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            shown, self._shown = self._shown, None
        if shown is not None:
            shown.stop()

    def _show(self) -> None:
        # Imported here: what is done sooner is not shown.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        parts = [MofNCompleteColumn()] if self._total is not None else []
        columns = (SpinnerColumn(), TextColumn("{task.description}"), *parts, TimeElapsedColumn())
        shown = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        shown.add_task(self._what, total=self._total, completed=self._done)
        shown.tasks[0].start_time = shown.get_time() - PATIENCE
        with self._lock:
            # It may have ended while the library was loaded.
            if not self._over:
                self._shown = shown
                shown.start()


class _Unseen(Work):
    """Work that nobody watches."""

    def begin(self) -> None:
        """Nothing is shown."""


#: Work is under way, or the screen is taken: there is one line at most.
_taken = threading.Lock()


@contextmanager
def working(what: str) -> Iterator[Work]:
    """Show what is being done while it is done, where somebody watches; work within work is not shown.

    Args:
        what: In a few words: `planning`.
    """
    watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    with _alone() as alone:
        work = Work(what) if watched and alone else _Unseen(what)
        work.begin()
        try:
            yield work
        finally:
            work.end()


@contextmanager
def nothing_shown() -> Iterator[None]:
    """Show no work: something else has the terminal."""
    with _alone():
        yield


@contextmanager
def _alone() -> Iterator[bool]:
    alone = _taken.acquire(blocking=False)
    try:
        yield alone
    finally:
        if alone:
            _taken.release()
