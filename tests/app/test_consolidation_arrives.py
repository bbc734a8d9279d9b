"""On virtual time, every cluster comes to rest, and no move is found and thrown away again and again."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.disruption import DisruptionPolicy, Memory, disrupt
from nodeless.disruption.changes import NO_OBJECT
from nodeless.disruption.memory import VALIDATION_SECONDS
from nodeless.model import events
from nodeless.model.packing import FEWEST_NODES, LOWEST_PRICE
from nodeless.model.pools import Budget
from nodeless.state import apply
from tests.app.living import DRAIN_SECONDS, emptiest_first, fullest_first, lived
from tests.disruption.measure import NAMED, TYPES
from tests.disruption.test_validating import NODES, ON_DEMAND_ONLY, POOLS, a_cluster
from tests.disruption.world import a_node_pool, cluster, node_of, on
from tests.solve.factories import NOW

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
    memory = Memory().holding(first, NOW)
    assert list(first.held) == ["b"]
    taken = apply(seen, events.PodSeen(on("b", cpu="1500m")[0]))
    after = disrupt(taken, {pool.key: TYPES}, DisruptionPolicy(), NOW + 20, memory)
    assert memory.holding(after, NOW + 20).held == {}
