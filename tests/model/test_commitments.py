"""What Reserved Instances and Savings Plans cover, in which order, and how much is left of them."""

from dataclasses import replace

import pytest

from nodeless.cloudprovider.aws.bundled_types import bundled_types
from nodeless.model.bill import WINDOWS
from nodeless.model.commitments import Commitment, Usage, cover, covers_nothing, normalized_units
from tests.scheduling.factories import instance_type

PLAN = Commitment("plan", dollars=1.0, discount=50)


def reserved(instances=1, kind="m7g.xlarge", name="reserved", **fields):
    return Commitment(name, instance_types=(kind,), instances=instances, **fields)


def flexible(instances=1, kind="m7g.xlarge", **fields):
    return reserved(instances, kind, size_flexible=True, **fields)


def usage(name="a", kind="m7g.xlarge", zone="eu-central-1a", dollars=0.2, list_price=None, **fields):
    return Usage(name, kind, zone, dollars, dollars if list_price is None else list_price, **fields)


def off(coverage):
    """Dollars that are covered, by instance and commitment."""
    return {
        (name, part.detail): pytest.approx(-part.dollars)
        for name, parts in coverage.parts.items()
        for part in parts
    }


@pytest.mark.parametrize(
    ("kind", "units"),
    [
        ("t4g.nano", 0.25),
        ("t4g.micro", 0.5),
        ("t4g.small", 1),
        ("m7g.medium", 2),
        ("m7g.large", 4),
        ("m7g.xlarge", 8),
        ("m7g.2xlarge", 16),
        ("m5.12xlarge", 96),
        ("u-24tb1.112xlarge", 896),
        ("i3.metal", 128),
        ("c5n.metal", 144),
        ("m5.metal", 192),
        ("m7i.metal-24xl", 192),
        ("mac2.metal", None),
        ("m7i.metal-x", None),
        ("m7g", None),
        ("m7g.-2xlarge", None),
        ("m7g.²xlarge", None),
    ],
)
def test_an_instance_type_counts_as_many_units_as_its_size_says(kind, units):
    assert normalized_units(kind) == units


def test_bare_metal_counts_as_the_largest_size_of_its_family():
    names = [name for name in bundled_types().names if normalized_units(name)]
    largest = {}
    for name in names:
        family, _, size = name.partition(".")
        if not size.startswith("metal"):
            largest[family] = max(largest.get(family, 0), normalized_units(name))
    metal = {name.partition(".")[0]: normalized_units(name) for name in names if name.endswith(".metal")}
    assert metal == {family: largest[family] for family in metal}
    missing = {
        family
        for name in bundled_types().names
        if name.endswith(".metal") and (family := name.partition(".")[0]) not in metal
    }
    assert missing <= {"g4dn", "g5g"}


def test_reserved_instances_cover_as_many_as_there_are_and_only_their_type():
    usages = [usage("other", "m7g.large"), *(usage(name) for name in "abc")]
    found = cover([reserved(2)], usages)
    assert off(found) == {("a", "reserved"): 0.2, ("b", "reserved"): 0.2}
    assert found.left == {"reserved": 0}


def test_size_flexible_instances_cover_parts_of_larger_ones_and_several_smaller_ones():
    found = cover(
        [flexible()], [usage("small", "m7g.large", dollars=0.1), usage("large", "m7g.2xlarge", dollars=0.4)]
    )
    assert off(found) == {("small", "reserved"): 0.1, ("large", "reserved"): 0.1}
    assert found.left == {"reserved": 0}


@pytest.mark.parametrize("kind", ["m6g.xlarge", "m7gd.xlarge", "m7gd.metal"])
def test_size_flexible_instances_cover_no_other_family(kind):
    assert off(cover([flexible()], [usage(kind=kind)])) == {}


def test_size_flexible_instances_cover_bare_metal_of_their_family():
    found = cover([flexible(4)], [usage(kind="m7g.metal", dollars=3.2)])
    assert off(found) == {("a", "reserved"): 0.8}


def test_a_savings_plan_is_used_up_at_its_own_rates():
    found = cover([PLAN], [usage("a", dollars=1.2), usage("b", dollars=1.2)])
    assert off(found) == {("a", "plan"): 1.2, ("b", "plan"): 0.8}
    assert found.left == {"plan": 0}
    assert cover([PLAN], [usage("a", dollars=1.2)]).left == {"plan": pytest.approx(0.4)}


