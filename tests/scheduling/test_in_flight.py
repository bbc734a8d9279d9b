"""Nodes in flight and nodes that exist: the acceptance rows IF-01 to IF-12, each with its identifier."""

from dataclasses import replace
from random import Random

import pytest
from immutables import Map

from nodeless.model.efa import EFA
from nodeless.model.hardware import NetworkInterface
from nodeless.model.labels import ARCH, HOSTNAME, INITIALIZED, INSTANCE_TYPE, PROVISIONER_NAME, ZONE
from nodeless.model.pools import AWS_NODE_TEMPLATE, NodeClass, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy
from pulumi_nodeless.rbac import CLOUD_RULES, CORE_RULES
from tests.scheduling.acceptance.catalogs import F, a_type
from tests.scheduling.factories import (
    beside,
    claim_for,
    daemon,
    needs,
    node,
    plan,
    planned_labels,
    pods,
    pool,
    running,
    spread,
)
from tests.scheduling.passes import (
    after_pass,
    planned,
    template,
    waiting,
    with_more,
)

EMPTY = Snapshot()
BOOTING = {PROVISIONER_NAME: "default", INSTANCE_TYPE: "default", ZONE: "z1", ARCH: "amd64"}
AMD64 = {ARCH: "amd64"}


def in_flight(wanted, **fields):
    """The cluster after a pass whose one node was launched and has not joined."""
    before = with_more(EMPTY, template(), wanted)
    (new,) = planned(before).new_nodes
    labels = planned_labels(before, new, F)
    return with_more(before, claim_for(new, provider_id="aws:///z1/i-1", labels=labels, **fields))


def test_if_01_a_second_small_pod_waits_for_the_node_on_its_way():
    result = planned(with_more(in_flight(pods(1, "10m")), pods(1, "10m", name="second")))
    assert not result.new_nodes
    assert len(result.placements) == 2


def test_if_01_the_same_holds_when_the_node_is_there_and_not_ready():
    booting = node("one", labels=BOOTING, allocatable={}, capacity={})
    result = planned(with_more(EMPTY, template(), booting, pods(1, "10m")))
    assert not result.new_nodes
    assert set(result.placements.values()) == {"one"}


@pytest.mark.parametrize(
    "second",
    [{"selector": {ZONE: "z2"}}, {"selector": {ARCH: "arm64"}}, {"cpu": "3500m"}],
    ids=["zone", "architecture", "size"],
)
def test_if_02_a_pod_that_the_node_on_its_way_does_not_suit_gets_another(second):
    first = pods(1, "1", selector={ZONE: "z1", **AMD64})
    result = planned(with_more(in_flight(first), pods(1, name="second", **second)))
    assert [new.pods for new in result.new_nodes] == [("default/second-0",)]
    assert set(result.placements) == {"default/web-0"}


def test_if_03_a_node_on_its_way_that_is_being_deleted_is_not_counted_on():
    result = planned(with_more(in_flight(pods(1), deletion_timestamp=1.0), pods(1, name="second")))
    assert not result.placements
    assert len(result.new_nodes) == 1


@pytest.mark.parametrize("reason", ["not-ready", "unreachable"])
def test_if_04_taints_of_a_booting_node_are_overlooked(reason):
    taint = Taint(f"node.kubernetes.io/{reason}", "NoSchedule")
    result = planned(with_more(EMPTY, template(), node("one", labels=BOOTING, taints=(taint,)), pods(1)))
    assert set(result.placements.values()) == {"one"}


def test_if_04_a_taint_of_another_kind_is_not():
    taint = Taint("foo.com/taint", "NoSchedule")
    result = planned(with_more(EMPTY, template(), node("one", labels=BOOTING, taints=(taint,)), pods(1)))
    assert not result.placements


@pytest.mark.parametrize(("initialized", "reused"), [(False, True), (True, False)])
def test_if_05_startup_taints_are_overlooked_until_the_node_is_initialized(initialized, reused):
    taint = Taint("ignore-me", "NoSchedule", "nothing")
    own = template("default", startup_taints=(taint,))
    labels = {**BOOTING, INITIALIZED: "true"} if initialized else BOOTING
    result = planned(with_more(EMPTY, own, node("one", labels=labels, taints=(taint,)), pods(1)))
    assert bool(result.placements) is reused


def test_if_06_pods_that_spread_over_hosts_count_on_each_node_in_flight_once():
    before = with_more(EMPTY, template(), pods(4, "10m", spread=(spread(HOSTNAME),)))
    claims = [claim_for(new, name=f"default-{index}") for index, new in enumerate(planned(before).new_nodes)]
    more = pods(5, "10m", name="more", labels={"app": "web"}, spread=(spread(HOSTNAME),))
    result = planned(with_more(before, claims, more))
    assert sorted(result.placements.values()) == sorted(one.name for one in claims)
    assert [len(new.pods) for new in result.new_nodes] == [1] * 5


@pytest.mark.parametrize("seed", range(3))
def test_if_07_batch_after_batch_no_second_node_stays_with_room(seed):
    chance = Random(seed)
    types = (replace(a_type("quad", 5, "16Gi", pods=4), overhead={"cpu": 750}),)
    seen = with_more(EMPTY, template())
    for batch in range(10):
        seen = after_pass(seen, pods(chance.randint(1, 10), name=f"b{batch}"), types=types)
        free = [4 - len(list(seen.pods_on(name))) for name in seen.nodes]
        assert not waiting(seen)
        assert sum(left > 0 for left in free) <= 1


