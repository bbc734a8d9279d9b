"""Small clusters with rules, limits and existing nodes: the plan against every other way to do it."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nodeless.model.instance_types import Offering
from nodeless.model.labels import ARCH, HOSTNAME, ON_DEMAND, ZONE
from nodeless.scheduling import Policy, solve
from tests.scheduling.exhaustive import GaveUp, least_price
from tests.scheduling.factories import (
    beside,
    instance_type,
    needs,
    plan,
    pods,
    pool,
    snapshot,
    spread,
    term,
)
from tests.scheduling.topology_worlds import TYPES, existing, pools_of, workloads

PATIENT = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
SMALL = st.builds(snapshot, workloads(most=2, replicas=2), pools_of(), existing())


@PATIENT
@given(SMALL)
def test_a_plan_is_no_cheaper_than_the_best_and_its_bound_no_higher(seen):
    waiting = sorted((pod for pod in seen.pods.values() if not pod.node_name), key=lambda pod: pod.key)
    result = solve(seen, dict.fromkeys(seen.pools, TYPES), Policy())
    try:
        least = least_price(seen, waiting)
    except GaveUp:
        assume(False)
        return
    if least is None:
        assert result.refusals
    elif not result.refusals:
        assert result.cost_per_hour >= least - 1e-9
        assert result.lower_bound is None or result.lower_bound <= least + 1e-9


@pytest.mark.parametrize(
    ("of_one", "of_the_other"),
    [((), (spread(HOSTNAME),)), ((spread(HOSTNAME),), (spread(HOSTNAME, skew=2),))],
)
def test_a_bound_holds_in_whichever_order_pods_are_bound(of_one, of_the_other):
    """Who has no such rule, or one that allows more, may come to the node of the other after it."""
    own, app = pool(), {"app": "web"}
    seen = snapshot(
        pods(1, "100m", name="one", labels=app, spread=of_one),
        pods(1, "100m", name="other", labels=app, spread=of_the_other),
        own,
    )
    least = least_price(seen, list(seen.pods.values()))
    assert solve(seen, {own.key: TYPES}, Policy()).lower_bound == pytest.approx(least)


def test_the_cheapest_node_does_not_use_up_the_limit_that_two_smaller_ones_need():
    # The large type is cheaper, but both zones are needed, and the limit holds no two of it.
    types = (
        instance_type("large", 4, 16, price=0.5),
        instance_type("small", 2, 8, price=0.9),
    )
    own = pool("default", needs(ZONE, "In", "z1", "z2"), limits={"cpu": "5"})
    result = plan(pods(2, "1", spread=(spread(ZONE),)), own, types=types, policy=Policy())
    assert not result.refusals
    assert [new.instance_type for new in result.new_nodes] == ["small", "small"]


def test_of_alternative_terms_the_one_with_the_cheapest_nodes_is_taken():
    types = (
        instance_type("far", 4, 16, offerings=(Offering("z1", ON_DEMAND, 0.9),)),
        instance_type("near", 4, 16, offerings=(Offering("z2", ON_DEMAND, 0.3),)),
    )
    either = (term(needs(ZONE, "In", "z1")), term(needs(ZONE, "In", "z2")))
    result = plan(pods(2, "1", required_terms=either), types=types, policy=Policy())
    assert [new.instance_type for new in result.new_nodes] == ["near"]


def test_an_oracle_that_cannot_fail_is_none():
    seen = snapshot(pool(), pods(2, "1", anti_affinity=(beside(ARCH),)))
    waiting = list(seen.pods.values())
    assert least_price(seen, waiting) == pytest.approx(0.2 + cheapest_amd64())
    alone = snapshot(pool("default", needs(ARCH, "In", "arm64")), waiting)
    assert least_price(alone, waiting) is None


def cheapest_amd64():
    return min(
        offering.price
        for kind in TYPES
        for offering in kind.offerings
        if kind.requirements[ARCH].allows("amd64")
    )