def test_a_savings_plan_has_a_rate_for_each_instance_type_and_goes_to_the_largest_discount_first():
    plan = Commitment("plan", dollars=0.1, discounts=(("m7g.*", 50), ("c7g.large", 20), ("*7g.*", 10)))
    usages = [usage("none", "m5.large"), usage("tenth", "r7g.large"), usage("half"), usage("c", "c7g.large")]
    assert [plan.discount_of(each.instance_type) for each in usages] == [None, 10, 50, 20]
    assert off(cover([plan], usages)) == {("half", "plan"): 0.2}
    more = cover([replace(plan, dollars=0.26 + 0.09)], usages)
    assert off(more) == {("half", "plan"): 0.2, ("c", "plan"): 0.2, ("tenth", "plan"): 0.1}
    assert covers_nothing({"pool": (instance_type("m5.large"),)}, [plan]) == ("plan",)


def test_a_savings_plan_takes_nothing_off_a_license_and_goes_last_to_what_has_one():
    """In us-east-1, Windows on an m5.large costs 0.092 USD an hour more at every rate of a Savings Plan."""
    windows = usage("windows", "m5.large", dollars=0.188, platform=WINDOWS, license_price=0.092)
    linux = usage("linux", "m5.large", dollars=0.096)
    assert cover([PLAN], [windows]).left == {"plan": pytest.approx(1 - 0.048 - 0.092)}
    assert off(cover([replace(PLAN, dollars=0.048)], [windows, linux])) == {("linux", "plan"): 0.096}
    both = off(cover([replace(PLAN, dollars=0.048 + 0.07)], [windows, linux]))
    assert both == {("linux", "plan"): 0.096, ("windows", "plan"): 0.094}
    assert off(cover([reserved(1, "m5.large", platform=WINDOWS)], [windows])) == {
        ("windows", "reserved"): 0.188
    }


def test_of_two_savings_plans_the_one_with_the_largest_discount_is_used_first():
    some = Commitment("some", dollars=1.0, discounts=(("c7g.*", 10), ("m7g.*", 60)))
    assert cover([PLAN, some], [usage()]).left == {"plan": 1.0, "some": pytest.approx(0.92)}


def test_reserved_instances_are_used_before_savings_plans_and_narrow_plans_before_wide_ones():
    narrow = Commitment("narrow", instance_types=("m7g.*",), dollars=0.1, discount=50)
    usages = [usage("a"), usage("b"), usage("c", "c7g.large")]
    found = cover([PLAN, narrow, flexible(), reserved(1, "c7g.large", name="c7g")], usages)
    assert off(found) == {("a", "reserved"): 0.2, ("b", "narrow"): 0.2, ("c", "c7g"): 0.2}
    assert found.left == {"plan": 1.0, "narrow": 0, "reserved": 0, "c7g": 0}


def test_what_one_commitment_leaves_of_an_instance_another_one_covers():
    found = cover([PLAN, flexible()], [usage(kind="m7g.2xlarge", dollars=0.4)])
    assert off(found) == {("a", "reserved"): 0.2, ("a", "plan"): 0.2}
    assert found.dollars("a") == pytest.approx(0.4)
    assert {source.name for part in found.parts["a"] for source in part.sources} == {"nodeless.commitments"}


def test_reserved_instances_of_a_zone_cover_that_zone_alone():
    zonal = reserved(zones=("eu-central-1a",))
    assert off(cover([zonal], [usage(zone="eu-central-1b")])) == {}
    assert off(cover([zonal], [usage()])) == {("a", "reserved"): 0.2}


@pytest.mark.parametrize(
    ("region", "zone", "covered"),
    [
        ("", "eu-central-1a", True),
        ("eu-central-1", "eu-central-1a", True),
        ("us-west-2", "us-west-2-lax-1a", True),
        ("eu-west-1", "eu-central-1a", False),
        ("us-east-1", "us-east-11a", False),
    ],
)
def test_a_commitment_of_a_region_covers_that_region_alone(region, zone, covered):
    assert bool(cover([Commitment("plan", dollars=1, region=region)], [usage(zone=zone)]).parts) is covered


