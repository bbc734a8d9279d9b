"""Daemons: what they need is taken off a node's room, type by type, before pods get any."""

import pytest

from nodeless.model.labels import (
    ARCH,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_NAME,
    PROVISIONER_NAME,
    REGISTERED,
)
from nodeless.model.pods import HostPort, NodeSelectorTerm
from nodeless.model.taints import Taint, Toleration
from tests.scheduling.factories import (
    claim,
    codes,
    daemon,
    instance_type,
    needs,
    new_types,
    node,
    plan,
    pods,
    pool,
    running,
    term,
)


def by_name(operator, name):
    """A term as the DaemonSet controller writes it into its pods."""
    return NodeSelectorTerm((), match_fields=True, fields=(needs(NODE_NAME, operator, name),))


SMALL, LARGE = instance_type("2-cpu", 2, 2), instance_type("4-cpu", 4, 4)
TYPES = (SMALL, LARGE)
WORK = pods(1, "1", "1Gi")


def test_a_daemon_makes_the_node_larger_and_its_requests_are_planned():
    (new,) = plan(daemon("agent", "1", "500Mi"), WORK, types=TYPES).new_nodes
    assert new.instance_type == "4-cpu"
    assert new.requests == {"cpu": 2000, "memory": 1524 * 2**20, "pods": 2}


def test_a_daemon_that_does_not_tolerate_the_pools_taint_does_not_count():
    tainted = pool("default", taints=(Taint("team", "NoSchedule"),))
    tolerant = pods(1, "1", "1Gi", tolerations=(Toleration("", "Exists"),))
    assert new_types(plan(tainted, daemon("agent", "1"), tolerant, types=TYPES)) == ["2-cpu"]


def test_a_soft_taint_keeps_no_daemon_away():
    quiet = pool("default", taints=(Taint("quiet", "PreferNoSchedule"),))
    assert new_types(plan(quiet, daemon("agent", "1"), WORK, types=TYPES)) == ["4-cpu"]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"selector": {"nobody": "has-it"}}, "2-cpu"),
        ({"required_terms": (term(needs("foo", "NotIn", "bar")),)}, "4-cpu"),
        ({"required_terms": (term(needs("nobody", "Exists")), term(needs(ARCH, "In", "amd64")))}, "4-cpu"),
        ({"preferred_terms": ((1, term(needs("nobody", "Exists"))),)}, "4-cpu"),
        ({"required_terms": (term(needs(HOSTNAME, "In", "elsewhere")),)}, "2-cpu"),
        ({"required_terms": (term(needs(HOSTNAME, "NotIn", "elsewhere")),)}, "4-cpu"),
        ({"required_terms": (by_name("In", "elsewhere"),)}, "2-cpu"),
        ({"required_terms": (by_name("NotIn", "elsewhere"),)}, "4-cpu"),
        ({"required_terms": (by_name("In", "elsewhere"), term(needs(ARCH, "Exists")))}, "4-cpu"),
        ({"required_terms": (term(),)}, "2-cpu"),
        ({"selector": {HOSTNAME: "elsewhere"}}, "2-cpu"),
        ({"selector": {REGISTERED: "true"}}, "4-cpu"),
        ({"selector": {INITIALIZED: "true"}}, "4-cpu"),
        ({"required_terms": (term(needs(INITIALIZED, "In", "true")),)}, "4-cpu"),
        ({"required_terms": (term(needs(INITIALIZED, "DoesNotExist")),)}, "2-cpu"),
    ],
)
def test_a_daemon_counts_where_its_selection_can_hold(shape, expected):
    assert new_types(plan(daemon("agent", "1", **shape), WORK, types=TYPES)) == [expected]


def test_a_daemon_for_one_kind_of_node_burdens_no_other():
    arm = instance_type("arm", 2, 2, arch="arm64", price=9.0)
    only_arm = daemon("agent", "1", selector={ARCH: "arm64"})
    assert new_types(plan(only_arm, WORK, types=(SMALL, arm))) == ["2-cpu"]
    assert codes(plan(only_arm, pods(1, "1", selector={ARCH: "arm64"}), types=(SMALL, arm))) == [
        "InsufficientResources"
    ]


def test_a_daemon_that_no_type_can_hold_keeps_the_pod_pending_and_is_named_in_the_reason():
    result = plan(daemon("greedy", "10000"), WORK, types=TYPES)
    assert codes(result) == ["InsufficientResources"]
    assert "daemons use 10000" in str(result.refusals[0])


def test_a_daemons_host_port_is_taken_on_new_nodes():
    exporter = daemon("exporter", host_ports=(HostPort("", 9100, "TCP"),))
    result = plan(exporter, pods(1, host_ports=(HostPort("", 9100, "TCP"),)))
    assert codes(result) == ["HostPortTaken"]


