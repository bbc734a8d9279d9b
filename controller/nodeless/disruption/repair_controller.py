"""Broken nodes are rebooted or replaced: one a round, replacement first, within the budget for `Unhealthy`.

The nodes need not be candidates: one that never was initialized or is not Ready can be broken as well.
Pods that block hold a repair only where nothing bounds the drain. A node that was rebooted twice within
24 hours is replaced, and so is one whose kubelet has not said which boot it is.

The legacy rules (Karpenter before 1.15, setting `nodeless.legacyNodeRepair`) are coarser: every node that is
due is ended at once, whatever blocks it and whatever budgets say, and its pods are deleted with it; only
annotations and a pool with too many broken nodes hold it back.

A node that breaks while it drains (or is deleted when it is broken) has its drain bounded as that of a
repair: a budget, or a pod that nobody on the machine ends any more, would hold it for ever.
"""

from collections.abc import Iterator, Mapping

from nodeless.disruption.candidates import (
    Candidate,
    CandidateBuilder,
    claims_by_replacement,
    cooling_down,
    replacement_by_claim,
)
from nodeless.disruption.context import DisruptionContext
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.repair_policy import (
    BREAKER_PERCENT,
    REBOOT,
    Ailment,
    ailment,
    breaker,
    in_order,
    next_due,
    unhealthy,
)
from nodeless.disruption.replacement_lookup import replacement_for
from nodeless.model.disruption import Command, DisruptionReason, Verdict, VerdictCode
from nodeless.model.labels import DO_NOT_REPAIR, PAUSE
from nodeless.model.nodes import REBOOT_FENCE, REBOOTING, Node, NodeClaim
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.draining import grace_of
from nodeless.nodeclaim.rebooting import rebooted_at, reboots_of
from nodeless.scheduling.pods.eligibility import leaving
from nodeless.state.usage import pool_members

#: Reboots of a node within 24 hours after which it is replaced.
MOST_REBOOTS = 2


def repair_commands(context: DisruptionContext) -> tuple[Command, ...]:
    """The most urgent repair, if one is due and may be made."""
    if not context.policy.node_repair:
        return ()
    if drains := tuple(_drain_commands(context)):
        return drains
    due = _due(context)
    if context.policy.legacy_repair:
        return tuple(_termination_commands(context, due))
    left = context.remaining_budgets(DisruptionReason.UNHEALTHY)
    for name in in_order(((name, found) for name, (_, found) in due.items()), context.now):
        context.at.on(name)
        candidate, found = due[name]
        refusal = _refusal(context, candidate, found, left[candidate.pool.key])
        command = None if refusal is not None else _command(context, candidate, found)
        if command is not None:
            return (command,)
        if refusal is not None:
            context.verdicts[name] = refusal
    context.at.on()
    return ()


def next_repair(snapshot: Snapshot, policy: DisruptionPolicy, now: float) -> float | None:
    """When a node will be due whose condition is still tolerated; None: nothing is broken anew."""
    if not policy.node_repair:
        return None
    times = (
        next_due(node, now, policy.repairs_by, rebooted_at(claim))
        for claim in snapshot.claims.values()
        if (node := snapshot.node_of(claim)) is not None
    )
    return min((time_ for time_ in times if time_ is not None), default=None)


def _termination_commands(
    context: DisruptionContext, due: Mapping[str, tuple[Candidate, Ailment]]
) -> Iterator[Command]:
    for name, (candidate, found) in sorted(due.items()):
        veto = _veto(context, candidate, found)
        if veto is not None:
            context.verdicts[name] = veto
            continue
        text = f"broken: {found}; it is ended with its {len(candidate.pods)} pods"
        yield _ending(candidate, text, grace=0)


def _drain_commands(context: DisruptionContext) -> Iterator[Command]:
    """Bounds to the drains of broken nodes."""
    making = CandidateBuilder(context.snapshot, context.catalog, context.now, context.coverage)
    for name, claim in sorted(context.snapshot.claims.items()):
        node, pool = context.snapshot.node_of(claim), context.snapshot.pools.get(str(claim.pool))
        if claim.deletion_timestamp is None or name in context.excluded or node is None or pool is None:
            continue
        context.at.on(name)
        found = ailment(node, context.now, context.policy.repairs_by, rebooted_at(claim))
        if found is None:
            continue
        bound, known = 0 if context.policy.legacy_repair else found.grace, grace_of(claim)
        if bound is None or (known is not None and known <= bound):
            continue
        candidate = making.candidate(claim, node, pool)
        if _veto(context, candidate, found) is None:
            pods = len(candidate.pods)
            text = f"broken: {found}; its drain is over {bound} s after it began, with {pods} pods left"
            yield _ending(candidate, text, grace=bound)
    context.at.on()


