"""What plans cost at least where pods are spread over zones of different prices: against an integer program.

The program (HiGHS) buys nodes by zone, type and filling, all of which are listed:

    min   sum w z      s.t.  sum_{zone} a_c z = n[c, zone],  sum_zone n[c, zone] = n_c,
    there + n[c, zone] <= there' + n[c, zone'] + skew   for each other zone', where n[c, zone] > 0
"""

from itertools import product

import highspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.model.instance_types import Offering
from nodeless.model.labels import HOSTNAME, SPOT, ZONE
from nodeless.scheduling import Policy
from tests.scheduling.factories import (
    beside,
    instance_type,
    node,
    plan,
    pods,
    running,
    spread,
)

ZONES = ("z1", "z2", "z3")
SIZES = {"two": (2, 8), "four": (4, 16), "eight": (8, 32)}


def sold(prices):
    """Types by name, each with a spot price in each zone."""
    return tuple(
        instance_type(
            name,
            *SIZES[name],
            offerings=tuple(Offering(zone, SPOT, price) for zone, price in zip(ZONES, each, strict=True)),
        )
        for name, each in prices.items()
    )


class App:
    """Pods of a workload, by what they request and what they are to each other."""

    def __init__(self, name, number, cpu, gib, skew, *, alone=False, there=()):
        self.name, self.number, self.cpu, self.gib = name, number, cpu, gib
        self.skew, self.alone = skew, alone
        self.there = dict.fromkeys(ZONES, 0) | dict(there)

    def made(self):
        rules = {"spread": (spread(ZONE, self.name, self.skew),)} if self.skew else {}
        if self.alone:
            rules["anti_affinity"] = (beside(HOSTNAME, self.name),)
        return pods(self.number, f"{self.cpu}m", f"{self.gib}Gi", name=self.name, **rules)

    def running(self):
        return [
            running(pod, f"full-{zone}")
            for zone, number in self.there.items()
            for pod in pods(number, "1m", name=f"{self.name}-{zone}", labels={"app": self.name})
        ]


def world(apps):
    """The apps' pods, and a node in each zone that has no more room."""
    full = [node(f"full-{zone}", cpu="10m", labels={**node(zone).labels, ZONE: zone}) for zone in ZONES]
    return [*full, *(pod for app in apps for pod in (*app.made(), *app.running()))]


def optimum(apps, types):
    """The least that nodes cost for the pods, in dollars an hour."""
    program = highspy.Highs()
    program.silent()
    room = {kind.name: (kind.allocatable["cpu"], kind.allocatable["memory"]) for kind in types}
    price = {(kind.name, each.zone): each.price for kind in types for each in kind.offerings}
    inside = {(app.name, zone): program.addIntegral(0, app.number) for app, zone in product(apps, ZONES)}
    held, paid = {key: [] for key in inside}, []
    most = [1 if app.alone else app.number for app in apps]
    for filling in product(*(range(number + 1) for number in most)):
        cpu = sum(number * app.cpu for number, app in zip(filling, apps, strict=True))
        memory = sum(number * app.gib * 2**30 for number, app in zip(filling, apps, strict=True))
        for (name, zone), cost in price.items():
            if any(filling) and cpu <= room[name][0] and memory <= room[name][1]:
                nodes = program.addIntegral(0, sum(app.number for app in apps))
                paid.append(cost * nodes)
                for number, app in zip(filling, apps, strict=True):
                    held[app.name, zone].append(number * nodes)
    for key, some in held.items():
        program.addConstr(program.qsum(some) >= inside[key])
    for app in apps:
        program.addConstr(program.qsum(inside[app.name, zone] for zone in ZONES) >= app.number)
        for zone, other in product(ZONES, ZONES) if app.skew else ():
            used = program.addBinary()
            program.addConstr(inside[app.name, zone] <= app.number * used)
            program.addConstr(
                app.there[zone] + inside[app.name, zone] - 100 * (1 - used)
                <= app.there[other] + inside[app.name, other] + app.skew
            )
    program.setOptionValue("mip_rel_gap", 0.0)
    program.minimize(program.qsum(paid))
    return program.getObjectiveValue()


APPS = st.lists(
    st.tuples(
        st.integers(1, 7),
        st.sampled_from([300, 700, 1000, 1900]),
        st.sampled_from([1, 2, 5]),
        st.sampled_from([0, 1, 1, 2]),
        st.booleans(),
        st.dictionaries(st.sampled_from(ZONES), st.integers(1, 3), max_size=2),
    ),
    min_size=1,
    max_size=3,
).map(
    lambda some: [
        App(name, *sizes, alone=alone, there=there)
        for name, (*sizes, alone, there) in zip("abc", some, strict=False)
    ]
)
PRICES = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from([0.8, 1.0, 1.3]), min_size=3, max_size=3) for name in SIZES}
).map(lambda some: {name: [factor * SIZES[name][0] * 0.03 for factor in each] for name, each in some.items()})


@settings(deadline=None, max_examples=40)
@given(APPS, PRICES)
def test_no_plan_costs_less_than_the_bound_says(apps, prices):
    types = sold(prices)
    made = plan(*world(apps), types=types, policy=Policy())
    assert not made.refusals
    least = optimum(apps, types)
    assert made.lower_bound is not None
    assert made.lower_bound <= least * (1 + 1e-6)
    assert made.cost_per_hour >= least * (1 - 1e-6)


DEAR_THIRD_ZONE = {name: [size * 0.03, size * 0.03, size * 0.09] for name, (size, _) in SIZES.items()}


@pytest.mark.parametrize("number", [12, 60, 400])
def test_a_spread_over_zones_costs_what_its_dearest_zone_does(number):
    """A third of the pods has to be where nodes cost three times as much."""
    web = App("web", number, 1900, 5, 1)
    made = plan(*web.made(), types=sold(DEAR_THIRD_ZONE), policy=Policy())
    anywhere = plan(*App("web", number, 1900, 5, 0).made(), types=sold(DEAR_THIRD_ZONE), policy=Policy())
    assert made.lower_bound == pytest.approx(made.cost_per_hour, rel=0.01)
    assert made.lower_bound > 1.6 * anywhere.cost_per_hour


def test_pods_that_run_already_say_where_others_may_come():
    """Four run in each cheap zone, so that the first four go to the dear one."""
    web = App("web", 4, 1900, 5, 1, there={"z1": 4, "z2": 4})
    made = plan(*world([web]), types=sold(DEAR_THIRD_ZONE), policy=Policy())
    assert {new.requirements.single_values()[ZONE] for new in made.new_nodes} == {"z3"}
    assert made.lower_bound == pytest.approx(made.cost_per_hour, rel=1e-4)


def test_one_pod_in_each_zone_costs_what_all_zones_do():
    """Pods that keep off their like by zone."""
    web = pods(3, "1900m", "5Gi", anti_affinity=(beside(ZONE),))
    made = plan(*web, types=sold(DEAR_THIRD_ZONE), policy=Policy())
    assert made.lower_bound == pytest.approx(2 * (0.03 + 0.03 + 0.09), rel=1e-4)
