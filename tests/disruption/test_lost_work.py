"""Consolidation and pods to which spot costs more than it saves, because interruptions lose their work."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.disruption import DisruptionPolicy, disrupt, target
from nodeless.disruption.events import invalid_annotation_events
from nodeless.model import events
from nodeless.model.bill import HOURS_A_MONTH
from nodeless.model.buffers import CapacityBuffer, PodSource
from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, LOST_WORK, ON_DEMAND, SPOT
from nodeless.model.lost_work import InterruptionRate
from nodeless.model.nodes import DRIFTED, Condition
from nodeless.model.requirements import Requirements
from nodeless.scheduling import Policy, with_running_choices
from nodeless.state import apply
from tests.disruption.world import NOW, a_node_pool, cluster, node_of, on
from tests.scheduling.factories import instance_type, needs, pods

POOL = a_node_pool(requirements=Requirements([needs(CAPACITY_TYPE, "In", SPOT, ON_DEMAND)]))
TYPES = (
    instance_type("gpu", 4, 64, offerings=(Offering("z1", SPOT, 10.0), Offering("z1", ON_DEMAND, 12.0))),
    instance_type("gpu-small", 2, 32, offerings=(Offering("z1", SPOT, 5.0), Offering("z1", ON_DEMAND, 6.0))),
)
NAMED = {kind.name: kind for kind in TYPES}
OFTEN = (InterruptionRate(per_month=0.02 * HOURS_A_MONTH),)
SOLVING = Policy(time_box=0.0, spot_interruptions=OFTEN)


def said(hours):
    return {LOST_WORK: f"{hours}h"}


def losing(hours, on_claim, cpu="3", number=1):
    return on(on_claim, number, cpu=cpu, annotations=said(hours))


def a_node(name, capacity_type, kind="gpu", **claim):
    return node_of(POOL, name, kind, capacity_type=capacity_type, types=NAMED, **claim)


def decided(*things):
    seen = cluster(POOL, *things)
    return disrupt(seen, {POOL.key: TYPES}, DisruptionPolicy(solving=SOLVING), NOW)


def replaced_by(decisions):
    return [
        node.alternatives[0].offering.capacity_type
        for command in decisions.commands
        for node in command.replacements
    ]


def test_a_pod_that_loses_little_is_moved_to_spot():
    assert replaced_by(decided(a_node("a", ON_DEMAND), losing(9, "a"))) == [SPOT]


def test_a_pod_that_loses_more_than_spot_saves_stays_on_demand():
    decisions = decided(a_node("a", ON_DEMAND), losing(10, "a"))
    assert decisions.commands == ()
    assert "nothing cheaper" in decisions.verdicts["a"].message


def test_it_is_not_moved_to_room_on_a_spot_node_either():
    def ended(hours):
        spot = a_node("s", SPOT), on("s", cpu="500m")
        decisions = decided(a_node("a", ON_DEMAND), losing(hours, "a", "2"), *spot)
        return [command.claims for command in decisions.commands]

    assert ended(9) == [("a",)]
    assert ended(10) == [("s",)]


def test_it_is_moved_to_a_cheaper_node_that_is_on_demand():
    decisions = decided(a_node("a", ON_DEMAND), losing(10, "a", "1"))
    assert replaced_by(decisions) == [ON_DEMAND]
    (command,) = decisions.commands
    assert [node.instance_type for node in command.replacements] == ["gpu-small"]


def test_it_is_moved_to_room_that_is_on_demand():
    decisions = decided(
        a_node("a", ON_DEMAND), losing(10, "a", "1"), a_node("b", ON_DEMAND), on("b", cpu="2")
    )
    assert [command.claims for command in decisions.commands] == [("a",)]
    assert decisions.commands[0].replacements == ()


def test_a_pod_on_spot_is_moved_as_others_are():
    decisions = decided(a_node("a", SPOT), losing(1000, "a", "1"), a_node("s", SPOT), on("s", cpu="1"))
    (command,) = decisions.commands
    assert len(command.claims) == 1
    assert command.replacements == ()


@pytest.mark.parametrize("capacity_types", [(SPOT, ON_DEMAND), (SPOT,)])
def test_a_drifted_node_goes_all_the_same(capacity_types):
    drifted = Condition(DRIFTED, "True", "NodePoolDrifted", "", NOW - 60)
    own = replace(POOL, requirements=Requirements([needs(CAPACITY_TYPE, "In", *capacity_types)]))
    claim, node = a_node("a", ON_DEMAND)
    claim = replace(claim, conditions=(*claim.conditions, drifted))
    seen = cluster(own, [claim, node], losing(1000, "a"))
    decisions = disrupt(seen, {own.key: TYPES}, DisruptionPolicy(solving=SOLVING), NOW)
    assert replaced_by(decisions) == [ON_DEMAND if ON_DEMAND in capacity_types else SPOT]


def test_the_target_of_consolidation_keeps_it_on_demand():
    seen = cluster(POOL, a_node("a", ON_DEMAND), losing(10, "a"), a_node("b", ON_DEMAND), on("b", cpu="3"))
    found = target(seen, {POOL.key: TYPES}, DisruptionPolicy(solving=SOLVING), NOW)
    assert found.price == 24.0
    assert found.whole == 22.0


def test_the_choice_goes_by_all_that_can_be_bought():
    # What is cheaper than the node is sold on spot alone; the node's own price is what on-demand costs.
    small = replace(TYPES[1], offerings=(Offering("z1", SPOT, 9.5),), capacity=TYPES[0].capacity)
    own = replace(TYPES[0], offerings=(Offering("z1", ON_DEMAND, 12.0),))
    dear = replace(
        TYPES[0], name="dear", offerings=(Offering("z1", ON_DEMAND, 90.0), Offering("z1", SPOT, 9.0))
    )
    seen = cluster(POOL, a_node("a", ON_DEMAND), losing(20, "a"))
    policy = DisruptionPolicy(solving=SOLVING)
    assert disrupt(seen, {POOL.key: (small, own, dear)}, policy, NOW).commands == ()


def test_the_same_cluster_gives_the_very_same_pods():
    seen = cluster(POOL, a_node("a", ON_DEMAND), losing(10, "a"))
    catalog = {POOL.key: TYPES}
    first = with_running_choices(seen, catalog, SOLVING)
    assert with_running_choices(replace(seen), catalog, SOLVING).pods is first.pods
    assert first.pods["default/app-a-0-a"].shape.lost_work.stays


def test_a_cluster_without_such_pods_is_not_touched():
    seen = cluster(POOL, a_node("a", ON_DEMAND), on("a"))
    assert with_running_choices(seen, {POOL.key: TYPES}, SOLVING) is seen


def test_a_value_that_is_no_duration_is_told():
    (pod,) = on("a", annotations={LOST_WORK: "banana"})
    (event,) = invalid_annotation_events(cluster(POOL, a_node("a", ON_DEMAND), [pod]))
    assert (event.reason, event.kind, event.name) == ("InvalidLostWork", "Pod", pod.name)
    assert "nodeless.dev/lost-work='banana' is ignored; hint: write hours of work" in event.message
    waiting = replace(pod, node_name="", phase="Pending", unschedulable=True)
    (event,) = invalid_annotation_events(cluster(POOL, [waiting]))
    assert event.reason == "InvalidLostWork"
    (good,) = losing(10, "a")
    assert invalid_annotation_events(cluster(POOL, a_node("a", ON_DEMAND), [good])) == ()


@settings(deadline=None, max_examples=100)
@given(
    on_demand=st.integers(50, 200),
    spot=st.integers(10, 200),
    hours=st.integers(0, 60),
    cpu=st.sampled_from(["1", "2", "3"]),
    room=st.sampled_from(["500m", "2500m", "3"]),
)
def test_consolidation_moves_it_to_spot_exactly_when_the_formula_says_so(on_demand, spot, hours, cpu, room):
    types = (
        replace(
            TYPES[0], offerings=(Offering("z1", SPOT, spot / 10), Offering("z1", ON_DEMAND, on_demand / 10))
        ),
    )
    better_off = 0.02 * hours * spot >= on_demand - spot
    things = (a_node("a", ON_DEMAND), a_node("s", SPOT), on("s", cpu=room))

    def commands(annotations):
        seen = cluster(POOL, *things, on("a", cpu=cpu, annotations=annotations))
        return disrupt(seen, {POOL.key: types}, DisruptionPolicy(solving=SOLVING), NOW).commands

    found = [command for command in commands({LOST_WORK: f"{hours}h"}) if "a" in command.claims]
    if abs(0.02 * hours * spot - (on_demand - spot)) < 1e-6:
        return
    if better_off and hours:
        assert {
            node.alternatives[0].offering.capacity_type for command in found for node in command.replacements
        } <= {ON_DEMAND}
        assert all(command.replacements for command in found)
    else:
        assert found == [command for command in commands({}) if "a" in command.claims]


@pytest.mark.parametrize(("hours", "expected"), [(10, []), (1, [SPOT])])
def test_room_that_is_kept_for_pods_that_lose_much_stays_off_spot(hours, expected):
    template = PodSource("PodTemplate", "default", "chunk", pods(1, "3")[0].shape, annotations=said(hours))
    named = {"source": template.key, "source_kind": template.kind}
    seen = cluster(POOL, a_node("a", ON_DEMAND))
    for event in (
        events.PodSourceSeen(template),
        events.CapacityBufferSeen(CapacityBuffer("default", "spare", replicas=1, **named)),
    ):
        seen = apply(seen, event)
    found = disrupt(seen, {POOL.key: TYPES}, DisruptionPolicy(solving=SOLVING), NOW)
    assert replaced_by(found) == expected
