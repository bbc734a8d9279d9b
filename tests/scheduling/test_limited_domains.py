"""Rules between pods in pools with limits: what one domain cannot hold, another may."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from nodeless.model.instance_types import Offering
from nodeless.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from nodeless.model.pods import LabelSelector
from nodeless.scheduling import FEWEST_NODES, Policy, solve
from tests.scheduling.factories import (
    beside,
    instance_type,
    needs,
    plan,
    pods,
    pool,
    selecting,
    snapshot,
    spread,
    term,
)
from tests.scheduling.passes import after_pass, skew
from tests.scheduling.topology_worlds import TYPES, pools_of, workloads

FEW = Policy(packing=FEWEST_NODES)
PATIENT = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
TWO = (instance_type("two", 2, 8),)


def test_a_group_that_stays_together_takes_the_zone_that_limits_leave_open():
    closed = pool("closed", needs(ZONE, "In", "z1"), limits={"cpu": "0"}, weight=5)
    other = pool("other", needs(ZONE, "In", "z2"))
    result = plan(pods(3, "500m", affinity=(beside(ZONE),)), closed, other, types=TWO, policy=FEW)
    assert not result.refusals
    assert {new.pool.name for new in result.new_nodes} == {"other"}


def test_a_group_that_shares_a_host_takes_the_pool_that_limits_leave_open():
    closed = pool("closed", needs(ZONE, "In", "z1"), limits={"nodes": "0"}, weight=5)
    other = pool("other", needs(ZONE, "In", "z3"))
    near = pods(3, "500m", affinity=(beside(HOSTNAME),), spread=(spread(ZONE, skew=9),))
    result = plan(near, closed, other, types=TWO, policy=FEW)
    assert not result.refusals


@pytest.mark.parametrize(
    ("sold", "number"),
    [
        ((("z1", SPOT), ("z2", SPOT), ("z2", ON_DEMAND), ("z3", ON_DEMAND)), 12),
        ((("z1", SPOT), ("z1", ON_DEMAND), ("z2", ON_DEMAND)), 13),
        ((("z1", ON_DEMAND), ("z2", SPOT), ("z3", SPOT), ("z3", ON_DEMAND), ("z4", ON_DEMAND)), 4),
        ((("z1", SPOT), ("z1", ON_DEMAND), ("z2", SPOT), ("z2", ON_DEMAND), ("z4", ON_DEMAND)), 14),
    ],
)
def test_two_spreads_find_their_way_in_a_pool_with_limits(sold, number):
    """The emptiest zone may sell only the capacity type that is ahead: one look at a time gets stuck."""
    types = (instance_type("two", 2, 8, offerings=tuple(Offering(*where, 0.1) for where in sold)),)
    own = pool("default", needs(CAPACITY_TYPE, "In", SPOT, ON_DEMAND), limits={"cpu": "1000"})
    wanted = pods(number, "1500m", spread=(spread(ZONE), spread(CAPACITY_TYPE)))
    after = after_pass(snapshot(own, wanted), types=types, policy=FEW)
    assert sum(skew(after, ZONE)) == number
    for key in (ZONE, CAPACITY_TYPE):
        fewest, *_, most = skew(after, key)
        assert most - fewest <= 1


def test_a_limit_that_is_far_away_leaves_a_spread_the_room_it_needs():
    """Divided pod by pod, as if a limit could close a zone, w0 took the one zone that w2 had left."""
    others, everybody = selecting(app="b"), LabelSelector()
    near = term(needs(ZONE, "In", "z1", "z2"))
    ahead = spread(ARCH), replace(spread(ZONE), selector=others)
    both = replace(spread(ZONE), selector=everybody), replace(spread(ARCH), selector=everybody)
    both = both[0], replace(both[1], node_affinity_policy="Ignore")
    wanted = [
        pods(2, "100m", name="w0", labels={"app": "web"}, spread=ahead),
        pods(1, "100m", name="w1", labels={"app": "web"}),
        pods(2, "100m", name="w2", labels={"app": "web"}, spread=both, required_terms=(near,)),
    ]
    for limits in (None, {"cpu": "1000", "nodes": "1000"}):
        result = plan(*wanted, pool("default", limits=limits), types=TYPES, policy=FEW)
        assert not result.refusals


def test_a_limit_of_one_node_takes_the_alternative_that_holds_all_pods():
    types = (
        instance_type("one", 2, 8, offerings=(Offering("z3", ON_DEMAND, 0.2),)),
        instance_type("both", 4, 16, offerings=(Offering("z2", ON_DEMAND, 0.7),)),
    )
    either = (term(needs(ZONE, "In", "z3")), term(needs(ZONE, "In", "z2")))
    single = pool("default", limits={"nodes": "1"})
    result = plan(pods(2, "1900m", required_terms=either), single, types=types, policy=Policy())
    assert not result.refusals
    assert [new.instance_type for new in result.new_nodes] == ["both"]


def test_a_group_whose_zones_are_few_leads_pods_that_may_go_anywhere():
    cheap = instance_type("cheap", 4, 16, offerings=(Offering("z3", ON_DEMAND, 0.1),))
    dear = instance_type("dear", 4, 16, offerings=(Offering("z1", ON_DEMAND, 0.9),))
    near = term(needs(ZONE, "In", "z1", "z2"))
    group = pods(2, "500m", affinity=(beside(ZONE),), required_terms=(near,))
    anywhere = pods(1, "500m", name="other", labels={"app": "web"})
    result = plan(group, anywhere, types=(cheap, dear), policy=Policy())
    assert not result.refusals


def test_a_zone_that_a_limit_closes_holds_the_others_back_and_no_more():
    small = pool("small", needs(ZONE, "In", "z1"), limits={"nodes": "1"})
    large = pool("large", needs(ZONE, "In", "z2", "z3"))
    wanted = pods(12, "1500m", spread=(spread(ZONE),))
    after = after_pass(snapshot(small, large, wanted), types=TWO, policy=FEW)
    assert skew(after, ZONE) == (1, 2, 2)


@PATIENT
@given(workloads(most=3, replicas=6), pools_of())
def test_limits_that_are_far_away_change_nothing(wanted, pools):
    free = [replace(one, limits=None) for one in pools]
    far = [replace(one, limits={"cpu": 10**6, "nodes": 10**3}) for one in pools]
    unlimited, limited = (
        solve(seen, dict.fromkeys(seen.pools, TYPES), FEW)
        for seen in (snapshot(wanted, free), snapshot(wanted, far))
    )
    assert limited == unlimited


def test_a_limit_that_is_far_away_leaves_alone_what_an_integer_program_works_out():
    """With limits it chose other nodes of the same price, where one pod less could keep off the others."""
    away = replace(beside(ARCH), selector=LabelSelector())
    ahead = replace(spread(ZONE, skew=2), selector=LabelSelector())
    wanted = (
        pods(4, "100m", name="w0", memory="0", anti_affinity=(away,)),
        pods(1, "100m", name="w1"),
        pods(3, "500m", name="w2", spread=(ahead,)),
    )
    for limits in (None, {"cpu": "1000", "nodes": "1000"}):
        result = plan(*wanted, pool("first", limits=limits), types=TYPES, policy=FEW)
        assert sorted(each.pod for each in result.refusals) == [f"default/w0-{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize("more", [0, 1])
def test_a_limit_is_far_away_if_a_node_of_the_largest_type_for_each_pod_stays_within_it(more):
    """With one processor less, what the cloud may launch is held to what the limit leaves."""
    types = instance_type("large", 4, 16, price=0.2), instance_type("huge", 16, 64, price=0.21)
    kept_off = pods(3, "1500m", anti_affinity=(replace(beside(HOSTNAME), selector=LabelSelector()),))
    own = pool("default", limits={"cpu": str(3 * 16 - 1 + more)})
    result = plan(kept_off, own, types=types, policy=Policy())
    assert not result.refusals
    largest = [{offer.instance_type for offer in new.alternatives} for new in result.new_nodes]
    assert all("huge" in names for names in largest) == bool(more)
