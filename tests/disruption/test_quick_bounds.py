"""A look at a large cluster in which nothing can be better is cheap; what is passed over changes no move."""

from contextlib import contextmanager
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodeless.disruption import consolidation, deciding
from nodeless.disruption.consolidation import Consolidation
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND
from nodeless.model.requirements import Requirements
from tests.disruption.world import BY_NAME, a_provisioner, cluster, decide, node_of, on
from tests.solve.factories import needs

POOL = a_provisioner(
    requirements=Requirements(
        [
            needs(CAPACITY_TYPE, "In", ON_DEMAND),
            needs("node.kubernetes.io/instance-type", "In", "large"),
        ]
    )
)


@contextmanager
def simulated():
    """The number of nodes that each simulation has looked at."""
    sizes, real = [], consolidation.without

    def counted(snapshot, *arguments):
        sizes.append(len(snapshot.nodes))
        return real(snapshot, *arguments)

    consolidation.without = counted
    try:
        yield sizes
    finally:
        consolidation.without = real


def nodes_with(counts, kind="large"):
    """Nodes of 3900m, each with so many pods of 900m; the others' free room is less or the same."""
    things = []
    for number, count in enumerate(counts):
        name = f"n{number:03}"
        things += [node_of(POOL, name, kind), *on(name, count, cpu="900m", memory="10Mi")]
    return things


def test_full_nodes_of_one_kind_are_left_alone_without_a_look_at_the_whole_cluster():
    seen = cluster(POOL, nodes_with([4] * 59 + [3]))
    with simulated() as sizes:
        decisions = decide(seen)
    assert not decisions.moves
    # Deletions are not tried at all; replacements with the nodes in question and the one that has room.
    assert max(sizes) < 60
    assert sum(sizes) < 10 * 60


def test_a_node_with_more_pods_than_the_others_have_places_for_says_so():
    large = BY_NAME["large"]
    alone = replace(
        large, offerings=tuple(each for each in large.offerings if each.capacity_type == ON_DEMAND)
    )
    decisions = decide(cluster(POOL, nodes_with([4, 4, 3])), (alone,))
    assert decisions.verdicts["n000"].message == "the other nodes have room for 1 of its 4 pods at most"


def test_a_node_whose_pods_go_to_the_last_free_places_still_goes():
    decisions = decide(cluster(POOL, nodes_with([4] * 20 + [3, 3, 3, 3])))
    (move,) = decisions.moves
    assert move.evictions == 3
    assert not move.replacements


class _Thorough(Consolidation):
    """Simulates whatever it can, each time on the whole cluster."""

    def _crowded(self, _candidate, _room):
        return False

    def _small_world(self, _some, _room):
        return None


KINDS = st.sampled_from(["small", "medium", "large", "2xlarge"])
SHORT = {"small": 900, "medium": 1900, "large": 3900, "2xlarge": 15900}
PODS = st.lists(st.sampled_from([300, 700, 900, 1500]), max_size=5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(KINDS, PODS), min_size=2, max_size=9))
@example([("large", [900] * 4)] * 5)
@example([("2xlarge", [1500] * 2), ("2xlarge", [1500] * 2), ("large", [900] * 4), ("large", [900] * 4)])
def test_moves_are_those_that_simulations_alone_would_find(nodes):
    pool, things = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])), []
    for number, (kind, requests) in enumerate(nodes):
        name, left = f"n{number}", SHORT[kind]
        things.append(node_of(pool, name, kind))
        for place, cpu in enumerate(requests):
            left -= cpu
            if left >= 0:
                things.append(on(name, cpu=f"{cpu}m", memory="10Mi", app=f"app{place}"))
    seen = cluster(pool, things)
    quick = decide(seen)
    real = deciding.Consolidation
    deciding.Consolidation = _Thorough
    try:
        thorough = decide(seen)
    finally:
        deciding.Consolidation = real
    assert [(move.claims, move.saving) for move in quick.moves] == [
        (move.claims, move.saving) for move in thorough.moves
    ]
