"""What failed for a reason that nobody foresaw, and when it is tried again.

One object that cannot be handled must not keep the others from being handled. Whoever works on many things
keeps a `Quarantine`: what failed rests for a while that doubles with every failure, and is taken up at once
when it has changed. The record is pure: the caller's clock decides, and nothing is logged here.
"""

from dataclasses import dataclass, field, replace

from immutables import Map

#: Seconds for which something rests after its first failure in a row, and at the most.
FIRST_DELAY = 1.0
LONGEST_DELAY = 60.0
#: More doublings than lead to the longest delay say nothing more.
_MOST_DOUBLINGS = 6
#: Units remembered in one quarantine; who makes more bad ones than this loses the memory of the oldest.
MOST_REMEMBERED = 10_000


class ProcessMustEnd(Exception):
    """No unit's own trouble: the process may not go on. What comes from data alone is never one."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One thing that rests."""

    cause: str
    """What went wrong, as it was said."""
    version: str
    """Version of what was looked at: another one is looked at without delay."""
    failures: int
    """Failures in a row."""
    retry_at: float
    """When it may be tried again, by the caller's clock (seconds)."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Everything that rests, by key. Immutable: `after_failure` and `after_success` return another one."""

    entries: Map[str, Quarantined] = field(default_factory=Map)

    def after_failure(self, key: str, cause: str, now: float, version: str = "") -> "Quarantine":
        """After one more failure; one of another version begins anew.

        Args:
            key: What failed.
            cause: What went wrong.
            now: Seconds, of the clock that `seconds_to_rest` is asked by.
            version: Of what was looked at, as its resource version; empty when it has none.
        """
        before = self.entries.get(key)
        failures = before.failures + 1 if before is not None and before.version == version else 1
        delay = min(FIRST_DELAY * 2 ** min(failures - 1, _MOST_DOUBLINGS), LONGEST_DELAY)
        entries = self.entries
        if before is None and len(entries) >= MOST_REMEMBERED:
            entries = entries.delete(min(entries, key=lambda entry: entries[entry].retry_at))
        return replace(self, entries=entries.set(key, Quarantined(cause, version, failures, now + delay)))

    def after_success(self, key: str) -> "Quarantine":
        """After a success, or when the thing is gone."""
        return replace(self, entries=self.entries.delete(key)) if key in self.entries else self

    def seconds_to_rest(self, key: str, now: float, version: str = "") -> float:
        """Seconds that something must rest yet; 0: it may be tried, as whatever has changed may."""
        entry = self.entries.get(key)
        if entry is None or entry.version != version:
            return 0.0
        return max(entry.retry_at - now, 0.0)

    def is_new_cause(self, key: str, cause: str) -> bool:
        """Whether the cause differs from the one that was said of the key last."""
        entry = self.entries.get(key)
        return entry is None or entry.cause != cause
