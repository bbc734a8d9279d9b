"""Given pods that a new node did not help, launching slows down; given others, it does not."""

from dataclasses import replace

from nodeless.controllers.provisioning.launch_backoff import LaunchBackoff
from nodeless.model.events import ClaimSeen, PodSeen
from nodeless.model.instance_types import Offering
from nodeless.model.nodes import Condition
from nodeless.model.plan import Alternative, PlannedNode
from nodeless.model.requirements import Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply
from tests.factories import NOW, PROVISIONER, TEMPLATE, a_launched_claim, a_pending_pod, an_initialized_claim

POD = a_pending_pod()


def a_planned_node(*pods):
    offering = Offering("us-east-1a", "on-demand", 0.1)
    alternatives = (Alternative("m5.large", offering),)
    keys = tuple(pod.key for pod in pods)
    return PlannedNode(PROVISIONER, TEMPLATE, Requirements(), {}, keys, alternatives)


def a_cluster(*claims, pods=(POD,)):
    snapshot = Snapshot()
    for event in (*map(PodSeen, pods), *map(ClaimSeen, claims)):
        snapshot = apply(snapshot, event)
    return snapshot


def test_the_first_two_nodes_come_at_once():
    guard, node = LaunchBackoff(), a_planned_node(POD)
    assert guard.wait_for(node, a_cluster(), NOW) == 0
    guard.note_launch("first", node, a_cluster(), NOW)
    assert guard.wait_for(node, a_cluster(an_initialized_claim("first")), NOW + 5) == 0


def test_after_a_node_in_vain_the_next_but_one_waits_ever_longer():
    guard, node, now, waits = LaunchBackoff(), a_planned_node(POD), NOW, []
    claims = []
    for number in range(7):
        now += guard.wait_for(node, a_cluster(*claims), now)
        guard.note_launch(f"c{number}", node, a_cluster(*claims), now)
        waits.append(guard.wait_for(node, a_cluster(*claims), now))
        claims.append(an_initialized_claim(f"c{number}"))
    assert waits == [0, 20, 40, 80, 160, 300, 300]


def test_a_node_that_never_joined_does_not_count():
    guard, node = LaunchBackoff(), a_planned_node(POD)
    for name in ("first", "second", "third"):
        guard.note_launch(name, node, a_cluster(a_launched_claim("first")), NOW)
    assert guard.wait_for(node, a_cluster(), NOW) == 0


def test_a_node_that_joined_and_never_became_ready_counts():
    guard, node = LaunchBackoff(), a_planned_node(POD)
    joined = replace(an_initialized_claim("first"), conditions=(Condition("Registered", "True"),))
    for name in ("first", "second"):
        guard.note_launch(name, node, a_cluster(joined), NOW)
    assert guard.wait_for(node, a_cluster(), NOW) == 20


def test_a_pod_that_has_waited_for_nothing_yet_brings_the_others_along():
    guard, fresh = LaunchBackoff(), a_pending_pod("fresh")
    cluster = a_cluster(an_initialized_claim("first"), pods=(POD, fresh))
    guard.note_launch("first", a_planned_node(POD), cluster, NOW)
    guard.note_launch("second", a_planned_node(POD), cluster, NOW)
    assert guard.wait_for(a_planned_node(POD), cluster, NOW) == 20
    assert guard.wait_for(a_planned_node(POD, fresh), cluster, NOW) == 0


def test_a_pod_that_found_its_place_is_forgotten():
    guard, node = LaunchBackoff(), a_planned_node(POD)
    cluster = a_cluster(an_initialized_claim("first"))
    guard.note_launch("first", node, cluster, NOW)
    guard.note_launch("second", node, cluster, NOW)
    guard.forget(POD.uid)
    assert guard.wait_for(node, cluster, NOW) == 0
