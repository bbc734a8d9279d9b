"""What one pass planned, the next one keeps: pods that wait stay where they are expected."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.launch.claims import claims_for
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, PLANNED_PODS, ZONE
from nodeless.model.pods import LabelSelector, PodAffinityTerm
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.scheduling.pods.rules import has_rules
from tests.scheduling.factories import (
    FAMILY,
    NOW,
    beside,
    claim,
    instance_type,
    needs,
    node,
    plan,
    pods,
    pool,
    running,
    snapshot,
    spread,
    term,
)
from tests.scheduling.topology_worlds import TYPES, WORLDS

PATIENT = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def solved(seen, types, time_box=0.0):
    return solve(seen, dict.fromkeys(seen.pools, types), Policy(time_box=time_box))


def with_claims(seen, made):
    """The cluster once the claims of a plan are written."""
    creates = claims_for(made, dict(seen.pools), NOW, taken=frozenset(seen.claims), pods=dict(seen.pods))
    claims = seen.claims
    expected = {}
    for create, planned in zip(creates, made.new_nodes, strict=True):
        claims = claims.set(create.claim.name, create.claim)
        expected.update(dict.fromkeys(planned.pods, create.claim.name))
    return replace(seen, claims=claims), expected


SIZES = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.sampled_from(["100m", "250m", "700m", "1", "1300m", "2", "3500m"]),
        st.sampled_from(["64Mi", "500Mi", "1Gi", "3Gi", "7Gi"]),
    ),
    min_size=1,
    max_size=10,
)


@PATIENT
@given(SIZES, SIZES, st.sampled_from([0.0, 0.05]))
def test_a_later_pass_leaves_what_was_planned_together_together(sizes, more, time_box):
    first = [pods(n, cpu, memory, name=f"a{i}") for i, (n, cpu, memory) in enumerate(sizes)]
    seen = snapshot(first, pool())
    made = solved(seen, FAMILY, time_box)
    waiting, expected = with_claims(seen, made)
    later = [pods(n, cpu, memory, name=f"b{i}") for i, (n, cpu, memory) in enumerate(more)]
    grown = snapshot(first, later, pool(), list(waiting.claims.values()))
    again = solved(grown, FAMILY, time_box)
    assert {key: again.placements.get(key) for key in expected} == expected


@PATIENT
@given(WORLDS)
def test_a_pass_in_which_nothing_is_new_moves_nobody_without_rules(seen):
    """Rules that count pods of other workloads may let a pod in elsewhere than before, or nowhere."""
    made = solved(seen, TYPES)
    waiting, expected = with_claims(seen, made)
    again = solved(waiting, TYPES)
    moved = [key for key, name in expected.items() if again.placements.get(key) != name]
    assert all(has_rules(seen.pods[key].shape) for key in moved)


def test_pods_that_must_be_beside_some_and_are_shut_out_by_more_of_them_keep_their_places():
    """The followers' spread counts leaders: beside one of two they may be, after both they may not."""
    leaders = pods(2, "50m", name="leader", labels={"app": "c"})
    followers = pods(
        4,
        "50m",
        name="follower",
        labels={"app": "b"},
        spread=(spread(CAPACITY_TYPE, "c"),),
        affinity=(beside(HOSTNAME, "c"),),
    )
    seen = snapshot(leaders, followers, pool("first"))
    made = solved(seen, TYPES)
    assert not made.refusals
    waiting, expected = with_claims(seen, made)
    again = solved(waiting, TYPES)
    assert again.placements == expected
    assert not again.refusals


def test_a_pod_that_must_be_near_pods_like_itself_keeps_its_place_before_others_that_are_like_it():
    """It may begin in any capacity type, but only in theirs once they are there."""
    not_a = LabelSelector(match_expressions=(("app", "NotIn", ("a",)),))
    apart = (PodAffinityTerm(ZONE, LabelSelector()),)
    beginner = pods(
        1,
        "500m",
        name="beginner",
        labels={"app": "b"},
        required_terms=(term(needs(ZONE, "In", "z1", "z2")),),
        affinity=(PodAffinityTerm(CAPACITY_TYPE, not_a),),
    )
    other = pods(1, "1", name="other", labels={"app": "b"}, anti_affinity=apart)
    keeper = pods(1, "100m", name="keeper", labels={"app": "b"}, anti_affinity=apart)
    there = node("n1", cpu="1", labels={ZONE: "z2"})
    seen = snapshot(beginner, other, there, running(keeper[0], "n1"), pool("first"))
    made = solved(seen, TYPES)
    assert not made.refusals
    waiting, expected = with_claims(seen, made)
    assert solved(waiting, TYPES).placements == expected


