"""A node is kept closed while pods are nominated to it, and not for longer than it may be."""

from dataclasses import replace

import pytest

from nodeless.lifecycle import ClaimView, step
from nodeless.lifecycle.opening import LONGEST_WAIT
from nodeless.model.instructions import UpdateNode
from nodeless.model.labels import UNREGISTERED_TAINT
from nodeless.model.nodes import REGISTERED_CONDITION
from nodeless.model.taints import Taint
from tests.factories import NOW, a_launched_claim, a_node, conditions

CLOSED = Taint(UNREGISTERED_TAINT, "NoExecute")


def joining(**fields):
    node = a_node(labels={}, taints=(CLOSED,), ready=fields.pop("ready", True), created_at=NOW)
    return ClaimView(a_launched_claim(), node=node, **fields)


def registered(**fields):
    claim = a_launched_claim()
    claim = replace(claim, conditions=(*claim.conditions, *conditions(REGISTERED_CONDITION)))
    node = a_node(
        labels={"karpenter.sh/registered": "true"},
        taints=(CLOSED,),
        ready=fields.pop("ready", True),
        created_at=NOW,
    )
    return ClaimView(claim, node=node, **fields)


def taints_written(view, now=NOW + 1):
    return [
        each.taints
        for each in step(view, now).instructions
        if isinstance(each, UpdateNode) and each.taints is not None
    ]


@pytest.mark.parametrize(
    ("fields", "closed"),
    [
        ({}, False),
        ({"expects_pods": True}, False),
        ({"expects_pods": True, "awaits_nominations": True}, True),
        ({"expects_pods": True, "ready": False}, True),
        ({"ready": False}, False),
    ],
)
def test_a_node_stays_closed_while_pods_are_to_be_nominated_to_it(fields, closed):
    (joined,) = taints_written(joining(**fields))
    assert (CLOSED in joined) == closed
    later = taints_written(registered(**fields))
    assert [CLOSED in each for each in later] == ([] if closed else [False])


def test_nobody_waits_for_longer_than_a_minute():
    waiting = registered(expects_pods=True, ready=False)
    assert step(waiting, NOW + 1).again_at <= NOW + LONGEST_WAIT
    assert [CLOSED in each for each in taints_written(waiting, NOW + LONGEST_WAIT)] == [False]
