"""The time by which everything is decided: the API server's, whatever this machine's clock says.

When a claim was created, a pod was deleted or a condition changed is written by the API server, and is
compared with now. A clock that runs ahead of it would find every new claim too old and end it at once,
again and again. So the clock starts with the machine's time, goes on by the monotonic clock, which never
jumps, and is set by the `Date` of the API server's answers when it is off by more than they leave open.

    date <= server's time when it answered < date + 1 s,   asked <= that time <= answered
"""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

#: API servers behind one address differ by so much at most, and so much drift does no harm.
SLACK_SECONDS = 2.0
_TICK = 1.0


class Clock:
    """Seconds since the epoch, by the API server."""

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._steady = steady
        self._ahead = wall() - steady()

    def now(self) -> float:
        return self._steady() + self._ahead

    def sync(self, date: str | None, took: float) -> bool:
        """An answer bears this date and `took` so many seconds; whether it moved the clock."""
        try:
            earliest = parsedate_to_datetime(date or "").timestamp()
        except ValueError:
            return False
        latest = earliest + _TICK + took
        if earliest - SLACK_SECONDS <= self.now() <= latest + SLACK_SECONDS:
            return False
        self._ahead = (earliest + latest) / 2 - self._steady()
        return True


_CLOCK = Clock()


def wall_clock() -> float:
    """Seconds since the epoch; the one clock that the loops pass to the pure packages."""
    return _CLOCK.now()


def sync_from_date_header(date: str | None, took: float) -> bool:
    """Set `wall_clock` by an answer of the API server, where need be; see `Clock.sync`."""
    return _CLOCK.sync(date, took)
