"""What nodes are filled with at best, and what that proves: judged by every way to fill and to buy nodes."""

from functools import cache
from itertools import product

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodeless.scheduling.optimizer.knapsacks import Knapsacks
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.spread.sharing import ENDLESS
from tests.scheduling.test_dominance import a_cover, apart

#: Prices and rooms of shapes; numbers and requests of items.
SHAPES = st.lists(
    st.tuples(st.sampled_from([1.0, 1.7, 2.5, 4.0]), st.integers(2, 40), st.integers(2, 40)),
    min_size=1,
    max_size=4,
)
ITEMS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 30), st.integers(0, 30)).filter(lambda item: any(item[1:])),
    min_size=1,
    max_size=3,
)
VALUES = st.lists(st.sampled_from([0.0, 0.1, 0.35, 0.5, 1.0, 3.0]), min_size=3, max_size=3)


def fillings(cover, hosts, shape):
    """Every filling of a shape."""
    own = np.where(hosts.adds, hosts.most, ENDLESS).min(axis=1)
    each = [range(min(int(number), int(most)) + 1) for number, most in zip(cover.needed, own, strict=True)]
    for filling in product(*each):
        pods = np.array(filling)
        allowed = cover.shapes.allowed[shape][pods > 0].all()
        together = (pods @ hosts.adds <= hosts.most[pods > 0].min(axis=0, initial=ENDLESS)).all()
        if allowed and together and (pods @ cover.requests <= cover.shapes.room[shape]).all():
            yield pods


def least(cover, hosts):
    """What the cheapest cover costs; infinity where there is none. Existing nodes are there once."""
    nodes = [
        (float(cover.cost[shape]), bool(cover.standing[shape]), shape, tuple(pods.tolist()))
        for shape in range(len(cover.shapes))
        for pods in fillings(cover, hosts, shape)
        if pods.any()
    ]

    @cache
    def rest(left, there):
        if not any(left):
            return 0.0
        costs = [float("inf")]
        for price, standing, shape, pods in nodes:
            after = tuple(max(0, now - taken) for now, taken in zip(left, pods, strict=True))
            if after != left and not (standing and shape not in there):
                costs.append(price + rest(after, there - {shape} if standing else there))
        return min(costs)

    return rest(tuple(cover.needed.tolist()), frozenset(np.flatnonzero(cover.standing).tolist()))


def a_drawn_cover(shapes, items, standing):
    number = min(standing, len(shapes) - 1)
    shapes = [
        (0.0 if place >= len(shapes) - number else price, *room)
        for place, (price, *room) in enumerate(shapes)
    ]
    cover = a_cover(shapes, items, standing=number)
    uses = tuple(
        {place - (len(shapes) - number): 1.0} if place >= len(shapes) - number else {}
        for place in range(len(shapes))
    )
    object.__setattr__(cover, "uses", uses)
    object.__setattr__(cover, "caps", np.ones(number))
    return cover


@settings(deadline=None)
@given(
    SHAPES,
    ITEMS,
    VALUES,
    st.integers(0, 2),
    st.sets(st.integers(0, 2)),
    st.sampled_from([1.0, 1e-6]),
    st.sampled_from([0.0, 0.4, 2.0]),
    st.booleans(),
)
def test_no_cover_costs_less_than_values_prove(
    shapes, items, values, standing, lonely, seconds, rent, existing
):
    """Whatever existing nodes are thought to be worth, and whether they are looked at closely or not."""
    cover, hosts = a_drawn_cover(shapes, items, standing), apart(len(items), *lonely)
    worth = np.array(values[: len(items)])
    rents = np.full(len(cover.caps), rent)
    priced = Knapsacks(cover, hosts).price(worth, rents, Effort(seconds), existing=existing)
    assert priced.bound <= least(cover, hosts) * (1 + 1e-9)


