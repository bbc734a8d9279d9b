"""Given a pool or a whole stack that is deleted, nothing may be left behind."""

from dataclasses import replace

from nodeless.api.times import format_time
from nodeless.model.events import ClaimSeen, GuardSeen, PoolSeen
from nodeless.model.instructions import (
    AddFinalizer,
    DeleteClaim,
    DeleteInstanceProfiles,
    DeleteLaunchTemplates,
    DeletePool,
    ReleaseGuard,
    RemoveFinalizer,
    TerminateEverything,
)
from nodeless.model.labels import TERMINATION_TIMESTAMP
from nodeless.model.nodes import DRAINED, INSTANCE_TERMINATING, Condition
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim import step_pool, step_teardown
from nodeless.nodeclaim.ownership_sync import deletion_progress
from nodeless.state import apply
from tests.factories import NOW, a_launched_claim, a_pool, conditions


def cluster(*events):
    snapshot = Snapshot()
    for event in events:
        snapshot = apply(snapshot, event)
    return snapshot


def test_a_new_pool_is_protected_once():
    unprotected = replace(a_pool(), finalizers=())
    assert isinstance(step_pool(Snapshot(), unprotected, NOW)[0], AddFinalizer)
    assert step_pool(Snapshot(), a_pool(), NOW) == ()


def test_a_deleted_pool_says_which_nodes_it_waits_for_and_what_holds_each():
    pool = a_pool(deletion_timestamp=NOW)
    text = "waiting for 2 pods to leave: default/a, default/b"
    draining = Condition(DRAINED, "Unknown", "Draining", text)
    claims = [
        a_launched_claim("a", node_name="node-a", deletion_timestamp=NOW, conditions=(draining,)),
        a_launched_claim("b", deletion_timestamp=NOW, conditions=conditions(INSTANCE_TERMINATING)),
        a_launched_claim("c"),
        a_launched_claim("d"),
    ]
    snapshot = cluster(PoolSeen(pool), *map(ClaimSeen, claims))
    assert deletion_progress(snapshot, pool) == (
        f"4 nodes still to end: node-a ({text}), b (its instance is terminating), c (not asked to end yet)"
        ", 1 more"
    )
    assert deletion_progress(cluster(PoolSeen(pool)), pool) == ""


def test_a_deleted_pool_ends_its_claims_and_waits_for_them():
    pool = a_pool(deletion_timestamp=NOW)
    snapshot = cluster(PoolSeen(pool), ClaimSeen(a_launched_claim()))
    (deletion,) = step_pool(snapshot, pool, NOW)
    assert isinstance(deletion, DeleteClaim)
    waiting = cluster(PoolSeen(pool), ClaimSeen(a_launched_claim(deletion_timestamp=NOW)))
    assert step_pool(waiting, pool, NOW) == ()


def test_a_deleted_pool_without_claims_is_let_go():
    pool = a_pool(deletion_timestamp=NOW)
    assert isinstance(step_pool(cluster(PoolSeen(pool)), pool, NOW)[0], RemoveFinalizer)


def test_teardown_takes_pools_then_claims_then_instances_and_templates():
    pool, claim = a_pool(), a_launched_claim()
    assert isinstance(step_teardown(cluster(PoolSeen(pool), ClaimSeen(claim)))[0], DeletePool)
    assert isinstance(step_teardown(cluster(ClaimSeen(claim)))[0], DeleteClaim)
    assert [type(i) for i in step_teardown(Snapshot())] == [
        TerminateEverything,
        DeleteLaunchTemplates,
        DeleteInstanceProfiles,
        ReleaseGuard,
    ]


def test_a_guard_may_say_how_long_a_drain_takes():
    leaving = cluster(
        GuardSeen(deleting=True, drain=60.0), ClaimSeen(a_launched_claim(deletion_timestamp=NOW))
    )
    (deadline,) = step_teardown(leaving)
    assert deadline.annotations == {TERMINATION_TIMESTAMP: format_time(NOW + 60)}


def test_teardown_waits_for_what_is_leaving():
    leaving = cluster(ClaimSeen(a_launched_claim(deletion_timestamp=NOW)))
    (deadline,) = step_teardown(leaving)
    assert deadline.annotations == {TERMINATION_TIMESTAMP: format_time(NOW + 600)}
    bounded = a_launched_claim(deletion_timestamp=NOW, annotations=dict(deadline.annotations))
    assert step_teardown(cluster(ClaimSeen(bounded))) == ()
