"""Daemons' share of new nodes, and limits of pools: rows DS-01 to DS-09 and LI-01 to LI-05."""

import json

import pytest

from nodeless.kube.decoding import decode_daemon_set
from nodeless.model.labels import HOSTNAME
from nodeless.model.pods import HostPort
from nodeless.model.taints import Taint, Toleration
from tests.scheduling.acceptance.catalogs import a_type, planned
from tests.scheduling.factories import (
    FAMILY,
    beside,
    carried_out,
    codes,
    daemon,
    needs,
    new_types,
    node,
    plan,
    pods,
    pool,
    running,
    snapshot,
    term,
)

TWO, FOUR = a_type("2-cpu", 2, "2Gi"), a_type("4-cpu", 4, "4Gi")
WORK = pods(1, "1", "1Gi")
TEAM = (Taint("team", "NoSchedule"),)
QUIET = (Taint("quiet", "PreferNoSchedule"),)


def types_with(*things, work=WORK):
    return new_types(planned(*things, work, types=(TWO, FOUR)))


def test_ds_01_a_daemon_takes_its_share_of_a_new_node():
    assert types_with(daemon("agent", "1", "1Gi")) == ["4-cpu"]


def test_ds_02_a_daemon_that_does_not_tolerate_the_taint_does_not_count():
    tolerant = pods(1, "1", "1Gi", tolerations=(Toleration("team", "Exists"),))
    assert types_with(pool("default", taints=TEAM), daemon("agent", "1", "1Gi"), work=tolerant) == ["2-cpu"]


def test_ds_03_a_daemon_that_selects_a_label_of_no_pool_does_not_count():
    assert types_with(daemon("agent", "1", "1Gi", selector={"nobody": "has"})) == ["2-cpu"]


def test_ds_04_a_daemon_that_only_excludes_a_label_counts():
    excluding = daemon("agent", "1", "1Gi", required_terms=(term(needs("foo", "NotIn", "bar")),))
    assert types_with(excluding) == ["4-cpu"]


def test_ds_05_the_running_pod_of_a_daemon_tells_what_the_next_one_needs():
    """The template asks for all of a node, but the pods that it makes are smaller."""
    there = running(pods(1, "1", "1Gi", name="agent-x")[0], "full", daemon_set="agent")
    full = node("full", "1", labels={})
    assert types_with(daemon("agent", "4", "4Gi"), there, full) == ["4-cpu"]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"resources": {"requests": {"cpu": "10000"}}}]},
        {"containers": [{"resources": {"limits": {"cpu": "10000"}}}]},
        {"containers": [{}], "initContainers": [{"resources": {"requests": {"cpu": "10000"}}}]},
    ],
    ids=["requests", "limits", "init container"],
)
def test_ds_06_a_daemon_too_large_for_any_type_keeps_the_pod_pending(spec):
    document = {"metadata": {"name": "greedy", "namespace": "default"}, "spec": {"template": {"spec": spec}}}
    result = planned(decode_daemon_set(json.dumps(document).encode()), WORK)
    assert codes(result) == ["InsufficientResources"]
    assert not result.new_nodes


def test_ds_07_a_daemon_without_requests_is_no_matter():
    assert types_with(daemon("agent")) == ["2-cpu"]


@pytest.mark.parametrize(
    ("tainted", "fields"),
    [
        ((), {"preferred_terms": ((1, term(needs("nobody", "Exists"))),)}),
        (QUIET, {}),
    ],
    ids=["impossible wish", "soft taint"],
)
def test_ds_08_wishes_and_soft_taints_keep_no_daemon_away(tainted, fields):
    assert types_with(pool("default", taints=tainted), daemon("agent", "1", "1Gi", **fields)) == ["4-cpu"]


def test_ds_09_a_host_port_of_a_daemon_is_taken_on_every_new_node():
    port = (HostPort("", 80, "TCP"),)
    result = planned(daemon("proxy", host_ports=port), pods(1, host_ports=port))
    assert codes(result) == ["HostPortTaken"]


def test_li_01_usage_beyond_the_limit_lets_nothing_be_launched():
    limited = pool("default", limits={"cpu": "20"})
    result = plan(limited, node("huge", "100", unschedulable=True), pods(1))
    assert codes(result) == ["LimitsExceeded"]


TIGHT = pool("default", limits={"cpu": "2"})


def test_li_02_a_pod_within_the_limit_is_scheduled_and_one_beyond_is_not():
    assert new_types(plan(TIGHT, pods(1, "1750m"))) == ["medium"]
    assert codes(plan(TIGHT, pods(1, "2100m"))) == ["LimitsExceeded"]


def test_li_03_what_an_earlier_pass_used_is_gone():
    first = snapshot(TIGHT, pods(1, "1750m", name="first"))
    after = carried_out(first, plan(TIGHT, pods(1, "1750m", name="first")))
    second = plan(TIGHT, list(after.nodes.values()), list(after.pods.values()), pods(1, "1750m"))
    assert codes(second) == ["LimitsExceeded"]


def test_li_04_the_reason_names_the_limit():
    (refusal,) = plan(pool("default", limits={"cpu": "500m"}), pods(1, "100m")).refusals
    assert str(refusal) == (
        "Provisioner/default: all available instance types exceed what is left of the limits (cpu 500m); "
        "hint: raise them"
    )


def test_li_05_the_number_of_nodes_is_limited_over_several_passes():
    two = pool("default", limits={"nodes": "2"})
    seen, scheduled = snapshot(two), []
    for number in range(3):
        apart = pods(
            1, "100m", name=f"apart-{number}", labels={"app": "web"}, anti_affinity=(beside(HOSTNAME),)
        )
        things = [list(seen.nodes.values()), list(seen.pods.values()), two, apart]
        result = plan(*things, types=FAMILY)
        scheduled.append(not result.refusals)
        seen = carried_out(snapshot(*things), result)
    assert scheduled == [True, True, False]