def test_pods_keep_their_places_where_each_of_three_workloads_shuts_out_another():
    """The first wave before the guest shuts it out, and the loner's node does once there is nobody on it."""
    not_z1 = (term(needs(ZONE, "NotIn", "z1")),)
    wave = pods(4, "1", name="wave", labels={"app": "c"}, required_terms=not_z1)
    not_a = LabelSelector(match_expressions=(("app", "NotIn", ("a",)),))
    guest = pods(
        1,
        "1900m",
        name="guest",
        labels={"app": "b"},
        spread=(
            spread(ZONE, "a", min_domains=3),
            replace(spread(HOSTNAME, min_domains=2), selector=not_a),
        ),
    )
    loner = pods(
        1,
        "500m",
        name="loner",
        labels={"app": "a"},
        affinity=(beside(ZONE, "c"),),
        anti_affinity=(PodAffinityTerm(HOSTNAME, LabelSelector()),),
    )
    seen = snapshot(wave, guest, loner, pool("first"))
    made = solved(seen, TYPES)
    assert not made.refusals
    waiting, expected = with_claims(seen, made)
    again = solved(waiting, TYPES)
    assert again.placements == expected
    assert not again.new_nodes


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_nobody_begins_elsewhere_while_others_of_the_group_are_expected_on_a_claim(packing):
    """A guest that the group may join is bound first only by chance: then the others' node is in vain."""
    group = pods(4, "30", name="group", labels={"app": "a"}, affinity=(beside(HOSTNAME, "a"),))
    guest = pods(1, "50m", name="guest", labels={"app": "a"})
    types = (instance_type("c64", 64, 128),)
    first = snapshot(group[:2], pool("first"))
    there, expected = with_claims(first, solved(first, types))
    (name,) = there.claims
    places = {**expected, guest[0].key: name}
    seen = snapshot(group, guest, pool("first"), *there.claims.values())
    again = solve(seen, dict.fromkeys(seen.pools, types), Policy(packing=packing, time_box=0, places=places))
    assert again.placements == places
    assert [refusal.pod for refusal in again.refusals] == ["default/group-2", "default/group-3"]
    assert not again.new_nodes


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_a_group_of_which_some_are_expected_in_a_zone_goes_on_in_another_beside_a_guest(packing):
    """It begins where they are expected, so that the others need the guest where they are."""
    group = pods(4, "30", name="group", labels={"app": "a"}, affinity=(beside(ZONE, "a"),))
    guest = pods(1, "50m", name="guest", labels={"app": "a"})
    types = (instance_type("c64", 64, 128),)
    here = pool("here", needs(ZONE, "In", "z1"), weight=10, limits={"cpu": "64"})
    first = snapshot(group[:2], here)
    there, expected = with_claims(first, solved(first, types))
    seen = snapshot(group, guest, here, pool("there", needs(ZONE, "In", "z2")), *there.claims.values())
    again = solve(
        seen, dict.fromkeys(seen.pools, types), Policy(packing=packing, time_box=0, places=expected)
    )
    assert not again.refusals
    assert again.placements == expected
    assert [sorted(planned.pods) for planned in again.new_nodes] == [
        ["default/group-2", "default/group-3", "default/guest-0"]
    ]


def test_no_pod_is_given_up_for_one_that_was_left_over():
    """The large one may begin on a node of its own only while none of the small ones has a place."""
    large = pods(1, "60", name="large", labels={"app": "b"}, affinity=(beside(HOSTNAME, "b"),))
    small = pods(3, "30", name="small", labels={"app": "b"}, spread=(spread(HOSTNAME, "b"),))
    types = (instance_type("c64", 64, 128), instance_type("c32", 32, 64))
    seen = snapshot(large, small, pool("first", limits={"cpu": "140"}))
    made = solved(seen, types)
    assert [refusal.pod for refusal in made.refusals] == ["default/small-2"]
    waiting, expected = with_claims(seen, made)
    again = solved(waiting, types)
    assert [refusal.pod for refusal in again.refusals] == ["default/small-2"]
    assert again.placements == expected


def test_pods_that_are_let_in_by_one_whose_turn_comes_later_keep_their_places():
    not_web = LabelSelector(match_expressions=(("app", "NotIn", ("web",)),))
    followers = pods(
        3, "1900m", name="follower", labels={"app": "web"}, affinity=(PodAffinityTerm(ZONE, not_web),)
    )
    leader = pods(1, "100m", name="leader", labels={"app": "b"})
    there = node("n0", cpu="1", labels={ZONE: "z1"})
    seen = snapshot(followers, leader, there, pool("first"))
    made = solved(seen, TYPES)
    waiting, expected = with_claims(seen, made)
    assert len(made.new_nodes) == 2, "so that the followers could change places"
    assert made.placements == {leader[0].key: "n0"}, "so that no claim names the leader"
    again = solved(waiting, TYPES)
    assert again.placements == {**expected, **made.placements}
    assert not again.new_nodes


