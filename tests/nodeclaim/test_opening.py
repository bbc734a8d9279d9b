"""A node is kept closed while pods are nominated to it, not for longer than it may be, and opened gently."""

from dataclasses import replace

import pytest

from nodeless.model.instructions import UpdateNode
from nodeless.model.labels import UNREGISTERED_TAINT
from nodeless.model.nodes import REGISTERED_CONDITION
from nodeless.model.taints import Taint
from nodeless.nodeclaim import ClaimView, step
from nodeless.nodeclaim.startup_taints import LONGEST_WAIT, LOOK_AGAIN
from tests.factories import NOW, a_launched_claim, a_node, conditions

UNREGISTERED = Taint(UNREGISTERED_TAINT, "NoExecute")
CLOSED = Taint(UNREGISTERED_TAINT, "NoSchedule")
NOT_READY = Taint("node.kubernetes.io/not-ready", "NoSchedule")
WAYS = [
    ({}, False),
    ({"expects_pods": True}, False),
    ({"expects_pods": True, "awaits_nominations": True}, True),
    ({"expects_pods": True, "ready": False}, True),
    ({"ready": False}, False),
]


def joining(*taints, ready=True, **fields):
    node = a_node(labels={}, taints=(UNREGISTERED, *taints), ready=ready, created_at=NOW)
    return ClaimView(a_launched_claim(), node=node, **fields)


def registered(taint=CLOSED, *, ready=True, **fields):
    claim = a_launched_claim()
    claim = replace(claim, conditions=(*claim.conditions, *conditions(REGISTERED_CONDITION)))
    node = a_node(
        labels={"karpenter.sh/registered": "true"}, taints=(taint, NOT_READY), ready=ready, created_at=NOW
    )
    return ClaimView(claim, node=node, **fields)


def taints_written(view, now=NOW + 1):
    written = [
        instruction
        for instruction in step(view, now).instructions
        if isinstance(instruction, UpdateNode) and instruction.taints is not None
    ]
    assert all(instruction.taints_before == view.node.taints for instruction in written)
    return [instruction.taints for instruction in written]


@pytest.mark.parametrize(("fields", "closed"), WAYS)
def test_a_node_stays_closed_while_pods_are_to_be_nominated_to_it(fields, closed):
    assert taints_written(registered(**fields)) == ([] if closed else [(NOT_READY,)])


def test_a_ready_node_that_is_kept_closed_evicts_no_more_so_that_it_opens_in_one_write():
    waiting = {"expects_pods": True, "awaits_nominations": True}
    assert taints_written(registered(UNREGISTERED, **waiting)) == [(CLOSED, NOT_READY)]
    assert step(registered(UNREGISTERED, **waiting), NOW + 1).again_at == NOW + 1 + LOOK_AGAIN
    assert taints_written(joining(NOT_READY, **waiting)) == [(CLOSED, NOT_READY)]


@pytest.mark.parametrize(("fields", "closed"), WAYS)
def test_no_pod_is_bound_to_a_ready_node_by_the_write_that_ends_evictions_there(fields, closed):
    """Who hears of the pod before it hears of that write evicts the pod."""
    (joined,) = taints_written(joining(NOT_READY, **fields))
    if fields.get("ready", True):
        assert joined == (CLOSED, NOT_READY)
    else:
        assert joined == ((UNREGISTERED, NOT_READY) if closed else (NOT_READY,))


def test_daemons_that_tolerate_the_taint_as_it_comes_may_make_a_closed_node_ready():
    waiting = {"expects_pods": True, "ready": False}
    assert taints_written(joining(**waiting)) == [(UNREGISTERED,)]
    assert taints_written(registered(UNREGISTERED, **waiting)) == []


def test_a_node_that_was_left_with_the_taint_that_evicts_is_opened_in_two_steps():
    (narrowed,) = taints_written(registered(UNREGISTERED))
    assert narrowed == (CLOSED, NOT_READY)
    assert taints_written(registered(narrowed[0])) == [(NOT_READY,)]


def test_nobody_waits_for_longer_than_a_minute():
    waiting = registered(expects_pods=True, ready=False)
    assert step(waiting, NOW + 1).again_at <= NOW + LONGEST_WAIT
    assert taints_written(waiting, NOW + LONGEST_WAIT) == [(NOT_READY,)]


def test_a_ready_node_that_is_kept_closed_is_looked_at_soon_whoever_forgets_to_tell():
    waiting = registered(expects_pods=True, awaits_nominations=True)
    assert step(waiting, NOW + 1).again_at == NOW + 1 + LOOK_AGAIN
