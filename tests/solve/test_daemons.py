"""Daemons: what they need is taken off a node's room, type by type, before pods get any."""

import pytest

from nodeless.model.labels import ARCH
from nodeless.model.pods import HostPort
from nodeless.model.taints import Taint, Toleration
from tests.solve.factories import (
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
        ({"required_terms": (term(needs("kubernetes.io/hostname", "In", "elsewhere")),)}, "4-cpu"),
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