@pytest.mark.parametrize(
    ("commitment", "platform", "covered"),
    [
        (flexible(), "Linux/UNIX", True),
        (reserved(), "Linux/UNIX", True),
        (reserved(), "Windows", False),
        (flexible(), "Windows", False),
        (reserved(), "Red Hat Enterprise Linux", False),
        (reserved(platform="Windows"), "Windows", True),
        (reserved(platform="Windows"), "Linux/UNIX", False),
        (reserved(platform="Linux/UNIX"), "Linux/UNIX", True),
        (PLAN, "Windows", True),
    ],
)
def test_reserved_instances_cover_their_platform_alone(commitment, platform, covered):
    found = cover([commitment], [replace(usage(), platform=platform)])
    assert bool(found.parts) == covered


def test_only_what_is_left_is_used():
    assert off(cover([PLAN], [usage()], {"plan": 0.05})) == {("a", "plan"): 0.1}
    assert off(cover([PLAN], [usage()], {})) == {}


def test_an_instance_that_costs_nothing_uses_no_savings_plan():
    assert cover([PLAN], [usage(dollars=0.0)]).left == {"plan": 1.0}


def test_a_commitment_counts_from_its_first_moment_until_its_last():
    term = Commitment("plan", dollars=1, start=100.0, end=200.0)
    assert [term.is_in_term(now) for now in (99.9, 100.0, 199.9, 200.0)] == [False, True, True, False]
    assert PLAN.is_in_term(0.0)


def test_a_commitment_for_what_nobody_can_buy_is_found():
    sold = {"NodePool/a": (instance_type("m7g.xlarge"),)}
    some = [PLAN, reserved(), reserved(kind="m9x.large", name="unknown"), reserved(name="far", zones=("z9",))]
    assert covers_nothing(sold, some) == ("unknown", "far")
    assert covers_nothing({}, some) == ("plan", "reserved", "unknown", "far")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"name": ""}, "name is missing"),
        ({}, "it needs instances or dollarsPerHour"),
        ({"instances": 1, "dollars": 1}, "it needs instances or dollarsPerHour"),
        ({"dollars": 0}, "its amount is 0"),
        ({"dollars": -1}, "its amount is -1"),
        ({"dollars": float("inf")}, "its amount is inf"),
        ({"dollars": float("nan")}, "its amount is nan"),
        ({"dollars": 1, "discount": 100}, "discountPercent is 100"),
        ({"dollars": 1, "discount": -1}, "discountPercent is -1"),
        ({"dollars": 1, "discounts": (("*", 3.0), ("m5.*", 100.0))}, "discountPercent is 100"),
        ({"dollars": 1, "size_flexible": True}, "sizeFlexible is for instances"),
        ({"dollars": 1, "start": 2.0, "end": 2.0}, "it ends before it begins"),
        ({"instances": 1}, "instanceTypes must be one type"),
        ({"instances": 1, "instance_types": ("m7g.*",)}, "instanceTypes must be one type"),
        ({"instances": 1, "instance_types": ("m7g.large", "m7g.xlarge")}, "instanceTypes must be one type"),
        ({"instances": 0, "instance_types": ("m7g.large",)}, "its amount is 0"),
        ({"instances": 1, "instance_types": ("mac2.metal",), "size_flexible": True}, "no normalized size"),
        (
            {"instances": 1, "instance_types": ("g5.2xlarge",), "size_flexible": True},
            "Reserved Instances of g5 are not size-flexible",
        ),
        ({"dollars": 1, "platform": "Windows"}, "platform is for instances"),
        ({"instances": 1, "instance_types": ("m5.large",), "platform": "windows"}, "platform is 'windows'"),
        (
            {
                "instances": 1,
                "instance_types": ("m5.large",),
                "platform": "SUSE Linux",
                "size_flexible": True,
            },
            "for SUSE Linux are not size-flexible",
        ),
        (
            {"instances": 1, "instance_types": ("m7g.large",), "size_flexible": True, "zones": ("z1",)},
            "is not size-flexible",
        ),
    ],
)
def test_a_commitment_that_cannot_be_meant_is_refused_with_a_hint(wrong, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        Commitment(**{"name": "a", **wrong})
    assert "; hint: " in str(caught.value)
