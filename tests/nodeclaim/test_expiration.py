"""Given a life span, when does a node end, and what stands on it meanwhile?"""

import pytest

from nodeless.model.instructions import DeleteClaim, UpdateNode
from nodeless.model.labels import VOLUNTARY_DISRUPTION
from nodeless.model.pools import Reference
from nodeless.nodeclaim import ClaimView, step
from tests.factories import NOW, a_node, a_pod, a_pool, an_initialized_claim

NODE_POOL = Reference("NodePool", "default")


def of_kind(outcome, kind):
    return [instruction for instruction in outcome.instructions if isinstance(instruction, kind)]


def marks(pool, node=None, now=NOW + 101):
    outcome = step(ClaimView(an_initialized_claim(), node or a_node(), (a_pod(),), pool), now)
    return [each.annotations[VOLUNTARY_DISRUPTION] for each in of_kind(outcome, UpdateNode)]


def marked(value="expired"):
    return a_node(annotations={VOLUNTARY_DISRUPTION: value})


def test_nd_08_a_provisioners_node_past_its_ttl_is_marked_and_not_deleted():
    pool = a_pool(ttl_seconds_until_expired=100)
    assert marks(pool) == ["expired"]
    assert marks(pool, now=NOW + 99) == []
    assert marks(pool, marked()) == []
    assert not of_kind(
        step(ClaimView(an_initialized_claim(), marked(), (a_pod(),), pool), NOW + 101), DeleteClaim
    )


def test_nd_08_the_mark_goes_when_the_ttl_does_or_grows():
    assert marks(a_pool(), marked()) == [None]
    assert marks(a_pool(ttl_seconds_until_expired=200), marked()) == [None]


def test_ex_01_a_mark_of_somebody_else_is_left_alone():
    assert marks(a_pool(ttl_seconds_until_expired=100), marked("drifted")) == []


def test_a_living_node_is_looked_at_again_when_its_time_is_over():
    view = ClaimView(an_initialized_claim(), a_node(), (a_pod(),), a_pool(ttl_seconds_until_expired=100))
    assert step(view, NOW).again_at == NOW + 100


@pytest.mark.parametrize(("age", "ends"), [(100, False), (101, True)])
def test_dn_17_a_node_pools_claim_ends_with_its_time_whatever_else_holds(age, ends):
    claim = an_initialized_claim(pool=NODE_POOL, expire_after=100)
    outcome = step(ClaimView(claim, a_node(), (a_pod(),)), NOW + age)
    assert [each.reason for each in of_kind(outcome, DeleteClaim)] == (["expired"] if ends else [])


def test_dn_17_never_is_never():
    claim = an_initialized_claim(pool=NODE_POOL)
    assert not of_kind(step(ClaimView(claim, a_node(), (a_pod(),)), NOW + 1e9), DeleteClaim)


def test_a_claim_that_never_became_a_node_expires_too():
    claim = an_initialized_claim(pool=NODE_POOL, expire_after=100, conditions=(), provider_id="")
    assert of_kind(step(ClaimView(claim), NOW + 101), DeleteClaim)
