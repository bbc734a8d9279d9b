"""On virtual time, every cluster comes to rest, and no command is found and thrown away again and again."""

import os
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.disruption import CommandHistory, DisruptionPolicy, disrupt
from nodeless.disruption.changes import NO_OBJECT
from nodeless.disruption.command_history import VALIDATION_SECONDS
from nodeless.model import events
from nodeless.model.packing import FEWEST_NODES, LOWEST_PRICE
from nodeless.model.pools import Budget
from nodeless.state import apply
from tests.controllers.living import DRAIN_SECONDS, emptiest_first, fullest_first, lived
from tests.disruption.drawn_clusters import NAMED, TYPES
from tests.disruption.judge import Judge
from tests.disruption.test_validating import NODES, ON_DEMAND_ONLY, POOLS, a_cluster
from tests.disruption.world import a_node_pool, cluster, node_of, on
from tests.scheduling.factories import NOW, instance_type

pytestmark = pytest.mark.long

SCORES = st.sampled_from([emptiest_first, fullest_first])


@settings(max_examples=15, deadline=None)
@given(
    POOLS,
    NODES,
    st.sampled_from([emptiest_first, fullest_first]),
    st.sampled_from([LOWEST_PRICE, FEWEST_NODES]),
)
def test_every_cluster_comes_to_rest_and_drops_no_move_for_nothing(pools, nodes, score, packing):
    living, _ = lived(a_cluster(pools, nodes), TYPES, score=score, packing=packing)
    told = [(text, figures["code"], figures["changed"]) for text, figures in living.dropped]
    assert [each for each in told if each[2] == NO_OBJECT] == []
    assert [each for each, count in Counter(told).items() if count > 1] == []


#: Families with unlike memory at unlike prices, so that what is cheapest is not what is there.
SHAPES = {"c": (2, 0.85), "m": (4, 1.0), "r": (8, 1.3), "o": (4, 1.22)}
SIZES = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16}
MIXED = tuple(
    instance_type(f"{family}.{size}", cpu, cpu * gib, price=round(0.05 * cpu * rate, 4))
    for family, (gib, rate) in SHAPES.items()
    for size, cpu in SIZES.items()
)
MIXED_BY_NAME = {kind.name: kind for kind in MIXED}
FEW_PODS = st.lists(st.tuples(st.integers(2, 60), st.sampled_from([1, 2, 4, 8])), max_size=2)
FEW_NODES = st.lists(st.tuples(st.sampled_from(sorted(MIXED_BY_NAME)), FEW_PODS), min_size=1, max_size=5)