def _ending(candidate: Candidate, text: str, grace: int) -> Command:
    """The end of a node for which nothing comes first, its drain over after so many seconds."""
    pods, price = len(candidate.pods), candidate.price or 0.0
    reason, name = DisruptionReason.UNHEALTHY, candidate.name
    return Command(reason, (name,), (), price, 0.0, pods, text, drain_grace=grace)


def _due(context: DisruptionContext) -> dict[str, tuple[Candidate, Ailment]]:
    making = CandidateBuilder(context.snapshot, context.catalog, context.now, context.coverage)
    # Once the nodes that it replaces only drain, maybe for hours, a replacement is a node like any other.
    claims = context.snapshot.claims
    replacements = {
        name: olds
        for name, olds in claims_by_replacement(context.snapshot).items()
        if any(claims[old].deletion_timestamp is None for old in olds)
    }
    busy = {*replacements, *replacement_by_claim(replacements)}
    found: dict[str, tuple[Candidate, Ailment]] = {}
    for name, claim in sorted(context.snapshot.claims.items()):
        if name in context.excluded:
            continue
        context.at.on(name)
        node, pool = context.snapshot.node_of(claim), context.snapshot.pools.get(str(claim.pool))
        if node is None or pool is None or claim.invalid or pool.invalid or name in busy:
            continue
        if leaving(node, claim) or claim.is_true(REBOOTING) or pool.deletion_timestamp is not None:
            continue
        due = ailment(node, context.now, context.policy.repairs_by, rebooted_at(claim))
        if due is not None:
            taint = REBOOT_FENCE if _may_reboot(claim, node, due, context.now) else None
            found[name] = (making.candidate(claim, node, pool, taint), due)
    context.at.on()
    return found


def _veto(context: DisruptionContext, candidate: Candidate, found: Ailment) -> Verdict | None:
    """What no rule of repair may pass over: an annotation, or too many broken nodes."""
    node, pool = candidate.node, candidate.pool
    for annotations, key in (
        (node.annotations, DO_NOT_REPAIR),
        (node.annotations, PAUSE),
        (pool.own_annotations, PAUSE),
    ):
        if annotations.get(key) == "true":
            return Verdict(VerdictCode.REPAIR_BLOCKED, f"broken ({found}), but annotated {key}=true")
    members = [node for _, node in pool_members(context.snapshot, pool) if node is not None]
    broken = sum(unhealthy(member, context.policy.repairs_by) for member in members)
    if breaker(len(members), broken):
        text = f"broken ({found}), but so are {broken} of {len(members)} nodes: more than {BREAKER_PERCENT} %"
        return Verdict(VerdictCode.BREAKER, text)
    return None


def _refusal(context: DisruptionContext, candidate: Candidate, found: Ailment, left: int) -> Verdict | None:
    veto = _veto(context, candidate, found)
    if veto is not None:
        return veto
    node, pool = candidate.node, candidate.pool
    if node.initialized and left <= 0:
        budget = context.allowance(pool, DisruptionReason.UNHEALTHY)
        return Verdict(VerdictCode.BUDGET, f"broken ({found}), but {budget}")
    bounded = found.grace is not None or grace_of(candidate.claim) is not None
    if candidate.blocked is not None and not bounded:
        return Verdict(VerdictCode.REPAIR_BLOCKED, f"broken ({found}), but {candidate.blocked.message}")
    resting = cooling_down(candidate.claim, context.now)
    return resting and Verdict(resting.code, f"broken ({found}), but {resting.message}")


def _may_reboot(claim: NodeClaim, node: Node, found: Ailment, now: float) -> bool:
    return found.action == REBOOT and len(reboots_of(claim, now)) < MOST_REBOOTS and bool(node.boot_id)


def _command(context: DisruptionContext, candidate: Candidate, found: Ailment) -> Command | None:
    pods, price = len(candidate.pods), candidate.price or 0.0
    if _may_reboot(candidate.claim, candidate.node, found, context.now):
        text = f"broken: {found}; it is rebooted, {pods} pods move"
        return Command(
            DisruptionReason.UNHEALTHY,
            (candidate.name,),
            (),
            price,
            price,
            pods,
            text,
            reboots=True,
            drain_grace=found.grace,
        )
    outcome = replacement_for(context, candidate, DisruptionReason.UNHEALTHY)
    if not outcome.placed:
        context.verdicts[candidate.name] = Verdict(
            VerdictCode.NO_REPLACEMENT, f"broken ({found}), but {outcome.reason}"
        )
        return None
    after = sum(node.price for node in outcome.new_nodes)
    text = f"broken: {found}; {pods} pods move"
    nodes = outcome.new_nodes
    return Command(
        DisruptionReason.UNHEALTHY,
        (candidate.name,),
        nodes,
        price,
        after,
        pods,
        text,
        drain_grace=found.grace,
    )