def test_if_08_a_daemon_that_came_unexpectedly_is_counted_but_never_twice():
    types = (a_type("sixteen", 16, "32Gi", pods=20),)
    late = daemon("late", "1", selector={"unexpected": "yes"})
    labels = {**BOOTING, INSTANCE_TYPE: "sixteen", INITIALIZED: "true", "unexpected": "yes"}
    room = types[0].allocatable
    there = node("one", labels=labels, allocatable=room, capacity=types[0].capacity)
    started = running(pods(1, "1", name="late")[0], "one", daemon_set="late")
    before = with_more(EMPTY, template(), late, there, started)
    assert planned(with_more(before, pods(1, "14900m")), types).placements
    result = planned(with_more(before, pods(1, "15500m")), types)
    assert not result.placements
    assert len(result.new_nodes) == 1


def test_if_09_the_controller_may_not_bind_pods():
    assert not [
        rule for rule in (*CORE_RULES, *CLOUD_RULES) if {"pods/binding", "bindings"} & set(rule.resources)
    ]


def test_if_10_pods_of_a_leaving_node_and_pending_ones_share_a_new_node():
    bound = [running(pod, "old") for pod in pods(3, "100m", name="bound")]
    before = with_more(EMPTY, template(), node("old", deletion_timestamp=1.0), bound, pods(2, "100m"))
    result = planned(before)
    assert not result.placements
    assert [len(new.pods) for new in result.new_nodes] == [5]


def test_if_11_a_foreign_node_with_room_is_used():
    foreign = node("foreign", labels={ZONE: "z1"}, provider_id="")
    assert set(planned(with_more(EMPTY, template(), foreign, pods(1))).placements.values()) == {"foreign"}


def test_if_12_an_initialized_node_comes_before_one_that_boots():
    ready = node("b-ready", labels={**BOOTING, INITIALIZED: "true"})
    nodes = [node("a-booting", labels=BOOTING), ready]
    result = planned(with_more(EMPTY, template(), nodes, pods(1)))
    assert set(result.placements.values()) == {"b-ready"}


CARDS = (a_type("cards", 16, "64Gi", pods=20, **{EFA: "4"}),)
ONE_CARD = {"extra": {EFA: "1"}}


def on_its_way(first, *things, launched=True, node_class=None):
    """The cluster after a pass with a type that may have EFA interfaces, all of which its claim counts on."""
    before = with_more(EMPTY, template(), first)
    (new,) = planned(before, types=CARDS).new_nodes
    labels = planned_labels(before, new, CARDS)
    as_launched = {"provider_id": "aws:///z1/i-1", "allocatable": CARDS[0].allocatable, "labels": labels}
    made = claim_for(new, requests=new.requests, **(as_launched if launched else {}))
    seen = with_more(before, made, *things)
    return seen if node_class is None else replace(seen, node_classes=Map({str(made.node_class): node_class}))


def booting_node():
    labels = {**BOOTING, INSTANCE_TYPE: "cards"}
    return node("one", labels=labels, allocatable={}, capacity={}, provider_id="aws:///z1/i-1")


@pytest.mark.parametrize("state", ["to be launched", "launched", "booting"])
@pytest.mark.parametrize("first", [{}, ONE_CARD], ids=["without", "with"])
def test_a_node_on_its_way_has_efa_interfaces_only_if_it_was_launched_for_them(first, state):
    there = [booting_node()] if state == "booting" else []
    seen = on_its_way(pods(1, "1", **first), *there, launched=state != "to be launched")
    result = planned(with_more(seen, pods(1, "1", name="fabric", **ONE_CARD)), types=CARDS)
    assert [new.pods for new in result.new_nodes] == ([] if first else [("default/fabric-0",)])
    assert len(result.placements) == (2 if first else 1)


@pytest.mark.parametrize("launched", [True, False])
def test_a_node_on_its_way_has_the_efa_interfaces_that_its_node_class_lists(launched):
    listed = NodeClass(
        Reference(AWS_NODE_TEMPLATE, "default"), network_interfaces=(NetworkInterface(0, 1, efa_only=True),)
    )
    seen = on_its_way(pods(1, "1"), launched=launched, node_class=listed)
    pods_of_both = [*seen.pods.values(), *pods(1, "1", name="fabric", **ONE_CARD)]
    result = planned(replace(seen, pods=Map({pod.key: pod for pod in pods_of_both})), types=CARDS)
    assert not result.new_nodes
    assert len(result.placements) == 2


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
@pytest.mark.parametrize("cpu", ["4", "1"], ids=["room", "full"])
def test_a_pod_that_must_wait_for_a_terminating_one_is_bought_at_most_one_node(packing, key, cpu):
    leaving, waits = pods(2, anti_affinity=(beside(key),))
    there = [node("there", cpu), replace(running(leaving, "there"), deletion_timestamp=9.0), waits]
    policy = Policy(packing=packing)
    first = plan(there, pool("default", needs(ZONE, "In", "z1")), policy=policy)
    assert len(first.new_nodes) + len(first.placements) == 1
    claims = [claim_for(new) for new in first.new_nodes]
    for _ in range(2):
        later = plan(there, claims, pool("default", needs(ZONE, "In", "z1")), policy=policy)
        assert not later.new_nodes
        assert set(later.placements) == {waits.key}
