"""A pool may ask that a launch can choose among different types, families or zones."""

import pytest

from nodeless.explain.events import no_compatible_instance_types
from nodeless.launch.claims import claims_for
from nodeless.model.instance_types import Offering
from nodeless.model.labels import INSTANCE_FAMILY, INSTANCE_TYPE, MIN_VALUES_RELAXED, ON_DEMAND, ZONE
from nodeless.model.requirements import Requirement
from nodeless.scheduling import Policy
from tests.scheduling.factories import FAMILY, NOW, codes, instance_type, needs, plan, pods, pool


def at_least(number, key=INSTANCE_TYPE, operator="Exists", *values, **fields):
    return pool("default", Requirement.of(key, operator, values, number), **fields)


def of_family(family, cpu, price):
    label = needs(INSTANCE_FAMILY, "In", family)
    return instance_type(f"{family}-{cpu}", cpu, 4 * cpu, price=price, labels=(label,))


FAMILIES = tuple(
    of_family(family, cpu, cpu + 0.1 * i) for i, family in enumerate("abc") for cpu in (1, 2, 4, 8)
)


def names(new):
    return [alternative.instance_type for alternative in new.alternatives]


def test_a_node_takes_no_more_pods_than_leave_enough_types():
    """Eight pods fit one 2xlarge; three different types hold three of them at most."""
    result = plan(at_least(3), pods(8, "1"))
    assert not result.refusals
    assert all(len(new.alternatives) >= 3 for new in result.new_nodes)
    assert sum(len(new.pods) for new in result.new_nodes) == 8
    assert len(plan(pods(8, "1")).new_nodes) == 1


def test_a_pod_that_too_few_types_hold_is_refused_with_the_numbers():
    (refusal,) = plan(at_least(3), pods(1, "5")).refusals
    assert refusal.code == "MinValuesNotMet"
    assert "is 3, but the 2 instance types that hold the pod offer 2" in str(refusal)


def test_a_pool_that_asks_for_more_than_there_is_makes_no_node():
    assert codes(plan(at_least(6), pods(2))) == ["MinValuesNotMet"] * 2


def told(result):
    return [(str(each.pool), no_compatible_instance_types(each)) for each in result.unusable_pools]


FILTERED = "NodePool requirements filtered out all compatible available instance types"


@pytest.mark.parametrize(
    ("requirements", "message"),
    [
        ([Requirement.of(INSTANCE_TYPE, "Exists", (), 6)], f"{FILTERED} due to minValues incompatibility"),
        (
            [Requirement.of(INSTANCE_TYPE, "In", ["small", "no-such"], 2)],
            f"{FILTERED} due to minValues incompatibility",
        ),
        ([Requirement.of(INSTANCE_TYPE, "In", ["no-such"])], FILTERED),
        ([Requirement.of(INSTANCE_TYPE, "Exists", (), 3)], None),
        ([], None),
    ],
)
def test_a_pool_that_can_make_no_node_at_all_is_named_whether_or_not_another_one_can(requirements, message):
    lacking = pool("lacking", *requirements)
    expected = [(str(lacking.reference), message)] if message else []
    assert told(plan(lacking, pods(1))) == expected
    result = plan(lacking, pool("whole"), pods(1))
    assert not result.refusals
    assert told(result) == expected
    # What one pod asks for says nothing of the pool.
    assert told(plan(lacking, pods(1, "500"))) == expected


def test_the_best_effort_needs_no_more_types_than_there_are():
    assert told(plan(at_least(6), pods(1), policy=Policy(min_values="BestEffort"))) == []


def test_the_best_effort_makes_the_node_and_records_that_it_fell_short():
    limited = at_least(6)
    result = plan(limited, pods(1, "5"), policy=Policy(min_values="BestEffort"))
    (new,) = result.new_nodes
    assert new.min_values_relaxed
    assert new.requirements[INSTANCE_TYPE].min_values == 2
    (create,) = claims_for(result, {str(limited.reference): limited}, NOW)
    assert create.claim.annotations[MIN_VALUES_RELAXED] == "true"


def test_the_best_effort_leaves_a_minimum_that_is_met():
    (new,) = plan(at_least(2), pods(1, "5"), policy=Policy(min_values="BestEffort")).new_nodes
    assert not new.min_values_relaxed
    assert new.requirements[INSTANCE_TYPE].min_values == 2


def test_another_pool_takes_what_too_few_types_of_the_heavier_one_hold():
    result = plan([at_least(3, weight=10), pool("open")], pods(1, "5"))
    assert [new.pool.name for new in result.new_nodes] == ["open"]


@pytest.mark.parametrize("most", [3, 4, 60])
def test_the_types_that_are_kept_are_as_different_as_asked_for(most):
    (new,) = plan(
        at_least(3, INSTANCE_FAMILY), pods(1, "500m"), types=FAMILIES, policy=Policy(max_alternatives=most)
    ).new_nodes
    assert {name[0] for name in names(new)} == {"a", "b", "c"}
    assert len(new.alternatives) == min(most, len(FAMILIES))
    assert names(new)[0] == "a-1"


def test_listed_values_count_only_while_they_are_allowed():
    two = at_least(2, INSTANCE_FAMILY, "In", "a", "b")
    assert plan(two, pods(1), types=FAMILIES).new_nodes
    chosen = plan(two, pods(1, selector={INSTANCE_FAMILY: "a"}), types=FAMILIES)
    assert codes(chosen) == ["MinValuesNotMet"]


def test_zones_count_where_something_is_for_sale():
    two = at_least(2, ZONE)
    one_zone = instance_type(
        "one-zone", offerings=(Offering("z1", ON_DEMAND, 1.0), Offering("z2", ON_DEMAND, 1.0, False))
    )
    assert codes(plan(two, pods(1), types=(one_zone,))) == ["MinValuesNotMet"]
    assert plan(two, pods(1), types=FAMILY).new_nodes


def test_a_limit_that_leaves_too_few_types_refuses():
    result = plan(at_least(3, limits={"cpu": "2"}), pods(1, "500m"))
    assert codes(result) == ["LimitsExceeded"]


def test_an_unknown_policy_is_refused_with_a_hint():
    with pytest.raises(ValueError, match="hint: use Strict or BestEffort"):
        Policy(min_values="Sometimes")
