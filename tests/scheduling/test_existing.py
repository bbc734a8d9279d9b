"""Room that exists or is on its way is used before anything is launched, as the scheduler will see it."""

from dataclasses import replace

import pytest

from nodeless.model.disruption import PodDisruptionBudget
from nodeless.model.labels import (
    DISRUPTED_TAINT,
    INITIALIZED,
    INSTANCE_TYPE,
    PROVISIONER_NAME,
    UNREGISTERED_TAINT,
    ZONE,
)
from nodeless.model.nodes import Condition
from nodeless.model.pods import HostPort, LabelSelector
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling.capacity.in_flight_node import always_satisfies
from tests.scheduling.factories import (
    claim,
    claim_for,
    daemon,
    needs,
    new_types,
    node,
    plan,
    pods,
    pool,
    running,
    spread,
    term,
)

BOOTING = {PROVISIONER_NAME: "default", ZONE: "z1", INSTANCE_TYPE: "large"}


def used(result):
    return sorted(set(result.placements.values()))


def offering_zone(new):
    return new.alternatives[0].offering.zone


def test_a_node_with_room_takes_the_pods_that_fit_and_the_rest_gets_a_new_one():
    result = plan(node("one", cpu="2"), pods(3))
    assert result.placements == {"default/web-0": "one", "default/web-1": "one"}
    assert [new.pods for new in result.new_nodes] == [("default/web-2",)]


def test_what_runs_on_a_node_is_taken_off_and_what_has_ended_is_not():
    busy = running(pods(1, "1500m", name="busy")[0], "one")
    assert not plan(node("one", cpu="2"), busy, pods(1)).placements
    done = replace(running(pods(1, "1500m", name="done")[0], "one"), phase="Succeeded")
    assert used(plan(node("one", cpu="2"), done, pods(1))) == ["one"]


def test_a_node_that_is_not_ours_is_used_too():
    assert used(plan(node("static", labels={ZONE: "z1"}, provider_id=""), pods(1))) == ["static"]


@pytest.mark.parametrize(
    "state",
    [
        {"unschedulable": True},
        {"deletion_timestamp": 1.0},
        {"taints": (Taint(DISRUPTED_TAINT, "NoSchedule"),)},
        {"taints": (Taint("dedicated", "NoSchedule", "db"),)},
        {"labels": {"eks.amazonaws.com/compute-type": "fargate"}},
        {"allocatable": {"cpu": 8000, "memory": 2**34}},
    ],
    ids=["cordoned", "deleting", "disrupted", "tainted", "fargate", "no-pods-left"],
)
def test_nodes_that_will_take_no_pods_are_passed_over(state):
    result = plan(node("one", **state), pods(1))
    assert not result.placements
    assert result.new_nodes


def test_a_node_whose_claim_is_deleting_is_passed_over():
    going = claim("default-aaaaa", provider_id="aws:///z1/i-one", deletion_timestamp=1.0)
    assert not plan(node("one"), going, pods(1)).placements


def test_rq_11_labels_of_nodes_must_be_there_even_well_known_ones():
    unlabeled = node("one", labels={})
    assert not plan(unlabeled, pods(1, selector={ZONE: "z1"})).placements
    assert used(plan(node("two"), pods(1, selector={ZONE: "z1"}))) == ["two"]
    assert used(plan(node("two"), pods(1, selector={"kubernetes.io/hostname": "two"}))) == ["two"]


def test_initialized_nodes_come_first_then_booting_ones_then_claims():
    booting = node("b-booting", cpu="1", labels=BOOTING)
    waiting = claim("a-claim", "medium", allocatable={"cpu": 1000, "memory": 2**32, "pods": 10})
    ready = [node(name, cpu="1") for name in ("f", "d", "c", "e")]
    result = plan(booting, waiting, ready, pods(6))
    assert [result.placements[f"default/web-{i}"] for i in range(6)] == [
        "c",
        "d",
        "e",
        "f",
        "b-booting",
        "a-claim",
    ]


