"""Nodes that are too old or not what they should be any more: one a pool at a time, the oldest first.

Every command counts as made for the next one, so that no two count on the same room. A Provisioner's node
goes even where some of its pods have no place (v0.27's rule); the others still get theirs. Drift ignores
pods that block where the claim bounds its drain (`terminationGracePeriod`).
"""

from collections.abc import Sequence

from nodeless.disruption.candidates import Candidate, commands_under_way, is_awaited
from nodeless.disruption.context import DisruptionContext
from nodeless.disruption.replacement_lookup import replacement_for
from nodeless.model.disruption import Command, DisruptionReason, VerdictCode
from nodeless.model.labels import VOLUNTARY_DISRUPTION
from nodeless.model.nodes import DISRUPTION_REASON
from nodeless.model.nodes import DRIFTED as DRIFTED_CONDITION
from nodeless.model.plan import PlannedNode
from nodeless.model.pools import NODE_POOL_KIND, PROVISIONER

_ONE_AT_A_TIME = (DisruptionReason.EXPIRED, DisruptionReason.DRIFTED)


def replacement_commands(
    context: DisruptionContext, reason: DisruptionReason, kinds: Sequence[str] = (PROVISIONER, NODE_POOL_KIND)
) -> tuple[Command, ...]:
    """The commands of expired or drifted nodes of these kinds of pools."""
    left, commands = context.remaining_budgets(reason), []
    busy = _busy_pools(context)
    pools = {candidate.pool.key for candidate in context.candidates if candidate.pool.reference.kind in kinds}
    for pool in sorted(pools):
        some = [
            candidate
            for candidate in context.candidates
            if candidate.pool.key == pool and _due(context, candidate, reason)
        ]
        if not some:
            continue
        if some[0].pool.reference.kind == PROVISIONER and pool in busy:
            context.refuse(some, VerdictCode.WAITING, f"{reason.lower()}; another node of {pool} goes first")
            continue
        if left[pool] <= 0:
            budget = context.allowance(some[0].pool, reason)
            context.refuse(some, VerdictCode.BUDGET, f"{reason.lower()}, but {budget}")
            continue
        command = _first(
            context, sorted(some, key=lambda candidate: _age(context, candidate, reason)), reason
        )
        if command is not None:
            commands.append(command)
        context.at.on()
    return tuple(commands)


def _busy_pools(context: DisruptionContext) -> set[str]:
    """Keys of the pools of which a node is being replaced, or drains because it expired or drifted."""
    claims = context.snapshot.claims
    found = {str(claims[name].pool) for name in commands_under_way(context.snapshot, context.now)}
    for claim in claims.values():
        why = claim.condition(DISRUPTION_REASON) if claim.deletion_timestamp is not None else None
        if why is not None and why.reason in _ONE_AT_A_TIME and is_awaited(claim, context.now):
            found.add(str(claim.pool))
    return found


def _due(context: DisruptionContext, candidate: Candidate, reason: DisruptionReason) -> bool:
    first = candidate.pool.reference.kind == PROVISIONER
    mark = candidate.node.annotations.get(VOLUNTARY_DISRUPTION)
    if reason == DisruptionReason.EXPIRED:
        return first and mark == "expired" and candidate.pool.ttl_seconds_until_expired is not None
    # Whoever marked a Provisioner's node first owns the mark: another value holds drift off.
    if first and (not context.policy.drift_of_provisioners or mark not in (None, "drifted")):
        return False
    return candidate.claim.is_true(DRIFTED_CONDITION)


def _age(
    context: DisruptionContext, candidate: Candidate, reason: DisruptionReason
) -> tuple[bool, float, str]:
    if reason == DisruptionReason.EXPIRED:
        return False, candidate.node.created_at, candidate.name
    condition = candidate.claim.condition(DRIFTED_CONDITION)
    since = condition.last_transition_time if condition is not None else context.now
    return bool(candidate.pods), since, candidate.name


def _first(
    context: DisruptionContext, candidates: Sequence[Candidate], reason: DisruptionReason
) -> Command | None:
    for candidate in candidates:
        context.at.on(candidate.name)
        bounded = reason == DisruptionReason.DRIFTED and candidate.claim.termination_grace_period is not None
        if candidate.blocked is not None and not bounded:
            context.verdicts.setdefault(candidate.name, candidate.blocked)
            continue
        if candidate.node.name in context.receiving:
            text = f"{reason.lower()}, but pods of a node that goes first come to it"
            context.refuse([candidate], VerdictCode.EXPECTING, text)
            continue
        outcome = replacement_for(context, candidate, reason)
        first = candidate.pool.reference.kind == PROVISIONER
        if not outcome.placed and not first:
            context.refuse([candidate], VerdictCode.NO_REPLACEMENT, f"{reason.lower()}, but {outcome.reason}")
            continue
        context.record_command(candidate, outcome.placements)
        return _command(candidate, reason, outcome.new_nodes)
    return None


def _command(candidate: Candidate, reason: DisruptionReason, nodes: tuple[PlannedNode, ...]) -> Command:
    price = sum(node.price for node in nodes)
    text = f"{reason.lower()}: {_why(candidate, reason)}; {len(candidate.pods)} pods move"
    return Command(reason, (candidate.name,), nodes, candidate.price or 0.0, price, len(candidate.pods), text)


def _why(candidate: Candidate, reason: DisruptionReason) -> str:
    if reason == DisruptionReason.EXPIRED:
        return f"older than its {candidate.pool.ttl_seconds_until_expired} s"
    condition = candidate.claim.condition(DRIFTED_CONDITION)
    return f"{condition.reason}, {condition.message}" if condition is not None else ""
