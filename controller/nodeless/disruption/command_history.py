"""What earlier looks at the cluster decided: moves that wait for their second look, and evictions made.

A move that saves money is looked at again after a while before anything is done (`due`); meanwhile the
search goes on without its nodes. Moves that were found together are one command: they come due together,
and are validated together (`validating`).

A workload whose pods have been moved again and again is left to rest (`restless`): on a steady workload
moves end by themselves, and where something outside makes them repeat (a scheduler that places otherwise, an
autoscaler that swings), they end all the same.

    a workload rests when, in the last hour, more than MOST_MOVES evictions fell on each of its pods

On a large cluster that is full a look tries to replace only so many nodes singly. What it tried in vain
is not tried again (`tried`) for as long as the cluster is still: so the looks of a round reach every node.

A value, not an object with a life: every method gives back the next one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from nodeless.model.disruption import Decisions, Move
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of

#: Between a move that saves money and the second look at it (Karpenter's consolidation TTL).
VALIDATION_SECONDS = 15.0
#: How long an eviction is remembered.
HOUR = 3600.0
#: Evictions of each pod of a workload within the hour, on average, after which it rests.
MOST_MOVES = 3
#: Code of the verdict on a node that a look did not come to: it has its turn in the next one.
NOT_REACHED = "NotReached"


@dataclass(frozen=True, slots=True)
class Evicted:
    """Evictions of a workload's pods by one move."""

    workload: Workload
    pods: int
    at: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """A move that waits for its second look."""

    move: Move
    at: float
    """When it was found, in seconds since the epoch; the moves of one command have the same time."""
    seen: Snapshot | None = None
    """The cluster in which it was found."""


@dataclass(frozen=True, slots=True)
class CommandHistory:
    """Moves found, each with the time when it was; evictions of the last hour."""

    waiting: tuple[Waiting, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    held: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Empty nodes, by claim name, that only a budget keeps, with the time since when."""
    tried: frozenset[str] = frozenset()
    """Claims that the looks of this round came to in vain."""

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves that wait, in the order in which they were found."""
        return tuple(each.move for each in self.waiting)

    def searched(self, decisions: Decisions) -> "CommandHistory":
        """After a look that found no move: what it came to, as long as there is more to come to."""
        left = {name for name, verdict in decisions.verdicts.items() if verdict.code == NOT_REACHED}
        return replace(self, tried=frozenset(decisions.verdicts).difference(left) if left else frozenset())

    def found(self, move: Move, now: float, seen: Snapshot | None = None) -> "CommandHistory":
        """A move waits for its second look from now on; `seen` is the cluster in which it was found.

        Empty nodes that a budget has kept until now have waited as long already.
        """
        at = max((self.held.get(name, now) for name in move.claims), default=now)
        return replace(self, waiting=(*self.waiting, Waiting(move, at, seen)))

    def holding(self, decisions: Decisions, now: float) -> "CommandHistory":
        """After a look: which empty nodes only a budget keeps, and since when without a break."""
        held = {name: self.held.get(name, now) for name in decisions.held}
        return self if held == self.held else replace(self, held=held)

    def due(self, now: float, wait: float = VALIDATION_SECONDS) -> tuple[Move, ...]:
        """The moves that have waited for long enough, or were found in what is the future now."""
        return tuple(each.move for each in self.waiting if not 0 <= now - each.at < wait)

    def commands(self, now: float, wait: float = VALIDATION_SECONDS) -> tuple[tuple[Waiting, ...], ...]:
        """The moves that are due, those that were found together side by side; the oldest first."""
        due = (each for each in self.waiting if not 0 <= now - each.at < wait)
        return tuple(tuple(command) for _, command in groupby(due, lambda each: each.at))

    def without(self, move: Move) -> "CommandHistory":
        """The move waits no more: it is made, or not right any more."""
        return replace(self, waiting=tuple(each for each in self.waiting if each.move != move))

    def counting(self, moves: Iterable[Move], now: float) -> "CommandHistory":
        """As if these moves alone waited, and so counted as made."""
        return replace(self, waiting=tuple(Waiting(move, now) for move in moves))

    def made(self, move: Move, snapshot: Snapshot, now: float) -> "CommandHistory":
        """The move's evictions are remembered for an hour; those of more than an hour ago are forgotten."""
        counts: dict[Workload, int] = {}
        for name in move.claims:
            claim = snapshot.claims.get(name)
            node = snapshot.node_of(claim) if claim is not None else None
            for pod in snapshot.pods_on(node.name) if node is not None else ():
                if pod.occupies:
                    counts[workload_of(pod)] = counts.get(workload_of(pod), 0) + 1
        fresh = tuple(each for each in self.evicted if now - each.at < HOUR)
        now_evicted = tuple(Evicted(workload, count, now) for workload, count in sorted(counts.items()))
        return replace(self, evicted=(*fresh, *now_evicted))

    def restless(self, snapshot: Snapshot, now: float) -> Mapping[Workload, float]:
        """Workloads that rest, with how often each of their pods was moved in the last hour."""
        moved: dict[Workload, int] = {}
        for each in self.evicted:
            if now - each.at < HOUR:
                moved[each.workload] = moved.get(each.workload, 0) + each.pods
        suspects = {workload for workload, count in moved.items() if count > MOST_MOVES}
        if not suspects:
            return {}
        pods = dict.fromkeys(suspects, 0)
        for pod in snapshot.pods.values():
            workload = workload_of(pod)
            if workload in pods and pod.occupies:
                pods[workload] += 1
        rates = {workload: moved[workload] / max(count, 1) for workload, count in pods.items()}
        return {workload: rate for workload, rate in sorted(rates.items()) if rate > MOST_MOVES}


NOTHING_REMEMBERED = CommandHistory()
