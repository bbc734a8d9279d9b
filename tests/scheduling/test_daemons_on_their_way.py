"""Rules that select a DaemonSet's pods, with NodeClaims in flight, booting nodes and other pods that wait."""

from dataclasses import replace

import pytest

from nodeless.model.labels import ARCH, HOSTNAME, INITIALIZED, PROVISIONER_NAME, ZONE
from nodeless.model.nodes import REBOOTING, Condition
from nodeless.model.pods import HostPort, LabelSelector, PodAffinityTerm
from nodeless.model.taints import Taint
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from tests.scheduling.beside_daemons import APART, BOOTING, DISK, DISKS, EVERYWHERE, NEAR, planned
from tests.scheduling.factories import (
    FAMILY,
    beside,
    claim,
    daemon,
    needs,
    node,
    pods,
    pool,
    running,
    selecting,
    snapshot,
    term,
)

RACK = "example.com/rack"
BOTH = pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
UP = {**BOOTING, INITIALIZED: "true"}


def sold_out(zones=()):
    return tuple(
        replace(kind, offerings=tuple(replace(o, available=o.zone in zones) for o in kind.offerings))
        for kind in FAMILY
    )


def there(name, where, cpu="100m", **fields):
    return running(pods(1, cpu, name=name, **fields)[0], where, daemon_set=name if name == "agent" else "")


def in_flight(pool_name="default", zone="z2", **labels):
    own = {
        ZONE: zone,
        ARCH: "amd64",
        "node.kubernetes.io/instance-type": "large",
        "karpenter.sh/capacity-type": "spot",
        PROVISIONER_NAME: pool_name,
        **labels,
    }
    return claim(
        "flying",
        "large",
        pool_name=pool_name,
        provider_id="aws:///z/i-1",
        labels=own,
        allocatable={"cpu": 3900, "memory": 2**33, "pods": 110},
        capacity={"cpu": 4000, "memory": 2**33, "pods": 110},
    )


@BOTH
def test_a_claim_of_a_pool_that_is_sold_out_by_now_takes_the_pod(packing):
    a, b = pool("a", weight=10, taints=(Taint("team", "NoSchedule"),)), pool("b")
    agent = daemon("agent", "100m", required_terms=(term(needs(ZONE, "In", "z1", "z2")),))
    flying = replace(in_flight("a", "z1"), taints=a.taints)
    seen = snapshot(agent, flying, pods(1, tolerations=EVERYWHERE, **APART), a, b)
    result = solve(seen, {a.key: sold_out(), b.key: FAMILY}, Policy(packing=packing, time_box=0))
    assert result.placements == {"default/web-0": "flying"}
    assert not result.new_nodes


@BOTH
def test_a_claim_in_a_zone_that_is_sold_out_by_now_takes_the_pod(packing):
    result = planned(
        packing,
        daemon("agent", "100m", selector={ZONE: "z1"}),
        in_flight(),
        pods(1, **APART),
        types=sold_out(("z1",)),
    )
    assert result.placements == {"default/web-0": "flying"}


@BOTH
def test_a_booting_node_where_the_daemon_runs_takes_the_pod_that_wants_to_be_beside_it(packing):
    result = planned(
        packing,
        node("here", labels=BOOTING),
        daemon("agent", "100m"),
        there("agent", "here"),
        pods(1, "500m", **NEAR),
        types=sold_out(),
    )
    assert result.placements == {"default/web-0": "here"}


@BOTH
def test_a_daemon_may_run_on_a_booting_node_for_a_label_that_no_pool_has(packing):
    gpu = {"nvidia.com/gpu.present": "true"}  # node-feature-discovery sets it; no pool knows it
    result = planned(
        packing,
        node("here", labels={**BOOTING, **gpu}),
        daemon("agent", "100m", selector=gpu),
        there("agent", "here"),
        pods(1, "500m", **NEAR),
    )
    assert result.placements == {"default/web-0": "here"}


@BOTH
def test_a_pod_that_runs_on_a_booting_node_satisfies_a_rule_that_a_daemon_would_satisfy_as_well(packing):
    agent = daemon("agent", "100m", labels={"app": "store"}, selector={DISK: "fast"})
    result = planned(
        packing,
        DISKS,
        node("here", labels={**BOOTING, DISK: "slow"}),
        agent,
        there("store", "here", "500m"),
        pods(1, "500m", affinity=(beside(HOSTNAME, "store"),)),
    )
    assert result.placements == {"default/web-0": "here"}
    assert not result.new_nodes


