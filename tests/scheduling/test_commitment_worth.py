"""The worth of commitments for which plans that are known leave room for the highest bound."""

import pytest

from nodeless.scheduling.commitment_worth import InstanceUse, PlanUse, highest_bound

ON_SPOT = PlanUse(6.0, ())


def test_a_commitment_that_reaches_for_all_takes_all_off():
    """Ten instances of 1 USD/h, with 2 for volumes: 20 units are left, of which each uses one."""
    bound, worth = highest_bound([PlanUse(2.0, (InstanceUse(10, 1.0, (1.0,)),))], [20.0], [1.0])
    assert bound == pytest.approx(2.0)
    assert worth == pytest.approx((0.0,))


def test_what_a_commitment_does_not_reach_is_paid():
    bound, worth = highest_bound([PlanUse(2.0, (InstanceUse(10, 1.0, (1.0,)),))], [4.0], [1.0])
    assert bound == pytest.approx(2.0 + 6.0)
    assert worth == pytest.approx((1.0,))


def test_a_plan_without_covered_instances_keeps_the_bound_below_its_price_and_the_worth_low():
    covered = PlanUse(0.0, (InstanceUse(10, 1.0, (1.0,)),))
    bound, worth = highest_bound([covered, ON_SPOT], [8.0], [1.0])
    # 10 y - 8 y of the one, 6 - 8 y of the other: both are 1.2 at a worth of 0.6.
    assert bound == pytest.approx(1.2)
    assert worth == pytest.approx((0.6,))


def test_an_instance_costs_what_it_uses_of_the_commitment_that_is_worth_the_least():
    both = PlanUse(0.0, (InstanceUse(10, 1.0, (1.0, 2.0)),))
    bound, worth = highest_bound([both], [100.0, 1.0], [1.0, 0.5])
    assert bound == pytest.approx(0.0)
    assert worth[0] == pytest.approx(0.0)


def test_each_commitment_has_its_own_worth():
    plan = PlanUse(0.0, (InstanceUse(4, 1.0, (1.0, None)), InstanceUse(4, 2.0, (None, 1.0))))
    bound, worth = highest_bound([plan], [8.0, 1.0], [1.0, 2.0])
    assert bound == pytest.approx(3 * 2.0)
    assert worth == pytest.approx((0.0, 2.0))
