"""Carrying a command out: mark, launch, wait, end. Everything stands on the objects.

```
replacements written, each annotated with the claims that it replaces   -> begin
   nodes marked (karpenter.sh/disrupted)  -> replacements initialized   -> the old claims deleted
                                          -> a replacement vanished, too late, or paused -> marks off
```

A replacement carries the names of the claims that it replaces, how many replacements there
are, and why: whoever leads next goes on from there. A marked node that no living command
speaks of is unmarked. Each claim to be replaced carries the names of its replacements: that there
were some is known even when they are gone before anybody looks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nodeless.api.times import format_time
from nodeless.disruption.candidates import claims_by_replacement, paused_by
from nodeless.disruption.events import reason_of
from nodeless.launch.claims import claims_for
from nodeless.model.disruption import Command
from nodeless.model.instance_types import Catalog
from nodeless.model.instructions import (
    AnnotateClaim,
    CreateClaim,
    DeleteClaim,
    Instruction,
    PublishEvent,
    UpdateClaimStatus,
    set_taints,
)
from nodeless.model.labels import (
    DISRUPTION_REASON_ANNOTATION,
    DRAIN_GRACE,
    NOT_BEFORE,
    REPLACED_BY,
    REPLACEMENTS,
    REPLACES,
)
from nodeless.model.nodes import DISRUPTION_REASON, INITIALIZED_CONDITION, REBOOTING, Node, NodeClaim
from nodeless.model.numbers import whole_number
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import DISRUPTED
from nodeless.nodeclaim.rebooting import request_reboot
from nodeless.nodeclaim.view import changed_condition

#: A command may take so long for each candidate, within these bounds (Karpenter's queue).
SECONDS_A_CANDIDATE = 0.08
SHORTEST_TIMEOUT = 600.0
LONGEST_TIMEOUT = 3600.0
#: How long a node is left alone after its replacement failed.
COOL_DOWN = 300.0


def timeout(candidates: int) -> float:
    """Seconds that a command may take with so many candidates in the queue."""
    return min(max(SECONDS_A_CANDIDATE * candidates, SHORTEST_TIMEOUT), LONGEST_TIMEOUT)


def begin(
    command: Command,
    snapshot: Snapshot,
    pools: Mapping[str, Pool],
    now: float,
    reason: Callable[[PlannedNode], str] | None = None,
    catalog: Catalog | None = None,
) -> tuple[Instruction, ...]:
    """The first instructions of a command: replacements first, then marks; without replacements the end.

    A reboot is only asked for here: the claim's lifecycle carries it out. Drains that go on already are
    bounded, and no more.

    `reason` says why a replacement is what it is, in one line; kept on its claim after what the command is
    for. `catalog` is what pools may buy: what NodeOverlays say of it is noted on replacements.
    """

    def because(node: PlannedNode) -> str:
        purpose = f"in place of {', '.join(command.claims)}: {command.message or command.reason}"
        return f"{purpose}; {reason(node)}" if reason is not None else purpose

    cause = f"disruption:{now:.3f}"
    bounds: list[Instruction] = [
        AnnotateClaim(cause, name, {DRAIN_GRACE: str(command.drain_grace)})
        for name in command.claims
        if command.drain_grace is not None
    ]
    if command.reboots:
        return (*bounds, *_reboots(command, snapshot, now))
    if bounds and all(_is_draining(snapshot, name) for name in command.claims):
        return tuple(bounds)
    creates = claims_for(
        Plan(new_nodes=command.replacements),
        pools,
        now,
        cause=cause,
        taken=frozenset(snapshot.claims),
        node_classes=dict(snapshot.node_classes),
        reason=because,
        catalog=catalog,
    )
    notes = {
        REPLACES: ",".join(command.claims),
        REPLACEMENTS: str(len(creates)),
        DISRUPTION_REASON_ANNOTATION: command.reason,
    }
    instructions: list[Instruction] = bounds + [
        CreateClaim(cause, replace(create.claim, annotations={**create.claim.annotations, **notes}))
        for create in creates
    ]
    instructions += _promises(snapshot, command.claims, [create.claim.name for create in creates], cause)
    for name in command.claims:
        instructions += _marks(snapshot, name, command.reason, command.message, now, cause)
    if not creates:
        instructions += [DeleteClaim(cause, name, _metric(command.reason)) for name in command.claims]
    return tuple(instructions)


def _is_draining(snapshot: Snapshot, name: str) -> bool:
    claim = snapshot.claims.get(name)
    return claim is not None and claim.deletion_timestamp is not None


def _reboots(command: Command, snapshot: Snapshot, now: float) -> list[Instruction]:
    instructions: list[Instruction] = []
    for name in command.claims:
        claim = snapshot.claims.get(name)
        node = snapshot.node_of(claim) if claim is not None else None
        if claim is not None and node is not None:
            instructions += request_reboot(claim, node, command.message, now)
    return instructions


def _promises(
    snapshot: Snapshot, olds: Sequence[str], replacements: Sequence[str], cause: str
) -> list[Instruction]:
    """Each old claim says what is to take its place; nothing to write when there is no replacement."""
    names = ",".join(replacements)
    claims = (snapshot.claims[old] for old in olds if old in snapshot.claims)
    missing = (claim.name for claim in claims if names and REPLACED_BY not in claim.annotations)
    return [AnnotateClaim(cause, name, {REPLACED_BY: names}) for name in missing]


def _marks(
    snapshot: Snapshot, name: str, reason: str, message: str, now: float, cause: str
) -> list[Instruction]:
    claim = snapshot.claims.get(name)
    node = snapshot.node_of(claim) if claim is not None else None
    if claim is None or node is None:
        return []
    marks: list[Instruction] = []
    if not _is_marked(node):
        stage = f"disrupting node: {message}" if message else "disrupting node"
        marks.append(set_taints(cause, node, (*node.taints, DISRUPTED), stage))
        text = f"{reason}: {message}" if message else reason
        marks.append(
            PublishEvent(cause, "Node", node.name, "Normal", "DisruptionStarted", text, uid=node.uid)
        )
    present = claim.condition(DISRUPTION_REASON)
    if present is None or (present.status, present.reason) != ("True", reason):
        condition = changed_condition(claim, DISRUPTION_REASON, "True", now, reason=reason, message=message)
        marks.append(UpdateClaimStatus(cause, name, condition))
    return marks


@dataclass(frozen=True, slots=True)
class CommandStep:
    """What one command needs next, or what was raised when that was asked."""

    key: str
    """The claims that the command replaces; the claim that is marked without one."""
    instructions: tuple[Instruction, ...] = ()
    fault: Exception | None = None


def advance(snapshot: Snapshot, now: float) -> tuple[Instruction, ...]:
    """What every command needs next, and marks off the nodes that no command speaks of."""
    instructions: list[Instruction] = []
    for step in next_steps(snapshot, now):
        if step.fault is not None:
            raise step.fault
        instructions += step.instructions
    return tuple(instructions)


def next_steps(snapshot: Snapshot, now: float) -> tuple[CommandStep, ...]:
    """The same by command, for those that need something: a fault in one concerns that one alone."""
    commands = _commands(snapshot)
    busy = {old for olds in commands for old in olds}
    steps = [
        _step_of(",".join(olds), partial(_step, snapshot, olds, replacements, len(busy), now))
        for olds, replacements in sorted(commands.items())
    ]
    steps += [
        _step_of(name, partial(_without_command, snapshot, claim, now))
        for name, claim in sorted(snapshot.claims.items())
        if name not in busy and claim.deletion_timestamp is None
    ]
    return tuple(step for step in steps if step.instructions or step.fault is not None)


def _step_of(key: str, make: Callable[[], Sequence[Instruction]]) -> CommandStep:
    try:
        return CommandStep(key, tuple(make()))
    except Exception as error:
        return CommandStep(key, fault=error)


def _without_command(snapshot: Snapshot, claim: NodeClaim, now: float) -> list[Instruction]:
    if REPLACED_BY in claim.annotations:
        why = "its replacement has vanished"
        return _left_alone(snapshot, claim, why, now, f"disruption:{claim.name}")
    return _remove_marks(snapshot, claim, now)


def _commands(snapshot: Snapshot) -> dict[tuple[str, ...], list[NodeClaim]]:
    """The replacements of each set of claims of which some live and are not deleted yet."""
    commands: dict[tuple[str, ...], list[NodeClaim]] = {}
    for name in claims_by_replacement(snapshot):
        claim = snapshot.claims[name]
        olds = claim.replaces
        living = (snapshot.claims[old] for old in olds if old in snapshot.claims)
        if any(old.deletion_timestamp is None for old in living):
            commands.setdefault(olds, []).append(claim)
    return commands


def _step(
    snapshot: Snapshot, olds: tuple[str, ...], replacements: Sequence[NodeClaim], queued: int, now: float
) -> list[Instruction]:
    first = replacements[0]
    cause, reason = f"disruption:{first.name}", first.annotations.get(DISRUPTION_REASON_ANNOTATION, "")
    living = [
        old for old in olds if old in snapshot.claims and snapshot.claims[old].deletion_timestamp is None
    ]
    present = [claim for claim in replacements if claim.deletion_timestamp is None]
    if any(_is_paused(snapshot, snapshot.claims[old]) for old in living):
        ended = [each for old in living for each in _remove_marks(snapshot, snapshot.claims[old], now)]
        return [*ended, *_without_olds(present, cause)]
    if len(present) < _expected_replacements(first):
        return _abandon(snapshot, living, present, "a replacement has vanished", now, cause)
    if not all(claim.is_true(INITIALIZED_CONDITION) for claim in present):
        if now - first.created_at > timeout(queued):
            why = f"not ready within {timeout(queued):.0f} s"
            return _abandon(snapshot, living, present, why, now, cause)
        marks = [mark for old in living for mark in _marks(snapshot, old, reason, "", now, cause)]
        return [*_promises(snapshot, living, [claim.name for claim in present], cause), *marks]
    instructions: list[Instruction] = []
    for old in living:
        claim = snapshot.claims[old]
        text = f"{reason}: its replacement {first.name} is ready"
        node = snapshot.node_of(claim)
        if node is not None:
            instructions.append(
                PublishEvent(
                    cause,
                    "Node",
                    node.name,
                    "Normal",
                    reason_of(claim.pool, "Terminating"),
                    text,
                    uid=node.uid,
                )
            )
        instructions.append(DeleteClaim(cause, old, _metric(reason)))
    return instructions


def _abandon(
    snapshot: Snapshot,
    olds: Sequence[str],
    present: Sequence[NodeClaim],
    why: str,
    now: float,
    cause: str,
) -> list[Instruction]:
    """Everything stays; the replacements that are there become nodes like any other."""
    instructions: list[Instruction] = []
    for old in olds:
        instructions += _left_alone(snapshot, snapshot.claims[old], why, now, cause)
    return [*instructions, *_without_olds(present, cause)]


def _without_olds(replacements: Sequence[NodeClaim], cause: str) -> list[Instruction]:
    """Replacements that take nobody's place any more."""
    return [AnnotateClaim(cause, claim.name, {REPLACES: None, REPLACEMENTS: None}) for claim in replacements]