@BOTH
def test_a_pod_that_runs_on_a_rebooting_node_satisfies_such_a_rule(packing):
    agent = daemon("agent", "100m", labels={"app": "store"}, selector={DISK: "fast"})
    one = node("here", labels={**UP, DISK: "slow"})
    rebooting = claim(
        "c",
        "large",
        provider_id=one.provider_id,
        node_name="here",
        labels=one.labels,
        conditions=(Condition(REBOOTING, "True", reason="Rebooting"),),
    )
    result = planned(
        packing,
        DISKS,
        one,
        rebooting,
        agent,
        there("store", "here", "500m"),
        pods(1, "500m", affinity=(beside(HOSTNAME, "store"),)),
    )
    assert result.placements == {"default/web-0": "here"}
    assert not result.new_nodes


@BOTH
def test_a_pod_with_a_local_volume_on_a_booting_node_without_the_daemon_waits_for_it(packing):
    result = planned(
        packing,
        node("here", labels={**BOOTING, DISK: "slow"}),
        daemon("agent", "100m", selector={DISK: "fast"}),
        pods(1, "500m", volume_terms=(term(needs(HOSTNAME, "In", "here")),), **APART),
    )
    assert result.placements == {"default/web-0": "here"}


@BOTH
def test_a_claim_that_was_launched_before_its_pool_changed_takes_the_pod(packing):
    result = planned(
        packing,
        pool("default", needs(DISK, "In", "fast")),
        in_flight(**{DISK: "slow"}),
        daemon("agent", "100m", selector={DISK: "fast"}),
        pods(1, "500m", **APART),
    )
    assert result.placements == {"default/web-0": "flying"}


@BOTH
def test_a_node_without_the_topology_label_satisfies_no_affinity(packing):
    result = planned(
        packing,
        pool("racked", needs(RACK, "In", "r1", "r2")),
        daemon("agent", "100m"),
        node("bare", labels={ZONE: "z1", ARCH: "amd64"}),
        there("agent", "bare"),
        node("full", "1", labels={ZONE: "z1", ARCH: "amd64", RACK: "r1"}),
        replace(there("agent", "full", "900m"), name="agent-1", uid="agent-1"),
        pods(1, "500m", affinity=(beside(RACK, "agent"),)),
    )
    assert not result.placements
    assert len(result.new_nodes) == 1


@BOTH
def test_a_node_that_the_daemons_own_anti_affinity_keeps_it_off_takes_no_pod_beside_it(packing):
    agent = daemon("agent", "100m", anti_affinity=(beside(HOSTNAME, "db"),))
    result = planned(packing, node("here"), agent, there("db", "here"), pods(1, "500m", **NEAR))
    assert not result.placements
    assert len(result.new_nodes) == 1


@BOTH
def test_a_node_where_the_daemons_host_port_is_taken_takes_no_pod_beside_it(packing):
    port = {"host_ports": (HostPort(80, "TCP", ""),)}
    result = planned(
        packing,
        node("here"),
        daemon("agent", "100m", **port),
        there("db", "here", **port),
        pods(1, "500m", **NEAR),
    )
    assert not result.placements
    assert len(result.new_nodes) == 1


@BOTH
def test_a_node_of_nobody_gets_no_daemon_that_selects_initialized_nodes(packing):
    result = planned(
        packing,
        node("here", labels={ZONE: "z1", ARCH: "amd64"}),
        daemon("agent", "100m", selector={INITIALIZED: "true"}),
        pods(1, "500m", **NEAR),
    )
    assert not result.placements
    assert len(result.new_nodes) == 1


def two_labels(number):
    return [
        daemon(
            f"d{i}",
            "1m",
            labels={"app": f"d{i}"},
            required_terms=(term(needs(DISK, "In", f"k{i}"), needs("example.com/q", "In", f"k{i}")),),
        )
        for i in range(number)
    ]


def test_a_pod_that_wants_a_node_of_its_own_among_many_daemons_takes_little_work():
    own = pool(
        "default", *(needs(key, "In", *(f"k{i}" for i in range(99))) for key in (DISK, "example.com/q"))
    )
    alone = PodAffinityTerm(HOSTNAME, LabelSelector((), (("app", "NotIn", ("web",)),)))
    seen = snapshot(two_labels(80), pods(1, anti_affinity=(alone,)), own)
    result = solve(seen, {own.key: FAMILY}, Policy(packing=FEWEST_NODES, time_box=0))
    assert sum(result.work.values()) < 0.5


def test_pods_with_many_terms_beside_daemons_take_little_work_among_many_nodes():
    terms = tuple(term(needs(ZONE, "In", "z1"), needs(HOSTNAME, "NotIn", f"x{j}")) for j in range(20))
    seen = snapshot(
        pool(),
        [node(f"n{i}", "8") for i in range(2000)],
        [daemon(f"d{i}", "1m", selector={DISK: "fast"}) for i in range(10)],
        [
            pods(1, name=f"w{i}", required_terms=terms, affinity=(beside(HOSTNAME, f"d{i}"),))
            for i in range(10)
        ],
    )
    result = solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy(packing=FEWEST_NODES, time_box=0))
    assert sum(result.work.values()) < 0.5


