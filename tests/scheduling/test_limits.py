"""Limits: what exists and what is on its way counts, and no plan can exceed them whatever is launched."""

from nodeless.model.labels import INSTANCE_TYPE
from nodeless.model.pods import HostPort
from nodeless.model.resources import parse_resources
from tests.scheduling.factories import FAMILY, claim, codes, new_types, node, plan, pods, pool, running

TIGHT = pool("default", limits={"cpu": "2"})


def test_a_pod_within_the_limit_is_placed_and_one_beyond_is_not():
    assert new_types(plan(TIGHT, pods(1, "1750m"))) == ["medium"]
    assert codes(plan(TIGHT, pods(1, "2100m"))) == ["LimitsExceeded"]


def test_the_capacity_of_nodes_counts():
    full = node("full", cpu="2")
    busy = running(pods(1, "1750m", name="busy")[0], "full")
    result = plan(TIGHT, full, busy, pods(1, "1750m"))
    assert codes(result) == ["LimitsExceeded"]
    assert str(result.refusals[0]) == (
        "Provisioner/default: the limit of 2 cpu is used up (2 in use); hint: raise the pool's limits"
    )


def test_usage_beyond_the_limit_refuses_everything():
    assert codes(
        plan(pool("default", limits={"cpu": "20"}), node("huge", cpu="100", unschedulable=True), pods(1))
    ) == ["LimitsExceeded"]


def test_a_claim_counts_as_the_largest_type_that_it_may_become():
    waiting = claim("default-aaaaa", "small", "large")
    limited = pool("default", limits={"cpu": "5"})
    assert codes(plan(limited, waiting, pods(1, "1500m"))) == ["LimitsExceeded"]
    assert new_types(plan(limited, claim("default-aaaaa", "small"), pods(1, "1500m"))) == ["medium"]


def test_nodes_that_are_being_deleted_do_not_count():
    leaving = node("leaving", cpu="2", deletion_timestamp=1.0)
    assert new_types(plan(TIGHT, leaving, pods(1, "1750m"))) == ["medium"]


def test_only_the_pools_own_nodes_count():
    foreign = node("foreign", cpu="1", labels={})
    assert new_types(plan(TIGHT, foreign, pods(1, "1500m"))) == ["medium"]


def test_what_the_heavier_pool_may_not_make_the_other_makes():
    result = plan([pool("capped", weight=10, limits={"cpu": "4"}), pool("open")], pods(10, "1"))
    assert {new.pool.name for new in result.new_nodes} == {"capped", "open"}
    assert not result.refusals


def test_small_nodes_of_one_pass_share_a_limit_that_a_cautious_guess_would_exhaust():
    alone = pods(3, "500m", host_ports=(HostPort("", 80, "TCP"),))
    assert new_types(plan(pool("default", limits={"cpu": "16"}), alone)) == ["small", "small", "small"]


def test_an_open_node_that_is_bound_already_does_not_hide_one_that_is_not():
    one_each = {"host_ports": (HostPort("", 80, "TCP"),)}
    wide, exact = (
        pods(1, "4", name="a", **one_each),
        pods(1, "2", name="b", selector={INSTANCE_TYPE: "large"}, **one_each),
    )
    last = pods(1, "500m", name="c", **one_each)
    result = plan(pool("default", limits={"cpu": "20"}), wide, exact, last)
    assert new_types(result) == ["xlarge", "large", "small"]


def test_no_alternative_of_any_new_node_breaks_a_limit():
    result = plan(pool("default", limits={"cpu": "20", "memory": "100Gi"}), pods(40, "1", "1Gi"))
    capacity = {kind.name: kind.capacity for kind in FAMILY}
    for name, amount in parse_resources({"cpu": "20", "memory": "100Gi"}).items():
        most = sum(max(capacity[a.instance_type][name] for a in new.alternatives) for new in result.new_nodes)
        assert most <= amount
    assert result.new_nodes
    assert set(codes(result)) == {"LimitsExceeded"}


def test_the_number_of_nodes_can_be_limited():
    two = pool("default", limits={"nodes": "2"})
    result = plan(two, node("one", cpu="1"), pods(3, "3", host_ports=(HostPort("", 80, "TCP"),)))
    assert len(result.new_nodes) == 1
    assert codes(result) == ["LimitsExceeded"] * 2
