"""Timestamps of the Kubernetes API (RFC 3339, UTC) and life spans as seconds, and back."""

import re
from datetime import UTC, datetime


def parse_time(text: str) -> float:
    """Seconds since the epoch. Raises ValueError for a text that is no RFC 3339 time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"{text!r} is not a time; hint: write RFC 3339, as 2023-05-01T12:00:00Z")
    return moment.timestamp()


def format_time(seconds: float) -> str:
    """RFC 3339 in UTC with whole seconds, cut off as Kubernetes does: `2023-05-01T12:00:00Z`."""
    return datetime.fromtimestamp(int(seconds // 1), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_SECONDS = {"s": 1, "m": 60, "h": 3600}
NEVER = "Never"


def parse_life_span(text: str) -> int | None:
    """Seconds of `720h` or `1h30m`; None for `Never`. Raises ValueError."""
    if text == NEVER:
        return None
    if re.fullmatch(r"([0-9]+[smh])+", text) is None:
        raise ValueError(f"{text!r} is no life span; hint: write 720h, 1h30m or Never")
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smh])", text))


def format_life_span(seconds: int | None) -> str:
    """`3600s`; `Never` for None."""
    return NEVER if seconds is None else f"{seconds}s"
