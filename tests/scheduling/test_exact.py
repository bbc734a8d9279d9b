"""Worlds of at most twelve pods against an integer program: who is placed, and for how much.

Every run of the suite sees the same worlds; `EXACT_WORLDS` draws so many others.
"""

import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from nodeless.model.pods import HostPort, LabelSelector
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from tests.scheduling.exact import best
from tests.scheduling.factories import (
    beside,
    daemon,
    instance_type,
    needs,
    node,
    pods,
    pool,
    snapshot,
    spread,
    term,
)
from tests.scheduling.topology_worlds import TYPES as FEW_ZONES

TYPES = (
    instance_type("one", 1, 4, price=0.06),
    instance_type("two", 2, 8, price=0.1),
    instance_type("lean", 4, 4, price=0.16),
    instance_type("four", 4, 16, price=0.22),
    instance_type("eight", 8, 32, price=0.4),
    instance_type("sixteen", 16, 64, price=0.9),
)
RACK = "example.com/rack"
SIZES = st.sampled_from(["100m", "500m", "1", "1500m", "3", "6", "7900m", "15"])


@st.composite
def batches(draw):
    made, left = [], 12
    names = ("a", "b", "c", "d")
    for index, name in enumerate(names[: draw(st.integers(1, 4))]):
        number = draw(st.integers(1, min(5, left)))
        left -= number
        wanted = draw(st.sampled_from([None, None, *names[: index + 1]]))
        apart = draw(st.sampled_from([None, None, None, *names]))
        made += pods(
            number,
            draw(SIZES),
            draw(st.sampled_from(["0", "1Gi", "3Gi", "14Gi"])),
            name=name,
            selector=draw(st.sampled_from([{}, {}, {}, {ZONE: "z1"}])),
            affinity=(beside(HOSTNAME, wanted),) if wanted else (),
            anti_affinity=(beside(HOSTNAME, apart),) if apart else (),
            host_ports=draw(st.sampled_from([(), (), (), (), (HostPort("", 80, "TCP"),)])),
        )
        if not left:
            break
    return made


@st.composite
def pools_of(draw):
    limits = st.sampled_from([None, None, None, {"cpu": "9"}, {"cpu": "20"}, {"nodes": "2"}])
    first = pool("first", limits=draw(limits))
    second = pool("second", needs(ZONE, "In", "z1", "z3"), limits=draw(limits))
    return draw(st.sampled_from([[first], [first], [first, second]]))


STANDING = st.lists(st.sampled_from(["1", "3", "8"]), max_size=2).map(
    lambda sizes: [
        node(f"n{index}", cpu=cpu, labels={ZONE: "z1"}, provider_id="") for index, cpu in enumerate(sizes)
    ]
)
WORLDS = st.builds(snapshot, batches(), pools_of(), STANDING)


