"""The moments at which time alone changes what a pass finds.

A disruption pass depends on the snapshot, the catalog, the policy, what earlier passes decided, and the
time. Here is everything in it that depends on the time; as long as none of these moments has come, the same
cluster gives the same answer:

    a pod's `do-not-disrupt` with a duration ends        blocking
    a nomination ends, a rest after a failure ends       candidates
    `consolidateAfter` has passed on a node              deciding (it may end, and others' pods may come)
    a budget's schedule opens or closes                  budgets
    an eviction is forgotten after an hour               memory
    pods have waited long enough for their capacity      simulation
    a drain has held its replacement for long enough     candidates
    a broken condition is tolerated no longer            repair
    a reboot is forgotten after 24 hours                 repairing
    a replacement would repay what it costs              balance (`Decisions.again_at`: not known here)

A moment that turns out to change nothing costs one pass.
"""

import math
from collections.abc import Iterator

from nodeless.api.times import parse_time
from nodeless.disruption.candidates import LONGEST_DRAIN_WAIT
from nodeless.disruption.command_history import HOUR, NOTHING_REMEMBERED, CommandHistory
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.repair_controller import next_repair
from nodeless.disruption.schedules import LONGEST_WAIT, parse_schedule
from nodeless.disruption.simulation import PATIENCE
from nodeless.model.labels import NOT_BEFORE
from nodeless.model.nodes import NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.pools import Budget
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.rebooting import HISTORY_SECONDS, reboots_of
from nodeless.state.last_pod_event_time import consolidates_after, last_pod_event_time
from nodeless.state.protection import protected_until


def next_requeue_at(
    snapshot: Snapshot, policy: DisruptionPolicy, now: float, memory: CommandHistory = NOTHING_REMEMBERED
) -> float:
    """The earliest time at which a pass may find something that one made now does not.

    Args:
        snapshot: The cluster, in which nothing changes meanwhile.
        policy: How commands are judged.
        now: Seconds since the epoch; the time of the pass that found nothing.
        memory: What earlier passes decided.

    Returns:
        Seconds since the epoch, later than `now`; infinity when time changes nothing.
    """
    return min((at for at in _moments(snapshot, policy, now, memory) if at > now), default=math.inf)


def last_to_be_quiet(snapshot: Snapshot, first: float, until: float) -> float:
    """The last moment from `first` to `until` at which a node has been quiet for as long as its pool wants.

    All three are seconds since the epoch; `first` itself where there is none.
    """
    moments = (_quiet_from(snapshot, claim) for claim in snapshot.claims.values())
    return max((at for at in moments if at is not None and first <= at <= until), default=first)


def _quiet_from(snapshot: Snapshot, claim: NodeClaim) -> float | None:
    pool = snapshot.pools.get(str(claim.pool))
    after = consolidates_after(pool) if pool is not None else None
    return None if after is None else last_pod_event_time(claim) + after


def _moments(
    snapshot: Snapshot, policy: DisruptionPolicy, now: float, memory: CommandHistory
) -> Iterator[float]:
    repair = next_repair(snapshot, policy, now)
    if repair is not None:
        yield repair
    yield from snapshot.nominations.values()
    for evicted in memory.evicted:
        yield evicted.at + HOUR
    for claim in snapshot.claims.values():
        yield from _of_claim(snapshot, claim, now)
    for pod in snapshot.pods.values():
        yield from _of_pod(pod)
    for pool in snapshot.pools.values():
        for budget in pool.budgets:
            yield from _of_budget(budget, now)


def _of_claim(snapshot: Snapshot, claim: NodeClaim, now: float) -> Iterator[float]:
    quiet = _quiet_from(snapshot, claim)
    if quiet is not None:
        yield quiet
    if claim.deletion_timestamp is not None:
        yield claim.deletion_timestamp + PATIENCE
        yield claim.deletion_timestamp + LONGEST_DRAIN_WAIT
    for asked in reboots_of(claim, now):
        yield asked + HISTORY_SECONDS
    if NOT_BEFORE in claim.annotations:
        try:
            yield parse_time(claim.annotations[NOT_BEFORE])
        except ValueError:
            return


def _of_pod(pod: Pod) -> Iterator[float]:
    if not pod.node_name:
        yield pod.created_at + PATIENCE
    until = protected_until(pod)
    if until is not None:
        yield until


def _of_budget(budget: Budget, now: float) -> Iterator[float]:
    """Its next strike, and the end of the window that is open."""
    if not budget.schedule:
        return
    try:
        schedule = parse_schedule(budget.schedule)
    except (ValueError, KeyError):
        return
    strike = schedule.next(now)
    if strike is not None:
        yield strike
    # Whatever strikes at all strikes within this time: a longer look back finds nothing more.
    duration = min(budget.duration or 0, LONGEST_WAIT)
    for begun in schedule.strikes(now - duration, now):
        yield begun + duration
        return