def _is_paused(snapshot: Snapshot, claim: NodeClaim) -> bool:
    return bool(paused_by(snapshot.node_of(claim), snapshot.pools.get(str(claim.pool))))


def _left_alone(snapshot: Snapshot, claim: NodeClaim, why: str, now: float, cause: str) -> list[Instruction]:
    """The marks go off, and no other move is made with the node for a while."""
    node = snapshot.node_of(claim)
    notes: dict[str, str | None] = {NOT_BEFORE: format_time(now + COOL_DOWN), **_old_notes(claim)}
    instructions: list[Instruction] = [AnnotateClaim(cause, claim.name, notes)]
    if node is not None:
        text = f"stays: {why}; it is looked at again in {COOL_DOWN:.0f} s"
        instructions.append(
            PublishEvent(cause, "Node", node.name, "Warning", "DisruptionFailed", text, uid=node.uid)
        )
    return [*instructions, *_marks_off(snapshot, claim, now)]


def _remove_marks(snapshot: Snapshot, claim: NodeClaim, now: float) -> list[Instruction]:
    instructions, notes = _marks_off(snapshot, claim, now), _old_notes(claim)
    if notes:
        instructions.append(AnnotateClaim(f"disruption:{claim.name}", claim.name, notes))
    return instructions


def _old_notes(claim: NodeClaim) -> dict[str, str | None]:
    """What a command wrote onto the claim, as an annotation takes it off."""
    keys = (REPLACED_BY,) if claim.is_true(REBOOTING) else (REPLACED_BY, DRAIN_GRACE)
    return dict.fromkeys(key for key in keys if key in claim.annotations)


