"""What a cheapest cover never needs: judged by every way to divide a few pods among nodes."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.dominance import useful_shapes
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.spread.sharing import ENDLESS


def a_cover(shapes, pods, *, allowed=None, charge=None, cap=None, standing=0):
    """Shapes of (price, room...) and items of (number, requests...); the last shapes are existing nodes.

    Args:
        shapes: What may be bought, or is there.
        pods: What is to be covered.
        allowed: Whether each shape may hold each item; None: all may.
        charge: What a node of each shape takes of a cap; None: nothing.
        cap: How much of that there is.
        standing: How many shapes are existing nodes.
    """
    price = np.array([float(each[0]) for each in shapes])
    there = np.arange(len(shapes)) >= len(shapes) - standing
    nothing = np.zeros(0)
    return Cover(
        Shapes(
            (),
            np.where(there, -1, 0),
            np.array([each[1:] for each in shapes], dtype=np.int64),
            price,
            [],
            np.ones((len(shapes), len(pods)), dtype=np.bool_) if allowed is None else np.array(allowed),
        ),
        np.array([each[1:] for each in pods], dtype=np.int64),
        np.array([each[0] for each in pods], dtype=np.int64),
        price,
        tuple({} if charge is None else {0: float(each)} for each in charge or shapes),
        np.array([] if cap is None else [float(cap)]),
        np.zeros(len(pods)),
        np.zeros(len(pods)),
        there,
        np.zeros(0, dtype=np.intp),
        {},
        nothing.reshape(0, len(shapes[0]) - 1),
    )


def apart(items, *lonely):
    """Limits of items, of which the lonely keep off their like."""
    adds = np.array([[item in lonely] for item in range(items)])
    return host_limits(adds, np.where(adds, 1, ENDLESS))


def host_limits(adds, most):
    """Limits of items: the tallies that count each, and how much it allows there; shape (items, tallies)."""
    limits = HostLimits([])
    limits.count = adds.shape[1]
    limits.adds, limits.most = adds, most
    limits.touched = [np.flatnonzero(row) for row in adds | (most < ENDLESS)]
    return limits


def useful(cover, hosts=None, below=np.inf):
    return useful_shapes(cover, hosts or apart(len(cover.needed)), below, Effort(1.0))


DOUBLING = [(size * 1.0, size * 10, size * 10) for size in (1, 2, 4, 8)]


def test_of_sizes_that_double_in_price_one_node_of_each_but_the_largest_is_enough():
    found = useful(a_cover(DOUBLING, [(90, 3, 3), (50, 2, 1)]))
    assert found.shapes.tolist() == [0, 1, 2, 3]
    assert found.apart.diagonal().tolist() == [True, True, True, False]
    assert found.groups() == [[0], [1], [2]]


def test_one_node_of_all_sizes_is_enough_where_the_largest_holds_everything():
    found = useful(a_cover(DOUBLING, [(15, 3, 3), (10, 2, 1)]))
    assert found.apart.diagonal().tolist() == [True, True, True, True]
    # The largest is alone, and so are two of which the sum is a size.
    assert found.apart[3].all()
    assert not found.apart[0, 1]


def test_two_nodes_stay_where_one_that_holds_both_is_dearer():
    dearer = [(1.0, 10, 10), (2.1, 20, 20)]
    assert not useful(a_cover(dearer, [(90, 3, 3)])).apart[0, 0]


def test_two_nodes_stay_where_one_in_their_place_takes_more_of_a_limit():
    shapes = [(1.0, 10, 10), (2.0, 20, 20)]
    assert useful(a_cover(shapes, [(90, 3, 3)], charge=[2, 4], cap=50)).apart[0, 0]
    assert not useful(a_cover(shapes, [(90, 3, 3)], charge=[2, 5], cap=50)).apart[0, 0]


def test_two_nodes_stay_where_one_in_their_place_may_not_hold_their_pods():
    shapes = [(1.0, 10, 10), (2.0, 20, 20)]
    cover = a_cover(shapes, [(90, 3, 3), (9, 1, 1)], allowed=[[True, True], [True, False]])
    assert not useful(cover).apart.any()


def test_pods_that_keep_off_each_other_have_reason_to_be_on_two_nodes():
    shapes = [(1.0, 10, 10), (2.0, 20, 20)]
    cover = a_cover(shapes, [(90, 3, 3), (9, 1, 1)])
    assert not useful(cover, apart(2, 1)).apart.any()
    elsewhere = a_cover(shapes, [(90, 3, 3), (9, 1, 1)], allowed=[[True, False], [True, False]])
    assert useful(elsewhere, apart(2, 1)).apart[0, 0]


def test_existing_nodes_stay_however_little_room_they_have():
    found = useful(a_cover([(1.0, 10, 10), (0.0, 1, 1), (0.0, 9, 9)], [(9, 3, 3)], standing=2))
    assert found.shapes.tolist() == [0, 1, 2]
    assert not found.apart[1:].any()


def test_a_shape_is_left_out_whose_further_room_no_pods_can_use():
    """The dearer shape has more memory, but its CPUs are used up before that."""
    lean, wide = (1.0, 10, 20), (1.2, 10, 80)
    assert useful(a_cover([lean, wide], [(9, 2, 4), (9, 1, 1)])).shapes.tolist() == [0]
    assert useful(a_cover([lean, wide], [(9, 2, 4), (9, 1, 5)])).shapes.tolist() == [0, 1]


@pytest.mark.parametrize(("number", "room"), [(9, 9), (2, 6), (1, 3)])
def test_usable_room_is_what_pods_can_ask_for_in_whole_sums(number, room):
    assert useful(a_cover([(1.0, 10, 99)], [(number, 3, 0)])).room.tolist() == [[room, 0]]


def test_what_is_dearer_than_a_known_cover_is_left_out():
    assert useful(a_cover(DOUBLING, [(90, 3, 3)]), below=3.0).shapes.tolist() == [0, 1]


def divisions(pods: list[int]) -> Iterator[list[list[int]]]:
    """Every way to divide pods among nodes."""
    if not pods:
        yield []
        return
    for groups in divisions(pods[1:]):
        yield [[pods[0]], *groups]
        for number in range(len(groups)):
            yield [*groups[:number], [pods[0], *groups[number]], *groups[number + 1 :]]


def least(cover: Cover, shapes: list[int], forbidden: np.ndarray) -> float:
    """What the cheapest cover of some shapes costs, without pairs that are forbidden."""
    pods = [item for item, number in enumerate(cover.needed.tolist()) for _ in range(number)]
    cheapest = np.inf
    for groups in divisions(pods):
        holding = [
            [
                place
                for place, shape in enumerate(shapes)
                if (cover.requests[group].sum(axis=0) <= cover.shapes.room[shape]).all()
                and cover.shapes.allowed[shape, group].all()
            ]
            for group in groups
        ]
        for chosen in product(*holding):
            pairs = combinations_with_replacement(sorted(chosen), 2)
            twice = [(a, b) for a, b in pairs if a != b or chosen.count(a) > 1]
            taken = sum(cover.uses[shapes[place]].get(0, 0.0) for place in chosen)
            if any(forbidden[pair] for pair in twice) or (len(cover.caps) and taken > cover.caps[0]):
                continue
            cheapest = min(cheapest, sum(float(cover.cost[shapes[place]]) for place in chosen))
    return cheapest


@st.composite
def covers(draw):
    """Four pods at most, and shapes with prices that are sums of each other."""
    shapes = draw(
        st.lists(st.tuples(st.integers(1, 8), st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=4)
    )
    pods = draw(
        st.lists(st.tuples(st.integers(1, 2), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=2)
    )
    row = st.lists(st.sampled_from([True, True, True, False]), min_size=len(pods), max_size=len(pods))
    return a_cover(
        shapes,
        pods,
        allowed=[draw(row) for _ in shapes],
        charge=[draw(st.integers(0, 4)) for _ in shapes],
        cap=draw(st.integers(2, 12)),
    )


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(covers())
def test_the_cheapest_cover_costs_the_same_without_what_it_does_not_need(cover):
    every = list(range(len(cover.shapes)))
    known = least(cover, every, np.zeros((len(every), len(every)), dtype=np.bool_))
    found = useful(cover)
    assert least(cover, found.shapes.tolist(), found.apart) == pytest.approx(known)
    for group in found.groups():
        places = np.flatnonzero(np.isin(found.shapes, group))
        assert found.apart[np.ix_(places, places)].all()
