"""When may what be disrupted? A pool's budgets laid out in time."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from nodeless.disruption.budgets import UNLIMITED, allowed_disruptions
from nodeless.disruption.schedules import LONGEST_WAIT, parse_schedule
from nodeless.model.disruption import DisruptionReason
from nodeless.model.labels import PAUSE
from nodeless.model.pools import Budget, Pool
from nodeless.state.last_pod_event_time import consolidates_after

REASONS = (
    DisruptionReason.EMPTY,
    DisruptionReason.UNDERUTILIZED,
    DisruptionReason.DRIFTED,
    DisruptionReason.UNHEALTHY,
)


def reasons_of(pool: Pool) -> tuple[DisruptionReason, ...]:
    """The reasons for which a pool's nodes may be disrupted at all: it may end empty nodes only, or none."""
    never = set()
    if not pool.consolidation_enabled:
        never.add(DisruptionReason.UNDERUTILIZED)
    if consolidates_after(pool) is None and pool.ttl_seconds_after_empty is None:
        never.add(DisruptionReason.EMPTY)
    return tuple(reason for reason in REASONS if reason not in never)


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time in which a pool's budgets allow the same number of nodes at once; None: any number."""

    start: float
    end: float
    nodes: int | None


def windows(pool: Pool, reason: DisruptionReason, nodes: int, start: float, end: float) -> tuple[Window, ...]:
    """The windows of a pool with so many nodes from one moment to another, without gaps."""
    edges = sorted({start, end, *(at for budget in pool.budgets for at in _edges(budget, start, end))})
    found: list[Window] = []
    for low, high in itertools.pairwise(edges):
        number = (
            0 if pool.own_annotations.get(PAUSE) == "true" else allowed_disruptions(pool, reason, nodes, low)
        )
        left = None if number == UNLIMITED else number
        if found and found[-1].nodes == left:
            found[-1] = Window(found[-1].start, high, left)
        else:
            found.append(Window(low, high, left))
    return tuple(found)


def _edges(budget: Budget, start: float, end: float) -> Iterator[float]:
    """When a budget begins and ceases to apply."""
    if not budget.schedule or budget.duration is None:
        return
    duration = min(budget.duration, LONGEST_WAIT)
    for strike in parse_schedule(budget.schedule).strikes(start - duration - 60, end):
        for at in (strike, strike + duration):
            if start < at < end:
                yield at