def test_pods_that_are_let_in_by_others_of_their_own_keep_their_places():
    web = {"labels": {"app": "web"}, "spread": (spread(ZONE, "web"),)}
    there = [
        node(name, cpu="1", labels={ZONE: zone}) for name, zone in (("n0", "z2"), ("n1", "z2"), ("n2", "z1"))
    ]
    old = [
        running(pods(1, "100m", name=f"old-{name}", labels={"app": "web"})[0], name) for name in ("n0", "n1")
    ]
    old.append(running(pods(1, "100m", name="other")[0], "n2"))
    large = pods(1, "1", name="large", labels={"app": "web"})
    seen = snapshot(pods(4, "100m", name="some", **web), large, old, there, pool("first"))
    made = solved(seen, TYPES)
    waiting, expected = with_claims(seen, made)
    assert len(expected) == 2
    assert solved(waiting, TYPES).placements == {**expected, **made.placements}


def test_a_pod_that_got_a_new_node_is_not_kept_as_well_once_another_would_let_it_in():
    web = {"labels": {"app": "web"}, "spread": (spread(ZONE, "web"),)}
    old = running(pods(1, "100m", name="old", labels={"app": "web"})[0], "one")
    (first,) = pods(1, "900m", name="first", **web)
    (later,) = pods(1, "100m", name="later", labels={"app": "web"}, selector={ZONE: "z2"})
    one = node("one", cpu="2", labels={ZONE: "z1"})
    made = plan(
        replace(first, expected_node_name="one"),
        later,
        old,
        one,
        pool("first", needs(ZONE, "In", "z1", "z2")),
    )
    assert first.key not in made.placements, "z1 has one more than z2"
    assert sorted([*made.placements, *(key for new in made.new_nodes for key in new.pods)]) == [
        first.key,
        later.key,
    ]


def test_a_pod_that_was_nominated_stays_where_it_was_nominated():
    two = [node(name, cpu="4") for name in ("one", "two")]
    (waiting,) = pods(1)
    assert plan(waiting, *two).placements == {waiting.key: "one"}
    assert plan(replace(waiting, expected_node_name="two"), *two).placements == {waiting.key: "two"}


def test_a_place_that_does_not_hold_any_more_is_given_up():
    small, large = node("one", cpu="100m"), node("two", cpu="4")
    waiting = replace(pods(1)[0], expected_node_name="one")
    assert plan(waiting, small, large).placements == {waiting.key: "two"}
    assert plan(replace(waiting, expected_node_name="gone"), large).placements == {waiting.key: "two"}


def test_a_claim_names_the_pods_that_it_is_for_and_only_those():
    some = pods(3, "1500m")
    seen = snapshot(some, pool())
    made = solved(seen, FAMILY)
    (create, *_) = claims_for(made, dict(seen.pools), NOW, pods=dict(seen.pods))
    assert len(create.claim.annotations[PLANNED_PODS].split(",")) == len(made.new_nodes[0].pods)
    assert PLANNED_PODS not in claim("default-bbbbb").annotations


def test_a_pod_stays_where_the_pass_before_put_it_as_long_as_it_fits():
    web = pods(4, "900m")
    keys = [pod.key for pod in web]
    nodes = [node(f"n{index}", cpu="2") for index in range(4)]
    seen = snapshot(web, nodes, pool())
    places = dict(zip(keys, ["n3", "n3", "n3", "gone"], strict=True))
    made = solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy(time_box=0, places=places))
    kept = [key for key in keys if made.placements[key] == places[key]]
    assert kept == keys[:2], "two fit on the node; one is gone"
    assert not made.new_nodes


def test_the_place_of_a_claim_is_its_node_once_it_has_joined():
    web = pods(2, "900m")
    joined = node("ip-10-0-0-1", cpu="2", provider_id="aws:///z1/i-1")
    made_by = replace(claim("default-aaaaa"), provider_id="aws:///z1/i-1")
    seen = snapshot(web, node("a-first", cpu="2"), joined, made_by, pool())
    seen = replace(seen, node_names=seen.node_names.set(joined.provider_id, joined.name))
    places = {web[0].key: "default-aaaaa"}
    made = solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy(time_box=0, places=places))
    assert made.placements == {web[0].key: "ip-10-0-0-1", web[1].key: "a-first"}