def a_mixed_cluster(nodes, pools):
    """Nodes of which each pod asks for a part of the processors, and so many GiB for each."""
    made = [a_node_pool(f"pool{number}", requirements=ON_DEMAND_ONLY) for number in range(pools)]
    things = [*made]
    for number, (kind, asked) in enumerate(nodes):
        name, whole = f"n{number}", MIXED_BY_NAME[kind].allocatable
        things.append(node_of(made[number % pools], name, kind, types=MIXED_BY_NAME))
        cpu, memory = whole["cpu"], whole["memory"] >> 20
        for place, (part, gib) in enumerate(asked):
            milli = whole["cpu"] * part // 100
            mib = min(milli * gib, memory * 3 // 5)
            if milli <= cpu and mib <= memory:
                cpu, memory = cpu - milli, memory - mib
                things.append(on(name, cpu=f"{milli}m", memory=f"{mib}Mi", app=f"app{place}"))
    return cluster(things)


#: Clusters of which a search once left money on the table, by what was hard about them.
HARD = [
    # A command leaves a node that is worth replacing only once it has run for nine minutes.
    pytest.param(
        [("c.2xlarge", [(47, 4), (48, 1)]), ("c.2xlarge", [(2, 1), (4, 1)])],
        1,
        fullest_first,
        id="worth-replacing-after-nine-minutes",
    ),
    # The cheapest plan for the pods of a pair has three nodes; one of two still saves enough.
    pytest.param(
        [
            ("c.2xlarge", [(10, 1)]),
            ("c.4xlarge", [(13, 8), (49, 1)]),
            ("c.large", [(17, 8)]),
            ("c.large", [(16, 8)]),
            ("c.large", [(18, 8), (50, 8)]),
        ],
        2,
        emptiest_first,
        id="two-nodes-save-enough-for-a-pair",
    ),
    # The plan that is found first for a pair has four nodes and costs more than they do.
    pytest.param(
        [
            ("r.2xlarge", [(20, 8), (38, 8)]),
            ("r.4xlarge", [(20, 8), (28, 1)]),
            ("r.2xlarge", [(11, 4), (12, 1)]),
        ],
        1,
        emptiest_first,
        id="the-first-plan-for-a-pair-costs-more",
    ),
    # The cheapest two nodes for a pair are of a type that ends; others still save money.
    pytest.param(
        [
            ("c.large", []),
            ("o.4xlarge", []),
            ("r.large", [(23, 8), (43, 8)]),
            ("c.2xlarge", [(12, 4), (13, 4)]),
            ("c.2xlarge", [(12, 4), (13, 4)]),
        ],
        2,
        emptiest_first,
        id="a-type-that-ends-is-the-cheapest",
    ),
    # Two nodes of a large and a small type hold the pods of two in one way alone.
    pytest.param(
        [
            ("c.xlarge", [(17, 1), (15, 2)]),
            ("o.xlarge", [(40, 1), (58, 8)]),
            ("r.4xlarge", [(32, 1), (47, 8)]),
        ],
        2,
        emptiest_first,
        id="one-way-for-a-pair",
    ),
    # In the cheapest plan for the whole, one of the nodes is like one that ends.
    pytest.param(
        [
            ("c.xlarge", [(38, 2), (16, 2)]),
            ("m.xlarge", [(44, 4), (44, 4)]),
            ("m.xlarge", [(38, 8), (44, 4)]),
        ],
        2,
        emptiest_first,
        id="the-whole-keeps-one-of-its-nodes",
    ),
    # Only the other node holds one of two pods, and has no room for both.
    pytest.param(
        [
            ("r.4xlarge", []),
            ("c.xlarge", []),
            ("o.2xlarge", [(58, 8)]),
            ("r.large", [(34, 8), (57, 2)]),
            ("r.large", [(34, 8), (57, 2)]),
        ],
        2,
        fullest_first,
        id="one-of-two-pods-has-room",
    ),
    # Exchanging two nodes for one of their types and a smaller one would never end.
    pytest.param(
        [
            ("r.large", [(42, 8)]),
            ("m.large", [(42, 8)]),
            ("r.large", []),
            ("m.large", []),
            ("c.xlarge", [(56, 4), (23, 8)]),
        ],
        1,
        fullest_first,
        id="an-exchange-that-would-never-end",
    ),
    # Three nodes are cheaper than one, and neither one nor two of another type are.
    pytest.param(
        [("c.4xlarge", [(24, 4), (28, 1)]), ("m.2xlarge", [(15, 1), (29, 8)])],
        1,
        emptiest_first,
        id="three-nodes-are-cheaper-than-one",
    ),
]


def _assert_nothing_cheaper_at_rest(nodes, pools, score):
    """By the plan alone: the judge knows of no scores, by which what it finds may leave pods over."""
    living, _ = lived(a_mixed_cluster(nodes, pools), MIXED, score=score, plan_as_bound="never")
    seen = living.snapshot
    catalog = dict.fromkeys(seen.pools, MIXED)
    policy = DisruptionPolicy(as_bound=False)
    verdicts = disrupt(seen, catalog, policy, living.at, living.loop._memory).verdicts
    resting = {f"node-{name}" for name, verdict in verdicts.items() if verdict.code == "Restless"}
    sizes = (1, 2, len(seen.nodes))
    assert Judge(seen, MIXED).worthwhile(sizes, policy.least_saving, resting) == []


@settings(max_examples=int(os.environ.get("FIXED_POINTS", "12")), deadline=None)
@given(FEW_NODES, st.integers(1, 2), SCORES)
def test_at_rest_no_node_no_pair_and_not_the_whole_could_be_cheaper(nodes, pools, score):
    _assert_nothing_cheaper_at_rest(nodes, pools, score)


@pytest.mark.drawn
@pytest.mark.parametrize(("nodes", "pools", "score"), HARD)
def test_at_rest_nothing_could_be_cheaper_where_it_was_hard_to_see(nodes, pools, score):
    _assert_nothing_cheaper_at_rest(nodes, pools, score)


@pytest.mark.parametrize(("nodes", "budget"), [(2, "10%"), (7, "10%"), (24, "10%"), (10, "3")])
def test_empty_nodes_go_as_fast_as_their_budget_allows(nodes, budget):
    pool = a_node_pool(requirements=ON_DEMAND_ONLY, budgets=(Budget(budget),))
    seen = cluster(pool, [node_of(pool, f"n{i:02}", "a.large", types=NAMED) for i in range(nodes)])
    living, _ = lived(seen, TYPES)
    times = sorted({at for at, _ in living.ended})
    assert len(living.ended) == nodes
    assert times[0] == VALIDATION_SECONDS
    # Each wave is seen as gone, and the next one begins, within the loop's second.
    assert {after - before for before, after in pairwise(times)} <= {DRAIN_SECONDS, DRAIN_SECONDS + 1}


def test_the_next_nodes_of_a_budget_wait_while_those_before_them_drain():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY, budgets=(Budget("2"),))
    nodes = [
        [node_of(pool, f"n{i}", "a.large", types=NAMED), on(f"n{i}", cpu="200m", memory="99Mi")]
        for i in range(8)
    ]
    living, _ = lived(cluster(pool, nodes), TYPES, score=fullest_first)
    times = sorted({at for at, _ in living.ended})
    assert {after - before for before, after in pairwise(times)} == {VALIDATION_SECONDS}
    assert len(living.snapshot.nodes) == 1


def test_an_empty_node_that_gets_a_pod_while_a_budget_keeps_it_stays():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY, budgets=(Budget("1"),))
    seen = cluster(pool, [node_of(pool, name, "a.large", types=NAMED) for name in "ab"])
    first = disrupt(seen, {pool.key: TYPES}, DisruptionPolicy(), NOW)
    memory = CommandHistory().with_held_nodes(first, NOW)
    assert list(first.held) == ["b"]
    taken = apply(seen, events.PodSeen(on("b", cpu="1500m")[0]))
    after = disrupt(taken, {pool.key: TYPES}, DisruptionPolicy(), NOW + 20, memory)
    assert memory.with_held_nodes(after, NOW + 20).held == {}
