"""What a node costs: discounts, surcharges, commitments, and the fee per node."""

import pytest

from nodeless.model.instance_types import Offering
from nodeless.scheduling import FEWEST_NODES, Policy, PriceAdjustment
from tests.scheduling.factories import instance_type, plan, pods, pool


def sold(name, price):
    offerings = (Offering("z1", "on-demand", price), Offering("z2", "spot", price * 2))
    return instance_type(name, 2, 8, offerings=offerings)


TYPES = (sold("m5.large", 0.1), sold("c5.large", 0.09))


def bought(*adjustments, fee=0.0, pools=()):
    policy = Policy(packing=FEWEST_NODES, node_fee=fee, price_adjustments=adjustments)
    (node,) = plan(pods(1), *pools, types=TYPES, policy=policy).new_nodes
    return node.instance_type, node.price


def test_without_adjustments_the_list_price_decides():
    assert bought() == ("c5.large", pytest.approx(0.09))


def test_a_discount_by_percent_makes_another_type_the_cheapest():
    adjustment = PriceAdjustment(instance_types=("m5.*",), percent=-50)
    assert bought(adjustment) == ("m5.large", pytest.approx(0.05))


def test_an_amount_is_added_and_never_goes_below_zero():
    assert bought(PriceAdjustment(dollars=0.01)) == ("c5.large", pytest.approx(0.1))
    assert bought(PriceAdjustment(instance_types=("m5.large",), dollars=-5)) == ("m5.large", 0.0)


def test_capacity_that_is_paid_for_costs_nothing_more():
    assert bought(PriceAdjustment(instance_types=("m5.large",), price=0)) == ("m5.large", 0.0)


def test_adjustments_follow_each_other():
    cheaper, dearer = PriceAdjustment(percent=-50), PriceAdjustment(dollars=0.01)
    assert bought(cheaper, dearer) == ("c5.large", pytest.approx(0.055))


def test_surcharges_that_follow_each_other_stay_finite():
    assert bought(*[PriceAdjustment(percent=1e6)] * 100)[1] == 1_000_000


def test_an_adjustment_of_one_pool_leaves_the_others_alone():
    adjustment = PriceAdjustment(pools=("other",), percent=-50)
    assert bought(adjustment, pools=[pool("default", weight=1), pool("other")])[1] == pytest.approx(0.09)
    assert bought(adjustment, pools=[pool("default"), pool("other", weight=1)])[1] == pytest.approx(0.045)


def test_an_adjustment_of_spot_leaves_on_demand_alone():
    assert bought(PriceAdjustment(capacity_types=("spot",), percent=-50))[1] == pytest.approx(0.09)


def test_the_fee_is_part_of_the_price():
    assert bought(fee=0.02) == ("c5.large", pytest.approx(0.11))


@pytest.mark.parametrize(
    "wrong",
    [{"percent": -101}, {"price": -1}, {"price": 1, "percent": 5}, {"dollars": float("nan")}],
)
def test_an_adjustment_that_cannot_be_meant_is_refused_with_a_hint(wrong):
    with pytest.raises(ValueError, match="hint: "):
        PriceAdjustment(**wrong)
