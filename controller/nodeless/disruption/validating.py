"""The second look: which moves of a command are still right on a newer snapshot, and why others are not.

Moves that were found together are validated together, in the order in which they were found, each with
those before it that are still right counted as made: so did the search find them. Moves that only wait
(of a later command) count for nothing: they may not come to pass. And each move is asked the very question
that the search asked. So on a cluster in which nothing has changed every move is still right, and what is
dropped was dropped for something that changed (`what_changed`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodeless.disruption.budgets import allowance
from nodeless.disruption.candidates import Candidate
from nodeless.disruption.command_history import NOTHING_REMEMBERED, CommandHistory
from nodeless.disruption.controller import Deciding, end_of_empty
from nodeless.disruption.faults import AtWork, failed, without_culprits
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.model.disruption import EMPTY, Move, Verdict
from nodeless.model.instance_types import Catalog
from nodeless.model.snapshot import Snapshot

#: Codes of moves that are dropped, besides those of verdicts on their nodes.
GONE = "Gone"
OCCUPIED = "Occupied"
NOT_BETTER = "NotBetter"


@dataclass(frozen=True, slots=True)
class Validation:
    """What became of a move at its second look."""

    found: Move
    move: Move | None
    """What is to be done now: the move as it was found, or what is left of it; None: nothing."""
    dropped: Verdict | None = None
    """Why there is nothing to be done: a verdict's code, `Gone`, `Occupied` or `NotBetter`."""
    held: bool = False
    """Whether only a budget is in the way that other nodes use up: the move waits on."""
    fault: Exception | None = None
    """What was raised by the look, for a reason that nobody foresaw: the move is dropped."""


def validate(
    command: Sequence[Move],
    snapshot: Snapshot,
    catalog: Catalog,
    policy: DisruptionPolicy,
    now: float,
    memory: CommandHistory = NOTHING_REMEMBERED,
) -> tuple[Validation, ...]:
    """A second look at the moves of one command, in their order.

    Args:
        command: Moves that were found together, in the order in which they were found.
        snapshot: The cluster as it is now.
        catalog: What each pool may buy, by pool key, at list prices.
        policy: How moves are judged.
        now: Seconds since the epoch.
        memory: The evictions of the last hour; moves that wait in it count for nothing.

    Returns:
        For each move what is still right of it: of empty nodes those that are still empty, of a deletion
        the nodes that can still go, and otherwise all of it, with what would be launched for it now.
    """
    results: list[Validation] = []
    for move in command:
        made = [each.move for each in results if each.move is not None]
        counted = memory.counting(made, now)

        def looked(
            without: Mapping[str, Verdict], at: AtWork, move: Move = move, counted: CommandHistory = counted
        ) -> Validation:
            look = Deciding(snapshot, catalog, policy, now, counted, again=move, without=without, at=at)
            return _validated(look, move)

        try:
            results.append(without_culprits(looked)[0])
        except Exception as error:
            results.append(Validation(move, None, failed(error), fault=error))
    return tuple(results)


def _validated(look: Deciding, move: Move) -> Validation:
    living = {candidate.name: candidate for candidate in look.consolidatable()}
    some = [living[name] for name in move.claims if name in living]
    missing = next((name for name in move.claims if name not in living), None)
    if missing is not None and (move.replacements or not some):
        return Validation(move, None, _why_missing(look, missing))
    allowed = _within_budgets(some, look.left(move.reason))
    if len(allowed) < len(some) and (move.replacements or not allowed):
        over = next(each for each in some if each not in allowed)
        budget = allowance(look.snapshot, over.pool, move.reason, look.now)
        wanted = sum(each.pool.key == over.pool.key for each in some)
        refusal = Verdict("Budget", f"node {over.node.name}: {budget}")
        return Validation(move, None, refusal, held=wanted <= budget.allowed)
    if move.reason == EMPTY:
        return _still_empty(look, move, allowed)
    answer = look.consolidation().again(allowed, move)
    if isinstance(answer, str):
        return Validation(move, None, Verdict(NOT_BETTER, answer))
    return Validation(move, answer)


def _why_missing(look: Deciding, name: str) -> Verdict:
    verdict = look.verdicts.get(name)
    if verdict is None:
        return Verdict(GONE, f"claim {name} is gone")
    return Verdict(verdict.code, f"claim {name}: {verdict.message}")


def _within_budgets(some: Sequence[Candidate], left: dict[str, int]) -> list[Candidate]:
    allowed = []
    for candidate in some:
        left[candidate.pool.key] -= 1
        if left[candidate.pool.key] >= 0:
            allowed.append(candidate)
    return allowed


def _still_empty(look: Deciding, move: Move, some: Sequence[Candidate]) -> Validation:
    empty = [each for each in some if each.empty and not look.coming(each)]
    if empty:
        return Validation(move, end_of_empty(empty))
    (first, *_) = some
    text = f"node {first.node.name} is not empty any more: {len(first.pods)} pods run there"
    if first.empty:
        text = f"{look.coming(first)} pods are expected on node {first.node.name}"
    return Validation(move, None, Verdict(OCCUPIED, text))


def held_by_budgets(moves: Sequence[Move], snapshot: Snapshot, now: float) -> bool:
    """Whether budgets let none of these moves begin now, and so no second look is worth its time."""
    keys = {(move.reason, _pool_of(snapshot, move)) for move in moves}
    return all(
        key in snapshot.pools and allowance(snapshot, snapshot.pools[key], reason, now).remaining == 0
        for reason, key in keys
    )


def _pool_of(snapshot: Snapshot, move: Move) -> str:
    """The pool of the first of its claims that is there."""
    return next((str(snapshot.claims[name].pool) for name in move.claims if name in snapshot.claims), "")
