"""Steps of a start, each told when it is over and, while it takes long, every second.

Steps may overlap, each in a thread of its own; one line says what is under way. The way a
line is shown is the `Report`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from localenv.progress import Report

#: A step that is over sooner needs no line while it runs.
_PATIENCE_SECONDS = 1.0


class Stages:
    """Tells a `Report` about steps; used in a `with` block."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._lock = threading.Lock()
        #: Title, beginning and latest detail of each step under way.
        self._open: dict[str, tuple[float, str]] = {}
        self._done = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="stages", daemon=True)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._ticker.join()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A step; its line says how long it took, when it went well."""
        began = time.monotonic()
        with self._lock:
            self._open[title] = (began, "")
        try:
            yield
        except BaseException:
            with self._lock:
                self._open.pop(title, None)
            raise
        with self._lock:
            self._open.pop(title, None)
            self._report(f"{title}: {time.monotonic() - began:.1f} s")

    def detail(self, title: str, text: str) -> None:
        """Say how far a step is."""
        with self._lock:
            if title in self._open:
                self._open[title] = (self._open[title][0], text)

    def line(self, line: str, *, transient: bool = False) -> None:
        """Say something else, between the lines of the steps: a `Report` too."""
        with self._lock:
            self._report(line, transient=transient)

    def _tick(self) -> None:
        while not self._done.wait(_PATIENCE_SECONDS):
            with self._lock:
                if self._open:
                    self._report("; ".join(map(_under_way, self._open.items())), transient=True)


def _under_way(step: tuple[str, tuple[float, str]]) -> str:
    title, (began, detail) = step
    return f"{title} ... {time.monotonic() - began:.0f} s" + (f" ({detail})" if detail else "")
