"""What earlier passes decided: commands that wait for validation, and evictions made.

A command that saves money is looked at again after a while before anything is done (`due`); meanwhile the
search goes on without its nodes. Commands that were found together are one batch: they come due together,
and are validated together (`validating`).

A workload whose pods have been moved again and again is left to rest (`restless`): on a steady workload
commands end by themselves, and where something outside makes them repeat (a scheduler that places otherwise,
an autoscaler that swings), they end all the same.

    a workload rests when, in the last hour, more than MOST_MOVES evictions fell on each of its pods

On a large cluster that is full a pass tries to replace only so many nodes singly. What it tried in vain
is not tried again (`tried`) for as long as the cluster is still: so the looks of a round reach every node.

A value, not an object with a life: every method gives back the next one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from nodeless.model.disruption import Command, Decisions, VerdictCode
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of

#: Between the time when a command that saves money is found and its validation (Karpenter's consolidation
#: TTL).
VALIDATION_SECONDS = 15.0
#: How long an eviction is remembered.
HOUR = 3600.0
#: Evictions of each pod of a workload within the hour, on average, after which it rests.
MOST_EVICTIONS = 3


@dataclass(frozen=True, slots=True)
class Evicted:
    """Evictions of a workload's pods by one command."""

    workload: Workload
    pods: int
    at: float
    of: int
    """How many pods the workload had then."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A command that waits for validation."""

    command: Command
    at: float
    """When it was found, in seconds since the epoch; the commands of one batch have the same time."""
    seen: Snapshot | None = None
    """The cluster in which it was found."""


@dataclass(frozen=True, slots=True)
class CommandHistory:
    """Commands found, each with the time when it was; evictions of the last hour."""

    waiting: tuple[Waiting, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    held: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Empty nodes, by claim name, that only a budget keeps, with the time since when."""
    tried: frozenset[str] = frozenset()
    """Claims that the looks of this round came to in vain."""

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands that wait, in the order in which they were found."""
        return tuple(waiting.command for waiting in self.waiting)

    def after_search(self, decisions: Decisions) -> "CommandHistory":
        """After a pass that found no command: what it came to, as long as there is more to come to."""
        left = {
            name for name, verdict in decisions.verdicts.items() if verdict.code == VerdictCode.NOT_REACHED
        }
        return replace(self, tried=frozenset(decisions.verdicts).difference(left) if left else frozenset())

    def with_waiting(self, command: Command, now: float, seen: Snapshot | None = None) -> "CommandHistory":
        """A command waits for validation from now on; `seen` is the cluster in which it was found.

        Empty nodes that a budget has kept until now have waited as long already.
        """
        at = max((self.held.get(name, now) for name in command.claims), default=now)
        return replace(self, waiting=(*self.waiting, Waiting(command, at, seen)))

    def with_held_nodes(self, decisions: Decisions, now: float) -> "CommandHistory":
        """After a pass: which empty nodes only a budget keeps, and since when without a break."""
        held = {name: self.held.get(name, now) for name in decisions.held}
        return self if held == self.held else replace(self, held=held)

    def due(self, now: float, wait: float = VALIDATION_SECONDS) -> tuple[Command, ...]:
        """The commands that have waited for long enough, or were found in what is the future now."""
        return tuple(waiting.command for waiting in self.waiting if not 0 <= now - waiting.at < wait)

    def batches(self, now: float, wait: float = VALIDATION_SECONDS) -> tuple[tuple[Waiting, ...], ...]:
        """The commands that are due, those that were found together side by side; the oldest first."""
        due = (waiting for waiting in self.waiting if not 0 <= now - waiting.at < wait)
        return tuple(tuple(batch) for _, batch in groupby(due, lambda waiting: waiting.at))

    def drop(self, command: Command) -> "CommandHistory":
        """The command waits no more: it is made, or not right any more."""
        return replace(self, waiting=tuple(waiting for waiting in self.waiting if waiting.command != command))

    def with_only_waiting(self, commands: Iterable[Command], now: float) -> "CommandHistory":
        """As if these commands alone waited, and so counted as made."""
        return replace(self, waiting=tuple(Waiting(command, now) for command in commands))

    def with_executed(self, command: Command, snapshot: Snapshot, now: float) -> "CommandHistory":
        """Remember the command's evictions for an hour, and forget those of more than an hour ago."""
        counts: dict[Workload, int] = {}
        for name in command.claims:
            claim = snapshot.claims.get(name)
            node = snapshot.node_of(claim) if claim is not None else None
            for pod in snapshot.pods_on(node.name) if node is not None else ():
                if pod.occupies:
                    counts[workload_of(pod)] = counts.get(workload_of(pod), 0) + 1
        fresh = tuple(evicted for evicted in self.evicted if now - evicted.at < HOUR)
        sizes = _sizes(counts, snapshot)
        now_evicted = tuple(
            Evicted(workload, count, now, sizes[workload]) for workload, count in sorted(counts.items())
        )
        return replace(self, evicted=(*fresh, *now_evicted))

    def rate_limited_workloads(self, snapshot: Snapshot, now: float) -> Mapping[Workload, float]:
        """Workloads that rest, with how often each of their pods was moved in the last hour."""
        fresh = [evicted for evicted in self.evicted if now - evicted.at < HOUR]
        moved: dict[Workload, int] = {}
        for evicted in fresh:
            moved[evicted.workload] = moved.get(evicted.workload, 0) + evicted.pods
        suspects = {workload for workload, count in moved.items() if count > MOST_EVICTIONS}
        if not suspects:
            return {}
        sizes, rates = _sizes(suspects, snapshot), dict.fromkeys(suspects, 0.0)
        for evicted in fresh:
            workload = evicted.workload
            if workload in suspects:
                # Of a workload that was scaled down since then each pod was moved no more often.
                rates[workload] += evicted.pods / max(evicted.of, sizes[workload])
        return {workload: rate for workload, rate in sorted(rates.items()) if rate > MOST_EVICTIONS}


def _sizes(workloads: Iterable[Workload], snapshot: Snapshot) -> dict[Workload, int]:
    """How many pods some workloads have, finished ones left out."""
    sizes = dict.fromkeys(workloads, 0)
    namespaces = {workload.namespace for workload in sizes}
    for pod in snapshot.pods.values():
        if pod.namespace in namespaces and pod.occupies and (workload := workload_of(pod)) in sizes:
            sizes[workload] += 1
    return sizes


NOTHING_REMEMBERED = CommandHistory()
