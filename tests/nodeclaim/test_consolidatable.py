"""Given a pool that consolidates after some quiet, since when may a claim be?"""

from dataclasses import replace

from nodeless.model.instructions import UpdateClaimStatus
from nodeless.model.nodes import CONSOLIDATABLE, Condition
from nodeless.nodeclaim import ClaimView, step
from tests.factories import NOW, a_node, a_pool, an_initialized_claim

POOL = a_pool(consolidation_enabled=True, consolidate_after=30)
NODE_POOL = replace(POOL, reference=replace(POOL.reference, kind="NodePool"))


def told(now, pool=NODE_POOL, present=None, **fields):
    claim = an_initialized_claim(pool=pool.reference, **fields)
    if present is not None:
        claim = replace(claim, conditions=(*claim.conditions, Condition(CONSOLIDATABLE, present, present)))
    outcome = step(ClaimView(claim, a_node(), pool=pool), now)
    found = [
        (condition.status, condition.reason)
        for instruction in outcome.instructions
        if isinstance(instruction, UpdateClaimStatus)
        for condition in instruction.conditions
        if condition.type == CONSOLIDATABLE
    ]
    return found, outcome.again_at


def test_a_claim_is_consolidatable_once_nothing_has_changed_for_long_enough():
    assert told(NOW + 29) == ([], NOW + 30)
    assert told(NOW + 30)[0] == [("True", CONSOLIDATABLE)]


def test_a_pod_that_comes_or_goes_takes_it_back():
    assert told(NOW + 70, present="True", last_pod_event=NOW + 60)[0] == [("False", "NotQuiet")]


def test_a_pool_that_never_consolidates_has_claims_without_the_condition():
    never = replace(NODE_POOL, consolidation_enabled=False, consolidate_after=None)
    assert told(NOW + 30, never)[0] == []
    assert told(NOW + 30, never, present="True")[0] == [("False", "ConsolidationDisabled")]


def test_a_provisioner_that_consolidates_does_not_wait():
    assert told(NOW + 1, POOL)[0] == [("True", CONSOLIDATABLE)]