def test_the_next_pass_uses_the_claim_that_the_last_one_made_even_before_its_launch():
    first = plan(pods(3), daemon("agent", "100m"))
    (planned,) = first.new_nodes
    second = plan(pods(3), daemon("agent", "100m"), claim_for(planned))
    assert not second.new_nodes
    assert set(second.placements.values()) == {"default-aaaaa"}


def test_an_unlaunched_claim_offers_the_least_of_what_it_may_become():
    either = claim("default-aaaaa", "small", "large")
    assert not plan(either, pods(1, "2")).placements
    assert used(plan(either, pods(1, "500m"))) == ["default-aaaaa"]


def test_a_pod_counts_on_a_claims_label_only_when_every_outcome_has_it():
    anywhere = claim("default-aaaaa", "large")
    in_zone = claim(
        "default-bbbbb",
        requirements=Requirements([needs(INSTANCE_TYPE, "In", "large"), needs(ZONE, "In", "z2")]),
    )
    wanted = pods(1, selector={ZONE: "z2"})
    assert not plan(anywhere, wanted).placements
    assert used(plan(anywhere, in_zone, wanted)) == ["default-bbbbb"]


@pytest.mark.parametrize(
    "expression", [needs("team", "NotIn", "red"), needs("team", "DoesNotExist")], ids=str
)
def test_a_claim_made_for_a_pod_that_shuns_a_label_still_suits_it(expression):
    wanted = pods(1, required_terms=(term(expression),))
    (planned,) = plan(wanted).new_nodes
    assert used(plan(wanted, claim_for(planned))) == ["default-aaaaa"]


def test_a_claim_of_an_unknown_type_and_size_offers_nothing():
    assert not plan(claim("default-aaaaa", "gone"), pods(1)).placements


def test_a_claims_taints_must_be_tolerated_and_its_startup_taints_need_not():
    tainted = claim("default-aaaaa", "large", taints=(Taint("team", "NoSchedule"),))
    assert not plan(tainted, pods(1)).placements
    assert plan(tainted, pods(1, tolerations=(Toleration("team", "Exists"),))).placements
    assert plan(
        claim("default-aaaaa", "large", startup_taints=(Taint("cni", "NoSchedule"),)), pods(1)
    ).placements


@pytest.mark.parametrize(
    "taint",
    [
        Taint("node.kubernetes.io/not-ready", "NoSchedule"),
        Taint("node.kubernetes.io/not-ready", "NoExecute"),
        Taint("node.kubernetes.io/unreachable", "NoSchedule"),
        Taint("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule", "true"),
        Taint(UNREGISTERED_TAINT, "NoExecute"),
        Taint("cni", "NoSchedule", "starting"),
    ],
    ids=str,
)
def test_taints_of_booting_are_overlooked_until_the_node_is_initialized(taint):
    starting = pool("default", startup_taints=(Taint("cni", "NoSchedule", "starting"),))
    assert used(plan(starting, node("one", labels=BOOTING, taints=(taint,)), pods(1))) == ["one"]
    done = {**BOOTING, INITIALIZED: "true"}
    assert not plan(starting, node("one", labels=done, taints=(taint,)), pods(1)).placements


def test_the_fence_of_a_reboot_is_overlooked_while_the_node_is_rebooted_and_only_then():
    fenced = (
        Taint("karpenter.sh/rebooting", "NoSchedule"),
        Taint("node.kubernetes.io/unreachable", "NoExecute"),
    )
    done = {**BOOTING, INITIALIZED: "true"}
    machine = node("one", labels=done, taints=fenced, provider_id="aws:///z1/i-1")
    over = claim("default-aaaaa", "large", provider_id="aws:///z1/i-1")
    going = replace(over, conditions=(Condition("Rebooting", "True"),))
    assert used(plan(machine, going, pods(1))) == ["one"]
    assert not plan(machine, over, pods(1)).placements


