"""Capacity buffers: room that stands ready, as placeholders that take the last places."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.explain.decisions import Situation, read, write
from nodeless.model import events
from nodeless.model.buffers import CapacityBuffer, PodSource
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve, with_placeholders
from nodeless.scheduling.pods.buffers import buffer_of, placeholders, resolution, resolutions
from nodeless.state import apply
from tests.scheduling.factories import FAMILY, NOW, instance_type, node, pods, pool, running, snapshot

BOTH = pytest.mark.parametrize("packing", [LOWEST_PRICE, FEWEST_NODES])
TEMPLATE = PodSource("PodTemplate", "default", "chunk", pods(1, "1")[0].shape, {"app": "web"})
DEPLOYMENT = PodSource("Deployment", "default", "web", pods(1, "1")[0].shape, {"app": "web"}, replicas=10)


def a_buffer(source=TEMPLATE, **fields):
    return CapacityBuffer("default", "spare", "uid", source=source.key, source_kind=source.kind, **fields)


def buffered(*things, buffer, source=TEMPLATE):
    """A cluster with a pool, a buffer, and what that names."""
    seen = snapshot(pool(), *things)
    for event in (events.PodSourceSeen(source), events.CapacityBufferSeen(buffer)):
        seen = apply(seen, event)
    return seen


def planned(seen, types=FAMILY, **policy):
    return solve(seen, dict.fromkeys(seen.pools, types), Policy(**policy))


def count(buffer, source=TEMPLATE):
    return len(list(placeholders(buffered(buffer=buffer, source=source))))


@BOTH
def test_room_is_made_for_a_buffer_though_no_pod_waits(packing):
    result = planned(buffered(buffer=a_buffer(replicas=3)), packing=packing)
    assert sum(len(new.pods) for new in result.new_nodes) == 3
    assert {buffer_of(key) for new in result.new_nodes for key in new.pods} == {"default/spare"}


def test_room_that_is_free_already_is_enough():
    result = planned(buffered(node("one", cpu="4"), buffer=a_buffer(replicas=3)))
    assert not result.new_nodes
    assert list(result.placements.values()) == ["one"] * 3


@BOTH
def test_pods_take_the_room_before_placeholders_do(packing):
    seen = buffered(node("one", cpu="2"), pods(2, "900m"), buffer=a_buffer(replicas=2))
    result = planned(seen, packing=packing)
    assert set(result.placements) == {"default/web-0", "default/web-1"}
    assert all(buffer_of(key) for new in result.new_nodes for key in new.pods)


@BOTH
def test_limits_are_for_pods_first(packing):
    tight = pool("default", limits={"cpu": "2"})
    seen = buffered(tight, pods(1, "900m"), buffer=a_buffer(replicas=5))
    one = (instance_type("one", 2, 8),)
    result = planned(seen, types=one, packing=packing)
    assert "default/web-0" in [key for new in result.new_nodes for key in new.pods]
    assert all(buffer_of(refusal.pod) for refusal in result.refusals)


def test_a_pod_that_took_the_room_makes_the_buffer_ask_for_more():
    there = running(pods(1, "3")[0], "one")
    result = planned(buffered(node("one", cpu="4"), there, buffer=a_buffer(replicas=3)))
    assert len(result.placements) == 1
    assert sum(len(new.pods) for new in result.new_nodes) == 2


@pytest.mark.parametrize(
    ("fields", "source", "expected"),
    [
        ({"replicas": 3}, TEMPLATE, 3),
        ({"replicas": 0}, TEMPLATE, 0),
        ({"percentage": 25}, DEPLOYMENT, 3),
        ({"percentage": 1}, DEPLOYMENT, 1),
        ({"percentage": 0}, DEPLOYMENT, 0),
        ({"replicas": 1, "percentage": 50}, DEPLOYMENT, 5),
        ({"replicas": 7, "percentage": 50}, DEPLOYMENT, 7),
        ({"replicas": 7, "limits": {"cpu": 4500}}, TEMPLATE, 4),
        ({"limits": {"cpu": 4500}}, TEMPLATE, 4),
        ({"limits": {"cpu": 4500, "pods": 2}}, TEMPLATE, 2),
        ({"limits": {"example.com/chip": 4}}, TEMPLATE, 0),
        ({"percentage": 50}, TEMPLATE, 0),
        ({}, TEMPLATE, 0),
        ({"replicas": -4}, TEMPLATE, 0),
        ({"replicas": 10**9}, TEMPLATE, 10_000),
    ],
)
def test_the_number_of_placeholders(fields, source, expected):
    assert count(a_buffer(source, **fields), source) == expected


def test_what_cannot_be_looked_up_makes_no_placeholders_and_says_why():
    seen = snapshot(pool())
    assert resolution(seen, a_buffer(replicas=1)).reason == "PodTemplateNotFound"
    assert resolution(seen, a_buffer(DEPLOYMENT, replicas=1)).reason == "ScalableRefNotFound"
    odd = CapacityBuffer("default", "spare", source_kind="Job.batch", replicas=1)
    assert resolution(seen, odd).reason == "ResolutionFailed"
    assert "Job.batch" in resolution(seen, odd).message
    frozen = a_buffer(replicas=1, strategy="example.com/frozen")
    assert resolution(buffered(buffer=frozen), frozen).reason == "ResolutionFailed"
    assert not list(placeholders(apply(seen, events.CapacityBufferSeen(a_buffer(replicas=1)))))


def test_a_buffer_that_is_deleted_asks_for_nothing():
    assert count(a_buffer(replicas=3, deletion_timestamp=NOW)) == 0


def test_placeholders_are_made_once():
    seen = with_placeholders(buffered(buffer=a_buffer(replicas=3)))
    assert len(seen.pods) == 3
    assert with_placeholders(seen) is seen


def test_a_saved_situation_keeps_buffers_and_what_they_name():
    seen = buffered(buffer=a_buffer(replicas=2, limits={"cpu": 4000}))
    situation = Situation(seen, dict.fromkeys(seen.pools, FAMILY), Policy(), NOW)
    saved = read(write(situation, "")).situation
    assert saved == situation
    assert saved.plan() == situation.plan()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 6), st.integers(0, 6), st.sampled_from(["200m", "1", "3"]))
def test_a_buffer_never_costs_a_pod_its_place(number, spare, cpu):
    wanted = pods(number, cpu)
    alone = planned(snapshot(pool(), node("one", cpu="2"), wanted), packing=FEWEST_NODES)
    beside = planned(
        buffered(node("one", cpu="2"), wanted, buffer=a_buffer(replicas=spare)), packing=FEWEST_NODES
    )
    assert dict(alone.placements) == {
        key: name for key, name in beside.placements.items() if not buffer_of(key)
    }
    assert not [refusal for refusal in beside.refusals if not buffer_of(refusal.pod)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 9), st.integers(0, 9) | st.integers(0, 40_000)),
        max_size=12,
        unique_by=lambda each: each[:2],
    )
)
def test_many_buffers_get_no_more_than_a_few_and_no_namespace_pays_for_another(asked):
    seen = snapshot(pool())
    for namespace, number, replicas in asked:
        buffer = CapacityBuffer(
            namespace,
            f"spare-{number}",
            f"{namespace}-{number}",
            source=TEMPLATE.key.replace("default", namespace),
            source_kind=TEMPLATE.kind,
            replicas=replicas,
        )
        source = replace(TEMPLATE, namespace=namespace)
        for event in (events.PodSourceSeen(source), events.CapacityBufferSeen(buffer)):
            seen = apply(seen, event)
    found = resolutions(seen)
    wanted, given = Counter(), Counter()
    for namespace, number, replicas in asked:
        one = found[f"{namespace}/spare-{number}"]
        least = min(replicas, 10_000)
        wanted[namespace] += least
        given[namespace] += one.replicas
        assert bool(one.held_back) == (one.replicas < least)
    assert sum(given.values()) <= 20_000
    if sum(given.values()) < 100:
        assert sum(given.values()) == len(list(placeholders(seen)))
    for namespace in wanted:
        assert given[namespace] <= 10_000
        assert given[namespace] >= min(wanted[namespace], 10_000, 20_000 // max(1, len(wanted)))
