"""Which nodes are ours to hold, and which are none of our business?"""

from dataclasses import replace

from nodeless.model.instructions import AddFinalizer, DeleteClaim, UpdateNode
from nodeless.model.labels import EMPTINESS_TIMESTAMP, REGISTERED, TERMINATION_FINALIZER
from nodeless.model.nodes import LAUNCHED, REGISTERED_CONDITION
from nodeless.nodeclaim import ClaimView, step, step_orphan
from tests.factories import NOW, a_launched_claim, a_node, a_pool, an_initialized_claim, conditions

CLAIM = an_initialized_claim()


def updates(node, claim=CLAIM, pool=None):
    instructions = step(ClaimView(claim, node, pool=pool), NOW).instructions
    return [instruction for instruction in instructions if isinstance(instruction, UpdateNode)]


def test_nd_10_a_finalizer_or_an_owner_that_was_taken_off_is_put_back():
    for node in (a_node(finalizers=()), a_node(owners=())):
        (update,) = updates(node)
        assert update.add_finalizer == TERMINATION_FINALIZER
        assert update.owner_claim == CLAIM
    assert updates(a_node()) == []


def test_a_finalizer_that_was_taken_off_a_claim_is_put_back_however_far_the_claim_has_come():
    """Without it the claim would be gone as soon as it is deleted, and its instance end without a drain."""
    tie = AddFinalizer(f"claim:{CLAIM.name}", "NodeClaim", CLAIM.name, TERMINATION_FINALIZER)
    for claim, node in ((CLAIM, a_node()), (a_launched_claim(), None)):
        view = ClaimView(replace(claim, finalizers=("example.com/backup",)), node)
        assert step(view, NOW).instructions[:1] == (tie,)
        assert tie not in step(ClaimView(claim, node), NOW).instructions


def test_nd_10_nothing_is_put_on_a_node_that_is_being_deleted():
    node = a_node(finalizers=(), deletion_timestamp=NOW)
    (deletion,) = step(ClaimView(CLAIM, node), NOW).instructions
    assert isinstance(deletion, DeleteClaim)


def test_nd_11_a_node_of_nobody_is_left_alone():
    """It has no claim, so nothing but the rule for orphans ever looks at it."""
    stranger = a_node(labels={}, finalizers=(), owners=())
    assert step_orphan(stranger, (), NOW).instructions == ()


def test_tm_11_a_deleted_node_without_our_finalizer_is_left_to_whoever_holds_it():
    node = a_node(finalizers=("example.com/backup",), deletion_timestamp=NOW)
    assert step_orphan(node, (), NOW).instructions == ()
    ours = replace(node, finalizers=(TERMINATION_FINALIZER,), ready=False)
    (release,) = step_orphan(ours, (), NOW).instructions
    assert release.finalizer == TERMINATION_FINALIZER


def test_nd_05_a_node_that_was_never_ready_is_not_called_empty():
    claim = a_launched_claim(conditions=conditions(LAUNCHED, REGISTERED_CONDITION))
    booting = a_node(ready=False, labels={REGISTERED: "true"})
    pool = a_pool(ttl_seconds_after_empty=30)
    assert not any(EMPTINESS_TIMESTAMP in update.annotations for update in updates(booting, claim, pool))
    assert any(EMPTINESS_TIMESTAMP in update.annotations for update in updates(a_node(), CLAIM, pool))
