"""Fillings of nodes after exchanges of pods, judged by every way to fill a node."""

import random
import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.scheduling.optimizer.exchanges import Exchanges
from nodeless.scheduling.optimizer.patterns import Filler
from nodeless.scheduling.spread.sharing import ENDLESS
from tests.scheduling.test_dominance import a_cover, apart, host_limits
from tests.scheduling.test_knapsacks import ITEMS, SHAPES, VALUES, fillings


def exchanged(cover, hosts, before, values, left=None):
    rows = np.arange(len(cover.shapes))
    exchanges = Exchanges(cover.shapes, cover.requests, hosts)
    return exchanges.improved(before, values, cover.needed if left is None else left, rows)


def greedily(cover, hosts, values):
    filler = Filler(cover.shapes, cover.requests, hosts)
    return filler.best(values, cover.needed, np.arange(len(cover.shapes)))


@settings(deadline=None)
@given(SHAPES, ITEMS, VALUES, st.data(), st.randoms(use_true_random=False))
def test_what_comes_out_fits_and_is_worth_no_less(shapes, items, values, data, chance):
    """Each item is counted by some tallies, and allows so many pods there beside its own."""
    allowed = [[chance.random() < 0.8 for _ in items] for _ in shapes]
    tallies = [
        st.lists(each, min_size=2, max_size=2) for each in (st.booleans(), st.sampled_from([1, 2, ENDLESS]))
    ]
    adds, most = (
        np.array(data.draw(st.lists(each, min_size=len(items), max_size=len(items)))) for each in tallies
    )
    cover, hosts = a_cover(shapes, items, allowed=allowed), host_limits(adds, most)
    worth = np.array(values[: len(items)])
    ways = [list(fillings(cover, hosts, shape)) for shape in range(len(shapes))]
    before = np.array([chance.choice(each) for each in ways])
    after = exchanged(cover, hosts, before, worth)
    for shape, (first, last) in enumerate(zip(before, after, strict=True)):
        assert any((last == way).all() for way in ways[shape])
        assert last @ worth >= first @ worth


def test_pods_leave_for_others_that_are_worth_more_together():
    """A pod of 6 keeps two of 5 out, which are worth more."""
    cover = a_cover([(1.0, 10, 100)], [(1, 6, 1), (2, 5, 1)])
    after = exchanged(cover, apart(2), np.array([[1, 0]]), np.array([0.65, 0.5]))
    assert after.tolist() == [[0, 2]]


def test_no_more_pods_come_than_are_left():
    cover = a_cover([(1.0, 100, 100)], [(9, 1, 1), (9, 2, 1)])
    after = exchanged(cover, apart(2), np.array([[1, 1]]), np.array([1.0, 1.0]), left=np.array([3, 2]))
    assert after.tolist() == [[3, 2]]


def test_as_many_pods_come_as_a_limit_for_a_node_lets():
    """Pods of which one may be on a node leave for others, and one of them comes."""
    cover, worth = a_cover([(1.0, 10, 100)], [(1, 6, 1), (2, 5, 1)]), np.array([0.65, 0.5])
    assert exchanged(cover, apart(2, 0), np.array([[1, 0]]), worth).tolist() == [[0, 2]]
    assert exchanged(cover, apart(2, 1), np.array([[1, 0]]), worth).tolist() == [[1, 0]]
    assert exchanged(cover, apart(2, 1), np.array([[1, 0]]), np.array([0.4, 0.5])).tolist() == [[0, 1]]


def test_pods_with_a_limit_for_others_neither_leave_nor_come():
    cover, worth = a_cover([(1.0, 10, 100)], [(1, 6, 1), (2, 5, 1)]), np.array([0.65, 0.5])
    together = host_limits(np.array([[True], [True]]), np.array([[3], [ENDLESS]]))
    assert exchanged(cover, together, np.array([[1, 0]]), worth).tolist() == [[1, 0]]
    assert exchanged(cover, together, np.array([[0, 1]]), worth).tolist() == [[0, 1]]


def test_a_pod_that_lacks_one_byte_of_room_does_not_come():
    cover = a_cover([(1.0, 3 * 10**11 - 1)], [(3, 10**11), (1, 1)])
    after = exchanged(cover, apart(2), np.array([[0, 1]]), np.array([1.0, 1e-3]))
    assert after.tolist() != [[3, 0]]
    assert (after @ cover.requests <= cover.shapes.room).all()


def test_existing_pods_that_are_worth_nothing_stay_where_nothing_needs_their_room():
    cover = a_cover([(1.0, 10, 10)], [(1, 6, 1), (1, 8, 1)])
    after = exchanged(cover, apart(2), np.array([[1, 0]]), np.array([0.0, 0.0]))
    assert after.tolist() == [[1, 0]]


def test_large_pods_fill_nodes_nearly_as_well_as_the_best_way_does():
    """Drawn nodes of a few large pods: greedy fillings lose several times as much as improved ones."""
    # The seed of the run decides; the mean of so many nodes hardly differs from seed to seed.
    chance = random.Random(random.random())
    lost = {"greedy": [], "improved": []}
    for _ in range(200):
        items = [(chance.randint(1, 3), chance.randint(20, 60), chance.randint(20, 60)) for _ in range(4)]
        cover, hosts = a_cover([(1.0, 100, 100), (1.0, 160, 90)], items), apart(len(items))
        worth = np.array([(cpu + memory) * chance.uniform(0.9, 1.1) for _, cpu, memory in items])
        before = greedily(cover, hosts, worth)
        after = exchanged(cover, hosts, before, worth)
        for shape in range(2):
            best = max(float(way @ worth) for way in fillings(cover, hosts, shape))
            lost["greedy"].append(1 - float(before[shape] @ worth) / best)
            lost["improved"].append(1 - float(after[shape] @ worth) / best)
    assert np.mean(lost["improved"]) < 0.5 * np.mean(lost["greedy"])
    assert np.mean(lost["improved"]) < 0.02


def test_a_thousand_kinds_of_pods_take_little_memory():
    chance = random.Random(5)
    items = [(9, chance.randint(1, 40), chance.randint(1, 40)) for _ in range(1000)]
    cover, hosts = a_cover([(1.0, 900 + index, 900) for index in range(40)], items), apart(1000)
    worth = cover.requests.sum(axis=1) * np.linspace(0.9, 1.1, 1000)
    before = greedily(cover, hosts, worth)
    tracemalloc.start()
    after = exchanged(cover, hosts, before, worth)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 60e6
    assert (after @ worth >= before @ worth).all()