def _marks_off(snapshot: Snapshot, claim: NodeClaim, now: float) -> list[Instruction]:
    cause = f"disruption:{claim.name}"
    instructions: list[Instruction] = []
    node = snapshot.node_of(claim)
    if node is not None and node.deletion_timestamp is None and _is_marked(node):
        others = tuple(taint for taint in node.taints if not taint.matches(DISRUPTED))
        instructions.append(set_taints(cause, node, others, "node is not disrupted any more"))
    if claim.is_true(DISRUPTION_REASON) and not claim.is_true(REBOOTING):
        condition = changed_condition(claim, DISRUPTION_REASON, "False", now, reason="NotDisrupted")
        instructions.append(UpdateClaimStatus(cause, claim.name, condition))
    return instructions


def _is_marked(node: Node) -> bool:
    return any(taint.matches(DISRUPTED) for taint in node.taints)


#: No command replaces more nodes than a cluster can have.
_MOST_REPLACEMENTS = 100_000


def _expected_replacements(claim: NodeClaim) -> int:
    number = whole_number(claim.annotations.get(REPLACEMENTS, "1"), _MOST_REPLACEMENTS)
    return 1 if number is None else number


def _metric(reason: str) -> str:
    """The reason as Karpenter's metrics spell it."""
    return reason.lower()
