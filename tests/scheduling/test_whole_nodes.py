"""Nodes are bought whole: bounds count whole ones, and few pods get the cheapest, which the plan says."""

from collections import Counter
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import highspy
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.model.labels import HOSTNAME, ZONE
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.scheduling.capacity.highs import (
    Rows,
    bound_of,
    iterations_of,
    looks_within,
    run_within,
    seconds_of,
    tree_search,
)
from nodeless.scheduling.optimizer.bound_problem import BoundProblem, Kind
from nodeless.scheduling.optimizer.existing_node_repack import ExistingNodes
from nodeless.scheduling.optimizer.resource_program import program_of
from nodeless.scheduling.optimizer.whole_nodes import whole_nodes
from nodeless.scheduling.optimizer.work_budget import Effort
from tests.scheduling.exact import best
from tests.scheduling.factories import (
    FAMILY,
    beside,
    instance_type,
    needs,
    node,
    plan,
    pods,
    pool,
    snapshot,
)
from tests.scheduling.test_dominance import a_cover, apart

#: Each CPU costs the same, whatever the size of the node.
SIZES = tuple(instance_type(f"t{cpu}", cpu, 4 * cpu, price=0.05 * cpu) for cpu in (1, 2, 4, 8, 16, 32))
#: What the cheapest nodes cost for some seeds of `some_that_keep_off`.
FEW_KINDS = {16: 1.1, 58: 0.6, 88: 0.7, 118: 0.6}
MORE_KINDS = {87: 0.95, 98: 1.0, 112: 1.9, 124: 1.0}
#: Three families in six sizes: price, thousandths of a CPU, and MiB.
SHAPES = [
    (price * size, size * 980, int(size * 980 * ratio))
    for size in (1, 2, 4, 8, 16, 32)
    for price, ratio in ((0.085, 2.1), (0.096, 4.2), (0.126, 8.4))
]
ONE_SIZE = (instance_type("only", 16, 64, price=0.8),)


@pytest.mark.parametrize("cpu", ["100m", "900m", "3", "7900m", "31"])
def test_one_pod_on_the_cheapest_node_that_holds_it_is_proved_to_be_cheapest(cpu):
    made = plan(pods(1, cpu), types=SIZES, policy=Policy())
    assert len(made.new_nodes) == 1
    assert made.proved_cheapest
    assert made.lower_bound == pytest.approx(made.cost_per_hour)