@BOTH
def test_a_pod_that_fits_nowhere_keeps_no_other_from_being_beside_a_daemon(packing):
    agent = daemon("agent", "100m", labels={"app": "store"})
    result = planned(
        packing, agent, pods(1, affinity=(beside(HOSTNAME, "store"),)), pods(1, "500", name="store")
    )
    assert [new.pods for new in result.new_nodes] == [("default/web-0",)]


@BOTH
def test_a_workload_that_selects_itself_and_a_daemon_may_have_two_shapes(packing):
    own = {"labels": {"app": "agent"}, **NEAR}
    result = planned(
        packing,
        node("here", "1"),
        daemon("agent", "100m"),
        there("agent", "here"),
        pods(1, "2", name="x", **own),
        pods(1, "3", name="y", **own),
    )
    assert not result.refusals


@BOTH
def test_a_pod_stays_on_its_claim_when_another_comes_that_its_rule_selects(packing):
    agent = daemon("agent", "100m", labels={"app": "store"}, selector={DISK: "fast"})
    result = planned(
        packing,
        DISKS,
        agent,
        in_flight(**{DISK: "fast"}),
        pods(1, "3", affinity=(beside(HOSTNAME, "store"),)),
        pods(1, "3", name="store", selector={DISK: "slow"}),
    )
    assert result.placements == {"default/web-0": "flying"}


@BOTH
def test_where_the_other_zones_are_sold_out_the_refusal_says_so(packing):
    result = planned(
        packing, daemon("agent", "100m", selector={ZONE: "z1"}), pods(1, **APART), types=sold_out(("z1",))
    )
    assert result.refusals[0].code == "NoOfferingAvailable", str(result.refusals[0])


@BOTH
def test_daemons_that_share_the_nodes_among_them_are_both_named(packing):
    result = planned(
        packing,
        DISKS,
        daemon("agent", "100m", selector={DISK: "fast"}),
        daemon("probe", "100m", selector={DISK: "slow"}),
        pods(1, anti_affinity=(beside(HOSTNAME, "agent"), beside(HOSTNAME, "probe"))),
    )
    assert "default/agent" in str(result.refusals[0]) and "default/probe" in str(result.refusals[0])


@BOTH
def test_many_daemons_with_two_labels_each_leave_the_one_node_that_none_selects(packing):
    names = [f"example.com/a{i}" for i in range(7)]
    some = [
        daemon(f"d{i}", labels={"app": "agent"}, selector={name: "x", ZONE: "z1"})
        for i, name in enumerate(names)
    ]
    last = daemon("last", labels={"app": "agent"}, required_terms=(term(needs(names[0], "NotIn", "x")),))
    result = planned(
        packing,
        pool("default", *(needs(name, "In", "x", "y") for name in names)),
        *some,
        last,
        pods(1, **APART),
    )
    assert not result.refusals, str(result.refusals[0])


@BOTH
def test_a_daemon_that_selects_numbers_leaves_nodes_with_other_values(packing):
    result = planned(
        packing,
        pool("default", needs(DISK, "In", "small", "8")),
        daemon("agent", required_terms=(term(needs(DISK, "Gt", "4")),)),
        pods(1, **APART),
    )
    assert not result.refusals, str(result.refusals[0])


@BOTH
def test_new_nodes_get_pods_with_the_labels_of_the_template(packing):
    """With updateStrategy OnDelete, or during a rollout, the newest pod may be of the last template."""
    old = replace(there("agent", "here"), labels={"app": "agent", "v": "1"})
    agent = daemon("agent", "100m", labels={"app": "agent", "v": "2"})
    far = PodAffinityTerm(HOSTNAME, selecting(app="agent", v="2"))
    result = planned(packing, node("here"), old, agent, pods(1, "5", anti_affinity=(far,)))
    assert not result.new_nodes


@BOTH
def test_a_claim_without_the_taint_that_its_pool_has_by_now_gets_the_daemon(packing):
    own = pool("default", taints=(Taint("team", "NoSchedule"),))
    result = planned(
        packing, own, daemon("agent", "100m"), in_flight(), pods(1, "500m", tolerations=EVERYWHERE, **APART)
    )
    assert not result.placements


@BOTH
def test_nothing_is_bought_apart_from_a_daemon_over_a_label_that_all_nodes_of_the_pool_bear(packing):
    result = planned(
        packing,
        pool("default", needs(RACK, "In", "r1", "r2", "r3", "r4")),
        daemon("agent", "100m"),
        pods(1, anti_affinity=(beside(RACK, "agent"),)),
    )
    assert not result.new_nodes
