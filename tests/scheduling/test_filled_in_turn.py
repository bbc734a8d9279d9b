"""Whether some nodes hold some pods: judged by trying every node for every pod."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.scheduling.optimizer.chosen_nodes import on_chosen_nodes
from nodeless.scheduling.optimizer.cover import Chosen
from nodeless.scheduling.optimizer.filled_in_turn import FilledInTurn, _distinct
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.spread.sharing import ENDLESS
from tests.scheduling.test_dominance import a_cover, apart, host_limits

#: Of the last, more of the memory is in use than there is.
ROOMS = ((4, 7), (6, 6), (9, 12), (3, 20), (5, -1))


def holds(cover, hosts, nodes):
    """Whether each pod has room on one of the nodes, by trying all of them."""
    pods = [item for item, number in enumerate(cover.needed.tolist()) for _ in range(number)]
    seen = set()

    def place(index, held):
        if index == len(pods):
            return True
        if (index, held) in seen:
            return False
        seen.add((index, held))
        return any(
            allows(cover, hosts, nodes[at], more := (*own, pods[index]))
            and place(index + 1, (*held[:at], more, *held[at + 1 :]))
            for at, own in enumerate(held)
        )

    return place(0, ((),) * len(nodes))


def allows(cover, hosts, shape, items):
    """Whether a node of a shape may hold pods of these items; what none asks for, none needs."""
    asked = sum((cover.requests[item] for item in items), np.zeros_like(cover.requests[0]))
    return (
        ((asked <= cover.shapes.room[shape]) | (asked == 0)).all()
        and all(cover.shapes.allowed[shape, item] for item in items)
        and all(
            sum(bool(hosts.adds[other, limit]) for other in items) <= hosts.most[item, limit]
            for item in items
            for limit in range(hosts.count)
        )
    )


def filled_in_turn(cover, hosts, nodes, effort):
    """What it says by all ways, having tried those that look best."""
    search = FilledInTurn(cover, hosts, cover.needed, nodes)
    held, placed = search.in_few_ways(effort)
    return search.in_all_ways(effort) if held is None else (held, placed)


def is_sound(cover, hosts, nodes, pods):
    """Whether every pod has its place, and no node more than it may hold."""
    return (pods.sum(axis=0) == cover.needed).all() and all(
        allows(cover, hosts, shape, [item for item, number in enumerate(row) for _ in range(number)])
        for shape, row in zip(nodes, pods.tolist(), strict=True)
    )


@st.composite
def limits_on_a_host(draw, items):
    """Any limits: who is counted in a tally need not limit it, nor the other way round."""
    size = (items, draw(st.integers(0, 2)))
    adds = [draw(st.booleans()) for _ in range(size[0] * size[1])]
    most = [draw(st.sampled_from([ENDLESS, ENDLESS, 0, 1, 2])) for _ in adds]
    return host_limits(np.array(adds, dtype=bool).reshape(size), np.array(most, dtype=int).reshape(size))


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    pods=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=4),
    nodes=st.lists(st.integers(0, len(ROOMS) - 1), min_size=1, max_size=4),
    closed=st.sets(st.tuples(st.integers(0, len(ROOMS) - 1), st.integers(0, 3)), max_size=3),
    data=st.data(),
)
def test_what_it_says_is_what_trying_every_node_for_every_pod_says(pods, nodes, closed, data):
    allowed = [[(shape, item) not in closed for item in range(len(pods))] for shape in range(len(ROOMS))]
    cover = a_cover([(1.0, *room) for room in ROOMS], pods, allowed=allowed)
    hosts = data.draw(limits_on_a_host(len(pods)))
    held, placed = filled_in_turn(cover, hosts, nodes, Effort(5.0))
    assert held is holds(cover, hosts, nodes)
    if held:
        assert is_sound(cover, hosts, nodes, placed)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    pods=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(0, 8)), min_size=1, max_size=3),
    nodes=st.sampled_from([(0, 0, 0), (1, 1, 1), (3, 3, 3, 3), (0, 0, 0, 0, 0, 1), (1, 1, 1, 1, 1, 2)]),
    data=st.data(),
)
def test_where_most_nodes_are_alike_a_program_says_what_trying_every_one_says(pods, nodes, data):
    cover = a_cover([(1.0, *room) for room in ROOMS], pods)
    hosts = data.draw(limits_on_a_host(len(pods)))
    nothing = np.zeros(len(pods), dtype=np.int64)
    empty = [Chosen(shape, nothing, times) for shape, times in Counter(nodes).items()]
    held, placed = on_chosen_nodes(cover, hosts, empty, Effort(5.0))
    assert held is holds(cover, hosts, nodes)
    if held:
        assert not Counter(one.shape for one in placed for _ in range(one.times)) - Counter(nodes)
        # Where fewer pods wait than a filling has, the rest of its room stays free.
        assert (sum(one.filling * one.times for one in placed) >= cover.needed).all()
        for one in placed:
            items = np.repeat(np.arange(len(pods)), one.filling).tolist()
            assert allows(cover, hosts, one.shape, items)


def nodes_filled_to_the_last(chance, *, nodes=5, each=4):
    """A cover whose nodes have exactly the room of the pods that were drawn for each of them."""
    sizes = [(chance.randint(3, 40) * 50, chance.randint(2, 60) * 128) for _ in range(nodes * each)]
    rooms = [np.sum(sizes[at * each : (at + 1) * each], axis=0).tolist() for at in range(nodes)]
    pods = [(number, *size) for size, number in Counter(sizes).items()]
    return a_cover([(1.0, *room) for room in rooms], pods)


@pytest.mark.parametrize("seed", range(12))
def test_twenty_pods_are_found_to_fill_five_nodes_to_the_last_bit_of_room(seed):
    cover = nodes_filled_to_the_last(Random(seed))
    hosts, nodes = apart(len(cover.needed)), list(range(len(cover.shapes)))
    held, placed = filled_in_turn(cover, hosts, nodes, Effort(1.0))
    assert held
    assert is_sound(cover, hosts, nodes, placed)


@pytest.mark.parametrize("pods", [130, 1000])
def test_many_pods_of_many_sizes_find_their_places_where_there_is_room_to_spare(pods):
    chance = Random(pods)
    sizes = [(chance.randint(2, 40) * 50, chance.randint(2, 60) * 128) for _ in range(20)]
    cover = a_cover([(1.0, 16_000, 65_536)], [(pods // 20, *size) for size in sizes])
    asked = (cover.needed @ cover.requests / cover.shapes.room[0]).max()
    nodes = [0] * int(1.1 * asked + 1)
    hosts = apart(len(sizes))
    held, placed = filled_in_turn(cover, hosts, nodes, Effort(1.0))
    assert held
    assert is_sound(cover, hosts, nodes, placed)


@pytest.mark.parametrize("largest", [10**6, 2**31 - 1])
def test_of_ways_that_leave_the_same_pods_one_is_followed_however_many_pods_there_are(largest):
    """Multiplied by powers of two, what tells ways apart would soon be lost beyond 64 bits."""
    left = np.full((50, 10), largest)
    left[:, 0] = range(50)
    left[:, 1] -= range(50, 0, -1)
    rows = np.concatenate([left, left[::-1]])
    assert _distinct(rows, np.full(10, largest)).tolist() == list(range(50))


def test_what_would_take_too_much_memory_is_not_tried():
    pods = 10_000_000
    cover = a_cover([(1.0, pods, pods)], [(pods, 1, 1)])
    assert filled_in_turn(cover, apart(1), [0], Effort(100.0)) == (None, None)


def test_nodes_without_room_for_the_pods_together_do_not_hold_them():
    cover = a_cover([(1.0, 4, 4)], [(3, 3, 1)])
    assert filled_in_turn(cover, apart(1), [0, 0], Effort(1.0)) == (False, None)


def test_a_pod_is_kept_off_a_node_where_it_has_room_beside_some_of_the_others_but_not_beside_all():
    cover = a_cover([(1.0, 7, 10), (1.0, 6, 6)], [(1, 6, 4), (1, 1, 6), (1, 2, 6)])
    held, placed = filled_in_turn(cover, apart(3), [0, 1], Effort(1.0))
    assert held
    assert is_sound(cover, apart(3), [0, 1], placed)


def test_a_node_is_left_to_pods_that_may_be_on_no_other_where_its_room_is_not_all_that_counts():
    allowed = [[True, True], [True, False]]
    cover = a_cover([(1.0, 9, 9), (1.0, 12, 12)], [(1, 3, 3), (1, 2, 2)], allowed=allowed)
    keeps_off = host_limits(np.array([[False], [True]]), np.array([[0], [ENDLESS]]))
    held, placed = filled_in_turn(cover, keeps_off, [0, 1], Effort(1.0))
    assert held
    assert is_sound(cover, keeps_off, [0, 1], placed)


def test_where_the_effort_does_not_suffice_it_does_not_know():
    cover = nodes_filled_to_the_last(Random(0))
    effort = Effort(1e-6)
    nodes = list(range(len(cover.shapes)))
    assert filled_in_turn(cover, apart(len(cover.needed)), nodes, effort) == (None, None)


def test_nodes_that_keep_their_filling_give_it_up_where_the_others_do_not_hold_the_rest():
    cover = a_cover([(1.0, 5, 5), (1.0, 4, 4)], [(2, 3, 3), (1, 2, 2), (1, 1, 1)])
    hosts = apart(3)
    kept = Chosen(0, np.array([1, 0, 1]), 1)
    free = Chosen(1, np.zeros(3, dtype=np.int64), 1)
    held, placed = on_chosen_nodes(cover, hosts, [kept, free], Effort(1.0))
    assert held
    assert sum(one.filling * one.times for one in placed).tolist() == [2, 1, 1]