@pytest.mark.parametrize(
    "left",
    [
        Taint("karpenter.sh/rebooting", "NoSchedule"),
        Taint("node.kubernetes.io/not-ready", "NoSchedule"),
        Taint("node.kubernetes.io/unreachable", "NoSchedule"),
    ],
    ids=str,
)
def test_pods_wait_for_a_machine_that_is_back_from_its_reboot_until_its_taints_are_gone(left):
    """The Node may be seen later than its claim, and its taints go a moment after it is Ready."""
    machine = node(
        "one", labels={**BOOTING, INITIALIZED: "true"}, taints=(left,), provider_id="aws:///z1/i-1"
    )
    back = replace(
        claim("default-aaaaa", "large", provider_id="aws:///z1/i-1"),
        conditions=(Condition("Rebooting", "False"), Condition("Initialized", "Unknown")),
    )
    result = plan(machine, back, pods(1))
    assert used(result) == ["one"]
    assert not result.new_nodes
    again = replace(back, conditions=(Condition("Rebooting", "False"), Condition("Initialized", "True")))
    assert not plan(machine, again, pods(1)).placements


@pytest.mark.parametrize(
    ("reason", "allowed", "always", "there", "waits"),
    [
        pytest.param("RebootRequested", 0, False, {}, False, id="held"),
        pytest.param("RebootRequested", 0, True, {"ready": True}, False, id="held-as-it-is-ready"),
        pytest.param("RebootRequested", 0, True, {}, True, id="may-leave-as-it-is-not-ready"),
        pytest.param("RebootRequested", 1, False, {}, True, id="may-leave"),
        pytest.param("RebootRequested", 0, False, {"deletion_timestamp": 1.0}, True, id="leaves"),
        pytest.param("RebootRequested", 0, False, {"phase": "Succeeded"}, True, id="done"),
        pytest.param("RebootRequested", 0, False, {"namespace": "other"}, True, id="of-others"),
        pytest.param("RebootIssued", 0, False, {}, True, id="rides-the-reboot"),
    ],
)
def test_pods_wait_for_a_reboot_unless_a_budget_holds_a_pod_that_waits_for_them(
    reason, allowed, always, there, waits
):
    machine = node("one", labels={**BOOTING, INITIALIZED: "true"}, provider_id="aws:///z1/i-1")
    going = replace(
        claim("default-aaaaa", "large", provider_id="aws:///z1/i-1"),
        conditions=(Condition("Rebooting", "True", reason),),
    )
    (stays,) = pods(1, name="there", labels={"app": "web"})
    budget = PodDisruptionBudget("default", "web", LabelSelector((("app", "web"),)), allowed, always)
    result = plan(machine, going, replace(running(stays, "one"), **there), budget, pods(1))
    assert used(result) == (["one"] if waits else [])
    assert len(result.new_nodes) == (0 if waits else 1)


def test_a_booting_node_with_a_taint_of_another_kind_is_passed_over():
    assert not plan(node("one", labels=BOOTING, taints=(Taint("custom", "NoSchedule"),)), pods(1)).placements


def test_a_booting_node_that_reports_nothing_yet_has_what_its_type_allocates():
    silent = node("one", labels=BOOTING, allocatable={"cpu": 0}, capacity={})
    result = plan(silent, pods(4))
    assert used(result) == ["one"]
    assert len(result.placements) == 3


def test_a_taken_host_port_sends_the_pod_elsewhere():
    web = pods(1, "100m", host_ports=(HostPort("", 80, "TCP"),))
    there = running(pods(1, "100m", name="there", host_ports=(HostPort("", 80, "TCP"),))[0], "one")
    assert not plan(node("one"), there, web).placements
    assert used(plan(node("one"), web)) == ["one"]


def test_pods_of_a_leaving_node_get_new_room_together_with_the_pending_ones():
    bound = [running(pod, "one") for pod in pods(3, name="bound")]
    result = plan(node("one", deletion_timestamp=1.0), bound, pods(2))
    assert new_types(result) == ["xlarge"]
    assert len(result.new_nodes[0].pods) == 5


