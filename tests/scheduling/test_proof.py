"""Every plan says what it costs, what any plan costs at least, and by how much the two may differ."""

from collections import Counter

import pytest

from nodeless.model.labels import HOSTNAME, INSTANCE_TYPE, PROVISIONER_NAME, ZONE
from nodeless.model.requirements import Requirement
from nodeless.scheduling import FEWEST_NODES, Policy
from tests.scheduling.factories import beside, instance_type, needs, node, plan, pods, pool, spread, term

BY_PRICE, BY_NODES = Policy(fewer_nodes_tolerance=0), Policy(packing=FEWEST_NODES)
QUICK = Policy(time_box=0)


@pytest.mark.parametrize("policy", [BY_PRICE, BY_NODES])
@pytest.mark.parametrize(
    "things",
    [
        [pods(7, "700m", "1Gi")],
        [pods(3), pods(2, "99", name="huge")],
        [pool("static", replicas=2), pool(), pods(5)],
        [pool("capped", limits={"cpu": "4"}), pods(9)],
    ],
)
def test_a_plan_carries_cost_bound_and_gap(policy, things):
    made = plan(*things, policy=policy)

    assert made.lower_bound is not None
    assert made.gap is not None
    assert 0 < made.lower_bound <= made.cost_per_hour + 1e-9
    assert made.lower_bound == pytest.approx(made.cost_per_hour * (1 - made.gap))


def test_the_gap_of_packing_onto_the_fewest_nodes_tells_what_that_costs():
    wanted = pods(5, "1", "1Gi")
    cheap, few = plan(wanted, policy=BY_PRICE), plan(wanted, policy=BY_NODES)

    assert len(few.new_nodes) <= len(cheap.new_nodes)
    assert few.lower_bound == pytest.approx(cheap.lower_bound)
    assert few.gap >= cheap.gap


@pytest.mark.parametrize(
    "things",
    [
        [],
        [pods(2, "99")],
        [pods(1, selector={"disk": "ssd"})],
        [pool(), node("n1"), pods(2)],
    ],
    ids=["no pods", "too large", "no such label", "room that is there"],
)
def test_what_buys_nothing_costs_at_least_nothing(things):
    made = plan(*things, policy=BY_PRICE)
    assert (made.cost_per_hour, made.lower_bound, made.gap) == (0, 0, 0)


def test_nodes_of_static_pools_are_part_of_the_bound():
    made = plan(pool("static", replicas=3), policy=BY_PRICE)
    assert made.cost_per_hour > 0
    assert made.gap == pytest.approx(0)


def test_pods_whose_node_cannot_be_made_are_no_part_of_the_bound():
    picky = pool("picky", Requirement.of(INSTANCE_TYPE, "Exists", min_values=99))
    made = plan(picky, pods(3), policy=BY_PRICE)
    assert len(made.refusals) == 3
    assert (made.lower_bound, made.gap) == (0, 0)


def test_without_time_for_it_no_bound_is_claimed():
    made = plan(pods(3), policy=QUICK)
    assert (made.lower_bound, made.gap) == (None, None)


#: Each CPU costs the same, whatever the size of the node.
SIZES = tuple(instance_type(f"t{cpu}", cpu, 4 * cpu) for cpu in (1, 2, 4, 8, 16, 32))


def apart(number: int):
    """Pods that keep off each other's nodes."""
    return pods(number, "100m", "64Mi", name="lone", labels={"app": "web"}, anti_affinity=(beside(HOSTNAME),))


def test_a_bound_counts_the_nodes_of_pods_that_keep_off_each_other_however_many_classes_there_are():
    others = [pods(1, f"{100 + number}m", f"{number}Mi", name=f"w{number}") for number in range(1100)]
    cheapest = plan(pods(1, "100m"), types=SIZES).cost_per_hour

    made = plan(apart(300), *others, types=SIZES[:1], policy=Policy(time_box=1e-9))

    assert made.lower_bound >= 300 * cheapest * (1 - 1e-6)
    assert made.lower_bound <= made.cost_per_hour


def mixed():
    return [
        apart(200),
        *(pods(1, f"{1000 + number}m", f"{number}Mi", name=f"w{number}") for number in range(600)),
    ]


def test_pods_that_keep_off_each_other_share_their_nodes_with_those_that_do_not_mind():
    made = plan(*mixed(), types=SIZES, policy=Policy(time_box=1e-9))

    assert not made.refusals
    assert max(sum("lone" in key for key in node.pods) for node in made.new_nodes) == 1
    assert made.cost_per_hour <= 1.3 * made.lower_bound


