"""What a search found is kept for the next one while nothing changes, and for no longer."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.disruption import CommandHistory, DisruptionPolicy, Searches, disrupt
from nodeless.disruption.consolidation import Consolidation
from nodeless.disruption.context import DisruptionContext
from nodeless.disruption.sets import candidate_sets
from nodeless.model import events
from nodeless.model.buffers import CapacityBuffer, PodSource
from nodeless.model.instance_types import Offering
from nodeless.model.labels import ON_DEMAND, SPOT
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling import Policy, PriceAdjustment
from nodeless.state import apply
from tests.disruption.drawn_clusters import NAMED, TYPES
from tests.disruption.test_validating import NODES, ON_DEMAND_ONLY, POOLS, a_cluster
from tests.disruption.world import a_node_pool, cluster, node_of, on
from tests.scheduling.factories import NOW, instance_type, plan, pods

POLICY = DisruptionPolicy()
CHANGES = st.sampled_from(["nothing", "nothing", "a pod goes", "a pod comes", "prices"])


@pytest.fixture
def sought(monkeypatch):
    """The nodes of each search for what takes their place, and in which part of the cluster, in order."""
    made, search = [], Consolidation._replacement

    def counted(self, candidates, world=None):
        made.append((candidates, world))
        return search(self, candidates, world)

    monkeypatch.setattr(Consolidation, "_replacement", counted)
    return made


def a_full_cluster():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    full = [
        (node_of(pool, f"n{number}", "a.large", types=NAMED), on(f"n{number}", cpu="1100m", memory="3Gi"))
        for number in range(4)
    ]
    return cluster(pool, full), dict.fromkeys([pool.key], TYPES)


@pytest.mark.parametrize(
    "solving", [Policy(), Policy(node_fee=0.01), Policy(price_adjustments=(PriceAdjustment(percent=-20.0),))]
)
def test_a_cluster_in_which_nothing_changes_is_searched_once(sought, solving):
    seen, catalog = a_full_cluster()
    searches, policy = Searches(), replace(POLICY, solving=solving)
    found = disrupt(seen, catalog, policy, NOW, searches=searches)
    once = len(sought)
    assert once
    assert disrupt(seen, catalog, policy, NOW + 60, searches=searches) == found
    assert len(sought) == once


@pytest.mark.parametrize(("before", "after", "again"), [(4000, 3998, False), (4000, 7, True), (7, 6, True)])
def test_addresses_that_all_pods_could_not_use_change_nothing(sought, before, after, again):
    """The cluster has four pods: eight addresses are enough for all of them, on a node each."""
    seen, catalog = a_full_cluster()
    searches = Searches()
    counts = []
    for free in (before, after):
        subnets = dict.fromkeys(seen.pools, (SubnetRoom("subnet-1", "z1", free),))
        policy = replace(POLICY, solving=Policy(subnets=subnets))
        disrupt(seen, catalog, policy, NOW, searches=searches)
        counts.append(len(sought))
    assert counts[0]
    assert (counts[1] > counts[0]) == again


def a_pod_that_no_type_holds():
    (pod,) = pods(1, cpu="1000", name="huge")
    return (events.PodSeen(pod),)


def a_claim_without_a_node():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    claim, _ = node_of(pool, "n9", "a.large", types=NAMED, conditions=(), node_name="")
    return (events.ClaimSeen(claim),)


def room_that_a_buffer_keeps():
    chunk = PodSource("PodTemplate", "default", "chunk", pods(1, "100m")[0].shape)
    buffer = CapacityBuffer("default", "spare", source=chunk.key, source_kind=chunk.kind, replicas=1)
    return events.PodSourceSeen(chunk), events.CapacityBufferSeen(buffer)


@pytest.mark.parametrize(
    "seen_too", [a_pod_that_no_type_holds, a_claim_without_a_node, room_that_a_buffer_keeps]
)
def test_what_waits_or_is_kept_free_makes_no_search_twice(sought, seen_too):
    seen, catalog = a_full_cluster()
    for event in seen_too():
        seen = apply(seen, event)
    searches = Searches()
    found = disrupt(seen, catalog, POLICY, NOW + 1000, searches=searches)
    once = len(sought)
    assert once
    assert disrupt(seen, catalog, POLICY, NOW + 1060, searches=searches) == found
    assert len(sought) == once


@pytest.mark.parametrize("change", ["pods", "catalog", "policy", "prices"])
def test_what_changes_is_searched_anew(sought, change):
    seen, catalog = a_full_cluster()
    searches = Searches()
    disrupt(seen, catalog, POLICY, NOW, searches=searches)
    once, policy = len(sought), POLICY
    if change == "pods":
        seen = apply(seen, events.PodSeen(on("n0", cpu="10m", memory="1Mi", app="other")[0]))
    elif change == "catalog":
        catalog = {key: tuple(map(replace, types)) for key, types in catalog.items()}
    elif change == "prices":
        policy = replace(POLICY, solving=replace(POLICY.solving, node_fee=0.01))
    else:
        policy = replace(POLICY, least_saving=POLICY.least_saving / 2)
    disrupt(seen, catalog, policy, NOW + 60, searches=searches)
    assert len(sought) > once


@pytest.mark.parametrize(("age", "whole"), [(100.0, 0), (400.0, 1)])
def test_what_is_refused_even_as_planned_is_not_looked_at_in_the_whole_cluster(sought, age, whole):
    """One node for 1.4 USD/h instead of two for 2 repays after 210 s; the part of it in use, earlier."""
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    types = instance_type("dear", 4, 16, price=1.0), instance_type("wide", 16, 64, price=1.4)
    old = {"types": {"dear": types[0]}, "created_at": NOW - age}
    nodes = [(node_of(pool, name, "dear", **old), on(name, 3)) for name in ("n0", "n1")]
    made = disrupt(cluster(pool, nodes), {pool.key: types}, POLICY, NOW, searches=Searches())
    assert len(made.commands) == whole
    assert [world is None for _, world in sought] == [False, *[True] * whole]


def test_what_pays_as_it_is_expected_is_looked_at_in_the_whole_cluster(sought):
    """For 0.5 USD/h it repays after 30 s, for the 1.6 that it costs at most after 112 s.

    Other nodes that are expected to cost as much may cost less at most.
    """
    pool = a_node_pool()
    dear = instance_type("dear", 4, 16, offerings=(Offering("z1", ON_DEMAND, 1.0),))
    wide = instance_type("wide", 16, 64, offerings=(Offering("z1", SPOT, 0.5), Offering("z2", SPOT, 1.6)))
    old = {"types": {"dear": dear}, "created_at": NOW - 60}
    nodes = [(node_of(pool, name, "dear", **old), on(name, 3)) for name in ("n0", "n1")]
    made = disrupt(cluster(pool, nodes), {pool.key: (dear, wide)}, POLICY, NOW, searches=Searches())
    assert not made.commands
    assert [world is None for _, world in sought] == [False, True]


@settings(max_examples=40, deadline=None)
@given(POOLS, NODES, st.lists(st.tuples(st.integers(1, 400), CHANGES), min_size=1, max_size=4))
def test_a_search_that_is_spared_would_have_found_the_same(pools, nodes, steps):
    seen = a_cluster(pools, nodes)
    catalog, searches, now = dict.fromkeys(seen.pools, TYPES), Searches(), NOW
    for seconds, change in [(0, "nothing"), *steps]:
        now += seconds
        if change == "a pod goes" and seen.pods:
            seen = apply(seen, events.PodGone(min(seen.pods)))
        elif change == "a pod comes" and seen.nodes:
            seen = apply(seen, events.PodSeen(on(max(seen.nodes), cpu="50m", app=f"at{now:.0f}")[0]))
        elif change == "prices":
            catalog = {key: tuple(map(_dearer, types)) for key, types in catalog.items()}
        kept = disrupt(seen, catalog, POLICY, now, CommandHistory(), searches)
        fresh = disrupt(seen, catalog, POLICY, now)
        assert kept.commands == fresh.commands
        assert kept.verdicts == fresh.verdicts
        assert kept.again_at == fresh.again_at


def _dearer(kind):
    return replace(
        kind, offerings=tuple(replace(offering, price=offering.price * 1.1) for offering in kind.offerings)
    )


@pytest.mark.parametrize("changed", [False, True])
def test_what_would_be_bought_is_forgotten_with_the_cluster_that_it_was_found_in(changed):
    seen, catalog = a_full_cluster()
    searches = Searches()
    searches.reset_unless_same(seen, catalog, POLICY, frozenset())
    searches.target([], lambda: ["before"])
    now = apply(seen, events.PodSeen(pods(1, "100m", name="new")[0])) if changed else seen
    searches.reset_unless_same(now, catalog, POLICY, frozenset())
    assert searches.target([], lambda: ["now"]) == ["now" if changed else "before"]


def test_sets_of_nodes_do_not_depend_on_the_order_in_which_equally_dear_nodes_are_planned():
    seen, catalog = a_full_cluster()
    candidates = DisruptionContext(seen, catalog, POLICY, NOW).candidates
    keys = [[pod.key for pod in candidate.pods] for candidate in candidates]
    (planned,) = plan(pods(1)).new_nodes
    target = [replace(planned, pods=(*keys[one], *keys[other])) for one, other in ((1, 2), (0, 3))]
    left = dict.fromkeys(seen.pools, 4)
    sets = candidate_sets(target, candidates, left, 4)
    assert len(sets) > 1
    assert candidate_sets(target[::-1], candidates, left, 4) == sets


@pytest.mark.parametrize(("moved", "together"), [(2, False), (3, True)])
def test_nodes_are_replaced_together_by_a_planned_node_that_takes_most_of_their_pods(moved, together):
    """Of five pods each; every pair is tried in any case, and so are the first three nodes."""
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    nodes = [
        (node_of(pool, f"n{number}", "a.large", types=NAMED), on(f"n{number}", 5)) for number in range(6)
    ]
    seen = cluster(pool, nodes)
    candidates = DisruptionContext(seen, {pool.key: TYPES}, POLICY, NOW).candidates
    keys = [pod.key for candidate in candidates[3:] for pod in candidate.pods[:moved]]
    (planned,) = plan(pods(1)).new_nodes
    sets = candidate_sets([replace(planned, pods=tuple(keys))], candidates, {pool.key: 6}, 6)
    assert (tuple(candidates[3:]) in sets) == together
