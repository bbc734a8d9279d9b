"""Namespaces whose pods take long to plan come after the others, and get a smaller part of the loop.

A pass ends within its deadline whatever the pods are, but whoever comes while it goes on waits for its end,
and nodes are launched when the whole plan is there. So the pods of a namespace that took more than a second
of a pass are planned in a pass of their own, after that of the others; where others have had pods to place
lately, that pass has a deadline of two seconds. What it does not get to is tried again in the next.
"""

from collections.abc import Collection

from nodeless.model.plan import Plan

#: Seconds of counted work in one pass from which on a namespace comes after the others, and for how long.
HEAVY_WORK = 1.0
HEAVY_SECONDS = 600.0
#: Seconds of work of a pass for such namespaces, where others have placed pods within so many seconds.
DEADLINE = 2.0
LATELY = 600.0
#: More namespaces are not remembered.
_MOST = 10_000


class Tenants:
    """Who took how much of the last passes; times are seconds of one clock."""

    def __init__(self) -> None:
        #: By namespace: until when it comes after the others, and when it placed pods last.
        self._heavy: dict[str, float] = {}
        self._seen: dict[str, float] = {}

    def note(self, plan: Plan, now: float) -> None:
        """Remember what a pass took."""
        _forget(self._heavy, now)
        _forget(self._seen, now)
        for namespace, seconds in plan.work.items():
            if seconds > HEAVY_WORK:
                _remember(self._heavy, namespace, now + HEAVY_SECONDS)
            _remember(self._seen, namespace, now + LATELY)

    def heavy(self, now: float) -> frozenset[str]:
        """The namespaces that come after the others."""
        return frozenset(namespace for namespace, until in self._heavy.items() if until > now)

    def deadline(self, namespaces: Collection[str], now: float) -> float | None:
        """Seconds that a pass for these namespaces alone may take; None: as long as any."""
        others = (until > now and name not in namespaces for name, until in self._seen.items())
        return DEADLINE if any(others) else None


def _remember(known: dict[str, float], namespace: str, until: float) -> None:
    if namespace in known or len(known) < _MOST:
        known[namespace] = until


def _forget(known: dict[str, float], now: float) -> None:
    for namespace in [each for each, until in known.items() if until <= now]:
        del known[namespace]