def test_a_daemon_that_runs_on_a_node_already_is_not_counted_twice():
    agent = daemon("agent", "1")
    there = running(pods(1, "1", name="agent-x")[0], "one", daemon_set="agent")
    assert plan(agent, there, node("one", cpu="2"), pods(1)).placements == {"default/web-0": "one"}


def test_room_is_kept_for_a_daemon_that_has_not_come_to_a_node_yet():
    result = plan(daemon("agent", "1"), node("one", cpu="1500m"), pods(1))
    assert not result.placements
    assert result.new_nodes


PORT = (HostPort("", 9100, "TCP"),)
TEAM = Taint("team", "NoSchedule")


@pytest.mark.parametrize(
    ("admitted", "expected"),
    [
        pytest.param({"tolerations": (Toleration("team", "Exists"),)}, "4-cpu", id="toleration-added"),
        pytest.param({}, "2-cpu", id="nothing-added"),
    ],
)
def test_a_toleration_that_admission_added_counts(admitted, expected):
    tainted = pool("default", taints=(TEAM,))
    tolerant = pods(1, "1", "1Gi", tolerations=(Toleration("team", "Exists"),))
    there = running(pods(1, "1", name="agent-x", **admitted)[0], "other", daemon_set="agent")
    other = node("other", cpu="1", labels={})
    assert new_types(plan(tainted, daemon("agent", "1"), there, other, tolerant, types=TYPES)) == [expected]


def test_host_ports_that_admission_added_are_taken():
    there = running(pods(1, name="agent-x", host_ports=PORT)[0], "other", daemon_set="agent")
    other = node("other", cpu="10m", labels={})
    assert codes(plan(daemon("agent"), there, other, pods(1, host_ports=PORT))) == ["HostPortTaken"]


@pytest.mark.parametrize(
    ("template", "added", "expected"),
    [
        pytest.param((), (), "4-cpu", id="the-name-alone"),
        pytest.param((), (needs(ARCH, "In", "arm64"),), "2-cpu", id="an-architecture-added"),
        pytest.param((), (needs(ARCH, "In", "amd64"),), "4-cpu", id="the-right-one-added"),
        pytest.param((term(needs(ARCH, "In", "arm64")),), (), "2-cpu", id="of-the-template"),
        pytest.param(
            (term(needs(ARCH, "In", "arm64")), term(needs("nobody", "DoesNotExist"))),
            (needs(ARCH, "In", "amd64"),),
            "4-cpu",
            id="an-alternative-of-the-template",
        ),
    ],
)
def test_affinity_of_a_running_daemon_is_the_templates_with_what_admission_added(template, added, expected):
    """In place of the template's affinity its pods bear the name of their node."""
    pinned = NodeSelectorTerm(added, match_fields=True, fields=(needs(NODE_NAME, "In", "other"),))
    there = running(pods(1, "1", name="agent-x", required_terms=(pinned,))[0], "other", daemon_set="agent")
    agent = daemon("agent", "1", required_terms=template)
    assert new_types(plan(agent, there, node("other", cpu="1", labels={}), WORK, types=TYPES)) == [expected]


@pytest.mark.parametrize(
    ("pinned", "placed"), [(by_name("In", "one"), False), (by_name("In", "two"), True), (term(), True)]
)
def test_room_is_kept_for_a_daemon_on_its_own_host_alone(pinned, placed):
    agent = daemon("agent", "1", required_terms=(pinned,))
    result = plan(agent, node("one", cpu="1500m"), pods(1))
    assert bool(result.placements) is placed


@pytest.mark.parametrize("label", [REGISTERED, INITIALIZED])
def test_a_daemon_that_waits_for_a_node_to_join_is_counted_while_it_boots(label):
    booting = node("one", cpu="1500m", labels={PROVISIONER_NAME: "default", INSTANCE_TYPE: "2-cpu"})
    assert not plan(daemon("agent", "1", selector={label: "true"}), booting, pods(1), types=TYPES).placements


@pytest.mark.parametrize("types", [TYPES, ()], ids=["known-types", "unknown-types"])
@pytest.mark.parametrize("launched", [True, False])
def test_a_daemons_host_port_is_taken_on_a_claim_in_flight(types, launched):
    fields = {"provider_id": "aws:///z1/i-1", "labels": {INSTANCE_TYPE: "4-cpu"}} if launched else {}
    flying = claim("first", allocatable={"cpu": 3900, "memory": 4 * 2**30, "pods": 110}, **fields)
    exporter = daemon("exporter", host_ports=PORT)
    free, taken = (
        plan(flying, exporter, pods(1, "100m", host_ports=ports), types=types)
        for ports in ((HostPort("", 9101, "TCP"),), PORT)
    )
    assert free.placements == {"default/web-0": "first"}
    assert not taken.placements