@pytest.mark.parametrize(
    ("expression", "label", "sure"),
    [
        (needs("a", "In", "x", "y"), needs("a", "In", "x"), True),
        (needs("a", "In", "x"), needs("a", "In", "x", "y"), False),
        (needs("a", "Exists"), needs("a", "In", "x", "y"), True),
        (needs("a", "NotIn", "x"), needs("a", "NotIn", "x", "y"), True),
        (needs("a", "NotIn", "x", "y"), needs("a", "NotIn", "x"), False),
        (needs("a", "Exists"), needs("a", "NotIn", "x"), False),
        (needs("a", "Gt", "1"), needs("a", "Gt", "2"), True),
        (needs("a", "Gt", "2"), needs("a", "Gt", "1"), False),
        (needs("a", "DoesNotExist"), needs("a", "DoesNotExist"), True),
        (needs("a", "Exists"), needs("a", "DoesNotExist"), False),
        (needs("a", "NotIn", "x"), None, True),
        (needs("a", "In", "x"), None, False),
    ],
    ids=str,
)
def test_an_expression_is_sure_to_hold_when_every_outcome_satisfies_it(expression, label, sure):
    assert always_satisfies(expression, label) is sure


@pytest.mark.parametrize("limits", [None, {"cpu": "40"}], ids=["without-limits", "with-limits"])
def test_spread_pods_fill_the_room_of_a_zone_before_a_node_is_launched_there(limits):
    """Where other zones are full, room is left in one because these get pods before it gets more."""
    spread_pods = pods(9, spread=(spread(ZONE),))
    result = plan(node("one", cpu="16", memory="64Gi"), spread_pods, pool("default", limits=limits))
    assert list(result.placements.values()) == ["one"] * 3
    assert not result.refusals
    assert {offering_zone(new) for new in result.new_nodes} == {"z2", "z3"}


@pytest.mark.parametrize(
    ("number", "skew", "there"), [(9, 1, 3), (10, 1, 4), (9, 2, 4), (9, 4, 5), (3, 4, 3)]
)
def test_spread_pods_use_room_that_is_there_as_far_as_the_emptiest_zone_allows(number, skew, there):
    result = plan(node("one", cpu="16", memory="64Gi"), pods(number, spread=(spread(ZONE, skew=skew),)))
    assert list(result.placements.values()) == ["one"] * there
    assert sum(len(new.pods) for new in result.new_nodes) == number - there


def test_spread_pods_use_room_in_a_zone_where_no_node_can_be_launched():
    """A pod in the empty zone comes first, and lets the other one in where room is."""
    standing = [
        node(name, cpu="8", labels={**BOOTING, ZONE: zone, INITIALIZED: "true"})
        for name, zone in (("one", "z1"), ("three", "z3"))
    ]
    old = [running(pod, at.name) for pod, at in zip(pods(2, name="old"), standing, strict=True)]
    old = [replace(pod, labels={"app": "web"}) for pod in old]
    full = running(pods(1, "7", name="full")[0], "three")
    only = pool("default", needs(ZONE, "In", "z2", "z3"))
    result = plan(standing, old, full, pods(2, spread=(spread(ZONE),)), only)
    assert used(result) == ["one"]
    assert [(offering_zone(new), len(new.pods)) for new in result.new_nodes] == [("z2", 1)]


def test_spread_pods_with_host_ports_use_each_node_of_a_zone_before_a_new_one():
    in_z1 = [node(name, labels={**BOOTING, INITIALIZED: "true"}) for name in ("one", "two")]
    apart = pods(6, spread=(spread(ZONE),), host_ports=(HostPort("0.0.0.0", 80, "TCP"),))
    result = plan(in_z1, apart)
    assert sorted(result.placements.values()) == ["one", "two"]
    assert sorted(map(offering_zone, result.new_nodes)) == ["z2", "z2", "z3", "z3"]


def test_room_of_a_zone_is_left_alone_where_nothing_lets_more_pods_in():
    only_z1 = pool("default", needs(ZONE, "In", "z1"))
    fixed = node("two", cpu="1", labels={**BOOTING, ZONE: "z2", INITIALIZED: "true"})
    full = running(pods(1, "1", name="full")[0], "two")
    result = plan(node("one", cpu="16"), fixed, full, pods(3, spread=(spread(ZONE),)), only_z1)
    assert used(result) == ["one"]
    assert len(result.placements) == 1
    assert not result.new_nodes
