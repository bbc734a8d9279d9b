"""Few pods on at most so many new nodes: as cheap as trying every way to put them there says."""

import os
from functools import cache
from math import inf

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodeless.model.labels import HOSTNAME
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import beside, instance_type, node, pods, pool, snapshot

#: Families with unlike memory at unlike prices.
TYPES = tuple(
    instance_type(f"{family}.{cpu}", cpu, cpu * gib, price=round(0.05 * cpu * rate, 4))
    for family, gib, rate in (("c", 2, 0.85), ("m", 4, 1.0), ("r", 8, 1.3))
    for cpu in (2, 4, 8, 16)
)
#: Milli-CPU, and MiB for each of them, of a pod, how many there are, and whether they keep off each other.
GROUPS = st.lists(
    st.tuples(
        st.integers(200, 6000),
        st.sampled_from([1, 2, 4, 8]),
        st.integers(1, 3),
        st.sampled_from([0, 0, 0, 1]),
    ),
    min_size=1,
    max_size=4,
)


def a_batch(groups):
    return [
        pod
        for number, (milli, ratio, count, apart) in enumerate(groups)
        for pod in pods(
            count,
            f"{milli}m",
            f"{milli * ratio * 1000 // 1024}Mi",
            name=f"app{number}",
            anti_affinity=(beside(HOSTNAME, f"app{number}"),) if apart else (),
        )
    ]


def least_price(batch, there, nodes):
    """By trying everything: the least price of at most so many new nodes beside those that are there."""
    kinds = sorted((min(each.price for each in kind.offerings), kind.allocatable) for kind in TYPES)
    kinds = [(price, (whole["cpu"], whole["memory"])) for price, whole in kinds]
    asked = [
        (pod.requests["cpu"], pod.requests["memory"], pod.labels["app"] if pod.shape.anti_affinity else "")
        for pod in batch
    ]

    def price_of(load):
        return next((price for price, (cpu, memory) in kinds if cpu >= load[0] and memory >= load[1]), inf)

    @cache
    def least(at, rooms, loads):
        if at == len(asked):
            return sum(map(price_of, loads))
        cpu, memory, app = asked[at]
        best = inf
        for some, is_room in ((rooms, True), ((*loads, *[(0, 0, ())] * (len(loads) < nodes)), False)):
            for place, (had, kept, apps) in enumerate(some):
                if app and app in apps:
                    continue
                if is_room:
                    taken = (had - cpu, kept - memory, (*apps, app))
                    fits = min(taken[:2]) >= 0
                else:
                    taken = (had + cpu, kept + memory, (*apps, app))
                    fits = price_of(taken) < inf
                if fits:
                    kept_apart = (*some[:place], taken, *some[place + 1 :])
                    after = tuple(sorted(each for each in kept_apart if is_room or each[2]))
                    best = min(best, least(at + 1, *((after, loads) if is_room else (rooms, after))))
        return best

    return least(0, tuple((each.allocatable["cpu"], each.allocatable["memory"], ()) for each in there), ())


def planned(batch, there, nodes):
    own = pool()
    return solve(
        snapshot(batch, [own], there),
        {own.key: TYPES},
        Policy(time_box=0.2, most_new_nodes=nodes),
    )


@settings(max_examples=int(os.environ.get("FEW_NODES", "40")), deadline=None)
@given(GROUPS, st.lists(st.sampled_from(["1500m", "3"]), max_size=2), st.sampled_from([None, 1, 2, 3]))
@example([(278, 4, 2, 0), (548, 8, 2, 0), (720, 2, 3, 0)], ["3", "3"], None)  # no new node at all
@example(
    [(406, 1, 3, 0), (1118, 2, 3, 0), (1783, 4, 1, 0), (2833, 2, 3, 0)], ["3"], 3
)  # two more than first fit
def test_the_plan_is_the_cheapest_with_no_more_nodes_than_are_wanted(groups, rooms, nodes):
    if rooms:  # pods with rules keep the room on existing nodes that first fit gives them
        groups = [(*each[:3], 0) for each in groups]
    batch = a_batch(groups)
    there = [node(f"n{number}", cpu=cpu, memory="8Gi") for number, cpu in enumerate(rooms)]
    plan = planned(batch, there, nodes)
    least = least_price(batch, there, len(batch) if nodes is None else nodes)
    assert not plan.refusals and not plan.faults
    if least < inf and (nodes is None or len(plan.new_nodes) <= nodes):
        assert plan.cost_per_hour == pytest.approx(least)
    else:
        # None of so few nodes holds them: what first fit says stays.
        assert least == inf
        assert plan == planned(batch, there, None) or len(plan.new_nodes) > nodes