def test_where_pods_have_wishes_the_largest_come_first_all_the_same():
    wishful = pods(1, name="wishful", preferred_terms=((1, term(needs(INSTANCE_TYPE, "In", "t32"))),))
    made = plan(*mixed(), wishful, types=SIZES, policy=Policy(time_box=1e-9))
    assert made.cost_per_hour > 1.4 * made.lower_bound


#: Nodes of the first kind cost three times as much.
KINDS = (instance_type("dear", 4, 16, price=0.3), instance_type("cheap", 4, 16, price=0.1))


def weighted(limits=None):
    """A heavy pool that is dear, and a light one that is cheap."""
    return [
        pool("dear", needs(INSTANCE_TYPE, "In", "dear"), weight=10, limits=limits),
        pool("cheap", needs(INSTANCE_TYPE, "In", "cheap"), weight=1),
    ]


@pytest.mark.parametrize("number", [7, 400])
def test_no_plan_is_cheaper_where_a_heavy_pool_takes_all_pods(number):
    made = plan(weighted(), pods(number, "900m"), types=KINDS, policy=BY_PRICE)
    assert {new.instance_type for new in made.new_nodes} == {"dear"}
    assert made.lower_bound == pytest.approx(made.cost_per_hour, rel=1e-4)


@pytest.mark.parametrize(
    ("limits", "fields"),
    [
        ({"nodes": "1"}, {}),
        (None, {"preferred_terms": ((1, term(needs(INSTANCE_TYPE, "In", "cheap"))),)}),
        (
            None,
            {
                "required_terms": (
                    term(needs(INSTANCE_TYPE, "In", "dear")),
                    term(needs(INSTANCE_TYPE, "In", "cheap")),
                )
            },
        ),
    ],
    ids=["limits", "preferences", "alternatives"],
)
def test_where_a_light_pool_may_take_pods_the_bound_counts_its_prices(limits, fields):
    made = plan(weighted(limits), pods(12, "900m", **fields), types=KINDS, policy=BY_PRICE)
    cheap = plan(weighted()[1], pods(12, "900m"), types=KINDS, policy=BY_PRICE)
    assert made.lower_bound <= cheap.cost_per_hour + 1e-9


def test_only_pods_that_a_heavy_pool_takes_are_priced_by_it():
    """Others ask for the light pool's type."""
    light = pods(12, "900m", name="light", selector={INSTANCE_TYPE: "cheap"})
    made = plan(weighted(), light, pods(12, "900m"), types=KINDS, policy=BY_PRICE)
    assert Counter(new.instance_type for new in made.new_nodes) == {"dear": 3, "cheap": 3}
    assert made.lower_bound == pytest.approx(made.cost_per_hour, rel=1e-4)


@pytest.mark.parametrize("limit", ["4", "16", "100"])
def test_a_pool_that_is_over_its_limit_takes_nothing_from_the_bound(limit):
    """Sixteen CPUs are in use, and there is no room on them."""
    things = [
        pool("full", limits={"cpu": limit}),
        *(
            node(f"n{index}", cpu="0", labels={PROVISIONER_NAME: "full"}, capacity={"cpu": 8000})
            for index in range(2)
        ),
    ]
    wanted = [
        pods(
            3,
            f"{300 + 70 * number}m",
            f"{200 + 30 * number}Mi",
            name=f"w{number}",
            spread=(spread(ZONE, f"w{number}"),),
        )
        for number in range(30)
    ]
    made = plan(*things, pool("open"), *wanted, types=SIZES, policy=BY_PRICE)
    assert not made.refusals
    assert made.cost_per_hour * 0.9 < made.lower_bound <= made.cost_per_hour + 1e-9


#: Two kinds of nodes, each with much of what the other has little of.
def lopsided(number: int):
    return [
        *(node(f"cpu{each}", "10", "1Gi") for each in range(number)),
        *(node(f"memory{each}", "1100m", "10Gi") for each in range(number)),
    ]


@pytest.mark.parametrize("number", [60, 150, 1000], ids=["each node", "groups", "large groups"])
def test_existing_nodes_are_not_counted_as_one_that_has_the_room_of_all(number):
    """Together 11 pods would have room on two nodes, but one has room on each: the others need new nodes."""

    def some(each_class: int):
        return [pods(each_class, f"{1010 + each}m", "1Gi", name=f"w{each}") for each in range(40)]

    quick = Policy(time_box=1e-9)
    made = plan(*lopsided(number), *some(number * 6 // 40), types=SIZES, policy=quick)

    rest = plan(*some(number * 3 // 40), types=SIZES, policy=quick)
    assert made.lower_bound >= rest.lower_bound > 0
