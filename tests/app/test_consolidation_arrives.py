"""On virtual time, every cluster comes to rest, and no move is found and thrown away again and again."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.disruption.changes import NO_OBJECT
from nodeless.model.packing import FEWEST_NODES, LOWEST_PRICE
from tests.app.living import emptiest_first, fullest_first, lived
from tests.disruption.measure import TYPES
from tests.disruption.test_validating import NODES, POOLS, a_cluster

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