def test_each_existing_node_is_looked_at_closely():
    """Each has less room than pods ask for in fractions, and each of them lowers the bound by that."""
    cover = a_drawn_cover([(1.0, 6, 6), (0.0, 11, 11), (0.0, 8, 8), (0.0, 5, 5)], [(9, 3, 3)], 3)
    knapsacks = Knapsacks(cover, apart(1))
    # Two pods on a new node: 0.5 each. On existing ones 3, 2 and 1.
    priced = knapsacks.price(np.array([0.5]), np.zeros(3), Effort(1.0))
    assert priced.settled
    assert abs(priced.bound - (9 - 6) * 0.5) < 1e-6
    roughly = knapsacks.price(np.array([0.5]), np.zeros(3), Effort(1.0), existing=False)
    assert abs(roughly.bound - (9 - (11 + 8 + 5) / 3) * 0.5) < 1e-6


def test_fillings_of_existing_nodes_are_worth_more_than_these_are_thought_to_be():
    cover = a_drawn_cover([(1.0, 6, 6), (0.0, 11, 11), (0.0, 5, 5)], [(9, 3, 3)], 2)
    priced = Knapsacks(cover, apart(1)).price(np.array([0.5]), np.array([1.5, 0.2]), Effort(1.0))
    assert [(shape, pods.tolist()) for shape, pods in priced.fillings] == [(2, [1])]


@settings(deadline=None)
@given(SHAPES, ITEMS, VALUES, st.sets(st.integers(0, 2), max_size=1))
# That a pod keeps off its like says nothing of the others.
@example([(1.0, 40, 40)], [(4, 10, 10), (1, 1, 1)], [1.0, 0.5, 0.0], {1})
def test_the_best_filling_of_the_dearest_shape_is_found(shapes, items, values, lonely):
    """Of the shape whose pods are worth most in terms of its price; that is what the bound hangs on."""
    cover, hosts = a_cover(shapes, items), apart(len(items), *lonely)
    worth = np.array(values[: len(items)])
    best = max(
        float(pods @ worth) / float(cover.cost[shape])
        for shape in range(len(shapes))
        for pods in fillings(cover, hosts, shape)
    )
    priced = Knapsacks(cover, hosts).price(worth, np.zeros(0), Effort(1.0))
    if best > 1.01:
        found = max(float(pods @ worth) / float(cover.cost[shape]) for shape, pods in priced.fillings)
        assert abs(found - best) < 1e-9
        assert abs(priced.bound * best / float(worth @ cover.needed) - 1) < 1e-6


@settings(deadline=None)
@given(SHAPES, ITEMS, VALUES, st.sets(st.integers(0, 2)))
def test_fillings_that_are_found_fit(shapes, items, values, lonely):
    cover, hosts = a_cover(shapes, items), apart(len(items), *lonely)
    priced = Knapsacks(cover, hosts).price(np.array(values[: len(items)]), np.zeros(0), Effort(1.0))
    for shape, pods in priced.fillings:
        assert (pods @ cover.requests <= cover.shapes.room[shape]).all()
        assert (pods <= cover.needed).all()
        assert all(pods[item] <= 1 for item in lonely if item < len(items))


def test_large_and_small_pods_share_a_node_that_has_more_room_than_a_table_tells_apart():
    """Sizes without a common divisor on a large node: only the large ones are looked at one by one."""
    items = [(3, 40_013, 90_001), (30, 611, 1013), (50, 97, 211)]
    cover, hosts = a_cover([(0.9, 100_000, 200_003)], items), apart(3)
    values = np.array([0.45, 0.004, 0.0005])
    priced = Knapsacks(cover, hosts).price(values, np.zeros(0), Effort(5.0))
    ((_, pods),) = priced.fillings
    assert pods[0] == 2
    assert (pods @ cover.requests <= cover.shapes.room[0]).all()
    most = float(cover.cost[0]) * float(values @ cover.needed) / priced.bound
    assert 1 <= most / float(pods @ values) < 1.01
