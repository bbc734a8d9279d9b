"""Validation: which commands of one batch are still right on a newer snapshot, and why others are not.

Commands that were found together are validated together, in the order in which they were found, each with
those before it that are still right counted as made: so did the search find them. Commands that only wait
(of a later batch) count for nothing: they may not come to pass. And each command is asked the very question
that the search asked. So on a cluster in which nothing has changed every command is still right, and what is
dropped was dropped for something that changed (`what_changed`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodeless.disruption.budgets import allowance
from nodeless.disruption.candidates import Candidate
from nodeless.disruption.command_history import NOTHING_REMEMBERED, CommandHistory
from nodeless.disruption.controller import DisruptionMethods, empty_nodes_command
from nodeless.disruption.faults import AtWork, failure_verdict, isolate_failures
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.model.disruption import Command, DisruptionReason, Verdict, VerdictCode
from nodeless.model.instance_types import Catalog
from nodeless.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Validation:
    """What became of a command during validation."""

    found: Command
    command: Command | None
    """What is to be done now: the command as it was found, or what is left of it; None: nothing."""
    dropped: Verdict | None = None
    """Why there is nothing to be done: a verdict's code, `Gone`, `Occupied` or `NotBetter`."""
    held: bool = False
    """Whether only a budget is in the way that other nodes use up: the command waits on."""
    fault: Exception | None = None
    """What was raised by the pass, for a reason that nobody foresaw: the command is dropped."""


def validate(
    batch: Sequence[Command],
    snapshot: Snapshot,
    catalog: Catalog,
    policy: DisruptionPolicy,
    now: float,
    memory: CommandHistory = NOTHING_REMEMBERED,
) -> tuple[Validation, ...]:
    """Validation of the commands of one batch, in their order.

    Args:
        batch: Commands that were found together, in the order in which they were found.
        snapshot: The cluster as it is now.
        catalog: What each pool may buy, by pool key, at list prices.
        policy: How commands are judged.
        now: Seconds since the epoch.
        memory: The evictions of the last hour; commands that wait in it count for nothing.

    Returns:
        For each command what is still right of it: of empty nodes those that are still empty, of a deletion
        the nodes that can still go, and otherwise all of it, with what would be launched for it now.
    """
    results: list[Validation] = []
    for command in batch:
        made = [result.command for result in results if result.command is not None]
        counted = memory.with_only_waiting(made, now)

        def revalidate(
            excluded: Mapping[str, Verdict],
            at: AtWork,
            command: Command = command,
            counted: CommandHistory = counted,
        ) -> Validation:
            context = DisruptionMethods(
                snapshot, catalog, policy, now, counted, again=command, excluded=excluded, at=at
            )
            return _validate_command(context, command)

        try:
            results.append(isolate_failures(revalidate)[0])
        except Exception as error:
            results.append(Validation(command, None, failure_verdict(error), fault=error))
    return tuple(results)


def _validate_command(context: DisruptionMethods, command: Command) -> Validation:
    living = {candidate.name: candidate for candidate in context.consolidatable()}
    some = [living[name] for name in command.claims if name in living]
    missing = next((name for name in command.claims if name not in living), None)
    if missing is not None and (command.replacements or not some):
        return Validation(command, None, _why_missing(context, missing))
    allowed = _within_budgets(some, context.remaining_budgets(command.reason))
    if len(allowed) < len(some) and (command.replacements or not allowed):
        over = next(candidate for candidate in some if candidate not in allowed)
        budget = context.allowance(over.pool, command.reason)
        wanted = sum(candidate.pool.key == over.pool.key for candidate in some)
        refusal = Verdict(VerdictCode.BUDGET, f"node {over.node.name}: {budget}")
        return Validation(command, None, refusal, held=wanted <= budget.soon_remaining)
    if command.reason == DisruptionReason.EMPTY:
        return _still_empty(context, command, allowed)
    answer = context.consolidation().again(allowed, command)
    if isinstance(answer, str):
        return Validation(command, None, Verdict(VerdictCode.NOT_BETTER, answer))
    return Validation(command, answer)


def _why_missing(context: DisruptionMethods, name: str) -> Verdict:
    verdict = context.verdicts.get(name)
    if verdict is None:
        return Verdict(VerdictCode.GONE, f"claim {name} is gone")
    return Verdict(verdict.code, f"claim {name}: {verdict.message}")


def _within_budgets(candidates: Sequence[Candidate], left: dict[str, int]) -> list[Candidate]:
    allowed = []
    for candidate in candidates:
        left[candidate.pool.key] -= 1
        if left[candidate.pool.key] >= 0:
            allowed.append(candidate)
    return allowed


def _still_empty(context: DisruptionMethods, command: Command, candidates: Sequence[Candidate]) -> Validation:
    empty = [
        candidate for candidate in candidates if candidate.empty and not context.expected_pods(candidate)
    ]
    if empty:
        return Validation(command, empty_nodes_command(empty))
    (first, *_) = candidates
    text = f"node {first.node.name} is not empty any more: {len(first.pods)} pods run there"
    if first.empty:
        text = f"{context.expected_pods(first)} pods are expected on node {first.node.name}"
    return Validation(command, None, Verdict(VerdictCode.OCCUPIED, text))


def held_by_budgets(commands: Sequence[Command], snapshot: Snapshot, now: float) -> bool:
    """Whether budgets let none of these commands begin now but soon will: nothing is to be validated yet.

    A command that they will not let begin soon is to be dropped: while it waits, it takes the room that its
    pods need, and counts against other budgets.
    """
    return all(_is_held(command, snapshot, now) for command in commands)


def _is_held(command: Command, snapshot: Snapshot, now: float) -> bool:
    pool = snapshot.pools.get(_pool_of(snapshot, command))
    if pool is None:
        return False
    found = allowance(snapshot, pool, command.reason, now)
    wanted = sum(
        str(snapshot.claims[name].pool) == pool.key for name in command.claims if name in snapshot.claims
    )
    return found.remaining == 0 and wanted <= found.soon_remaining


def _pool_of(snapshot: Snapshot, command: Command) -> str:
    """The pool of the first of its claims that is there."""
    return next((str(snapshot.claims[name].pool) for name in command.claims if name in snapshot.claims), "")
