"""A report that remembers its lines instead of showing them."""

from __future__ import annotations


class Heard:
    """A `Report`; `lines` holds what was said for good, not what was said on the way."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str, *, transient: bool = False) -> None:
        if not transient:
            self.lines.append(line)
