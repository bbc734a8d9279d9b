"""What one step says of a claim is one write of its status."""

from dataclasses import replace

from nodeless.model.instructions import UpdateClaimStatus
from nodeless.model.nodes import CONSISTENT_STATE_FOUND
from nodeless.nodeclaim import ClaimView, step
from tests.factories import NOW, a_node, a_pool, an_initialized_claim


def test_conditions_that_change_together_are_written_together():
    claim = an_initialized_claim()
    known = tuple(condition for condition in claim.conditions if condition.type != CONSISTENT_STATE_FOUND)
    view = ClaimView(replace(claim, conditions=known), node=a_node(), pool=a_pool(consolidation_enabled=True))
    writes = [
        instruction
        for instruction in step(view, NOW + 3600).instructions
        if isinstance(instruction, UpdateClaimStatus)
    ]
    assert len(writes) == 1
    assert {condition.type for condition in writes[0].conditions} == {
        CONSISTENT_STATE_FOUND,
        "Consolidatable",
    }
