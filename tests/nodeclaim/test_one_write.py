"""What one step says of a claim is one write of its status."""

from dataclasses import replace

from nodeless.model.instructions import UpdateClaimStatus
from nodeless.model.nodes import CONSISTENT_STATE_FOUND
from nodeless.nodeclaim import ClaimView, step
from tests.factories import NOW, a_node, a_pool, an_initialized_claim


def test_conditions_that_change_together_are_written_together():
    claim = an_initialized_claim()
    known = tuple(each for each in claim.conditions if each.type != CONSISTENT_STATE_FOUND)
    view = ClaimView(replace(claim, conditions=known), node=a_node(), pool=a_pool(consolidation_enabled=True))
    writes = [each for each in step(view, NOW + 3600).instructions if isinstance(each, UpdateClaimStatus)]
    assert len(writes) == 1
    assert {each.type for each in writes[0].conditions} == {CONSISTENT_STATE_FOUND, "Consolidatable"}
