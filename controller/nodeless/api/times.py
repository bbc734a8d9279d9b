"""Timestamps of the Kubernetes API (RFC 3339, UTC) and life spans as seconds, and back."""

import re
from datetime import UTC, datetime, timedelta

#: The first and the last second that a Kubernetes timestamp can name, years 1 and 9999 (seconds since the
#: epoch). What is computed from users' figures may lie beyond: it is written as the nearest of them.
EARLIEST, LATEST = -62135596800.0, 253402300799.0


def parse_time(text: str) -> float:
    """Seconds since the epoch. Raises ValueError for a text that is no RFC 3339 time.

    Go knows a year 0, Python does not: it reads as the beginning of year 1.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
        if _YEAR_ZERO.match(text):
            return EARLIEST
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"{text[:64]!r} is not a time; hint: write RFC 3339, as 2023-05-01T12:00:00Z")
    return moment.timestamp()


def format_time(seconds: float) -> str:
    """RFC 3339 in UTC with whole seconds, cut off as Kubernetes does: `2023-05-01T12:00:00Z`.

    A moment before year 1 or after year 9999 becomes the first or the last that can be written.
    """
    whole = int(clamp(seconds, EARLIEST, LATEST) // 1)
    return (_EPOCH + timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def clamp(value: float, lowest: float, highest: float) -> float:
    """The value, or the bound that it lies beyond. Not a number counts as the lowest."""
    return min(max(value, lowest), highest) if value == value else lowest  # noqa: PLR0124 - NaN


_SECONDS = {"s": 1, "m": 60, "h": 3600}
NEVER = "Never"
#: Seconds of the longest span that counts: what a Go duration holds (2**63 ns, 292 years).
LONGEST_SPAN = (2**63 - 1) // 10**9
_MOST_DIGITS = 12
_GO_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_GO_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_GO_DURATION = re.compile(rf"[+-]?(?:0|(?:{_GO_PART.pattern})+)")
_YEAR_ZERO = re.compile(r"0000-\d\d-\d\d[Tt]\d\d:\d\d:\d\d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_life_span(text: str) -> int | None:
    """Seconds of `720h` or `1h30m`; None for `Never`. Raises ValueError.

    A span beyond `LONGEST_SPAN` counts as that: whoever writes more means that it never ends.
    """
    seconds = _seconds_of(text)
    return None if seconds is None else min(seconds, LONGEST_SPAN)


def is_longer_than_counts(text: str) -> bool:
    """Whether a life span is longer than `LONGEST_SPAN`. Raises ValueError for a text that is none."""
    seconds = _seconds_of(text)
    return seconds is not None and seconds > LONGEST_SPAN


def parse_go_duration(text: str) -> float:
    """Seconds of a Go duration, as `8h`, `1.5h`, `1h30m` or `-500ms`. Raises ValueError.

    One beyond `LONGEST_SPAN` counts as that.
    """
    if _GO_DURATION.fullmatch(text) is None:
        raise ValueError(f"{text[:64]!r} is not a duration; hint: write 8h, 1.5h or 1h30m")
    seconds = sum(float(number) * _GO_SECONDS[unit] for number, unit in _GO_PART.findall(text))
    return min(seconds, LONGEST_SPAN) * (-1 if text.startswith("-") else 1)


def _seconds_of(text: str) -> int | None:
    if text == NEVER:
        return None
    if re.fullmatch(r"([0-9]+[smh])+", text) is None:
        raise ValueError(f"{text[:64]!r} is not a duration; hint: write 720h, 1h30m or Never")
    return sum(map(_seconds_of_part, re.findall(r"([0-9]+)([smh])", text)))


def _seconds_of_part(part: tuple[str, str]) -> int:
    number, unit = part[0].lstrip("0"), part[1]
    # Python reads no number of thousands of digits, and takes quadratic time for it.
    return LONGEST_SPAN + 1 if len(number) > _MOST_DIGITS else int(number or 0) * _SECONDS[unit]


def format_life_span(seconds: int | None) -> str:
    """`3600s`; `Never` for None."""
    return NEVER if seconds is None else f"{seconds}s"
