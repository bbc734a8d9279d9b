"""Given a pool with minValues, may a cheaper node still choose among as many types as the pool asks for?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_FAMILY, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from nodeless.model.requirements import Requirement, Requirements
from nodeless.scheduling import Policy
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import instance_type, needs

DEAR = instance_type("dear", 4, 4, price=2.0)
BEST_EFFORT = Policy(min_values="BestEffort", time_box=0.0)


def cheaper(number, of_one_family=1, **fields):
    """Types that cost less than DEAR, each a tenth of a cent to a few cents more than the one before."""
    return tuple(
        instance_type(
            f"cheap-{i:02}",
            4,
            4,
            price=0.5 + i / 100,
            labels=(needs(INSTANCE_FAMILY, "In", f"f{i // of_one_family:02}"),),
            **fields,
        )
        for i in range(number)
    )


def decided(capacity_type, types, *least, **policy):
    """What becomes of a node of type DEAR whose pool asks for so many (key, number) values."""
    wanted = [Requirement.of(key, "Exists", (), number) for key, number in least]
    pool = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", capacity_type), *wanted]))
    node = node_of(pool, "a", "dear", capacity_type=capacity_type, types={"dear": DEAR})
    return decide(cluster(pool, node, on("a")), (DEAR, *types), spot_to_spot=True, **policy)


def chosen(decisions):
    (node,) = only_command(decisions).replacements
    return [alternative.instance_type for alternative in node.alternatives]


@pytest.mark.parametrize(
    ("capacity_type", "least", "types"),
    [
        (ON_DEMAND, (INSTANCE_FAMILY, 1), 2),
        (ON_DEMAND, (INSTANCE_FAMILY, 3), 3),
        (ON_DEMAND, (INSTANCE_TYPE, 5), 5),
        (ON_DEMAND, (ZONE, 3), 2),
        (SPOT, (INSTANCE_FAMILY, 3), 15),
        (SPOT, (INSTANCE_FAMILY, 20), 20),
        (SPOT, (INSTANCE_TYPE, 20), 20),
        (SPOT, (INSTANCE_TYPE, 30), 30),
    ],
    ids=str,
)
def test_a_replacement_asks_for_the_cheapest_types_that_meet_the_minimum(capacity_type, least, types):
    offered = cheaper(30)
    assert chosen(decided(capacity_type, offered, least)) == [kind.name for kind in offered[:types]]


def test_the_types_of_one_family_count_as_one_value():
    names = chosen(decided(ON_DEMAND, cheaper(30, of_one_family=4), (INSTANCE_FAMILY, 3)))
    assert names == [f"cheap-{i:02}" for i in range(9)]


def half_as_dear(name):
    """Cheap in one zone, but dearer than DEAR in another one: no launch is surely cheaper."""
    sold = (Offering("z1", ON_DEMAND, 0.6), Offering("z2", ON_DEMAND, 2.5))
    return instance_type(name, 4, 4, offerings=sold)


def test_too_few_cheaper_types_are_no_replacement_and_the_verdict_names_the_label():
    types = (*cheaper(3), half_as_dear("risky-1"), half_as_dear("risky-2"))
    decisions = decided(ON_DEMAND, types, (INSTANCE_TYPE, 4))
    assert not decisions.commands
    assert f"offer 3 values of {INSTANCE_TYPE}" in decisions.verdicts["a"].message


def test_the_best_effort_takes_no_cheaper_node_with_less_choice_either():
    """The plan has five types; it is the price that leaves three of them."""
    types = (*cheaper(3), half_as_dear("risky-1"), half_as_dear("risky-2"))
    decisions = decided(ON_DEMAND, types, (INSTANCE_TYPE, 4), solving=BEST_EFFORT)
    assert not decisions.commands
    assert f"offer 3 values of {INSTANCE_TYPE}" in decisions.verdicts["a"].message


def test_the_best_effort_lowers_what_no_price_would_meet():
    (node,) = only_command(
        decided(ON_DEMAND, cheaper(3), (INSTANCE_TYPE, 9), solving=BEST_EFFORT)
    ).replacements
    assert node.min_values_relaxed
    assert node.requirements[INSTANCE_TYPE].min_values < 9


def test_the_best_effort_lowers_nothing_that_can_be_met():
    (node,) = only_command(
        decided(ON_DEMAND, cheaper(30), (INSTANCE_TYPE, 4), solving=BEST_EFFORT)
    ).replacements
    assert not node.min_values_relaxed
    assert node.requirements[INSTANCE_TYPE].min_values == 4


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([SPOT, ON_DEMAND]),
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(30, 260), st.integers(0, 9)), min_size=15, max_size=22),
)
def test_whatever_is_sold_a_replacement_is_cheaper_and_meets_the_minimum_if_that_can_be(
    capacity_type, least, sold
):
    labels = [(needs(INSTANCE_FAMILY, "In", f"f{number}"),) for _, number in sold]
    types = [
        instance_type(f"t{i:02}", 4, 4, price=cents / 100, labels=labels[i])
        for i, (cents, _) in enumerate(sold)
    ]
    price = {kind.name: kind.offerings[-1 if capacity_type == ON_DEMAND else 0].price for kind in types}
    family = {f"t{i:02}": number for i, (_, number) in enumerate(sold)}
    paid = 2.0 if capacity_type == ON_DEMAND else 1.0
    decisions = decided(capacity_type, types, (INSTANCE_FAMILY, least))
    below = [name for name in price if price[name] < paid * 0.97]
    if decisions.commands:
        names = chosen(decisions)
        assert len({family[name] for name in names}) >= least
        assert set(names) <= set(below)
    else:
        enough = len(below) >= (15 if capacity_type == SPOT else 1)
        assert not enough or len({family[name] for name in below}) < least