@pytest.mark.parametrize("classes", [3, 30, 60])
@pytest.mark.parametrize("each", [1, 4, 9])
def test_where_there_is_one_size_its_nodes_are_counted_whole(classes, each):
    """A little more than nodes hold takes a further node, however many classes there are."""
    batch = [pods(each, f"{500 + 10 * index}m", name=f"app{index}") for index in range(classes)]
    asked = sum(each * (500 + 10 * index) for index in range(classes))
    made = plan(batch, types=ONE_SIZE, policy=Policy())
    assert made.lower_bound >= -(-asked // 16000) * made.new_nodes[0].price * (1 - 1e-6)
    assert made.lower_bound <= made.cost_per_hour


@pytest.mark.parametrize("seed", range(8))
def test_a_small_team_gets_the_cheapest_nodes_and_is_told_so(seed):
    chance = Random(seed)
    batch = [
        pods(
            chance.randint(1, 6), f"{50 * chance.randint(2, 60)}m", f"{chance.randint(1, 12)}Gi", name=f"a{i}"
        )
        for i in range(chance.randint(1, 6))
    ]
    made = plan(batch, types=FAMILY, policy=Policy(fewer_nodes_tolerance=0))
    quick = plan(batch, types=FAMILY, policy=Policy(time_box=0))
    assert not made.refusals
    assert made.proved_cheapest
    assert made.cost_per_hour <= quick.cost_per_hour + 1e-9


@pytest.mark.parametrize(("seed", "price"), [(5, 2.2), (7, 0.9), (9, 2.45)])
def test_where_the_cheapest_room_does_not_hold_the_pods_the_next_is_looked_at(seed, price):
    """Nodes of eight CPUs at most are filled in part; dearer ones are proved to be what it takes."""
    chance = Random(seed)
    batch = [
        pods(
            chance.randint(1, 9),
            f"{50 * chance.randint(10, 80)}m",
            f"{chance.randint(1, 16)}Gi",
            name=f"a{i}",
        )
        for i in range(chance.randint(3, 7))
    ]
    made = plan(batch, types=SIZES[1:4], policy=Policy())
    assert made.proved_cheapest
    assert made.cost_per_hour == pytest.approx(price)


@pytest.mark.parametrize(("seed", "price"), [(25, 1.35), (53, 2.55)])
def test_a_shape_that_does_not_hold_the_pods_may_be_bought_more_often_or_be_left_for_another(seed, price):
    """Some pods keep off their like, so that room is left on the nodes that hold all others."""
    chance, batch = Random(seed), []
    for index in range(chance.randint(3, 7)):
        name, lonely = f"a{index}", chance.random() < 0.4
        batch += pods(
            chance.randint(1, 9),
            f"{50 * chance.randint(10, 80)}m",
            f"{chance.randint(1, 16)}Gi",
            name=name,
            anti_affinity=(beside(HOSTNAME, name),) if lonely else (),
        )
    made = plan(batch, types=SIZES[1:4], policy=Policy())
    assert made.proved_cheapest
    assert made.cost_per_hour == pytest.approx(price)


def some_that_keep_off(seed, kinds, share, steps):
    """A batch of several kinds of pods, and which kind some of them keep off."""
    chance, batch, avoided = Random(seed), [], {}
    number = chance.randint(*kinds)
    for index in range(number):
        name, picky = f"a{index}", chance.random() < share
        asked = chance.randint(1, 5), f"{50 * chance.randint(*steps)}m", f"{chance.randint(1, 16)}Gi"
        if picky:
            avoided[name] = f"a{chance.randrange(number)}"
        rules = (beside(HOSTNAME, avoided[name]),) if picky else ()
        batch += pods(*asked, name=name, anti_affinity=rules)
    return batch, avoided


@pytest.mark.parametrize(
    ("drawn", "types", "price"),
    [
        *(((seed, (3, 6), 0.7, (10, 80)), SIZES[2:], price) for seed, price in FEW_KINDS.items()),
        *(((seed, (4, 8), 0.3, (6, 90)), SIZES[1:5], price) for seed, price in MORE_KINDS.items()),
    ],
)
def test_pods_that_keep_off_others_get_the_cheapest_nodes_that_part_them(drawn, types, price):
    """Without the rules a smaller node would do, and with more of them a larger one would be needed."""
    batch, avoided = some_that_keep_off(*drawn)
    made = plan(batch, types=types, policy=Policy(time_box=0.5))
    assert made.proved_cheapest
    assert made.cost_per_hour == pytest.approx(price)
    for new in made.new_nodes:
        apps = Counter(key.rpartition("/")[2].rpartition("-")[0] for key in new.pods)
        for name, other in avoided.items():
            assert not apps[name] or apps[other] <= (name == other)


def test_room_that_is_there_is_used_up_before_a_plan_is_proved():
    batch = [pods(3, "1500m", name="a"), pods(2, "2", name="b")]
    made = plan(batch, node("free", cpu="4"), types=SIZES, policy=Policy())
    assert made.proved_cheapest
    # What does not fit beside: 8.5 CPUs in all, and the room takes 3.5 of them at most.
    assert made.cost_per_hour < plan(batch, types=SIZES, policy=Policy()).cost_per_hour


@pytest.mark.parametrize("lonely", [3, 7, 20])
def test_each_pod_that_keeps_off_its_like_has_a_whole_node(lonely):
    batch = pods(lonely, "100m", name="lone", anti_affinity=(beside(HOSTNAME, "lone"),))
    made = plan(batch, types=SIZES, policy=Policy())
    assert len(made.new_nodes) == lonely
    assert made.proved_cheapest


@pytest.mark.parametrize("existing", [63, 64, 65, 90])
def test_existing_nodes_take_one_each_of_pods_that_keep_off_each_other_however_many_there_are(existing):
    batch = pods(existing + 5, "100m", name="lone", anti_affinity=(beside(HOSTNAME, "lone"),))
    there = [node(f"n{number}", cpu="1") for number in range(existing)]
    made = plan(batch, there, types=SIZES, policy=Policy())
    assert len(made.placements) == existing
    assert made.lower_bound <= made.cost_per_hour + 1e-9
    assert made.lower_bound >= 5 * min(new.price for new in made.new_nodes) * (1 - 1e-6)


def test_limits_are_counted_by_whole_nodes():
    """The limit lets one large node in; the rest needs a dearer pool's."""
    cheap = pool("cheap", needs(ZONE, "In", "z1"), limits={"nodes": "1"})
    made = plan(pods(6, "15"), cheap, pool("other"), types=SIZES, policy=Policy())
    assert not made.refusals
    assert made.proved_cheapest


@pytest.mark.parametrize("limited", [1, 4])
@pytest.mark.parametrize("classes", [40])
def test_there_is_a_bound_where_several_pools_have_limits(limited, classes):
    """So many types are worth having where limits count their size that classes times types are too many."""
    types = tuple(
        instance_type(f"{family}.{cpu}", cpu, cpu * gib, price=price * cpu)
        for family, gib, price in (
            ("c", 2, 0.04),
            ("m", 4, 0.05),
            ("r", 8, 0.065),
            ("x", 16, 0.1),
            ("h", 3, 0.046),
        )
        for cpu in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
    )
    batch = [
        pods(3, f"{100 + 97 * index % 2900}m", f"{300 + 331 * index % 11000}Mi", name=f"app{index}")
        for index in range(classes)
    ]
    pools = [
        pool(f"limited-{number}", limits={"cpu": "40", "memory": f"{200 + number}Gi"})
        for number in range(limited)
    ]
    made = plan(batch, pools, pool("open"), types=types, policy=Policy())
    assert not made.refusals
    assert 0.7 * made.cost_per_hour < made.lower_bound <= made.cost_per_hour + 1e-9


def test_a_plan_of_the_fewest_nodes_is_not_called_the_cheapest_where_it_is_not():
    types = (instance_type("small", 2, 8, price=0.05), instance_type("large", 16, 64, price=1.0))
    few = plan(pods(5), types=types, policy=Policy(packing=FEWEST_NODES))
    cheap = plan(pods(5), types=types, policy=Policy())
    assert cheap.proved_cheapest
    assert few.cost_per_hour > cheap.cost_per_hour
    assert not few.proved_cheapest
    assert few.lower_bound == pytest.approx(cheap.cost_per_hour, rel=1e-5)


def test_nothing_is_proved_where_no_time_is_for_it():
    assert not plan(pods(3), types=SIZES, policy=Policy(time_box=0)).proved_cheapest


def test_two_runs_prove_the_same():
    batch = [pods(4, f"{300 + 70 * index}m", f"{index + 1}Gi", name=f"a{index}") for index in range(9)]
    assert plan(batch, types=FAMILY, policy=Policy()) == plan(batch, types=FAMILY, policy=Policy())


def a_hard_program():
    """A search that takes thousands of looks: each bin of a dozen is to be filled to the brim."""
    rows, chance = Rows(), Random(1)
    sizes = [chance.randint(20, 60) for _ in range(40)]
    for number, _ in enumerate(sizes):
        rows.most(((number * 12 + place, 1.0) for place in range(12)), 1.0)
    for place in range(12):
        rows.most(((number * 12 + place, float(size)) for number, size in enumerate(sizes)), 100.0)
    worth = -np.repeat(sizes, 12).astype(np.float64)
    solver = tree_search(100_000, 0.0)
    solver.passModel(rows.of_integers(worth, np.zeros(480), np.ones(480), highspy.ObjSense.kMinimize))
    return solver


def test_a_search_ends_after_so_many_looks_with_a_bound_and_the_same_one_every_time():
    ends = []
    for _ in range(2):
        solver = a_hard_program()
        assert run_within(solver, 30) == 30
        ends.append((bound_of(solver), iterations_of(solver)))
    assert ends[0] == ends[1]
    assert ends[0][0] is not None
    assert ends[0][0] <= -1150


def a_filling(number):
    """The dearest filling of a node by two resources."""
    chance = Random(number)
    items = [(chance.randint(100, 900), chance.randint(100, 900)) for _ in range(14)]
    rows = Rows()
    for resource in (0, 1):
        rows.most(((place, float(item[resource])) for place, item in enumerate(items)), 3000.0)
    worth = np.array([sum(item) + chance.randint(-20, 20) for item in items], dtype=np.float64)
    solver = tree_search(100_000, 1e-3)
    solver.passModel(rows.of_integers(worth, np.zeros(14), np.ones(14), highspy.ObjSense.kMaximize))
    return solver


def test_a_search_for_the_most_ends_once_no_answer_is_more_than_is_enough():
    whole, early = 0, 0
    for number in range(3):
        solver = a_filling(number)
        whole += run_within(solver, 100_000)
        most = bound_of(solver)
        solver = a_filling(number)
        early += run_within(solver, 100_000, 1.002 * most)
        assert most - 1e-3 <= bound_of(solver) <= 1.002 * most
        solver = a_filling(number)
        run_within(solver, 100_000, 0.99 * most)
        assert abs(bound_of(solver) - most) < 1e-2
    assert early < whole


def test_a_search_counts_its_simplex_iterations_besides_its_looks():
    solver = a_hard_program()
    looks = looks_within(0.2, solver)
    took = seconds_of(run_within(solver, looks), solver)
    assert iterations_of(solver) > looks > 100
    assert seconds_of(looks, a_hard_program()) < took < 0.6


def test_a_bound_by_resources_counts_both_of_its_programs():
    chance = Random(3)
    kinds = [
        (chance.randint(1, 30), chance.randint(100, 9000), chance.randint(100, 30000)) for _ in range(30)
    ]
    cover = a_cover(SHAPES, kinds)
    problem = BoundProblem(
        items=[SimpleNamespace(pods=SimpleNamespace(requests=requests)) for requests in cover.requests],
        owners=(),
        kinds=[
            Kind(requests, float(number), np.ones(len(SHAPES), dtype=np.bool_))
            for requests, number in zip(cover.requests, cover.needed, strict=True)
        ],
        shapes=replace(cover.shapes, charge=[np.zeros(0, dtype=np.int64)] * len(SHAPES)),
        existing=ExistingNodes(
            np.zeros((0, 2), dtype=np.int64), np.zeros((0, 30), dtype=np.bool_), np.zeros(0, dtype=np.int64)
        ),
        left=[np.zeros(0, dtype=np.int64)],
    )
    effort = Effort(0.3)
    program = program_of(problem)
    price = program.solve(effort)
    left = effort.left
    assert left < 0.299
    assert program.solve_whole(effort, price) > price
    assert left - effort.left > 0.05


@pytest.mark.parametrize("box", [0.05, 0.2])
def test_a_proof_takes_little_more_than_it_may(box):
    """As counted: the least that a search can do is what it may take beyond."""
    chance = Random(3)
    pods_of = [
        (chance.randint(1, 6), chance.randint(100, 5000), chance.randint(100, 20000)) for _ in range(20)
    ]
    effort = Effort(box)
    found = whole_nodes(a_cover(SHAPES, pods_of), apart(len(pods_of)), effort)
    assert found is not None
    assert -0.5 * box < effort.left < 0.5 * box


def test_a_program_of_too_many_entries_is_not_begun():
    """Ninety nodes with some room, and ten sizes beside them: HiGHS's first cuts alone would take the box."""
    chance = Random(3)
    sold = [
        (
            0.048 * size * (1 + chance.random() * 0.1),
            size * 980,
            int(size * 980 * chance.choice((2.1, 4.2, 8.4))),
            29,
        )
        for size in chance.choices((1, 2, 4, 8, 16, 32), k=10)
    ]
    there = [
        (0.0, chance.randint(200, 4000), chance.randint(500, 16000), chance.randint(5, 29)) for _ in range(90)
    ]
    asked = [
        (chance.randint(20, 120), chance.choice((50, 100, 250, 500, 900, 1900)), chance.randint(50, 6000), 1)
        for _ in range(24)
    ]
    effort = Effort(0.5)
    assert (
        whole_nodes(a_cover([*sold, *there], asked, standing=len(there)), apart(len(asked)), effort) is None
    )
    assert effort.left > 0.4


@st.composite
def worlds(draw):
    """A dozen pods at most; pools with weights and limits, room that is there, pods that keep off others."""
    batch, left = [], 12
    for name in ("a", "b", "c", "d")[: draw(st.integers(1, 4))]:
        number = draw(st.integers(1, min(5, left)))
        left -= number
        apart = draw(st.sampled_from([None, None, name, "a"]))
        batch += pods(
            number,
            draw(st.sampled_from(["100m", "600m", "1", "1900m", "3", "7", "15"])),
            draw(st.sampled_from(["0", "1Gi", "5Gi", "20Gi"])),
            name=name,
            selector=draw(st.sampled_from([{}, {}, {ZONE: "z1"}])),
            anti_affinity=(beside(HOSTNAME, apart),) if apart else (),
        )
        if not left:
            break
    limits = st.sampled_from([None, {"cpu": "9"}, {"cpu": "40"}, {"nodes": "3"}])
    pools = [
        pool("first", limits=draw(limits), weight=draw(st.sampled_from([0, 7]))),
        pool("second", needs(ZONE, "In", "z1", "z2"), limits=draw(limits)),
        pool("third", needs(ZONE, "In", "z1"), limits=draw(limits), weight=draw(st.sampled_from([0, 3]))),
    ]
    there = [
        node(f"n{index}", cpu=cpu, labels={ZONE: "z1"}, provider_id="")
        for index, cpu in enumerate(draw(st.lists(st.sampled_from(["1", "3", "8"]), max_size=3)))
    ]
    return snapshot(batch, pools[: draw(st.integers(1, 3))], there)


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(worlds(), st.sampled_from([FEWEST_NODES, LOWEST_PRICE]))
def test_no_bound_is_above_the_least_price_and_nothing_else_is_called_the_cheapest(seen, packing):
    made = solve(seen, dict.fromkeys(seen.pools, SIZES), Policy(packing=packing))
    known = best(seen, SIZES)
    assert not made.faults
    if made.refusals:
        return
    assert made.lower_bound is not None
    assert made.lower_bound <= known.price + 1e-6
    if made.proved_cheapest:
        assert made.cost_per_hour == pytest.approx(known.price, rel=1e-5)
