"""When a cron schedule strikes: five fields or a word such as `@daily`, in UTC.

As Kubernetes' CronJobs read it (robfig/cron v3): where both day fields are restricted, either
of them suffices. A field is not restricted if a part of it is `*`, `?` or `*/1`; `*/2` restricts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_WORDS = {
    "@annually": "0 0 1 1 *",
    "@yearly": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: i for i, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_ANY = ("*", "?")
#: Seconds. A schedule such as `0 0 29 2 *` strikes every fourth year; none waits longer than eight.
LONGEST_WAIT = 8 * 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """The values that each field allows; `either_day`: one of the two day fields is enough."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def includes_day(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (by_date or by_weekday) if self.either_day else (by_date and by_weekday)

    def strikes(self, after: float, until: float) -> Iterator[float]:
        """Every strike after one moment and not later than another, in order."""
        day = datetime.fromtimestamp(after, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        while day.timestamp() <= until:
            if self.includes_day(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        at = day.replace(hour=hour, minute=minute).timestamp()
                        if after < at <= until:
                            yield at
            day += timedelta(days=1)

    def next(self, after: float) -> float | None:
        """The first strike after a moment; None: it never strikes (31 February)."""
        return next(self.strikes(after, after + LONGEST_WAIT), None)


@lru_cache(maxsize=1024)
def parse_schedule(text: str) -> Schedule:
    """Raises ValueError for a text that is no schedule."""
    fields = _WORDS.get(text, text).split()
    if len(fields) != 5:
        raise ValueError(f"{text!r} is not a schedule; hint: write five cron fields, or @daily")
    minute, hour, day, month, weekday = fields
    return Schedule(
        minutes=tuple(sorted(_values(minute, 0, 59, {}))),
        hours=tuple(sorted(_values(hour, 0, 23, {}))),
        days=frozenset(_values(day, 1, 31, {})),
        months=frozenset(_values(month, 1, 12, _MONTHS)),
        weekdays=frozenset(_values(weekday, 0, 6, _DAYS)),
        either_day=_is_restricted(day) and _is_restricted(weekday),
    )


def _is_restricted(field: str) -> bool:
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in _ANY and int(step or 1) == 1:
            return False
    return True


def _values(field: str, first: int, last: int, names: dict[str, int]) -> set[int]:
    values: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in _ANY:
            low, high = first, last
        else:
            begin, dash, end = span.partition("-")
            low = _number(begin, names)
            high = _number(end, names) if dash else (last if step else low)
        if not first <= low <= high <= last or (step and int(step) < 1):
            raise ValueError(f"{part!r} is outside {first} to {last}")
        values |= set(range(low, high + 1, int(step) if step else 1))
    return values


def _number(text: str, names: dict[str, int]) -> int:
    return names[text.lower()] if text.lower() in names else int(text)
