"""Pools own their claims; the teardown guard owns everything.

A pool that is being deleted stays until its nodes are gone. The guard is one object that
belongs to the stack: when the stack is destroyed, it holds the destruction until every
pool, claim, instance, launch template and instance profile is gone, while controller, roles and
network still stand.
"""

from nodeless.api.times import format_time
from nodeless.model.instructions import (
    AddFinalizer,
    AnnotateClaim,
    DeleteClaim,
    DeleteInstanceProfiles,
    DeleteLaunchTemplates,
    DeletePool,
    Instruction,
    ReleaseGuard,
    RemoveFinalizer,
    TerminateEverything,
)
from nodeless.model.labels import TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from nodeless.model.nodes import DRAINED, INSTANCE_TERMINATING, VOLUMES_DETACHED, NodeClaim
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.draining import deadline_of
from nodeless.nodeclaim.node_classes import protected_classes, release
from nodeless.nodeclaim.static_pools import surplus
from nodeless.state.usage import pool_members

TEARDOWN = "teardown"
#: Seconds that the drain of a node may take while a stack is destroyed, where its guard names none; then its
#: pods are deleted.
TEARDOWN_DRAIN = 600.0
_MOST_SHOWN = 3


def step_pool(snapshot: Snapshot, pool: Pool, now: float) -> tuple[Instruction, ...]:
    """Protect a living pool and shrink a static one; end the claims of a deleted one, then let it go."""
    cause = f"pool:{pool.key}"
    held = TERMINATION_FINALIZER in pool.finalizers
    if pool.deletion_timestamp is None:
        kind, name = pool.reference.kind, pool.name
        if not held:
            return (AddFinalizer(cause, kind, name, TERMINATION_FINALIZER),)
        return surplus(snapshot, pool, now)
    members = pool_members(snapshot, pool)
    ending = tuple(
        DeleteClaim(cause, claim.name, "pool_deleted")
        for claim, _ in members
        if claim.deletion_timestamp is None
    )
    if members or not held:
        return ending
    return (RemoveFinalizer(cause, pool.reference.kind, pool.name, TERMINATION_FINALIZER),)


def deletion_progress(snapshot: Snapshot, pool: Pool) -> str:
    """What a deleted pool still waits for, node by node; empty when nothing is left."""
    members = pool_members(snapshot, pool)
    if not members:
        return ""
    shown = [f"{claim.node_name or claim.name} ({_stage(claim)})" for claim, _ in members[:_MOST_SHOWN]]
    more = f", {len(members) - _MOST_SHOWN} more" if len(members) > _MOST_SHOWN else ""
    nodes = "1 node" if len(members) == 1 else f"{len(members)} nodes"
    return f"{nodes} still to end: {', '.join(shown)}{more}"


def _stage(claim: NodeClaim) -> str:
    if claim.deletion_timestamp is None:
        return "not asked to end yet"
    if claim.is_true(INSTANCE_TERMINATING):
        return "its instance is terminating"
    for type_ in (VOLUMES_DETACHED, DRAINED):
        condition = claim.condition(type_)
        if condition is not None and condition.status != "True" and condition.message:
            return condition.message
    return "ending"


def _deadlines(snapshot: Snapshot) -> tuple[Instruction, ...]:
    """A destruction must end: no budget and no annotation holds a drain for ever."""
    instructions = []
    seconds = TEARDOWN_DRAIN if snapshot.teardown_drain is None else snapshot.teardown_drain
    for name, claim in sorted(snapshot.claims.items()):
        if claim.deletion_timestamp is None:
            continue
        latest, present = claim.deletion_timestamp + seconds, deadline_of(claim)
        if present is None or present > latest:
            stamp = {TERMINATION_TIMESTAMP: format_time(latest)}
            instructions.append(AnnotateClaim(TEARDOWN, name, stamp))
    return tuple(instructions)


def step_teardown(snapshot: Snapshot) -> tuple[Instruction, ...]:
    """What the guard's deletion asks for: pools first, then stray claims, then what no object knows."""
    deadlines = _deadlines(snapshot)
    if snapshot.pools:
        ending = tuple(
            DeletePool(TEARDOWN, pool.reference)
            for _, pool in sorted(snapshot.pools.items())
            if pool.deletion_timestamp is None
        )
        return ending + deadlines
    if snapshot.claims:
        deletions = tuple(
            DeleteClaim(TEARDOWN, name, TEARDOWN)
            for name, claim in sorted(snapshot.claims.items())
            if claim.deletion_timestamp is None
        )
        return deletions + deadlines
    # Node classes are their owner's to delete; nobody would take their finalizers off afterwards.
    released = [
        instruction
        for node_class in protected_classes(snapshot)
        for instruction in release(TEARDOWN, node_class)
    ]
    return (
        TerminateEverything(TEARDOWN),
        DeleteLaunchTemplates(TEARDOWN),
        *released,
        DeleteInstanceProfiles(TEARDOWN),
        ReleaseGuard(TEARDOWN),
    )
