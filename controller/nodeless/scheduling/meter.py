"""Who uses how much of a pass: work counted in seconds, and a share of it for each class of pods.

Whatever pods ask for, a pass ends: what a solve does is counted (at what it takes on a current core, so
that a second run counts the same), and a class that has used more than its share is stopped where it
stands. Half of the pass is common: a class may take an eighth of what is left of it, so that honest pods
never notice. The other half is theirs for sure: divided evenly among the namespaces that have pods in the
batch, and in each among its classes. So a tenant with a thousand greedy pods takes time from none but
itself. What a namespace has not used of its part is there for those of its classes that were stopped, when
they are tried again.

Some work is done once for all classes (what resources are worth), or for a class only because pods of other
namespaces count it. It is counted, but the class that happens to be at work is not charged for it
(`Meter.for_others`); there is a bound on how much of it there is (`Meter.common_left`).

Nothing is raised: loops ask `over`, and end as if nothing more could be placed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

#: The part of what is left of the common half that one class may take.
_BITE = 1 / 8


class Member(Protocol):
    """A class of pods, by the keys (`namespace/name`) of its pods."""

    @property
    def pods(self) -> Sequence[str]:
        """The keys."""
        ...


@dataclass(slots=True, eq=False)
class Meter:
    """Counts work, and says when whoever is at work has had enough."""

    spent: float = 0.0
    """Seconds of work so far, as counted."""
    common: float = 0.0
    """Those of them that no class is charged for."""
    most_common: float = float("inf")
    """What `common` may rise to before work for others is left out."""
    by_namespace: dict[str, float] = field(default_factory=dict)
    """What the classes with pods in each namespace were charged for."""
    limit: float = float("inf")
    """What `spent` may rise to before whoever is at work is stopped."""
    _more: Callable[[], float] | None = None
    """Asked once, when the limit is reached, for what else there is."""
    _others: float = 0.0
    """The part of what is spent now that is work for others."""

    def spend(self, seconds: float) -> None:
        self.spent += seconds
        if self._others:
            self.common += seconds * self._others
            self.limit += seconds * self._others

    @property
    def charged(self) -> float:
        """Seconds of work that classes are charged for."""
        return self.spent - self.common

    @property
    def common_left(self) -> bool:
        """Whether more work for others may be done."""
        return self.common < self.most_common

    @contextmanager
    def for_others(self, part: float = 1.0) -> Iterator[None]:
        """Whoever is at work is not charged for this `part` of what is spent meanwhile."""
        before, self._others = self._others, max(self._others, part)
        try:
            yield
        finally:
            self._others = before

    @property
    def over(self) -> bool:
        """Whether whoever is at work must stop."""
        if self.spent <= self.limit:
            return False
        if self._more is not None:
            more, self._more = self._more, None
            self.limit += more()
        return self.spent > self.limit

    def allow(self, seconds: float, more: Callable[[], float] | None = None) -> None:
        """Let somebody begin who may spend so much, and then what `more` gives."""
        self.limit = self.spent + seconds
        self._more = more


@dataclass(slots=True, eq=False)
class Shares:
    """The shares of classes in a box of seconds."""

    meter: Meter
    box: float
    members: Sequence[Member]
    _common: float = field(init=False)
    _used: dict[Member, float] = field(default_factory=dict)
    """By class, what it has used of what is its own for sure."""
    _sure: Mapping[Member, float] | None = None
    _namespaces: dict[Member, frozenset[str]] = field(default_factory=dict)
    _counts: Mapping[str, int] | None = None
    _sure_spent: dict[str, float] = field(default_factory=dict)
    """By namespace, what they have used of the sure half."""
    _behind: int = 0
    """How many are still to be tried again."""
    _waiting: Counter[str] = field(default_factory=Counter)
    """The same by namespace."""
    _began: float = 0.0
    _bite: float = 0.0
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        self._common = self.box / 2
        self._end = self.meter.charged + self.box

    def may_begin(self, member: Member) -> bool:
        """Whether there is time for a class at all: even to begin costs something.

        Once the box is used up only those whose namespace has something left of its part of the sure half.
        """
        if self.meter.charged < self._end:
            return True
        share = self.box / 2 / max(1, len(self._all_namespaces()))
        return any(self._sure_spent.get(namespace, 0.0) < share for namespace in self._of(member))

    def begin(self, member: Member) -> bool:
        """A class is at work from now on; returns whether there is time for it at all."""
        if not self.may_begin(member):
            return False
        self._began, self._bite = self.meter.charged, self._common * _BITE
        self.meter.allow(self._bite, lambda: self._left_for(member))
        return True

    def end(self, member: Member) -> bool:
        """It is done; returns whether it was stopped."""
        over = self.meter.over
        used = self.meter.charged - self._began
        for namespace in self._of(member):
            before = self.meter.by_namespace.get(namespace, 0.0)
            self.meter.by_namespace[namespace] = before + used / len(self._of(member))
        self._common -= min(used, self._bite)
        if used > self._bite:
            self._used[member] = self._used.get(member, 0.0) + used - self._bite
            for namespace in self._of(member):
                part = (used - self._bite) / len(self._of(member))
                self._sure_spent[namespace] = self._sure_spent.get(namespace, 0.0) + part
        self.meter.allow(float("inf"))
        return over

    def try_again(self, members: Sequence[Member]) -> None:
        """Some classes that were stopped are tried again from now on, each once."""
        self._behind = len(members)
        self._waiting = Counter(namespace for member in members for namespace in self._of(member))

    def begin_again(self, member: Member) -> bool:
        """A class that was stopped is tried after the others (`try_again` names all of these).

        Those that are to come share what is left of the box. Where that is less, they share what their own
        namespaces have left.

        Returns:
            Whether there is time for it at all; else it has not begun.
        """
        self._behind -= 1
        self._waiting.subtract(self._of(member))
        if not self.may_begin(member):
            return False
        self._began, self._bite = self.meter.charged, 0.0
        left = max(0.0, self._end - self.meter.charged) / (self._behind + 1)
        self.meter.allow(left, lambda: max(0.0, self._left_of_namespaces(member) - left))
        return True

    def _left_for(self, member: Member) -> float:
        if self._sure is None:
            self._sure = self._sure_shares()
        return max(0.0, self._sure.get(member, 0.0) - self._used.get(member, 0.0))

    def _left_of_namespaces(self, member: Member) -> float:
        """Of what is their own for sure, a class's part of what its namespaces have not used."""
        sure = self.box / 2 / max(1, len(self._all_namespaces()))
        return sum(
            max(0.0, sure - self._sure_spent.get(namespace, 0.0)) / (self._waiting[namespace] + 1)
            for namespace in self._of(member)
        )

    def _sure_shares(self) -> dict[Member, float]:
        """Seconds of each class: evenly by namespace, then by class; a part of each of its namespaces."""
        counts = self._all_namespaces()
        seconds = self.box / 2
        return {
            member: sum(seconds / len(counts) / counts[namespace] for namespace in sorted(self._of(member)))
            for member in self.members
        }

    def _all_namespaces(self) -> Mapping[str, int]:
        """How many classes have pods in each."""
        if self._counts is None:
            self._counts = Counter(namespace for member in self.members for namespace in self._of(member))
        return self._counts

    def _of(self, member: Member) -> frozenset[str]:
        known = self._namespaces.get(member)
        if known is None:
            known = frozenset([key.partition("/")[0] for key in member.pods])
            self._namespaces[member] = known
        return known
