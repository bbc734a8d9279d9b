"""The figures of drawn small problems are those of the cheapest plans found."""

import pytest

from bench.proofs import gap_of
from nodeless.model.plan import FewerNodes, Plan
from nodeless.scheduling import Policy
from tests.scheduling.factories import instance_type, plan, pods, pool


def test_what_fewer_nodes_cost_more_is_no_gap():
    kinds = (instance_type("small", 2, 8, price=0.1), instance_type("large", 4, 16, price=0.201))
    work = [*pods(1, "1900m", name="one"), *pods(1, "1900m", name="other")]
    made = plan(work, pool(), types=kinds, policy=Policy())
    assert made.fewer_nodes == FewerNodes(1, pytest.approx(0.0005))
    assert made.gap == pytest.approx(0.005, rel=0.01)
    assert gap_of(made) == pytest.approx(0.0, abs=1e-6)


def test_a_plan_that_costs_nothing_has_no_gap_and_one_without_a_bound_the_largest():
    assert gap_of(Plan(lower_bound=0.0)) == 0.0
    assert gap_of(Plan()) == 1.0
