"""The search for a cheaper plan: more time makes no plan dearer, and little time earns most of it."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.model.instance_types import Offering
from nodeless.scheduling import LOWEST_PRICE, Policy
from nodeless.scheduling.optimizer.anytime import AnytimeSearch
from nodeless.scheduling.optimizer.cover import cost_of
from nodeless.scheduling.optimizer.master import Master
from nodeless.scheduling.optimizer.patterns import Filler
from nodeless.scheduling.optimizer.work_budget import Effort
from tests.scheduling.factories import instance_type, plan, pods, pool
from tests.scheduling.test_dominance import a_cover, apart

ORDINARY = (("m", 16, 60, 1.0), ("m-small", 4, 15, 0.27), ("r", 8, 60, 0.72), ("r-small", 2, 15, 0.19))


def sold(name, cpu, memory, price):
    return instance_type(name, cpu, memory, offerings=(Offering("z1", "on-demand", price),))


TYPES = tuple(sold(*each) for each in ORDINARY)


def price_of(waiting, time_box, *things):
    """Dollars an hour of what the search found, before nodes were merged for a little more money."""
    policy = Policy(packing=LOWEST_PRICE, time_box=time_box)
    made = plan(waiting, *things, types=TYPES, policy=policy)
    assert not made.refusals
    return made.cost_per_hour - (made.fewer_nodes.price if made.fewer_nodes else 0.0)


def mixed_pods():
    """A quarter of the workloads need four times as much memory as the others for each CPU."""
    chance, waiting = random.Random(3), []
    for index in range(30):
        cpu = chance.choice((500, 1000, 1500, 2000, 2500))
        memory = cpu * (2 if index % 4 else 8)
        waiting += pods(chance.randint(3, 9), f"{cpu}m", f"{memory}Mi", name=f"w{index:02}")
    return waiting


def test_pods_that_need_much_of_what_is_nearly_scarce_share_nodes_with_the_others():
    """All fit on 18.7 of the cheapest nodes by CPU, and fill seven eighths of their memory."""
    assert price_of(mixed_pods(), 0.0) < 20.8


@pytest.mark.parametrize("box", [0.1, 0.2, 1.0])
def test_a_tenth_of_a_second_earns_nearly_all_of_it(box):
    assert price_of(mixed_pods(), box) < 19.6


#: Pods, CPU in steps of 50m, and MiB of memory for each thousandth of a CPU.
WORKLOAD = st.tuples(st.integers(1, 25), st.integers(1, 60), st.sampled_from([1, 2, 4, 6]))


@settings(max_examples=8, deadline=None)
@given(st.lists(WORKLOAD, min_size=1, max_size=12), st.sampled_from([None, {"cpu": "200"}]))
def test_more_time_makes_no_plan_dearer(workloads, limits):
    waiting = [
        pod
        for index, (count, steps, ratio) in enumerate(workloads)
        for pod in pods(count, f"{50 * steps}m", f"{50 * steps * ratio + 64}Mi", name=f"w{index:02}")
    ]
    pools = [pool("first", limits=limits, weight=5), pool("second")]
    # The same nodes in another order add up to a little more or less.
    prices = [round(price_of(waiting, box, *pools), 9) for box in (0.0, 0.03, 0.1, 0.3, 0.5, 1.0)]
    assert prices == sorted(prices, reverse=True)


FORTY_KINDS = [(5 + index % 7, 110 * (index + 1), 130 * (index + 1)) for index in range(40)]


def a_search(items=FORTY_KINDS):
    """For kinds of pods, on three families of types in four sizes."""
    shapes = [
        (price * size, size * 980, int(size * 980 * ratio))
        for size in (4, 8, 16, 32)
        for price, ratio in ((0.085, 2.1), (0.096, 4.2), (0.126, 8.4))
    ]
    cover = a_cover(shapes, items)
    by_cpu = cover.requests @ np.array([0.085 / 980, 0.0])
    by_both = cover.requests @ np.array([0.06 / 980, 0.01 / 980])
    cover = replace(cover, worth=by_cpu, even_worth=by_both, likely=np.arange(len(shapes)))
    return AnytimeSearch(cover, Filler(cover.shapes, cover.requests, apart(len(items))), ())


def found_by(search, until, *, further=False):
    covers = search.covers(until, further=further)
    return [[(one.shape, one.filling.tolist(), one.times) for one in cover] for cover in covers]


def test_what_is_tried_within_some_time_is_tried_within_more():
    short, longer = found_by(a_search(), 0.1), found_by(a_search(), 0.5)
    assert 2 < len(short) < len(longer)
    assert longer[: len(short)] == short


def test_a_search_continues_where_it_stopped():
    search = a_search()
    parts = [found_by(search, until) for until in (0.1, 0.1, 0.5)]
    assert parts[1] == []
    assert [*parts[0], *parts[2]] == found_by(a_search(), 0.5)


def test_where_nothing_new_is_found_the_time_that_is_left_finds_cheaper_nodes_and_the_search_ends():
    chance = random.Random(9)
    search = a_search(
        [
            (chance.randint(3, 12), chance.randrange(100, 4000, 50), chance.randrange(100, 9000, 50))
            for _ in range(10)
        ]
    )
    found = [cost_of(search._cover, cover) for cover in search.covers(60.0)]
    rungs = search.spent
    further = [cost_of(search._cover, cover) for cover in search.covers(60.0, further=True)]
    assert further, "the time that was left found nothing"
    assert [min(found), *further] == sorted([min(found), *further], reverse=True)
    assert rungs < search.spent < 60.0
    assert not list(search.covers(120.0, further=True))


def test_as_long_as_there_is_something_new_to_find_nothing_else_is_done():
    assert found_by(a_search(), 0.1, further=True) == found_by(a_search(), 0.1)


def test_dives_that_round_up_other_nodes_cover_every_pod_and_differ():
    search = a_search()
    list(search.covers(0.5))
    own = search._search
    found = []
    for turn in range(4):
        own.effort = Effort(1.0)
        dived = own.dive(1000, turn)
        assert (sum(one.filling * one.times for one in dived) == own._cover.needed).all()
        found.append([(one.shape, one.filling.tolist(), one.times) for one in dived])
    assert found[0] not in found[1:]


#: What a configuration costs in cents, and its pods of three items.
CONFIGURATION = st.tuples(st.integers(20, 90), st.tuples(*[st.integers(0, 3)] * 3).filter(any))


def cheapest(needed, configurations):
    """The least that covers all pods, in cents: by what is left, from nothing up."""
    least = {(0, 0, 0): 0}
    for left in product(*(range(each + 1) for each in needed)):
        if any(left):
            rests = [
                (price, tuple(max(0, pods - taken) for pods, taken in zip(left, filling, strict=True)))
                for price, filling in configurations
            ]
            least[left] = min(price + least[rest] for price, rest in rests if rest != left)
    return least[tuple(needed)]


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(1, 6)] * 3), st.lists(CONFIGURATION, max_size=8))
def test_whole_numbers_of_configurations_are_the_cheapest(needed, drawn):
    alone = [(100, tuple(int(item == at) for at in range(3))) for item in range(3)]
    configurations = [*alone, *drawn]
    master = Master(np.array(needed), np.zeros(0), 1.0)
    prices, fillings = (np.array(each) for each in zip(*configurations, strict=True))
    master.add(prices / 100, fillings, [{}] * len(configurations))
    least = cheapest(needed, configurations)

    taken, _ = master.whole(1.0, least / 100 + 0.005)
    assert (taken @ fillings >= needed).all()
    assert taken @ prices == least
    assert master.whole(1.0, least / 100 - 0.005)[0] is None


def test_whole_numbers_stay_within_what_there_is_only_so_much_of():
    master = Master(np.array([4]), np.array([10.0]), 1.0)
    master.add(np.array([0.1, 0.5]), np.array([[1], [1]]), [{0: 5.0}, {}])
    assert master.whole(1.0, 10.0)[0].tolist() == [2, 2]


def test_too_little_time_for_whole_numbers_finds_nothing_and_takes_none():
    master = Master(np.array([4]), np.zeros(0), 1.0)
    master.add(np.array([0.1]), np.array([[1]]), [{}])
    assert master.whole(1e-6, 10.0) == (None, 0.0)


def test_a_greedy_cover_of_many_classes_that_will_not_end_in_time_is_given_up_soon():
    """What is covered grows fast at first, so that it looks as if half a second would do."""
    chance = random.Random(5)
    classes = [(90, chance.randrange(100, 5000, 50), chance.randrange(100, 20_000, 32)) for _ in range(1000)]
    shapes = [(0.05 * size, 980 * size, int(3900 * size)) for size in (2, 4, 8, 16, 32, 48)]
    cover = a_cover(shapes, classes)
    cover = replace(cover, worth=cover.requests @ np.array([4e-5, 3e-6]), likely=np.arange(len(shapes)))
    search = AnytimeSearch(cover, Filler(cover.shapes, cover.requests, apart(len(classes))), ())
    assert not list(search.greedy_covers(0.25, hopeful=False))
    assert search.spent < 0.15
