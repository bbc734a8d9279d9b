"""Broken nodes are replaced: one a round, replacement first, within the budget for `Unhealthy`.

The nodes need not be candidates: one that never was initialised or is not Ready can be broken as well.
Pods that block hold a repair only where nothing bounds the drain.
"""

from nodeless.disruption.budgets import allowance
from nodeless.disruption.candidates import Candidate, Making, replacing
from nodeless.disruption.look import Look
from nodeless.disruption.repair import BREAKER_PERCENT, Ailment, ailment, breaker, in_order, unhealthy
from nodeless.disruption.succession import succession
from nodeless.model.disruption import UNHEALTHY, Move, Verdict
from nodeless.model.labels import DO_NOT_REPAIR, PAUSE
from nodeless.model.nodes import Claim
from nodeless.solve.pods.eligibility import leaving
from nodeless.state.usage import pool_members


def repairs(look: Look) -> tuple[Move, ...]:
    """The most urgent repair, if one is due and may be made."""
    if not look.policy.node_repair:
        return ()
    due = _due(look)
    left = look.left(UNHEALTHY)
    for name in in_order(((name, found) for name, (_, found) in due.items()), look.now):
        candidate, found = due[name]
        refusal = _refusal(look, candidate, found, left[candidate.pool.key])
        move = None if refusal is not None else _move(look, candidate, found)
        if move is not None:
            return (move,)
        if refusal is not None:
            look.verdicts[name] = refusal
    return ()


def _due(look: Look) -> dict[str, tuple[Candidate, Ailment]]:
    making = Making(look.snapshot, look.catalog, look.now)
    busy = replacing(look.snapshot)
    found: dict[str, tuple[Candidate, Ailment]] = {}
    for name, claim in sorted(look.snapshot.claims.items()):
        node, pool = look.snapshot.node_of(claim), look.snapshot.pools.get(str(claim.pool))
        if node is None or pool is None or claim.invalid or pool.invalid or name in busy:
            continue
        if leaving(node, claim) or pool.deletion_timestamp is not None:
            continue
        if (found_ailment := ailment(node, look.now)) is not None:
            found[name] = (making.candidate(claim, node, pool), found_ailment)
    return found


def _refusal(look: Look, candidate: Candidate, found: Ailment, left: int) -> Verdict | None:
    node, pool = candidate.node, candidate.pool
    for annotations, key in (
        (node.annotations, DO_NOT_REPAIR),
        (node.annotations, PAUSE),
        (pool.own_annotations, PAUSE),
    ):
        if annotations.get(key) == "true":
            return Verdict("RepairBlocked", f"broken ({found}), but annotated {key}=true")
    members = [node for _, node in pool_members(look.snapshot, pool) if node is not None]
    broken = sum(unhealthy(each) for each in members)
    if breaker(len(members), broken):
        text = f"broken ({found}), but so are {broken} of {len(members)} nodes: more than {BREAKER_PERCENT} %"
        return Verdict("Breaker", text)
    if node.initialized and left <= 0:
        budget = allowance(look.snapshot, pool, UNHEALTHY, look.now)
        return Verdict("Budget", f"broken ({found}), but {budget}")
    if candidate.blocked is not None and not _bounded(candidate.claim):
        return Verdict("RepairBlocked", f"broken ({found}), but {candidate.blocked.message}")
    return None


def _bounded(claim: Claim) -> bool:
    return claim.termination_grace_period is not None


def _move(look: Look, candidate: Candidate, found: Ailment) -> Move | None:
    outcome = succession(look, candidate)
    if not outcome.placed:
        look.verdicts[candidate.name] = Verdict("NoReplacement", f"broken ({found}), but {outcome.reason}")
        return None
    price = sum(node.price for node in outcome.new_nodes)
    pods = len(candidate.pods)
    text = f"broken: {found}; {pods} pods move"
    return Move(UNHEALTHY, (candidate.name,), outcome.new_nodes, candidate.price or 0.0, price, pods, text)