@settings(
    deadline=None,
    max_examples=int(os.environ.get("EXACT_WORLDS", "40")),
    derandomize="EXACT_WORLDS" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(WORLDS, st.sampled_from([FEWEST_NODES, LOWEST_PRICE]))
def test_as_many_pods_are_placed_as_can_be_and_the_price_is_within_the_bound(seen, packing):
    known = best(seen, TYPES)
    plan = solve(seen, dict.fromkeys(seen.pools, TYPES), Policy(packing=packing))
    placed = len(plan.placements) + sum(len(new.pods) for new in plan.new_nodes)
    assert not plan.faults
    assert placed == known.placed
    if placed == len(seen.pods):
        # Otherwise others may be left over than the program leaves, at another price.
        assert plan.cost_per_hour >= known.price - 1e-6
        assert plan.lower_bound is None or plan.lower_bound <= known.price + 1e-6
        assert plan.cost_per_hour <= most_to_pay(seen, packing, known.price) + 1e-6


def most_to_pay(seen, packing, least):
    """What docs/plan.md says of prices: that of column generation, and one node for what it leaves alone.

    Groups that must share nodes, pods that limits keep to few types and the fewest nodes are no matter of
    price alone: there one node more, or one of the next size, may be bought.
    """
    by_price = packing == LOWEST_PRICE and not (
        any(pod.shape.affinity for pod in seen.pods.values())
        or any(own.limits for own in seen.pools.values())
    )
    return 1.15 * least + (
        0.0 if by_price else max(min(each.price for each in kind.offerings) for kind in TYPES)
    )


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_a_node_that_was_opened_with_room_for_followers_costs_what_its_own_pods_need(packing):
    """All followers go where the first of the two is; the other's node would have had room for them."""
    seen = snapshot(
        pods(2, "100m", name="a"),
        pods(1, "100m", name="b", affinity=(beside(HOSTNAME, "a"),)),
        pods(1, "100m", name="c", affinity=(beside(HOSTNAME, "a"),), anti_affinity=(beside(HOSTNAME, "b"),)),
        pods(3, "100m", "14Gi", name="d", affinity=(beside(HOSTNAME, "a"),)),
        pool("first"),
    )
    plan = solve(seen, dict.fromkeys(seen.pools, TYPES), Policy(packing=packing))
    assert not plan.refusals
    assert sorted(planned.instance_type for planned in plan.new_nodes) == ["one", "sixteen"]


IN_Z1_OR_Z2 = term(needs(ZONE, "In", "z1", "z2"))
IN_Z1 = {"selector": {ZONE: "z1"}}
PORT = (HostPort("", 80, "TCP"),)


def standing(cpu):
    return [node(f"n{index}", cpu=cpu, labels={ZONE: "z1"}, provider_id="") for index in range(2)]


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_room_that_alone_holds_a_pod_is_not_taken_by_one_for_which_a_node_can_be_bought(packing):
    seen = snapshot(
        [*pods(1, "700m", "5Gi", name="large"), *pods(2, "1", "2Gi", name="small")],
        [pool("first", needs(INSTANCE_TYPE, "In", "lean"))],
        [node("n0", cpu="1500m", memory="7Gi", labels={ZONE: "z1"}, provider_id="")],
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed == 3


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("large", [1, 2, 5])
def test_a_leader_gets_its_node_in_a_pool_whose_limit_lets_its_followers_in(large, packing):
    seen = snapshot(
        [
            *pods(5, "500m", "1Gi", name="a", anti_affinity=(beside(HOSTNAME, "b"),), **IN_Z1),
            *pods(2, "100m", "3Gi", name="b", **IN_Z1),
            *pods(large, "15", "1Gi", name="c", affinity=(beside(HOSTNAME, "b"),)),
        ],
        [pool("first", limits={"cpu": "9"}), pool("second", needs(ZONE, "In", "z1", "z3"))],
        standing("8"),
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed == 7 + min(large, 2)


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_what_a_limit_leaves_is_shared_by_small_pods_where_large_ones_use_what_is_there(packing):
    seen = snapshot(
        [
            *pods(2, "7900m", "0", name="a", affinity=(beside(HOSTNAME, "a"),)),
            *pods(1, "500m", "0", name="b", anti_affinity=(beside(HOSTNAME, "c"),)),
            *pods(
                5,
                "1",
                "14Gi",
                name="c",
                affinity=(beside(HOSTNAME, "c"),),
                anti_affinity=(beside(HOSTNAME, "d"),),
                **IN_Z1,
            ),
            *pods(4, "1500m", "1Gi", name="d"),
        ],
        [pool("first", limits={"cpu": "9"})],
        standing("3"),
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed == 7


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("kept_off", [3, 4, 5])
def test_pods_that_keep_others_off_get_nodes_of_their_own_where_nodes_are_limited(kept_off, packing):
    seen = snapshot(
        [
            *pods(3, "6", "0", name="a"),
            *pods(4, "3", "3Gi", name="b", anti_affinity=(beside(HOSTNAME, "c"),), **IN_Z1),
            *pods(kept_off, "100m", "0", name="c", anti_affinity=(beside(HOSTNAME, "c"),)),
        ],
        [pool("first", limits={"nodes": "2"})],
        [
            node(name, cpu=cpu, labels={ZONE: "z1"}, provider_id="")
            for name, cpu in (("n0", "8"), ("n1", "1"))
        ],
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed == 10


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_one_pod_of_a_group_that_must_be_together_leads_where_others_would_leave_less_room(packing):
    with_a = (beside(HOSTNAME, "a"),)
    seen = snapshot(
        [
            *pods(3, "1500m", "14Gi", name="a", affinity=with_a),
            *pods(5, "6", "1Gi", name="b", affinity=with_a),
            *pods(4, "500m", "14Gi", name="c", affinity=with_a),
        ],
        pool("first"),
        standing("3"),
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed == 6


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("second", [2, 3])
def test_groups_that_take_each_others_leaders_get_one_each(second, packing):
    with_b, without_d = (beside(HOSTNAME, "b"),), (beside(HOSTNAME, "d"),)
    seen = snapshot(
        [
            *pods(4, "500m", "3Gi", name="a"),
            *pods(second, "500m", "3Gi", name="b"),
            *pods(4, "1", "0", name="c", affinity=with_b, anti_affinity=without_d),
            *pods(1, "3", "3Gi", name="d", affinity=with_b, anti_affinity=without_d, **IN_Z1),
        ],
        [pool("second", needs(ZONE, "In", "z1", "z3"), limits={"nodes": "2"}), pool("first")],
        standing("3")[:1],
    )
    assert placed_by(seen, packing) == len(seen.pods)


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize(("leaders", "cpu", "number"), [(3, "500m", 9), (4, "1500m", 11)])
def test_followers_that_keep_off_each_other_get_small_nodes_where_a_limit_is_short(
    leaders, cpu, number, packing
):
    seen = snapshot(
        [
            *pods(leaders, "100m", "1Gi", name="a"),
            *pods(
                5,
                cpu,
                "1Gi",
                name="b",
                affinity=(beside(HOSTNAME, "a"),),
                anti_affinity=(beside(HOSTNAME, "b"),),
            ),
            *pods(3, "500m", "0", name="c", anti_affinity=(beside(HOSTNAME, "a"),)),
        ],
        [pool("first", limits={"cpu": "20"})],
        standing("3")[:1],
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed == number


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("last", [2, 3])
def test_pods_that_follow_followers_get_their_places(last, packing):
    """Each port is held once on a node, so that every pod at the end of the chain needs a node of its own."""
    seen = snapshot(
        [
            *pods(3, "3", "3Gi", name="a", anti_affinity=(beside(HOSTNAME, "a"),)),
            *pods(2, "1500m", "0", name="b", affinity=(beside(HOSTNAME, "a"),)),
            *pods(last, "1", "14Gi", name="d", affinity=(beside(HOSTNAME, "b"),), host_ports=PORT),
        ],
        pool("first"),
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed == 7


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("cpu", ["6", "9", "12"])
def test_what_a_limit_leaves_is_shared_so_that_the_most_pods_run(cpu, packing):
    without_a = (beside(HOSTNAME, "a"),)
    seen = snapshot(
        [
            *pods(2, "100m", "3Gi", name="a", anti_affinity=without_a),
            *pods(2, "3", "14Gi", name="b", anti_affinity=without_a),
            *pods(5, "100m", "0", name="c", host_ports=PORT),
            *pods(1, "1500m", "0", name="d", anti_affinity=without_a),
        ],
        pool("first", limits={"cpu": cpu}),
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_nodes_that_are_few_are_not_given_to_pods_that_keep_most_others_off(packing):
    without_b = (beside(HOSTNAME, "b"),)
    seen = snapshot(
        [
            *pods(4, "7900m", "14Gi", name="a", anti_affinity=without_b),
            *pods(4, "6", "14Gi", name="b", affinity=without_b, host_ports=PORT),
            *pods(4, "15", "1Gi", name="c", anti_affinity=without_b),
        ],
        [
            pool("second", needs(ZONE, "In", "z1", "z3"), limits={"cpu": "9"}),
            pool("first", limits={"nodes": "2"}),
        ],
        standing("1"),
    )
    assert placed_by(seen, packing) == best(seen, TYPES).placed == 5


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize(
    ("limit", "batch"),
    [
        ("22", [(12, "300m", "100Mi"), (21, "500m", "100Mi"), (5, "1500m", "100Mi")]),
        ("20", [(9, "500m", "100Mi"), (13, "700m", "100Mi"), (6, "1", "100Mi")]),
        (
            "105",
            [
                (9, "1700m", "6Gi"),
                (11, "900m", "10Gi"),
                (8, "3400m", "9Gi"),
                (4, "6100m", "9Gi"),
                (7, "2", "4Gi"),
                (1, "5", "12Gi"),
            ],
        ),
    ],
)
def test_dozens_of_pods_share_what_a_limit_leaves_to_the_last_one(limit, batch, packing):
    """Some mixture of node sizes holds every pod of these; no order of classes finds one."""
    waiting = [
        pod
        for name, (number, cpu, memory) in zip("abcdef", batch, strict=False)
        for pod in pods(number, cpu, memory, name=name)
    ]
    assert placed_by(snapshot(waiting, pool("first", limits={"cpu": limit})), packing) == len(waiting)


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("key", [HOSTNAME, ZONE, RACK])
@pytest.mark.parametrize(
    ("limit", "rules", "batch"),
    [
        ("22", {}, [(12, "300m"), (21, "500m"), (5, "1500m")]),
        ("16", {"spread": (spread(ZONE, "a"),)}, [(4, "300m"), (4, "1"), (6, "1500m")]),
    ],
    ids=["by nodes", "by zones"],
)
def test_pods_that_must_be_near_those_of_a_daemon_set_share_what_a_limit_leaves(
    limit, rules, batch, key, packing
):
    """Each new node gets a pod of the DaemonSet, so nobody has to be there before."""
    near = (beside(key, "agent"),)
    waiting = [
        pod
        for name, (number, cpu) in zip("abc", batch, strict=True)
        for pod in pods(number, cpu, "100Mi", name=name, affinity=near, **(rules if name == "a" else {}))
    ]
    limited = pool("first", needs(RACK, "In", "r1", "r2"), limits={"cpu": limit})
    assert placed_by(snapshot(waiting, limited, daemon("agent")), packing) == len(waiting)


@pytest.mark.drawn
@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("key", [ZONE, CAPACITY_TYPE])
@pytest.mark.parametrize("limits", [None, {"cpu": "1000"}, {"nodes": "100"}])
@pytest.mark.parametrize(("followers", "others"), [(5, 4), (4, 4), (3, 3)])
def test_a_pod_whose_zone_mates_do_not_exist_costs_no_other_its_place(
    followers, others, limits, key, packing
):
    """Whoever must be beside any pod may be beside it in what is worked out only if it can be anywhere."""
    near_any = tuple(replace(beside(one), selector=LabelSelector()) for one in (ZONE, HOSTNAME))
    seen = snapshot(
        [
            *pods(followers, "1900m", "0", name="a", affinity=near_any, required_terms=(IN_Z1_OR_Z2,)),
            *pods(others, "1", "0", name="b"),
            *pods(1, "100m", "0", name="c", affinity=(beside(key, "nobody"),)),
        ],
        pool("first", limits=limits),
    )
    plan = solve(seen, dict.fromkeys(seen.pools, FEW_ZONES), Policy(packing=packing))
    assert [refusal.pod for refusal in plan.refusals] == ["default/c-0"]


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("small", [2, 3, 4])
def test_pods_that_keep_off_each_others_zone_leave_the_node_to_those_of_whom_more_run(small, packing):
    """Each node has one zone and one capacity type: who keeps off those of others shares none with them."""
    seen = snapshot(
        [
            *pods(small, "100m", "0", name="c"),
            *pods(4, "2900m", "0", name="a", anti_affinity=(beside(ZONE, "d"),)),
            *pods(5, "1", "0", name="d"),
            *pods(2, "1", "0", name="b", anti_affinity=(beside(CAPACITY_TYPE, "c"),)),
        ],
        pool("first", limits={"cpu": "8"}),
    )
    assert placed_by(seen, packing, FEW_ZONES) >= small + 6


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_pods_that_keep_off_their_like_by_zone_take_no_node_that_others_could_have(packing):
    seen = snapshot(
        [
            *pods(3, "2900m", "0", name="c", anti_affinity=(beside(ZONE, "c"),)),
            *pods(2, "1", "0", name="a", anti_affinity=(beside(CAPACITY_TYPE, "c"),)),
            *pods(2, "2900m", "0", name="b", affinity=(beside(ZONE, "b"),)),
        ],
        pool("first", limits={"cpu": "8"}),
    )
    assert placed_by(seen, packing, FEW_ZONES) >= 4


def placed_by(seen, packing, types=TYPES):
    plan = solve(seen, dict.fromkeys(seen.pools, types), Policy(packing=packing))
    assert not plan.faults
    return len(plan.placements) + sum(len(new.pods) for new in plan.new_nodes)


def test_the_program_knows_what_cannot_be():
    assert best(snapshot(pool(), pods(1, "20")), TYPES).placed == 0
    pair = snapshot(pool(), pods(2, "500m", anti_affinity=(beside(HOSTNAME),)))
    assert best(pair, TYPES).price == pytest.approx(2 * 0.03)
    group = snapshot(pool(), pods(3, "6", affinity=(beside(HOSTNAME),)))
    assert best(group, TYPES).placed == 2
