"""Nodes that are too old or not what they should be any more: one a pool at a time, the oldest first.

Every move counts as made for the next one, so that no two count on the same room. A Provisioner's node
goes even where some of its pods have no place (v0.27's rule); the others still get theirs. Drift ignores
pods that block where the claim bounds its drain (`terminationGracePeriod`).
"""

from collections.abc import Sequence

from nodeless.disruption.budgets import allowance
from nodeless.disruption.candidates import Candidate, replacing
from nodeless.disruption.context import DisruptionContext
from nodeless.disruption.replacement_lookup import succession
from nodeless.model.disruption import DRIFTED, EXPIRED, Move
from nodeless.model.labels import VOLUNTARY_DISRUPTION
from nodeless.model.nodes import DRIFTED as DRIFTED_CONDITION
from nodeless.model.plan import PlannedNode
from nodeless.model.pools import NODE_POOL_KIND, PROVISIONER


def replaced(
    look: DisruptionContext, reason: str, kinds: Sequence[str] = (PROVISIONER, NODE_POOL_KIND)
) -> tuple[Move, ...]:
    """The moves of expired or drifted nodes of these kinds of pools."""
    left, moves = look.left(reason), []
    busy = {str(look.snapshot.claims[name].pool) for name in replacing(look.snapshot)}
    pools = {each.pool.key for each in look.candidates if each.pool.reference.kind in kinds}
    for pool in sorted(pools):
        some = [each for each in look.candidates if each.pool.key == pool and _due(look, each, reason)]
        if not some:
            continue
        if not some[0].pool.budgets and pool in busy:
            look.refuse(some, "Waiting", f"{reason.lower()}; another node of {pool} is being replaced")
            continue
        if left[pool] <= 0:
            budget = allowance(look.snapshot, some[0].pool, reason, look.now)
            look.refuse(some, "Budget", f"{reason.lower()}, but {budget}")
            continue
        move = _first(look, sorted(some, key=lambda each: _age(look, each, reason)), reason)
        if move is not None:
            moves.append(move)
        look.at.on()
    return tuple(moves)


def _due(look: DisruptionContext, candidate: Candidate, reason: str) -> bool:
    first = candidate.pool.reference.kind == PROVISIONER
    mark = candidate.node.annotations.get(VOLUNTARY_DISRUPTION)
    if reason == EXPIRED:
        return first and mark == "expired" and candidate.pool.ttl_seconds_until_expired is not None
    # Whoever marked a Provisioner's node first owns the mark: another value holds drift off.
    if first and (not look.policy.drift_of_provisioners or mark not in (None, "drifted")):
        return False
    return candidate.claim.is_true(DRIFTED_CONDITION)


def _age(look: DisruptionContext, candidate: Candidate, reason: str) -> tuple[bool, float, str]:
    if reason == EXPIRED:
        return False, candidate.node.created_at, candidate.name
    condition = candidate.claim.condition(DRIFTED_CONDITION)
    since = condition.last_transition_time if condition is not None else look.now
    return bool(candidate.pods), since, candidate.name


def _first(look: DisruptionContext, some: Sequence[Candidate], reason: str) -> Move | None:
    for candidate in some:
        look.at.on(candidate.name)
        bounded = reason == DRIFTED and candidate.claim.termination_grace_period is not None
        if candidate.blocked is not None and not bounded:
            look.verdicts.setdefault(candidate.name, candidate.blocked)
            continue
        if candidate.node.name in look.receiving:
            text = f"{reason.lower()}, but pods of a node that goes first come to it"
            look.refuse([candidate], "Expecting", text)
            continue
        outcome = succession(look, candidate)
        first = candidate.pool.reference.kind == PROVISIONER
        if not outcome.placed and not first:
            look.refuse([candidate], "NoReplacement", f"{reason.lower()}, but {outcome.reason}")
            continue
        look.went(candidate, outcome.placements)
        return _move(candidate, reason, outcome.new_nodes)
    return None


def _move(candidate: Candidate, reason: str, nodes: tuple[PlannedNode, ...]) -> Move:
    price = sum(node.price for node in nodes)
    text = f"{reason.lower()}: {_why(candidate, reason)}; {len(candidate.pods)} pods move"
    return Move(reason, (candidate.name,), nodes, candidate.price or 0.0, price, len(candidate.pods), text)


def _why(candidate: Candidate, reason: str) -> str:
    if reason == EXPIRED:
        return f"older than its {candidate.pool.ttl_seconds_until_expired} s"
    condition = candidate.claim.condition(DRIFTED_CONDITION)
    return f"{condition.reason}, {condition.message}" if condition is not None else ""
