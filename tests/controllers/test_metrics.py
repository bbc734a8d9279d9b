"""Metrics: names and labels that dashboards depend on, their number, and the scrape of a real process."""

import asyncio
import math
from dataclasses import replace
from functools import reduce
from types import SimpleNamespace
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import Gauge
from prometheus_client.parser import text_string_to_metric_families

from nodeless.cloudprovider import (
    CloudError,
    CloudUnavailable,
    InsufficientCapacity,
    NodeClassUnresolved,
)
from nodeless.cloudprovider.instrumented import measure_calls
from nodeless.kube.workqueue import KeyedQueue
from nodeless.model.bill import Bill, BillPart
from nodeless.model.commitments import Commitment
from nodeless.model.conditions import Condition
from nodeless.model.events import ClaimSeen, NodeGone, NodeSeen, PodGone, PodSeen, PoolSeen
from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from nodeless.model.pods import Owner
from nodeless.model.pools import Budget, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.operator.cluster_metrics import FAMILIES, NODE_LABELS, ClusterMetrics
from nodeless.operator.metric_types import GaugeTable
from nodeless.operator.metrics import Metrics
from nodeless.operator.v1_metrics import MIRRORS
from nodeless.operator.work_metrics import CLAIM_LIFECYCLE, CONTROLLERS, POOLS
from nodeless.state import apply
from tests import factories
from tests.controllers.process import leads, scrape
from tests.controllers.world import CLAIMS, Kubelets, a_pod, a_provisioner, a_template
from tests.disruption.world import a_node_pool, cluster, node_of
from tests.factories import NOW
from tests.scheduling.factories import instance_type

#: Names of v0.27 that dashboards use, with their type and labels.
UPSTREAM = {
    "karpenter_nodes_created": ("counter", "reason", "provisioner"),
    "karpenter_nodes_terminated": ("counter", "reason", "provisioner"),
    "karpenter_nodes_termination_time_seconds": ("summary",),
    "karpenter_pods_startup_time_seconds": ("summary",),
    "karpenter_provisioner_usage": ("gauge", "resource_type", "provisioner"),
    "karpenter_provisioner_limit": ("gauge", "resource_type", "provisioner"),
    "karpenter_provisioner_usage_pct": ("gauge", "resource_type", "provisioner"),
    "karpenter_provisioner_scheduling_duration_seconds": ("histogram",),
    "karpenter_deprovisioning_evaluation_duration_seconds": ("histogram", "method"),
    "karpenter_deprovisioning_replacement_node_initialized_seconds": ("histogram",),
    "karpenter_deprovisioning_actions_performed": ("counter", "action"),
    "karpenter_consistency_errors": ("counter", "check"),
    "karpenter_cloudprovider_duration_seconds": ("histogram", "controller", "method", "provider"),
    "karpenter_cloudprovider_batcher_batch_time_seconds": ("histogram", "batcher"),
    "karpenter_cloudprovider_batcher_batch_size": ("histogram", "batcher"),
    "karpenter_interruption_received_messages": ("counter", "message_type"),
    "karpenter_interruption_deleted_messages": ("counter",),
    "karpenter_interruption_message_latency_time_seconds": ("histogram",),
    "karpenter_interruption_actions_performed": ("counter", "action_type"),
    "leader_election_master_status": ("gauge", "name"),
    "controller_runtime_reconcile_total": ("counter", "controller", "result"),
    "controller_runtime_reconcile_errors_total": ("counter", "controller"),
    "controller_runtime_reconcile_time_seconds": ("histogram", "controller"),
    "controller_runtime_max_concurrent_reconciles": ("gauge", "controller"),
    "controller_runtime_active_workers": ("gauge", "controller"),
    "workqueue_depth": ("gauge", "name"),
    "workqueue_adds_total": ("counter", "name"),
    "workqueue_retries_total": ("counter", "name"),
    "workqueue_queue_duration_seconds": ("histogram", "name"),
    "workqueue_work_duration_seconds": ("histogram", "name"),
    "workqueue_unfinished_work_seconds": ("gauge", "name"),
    "workqueue_longest_running_processor_seconds": ("gauge", "name"),
    "rest_client_requests_total": ("counter", "code", "method", "host"),
}
#: Upper bounds of durations (those of Karpenter), as texts.
DUR = [
    *("0.005", "0.01", "0.025", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4", "0.45", "0.5"),
    *("0.6", "0.7", "0.8", "0.9", "1.0", "1.25", "1.5", "1.75", "2.0", "2.5", "3.0", "3.5", "4.0", "4.5"),
    *(
        "5.0",
        "6.0",
        "7.0",
        "8.0",
        "9.0",
        "10.0",
        "15.0",
        "20.0",
        "25.0",
        "30.0",
        "40.0",
        "50.0",
        "60.0",
        *("120.0", "150.0", "300.0", "450.0", "600.0"),
        "+Inf",
    ),
]
SIZES = [
    *(1, 2, 4, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100, 125, 150, 175, 200, 225, 250, 275, 300),
    *(350, 400, 450, 500, 550, 600, 700, 800, 900, 1000),
]


def collected(metrics):
    text = metrics.render().decode()
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def a_cluster(nodes, pods_each):
    snapshot = Snapshot()
    for number in range(nodes):
        name, identifier = f"node-{number}", f"aws:///us-east-1a/i-{number}"
        resources = {"cpu": 4000, "memory": 8 << 30, "pods": 29, "ephemeral-storage": 20 << 30}
        node = factories.a_node(
            str(number), name=name, provider_id=identifier, capacity=resources, allocatable=resources
        )
        snapshot = apply(snapshot, NodeSeen(node))
        for each in range(pods_each):
            member = factories.a_pod(f"web-{number}-{each}", node_name=name, phase="Running")
            snapshot = apply(snapshot, PodSeen(member))
    return snapshot


@pytest.mark.parametrize(("name", "form"), UPSTREAM.items(), ids=UPSTREAM)
def test_a_family_has_karpenters_name_type_and_labels(name, form):
    kind, *labels = form
    registry = Metrics().registry
    (found,) = (each for each in registry._collector_to_names if getattr(each, "_name", "") == name)
    assert list(found._labelnames) == labels
    assert f"# TYPE {name} {kind}\n" in Metrics().render().decode()


def test_counters_of_v0_27_bear_no_total():
    for name, (kind, *_) in UPSTREAM.items():
        if kind == "counter" and name.startswith("karpenter_"):
            assert not name.endswith("_total")


def test_bounds_of_histograms_are_karpenters():
    metrics = Metrics()
    metrics.show_batch("describe_instances", 3, 0.02)
    shown = collected(metrics)

    def bounds(name):
        return [each.split('le="')[1].split('"')[0] for each in shown if each.startswith(f"{name}_bucket")]

    assert bounds("karpenter_provisioner_scheduling_duration_seconds") == DUR
    assert bounds("karpenter_cloudprovider_batcher_batch_time_seconds") == DUR
    metrics.nodes.claim_termination_seconds.labels("default").observe(100)
    metrics.nodes.instance_termination_seconds.labels("default").observe(100)
    shown = collected(metrics)
    ends = [f"{2.0**power}" for power in range(12)]
    assert bounds("karpenter_nodeclaims_termination_duration_seconds") == [*ends, "+Inf"]
    assert bounds("karpenter_nodeclaims_instance_termination_duration_seconds") == [*ends[:-1], "+Inf"]
    assert bounds("karpenter_cloudprovider_batcher_batch_size") == [*(f"{each}.0" for each in SIZES), "+Inf"]
    size = 'karpenter_cloudprovider_batcher_batch_size_bucket{batcher="describe_instances",le='
    assert (shown[f'{size}"2.0"}}'], shown[f'{size}"4.0"}}']) == (0, 1)


def test_the_labels_of_a_nodes_series_are_four_and_one_for_each_well_known_label():
    assert NODE_LABELS[:4] == ("resource_type", "node_name", "provisioner", "phase")
    # v0.27's 26, and `nodepool`, by which v1's dashboards select.
    assert len(NODE_LABELS) == 4 + 26 + 1
    assert {"zone", "arch", "instance_type", "capacity_type", "provisioner_name", "nodepool"} <= {
        *NODE_LABELS
    }


def test_a_nodes_series_say_what_it_offers_and_what_its_pods_ask_for():
    metrics = Metrics()
    owners = (Owner("apps/v1", "DaemonSet", "agent"),)
    daemon = factories.a_pod("agent", requests={"cpu": 100}, node_name="node-0", owners=owners)
    limited = factories.a_pod("web", node_name="node-0", limits=(("cpu", 2000),))
    done = factories.a_pod("done", node_name="node-0", phase="Succeeded")
    snapshot = a_cluster(1, 0)
    for each in (daemon, limited, done):
        snapshot = apply(snapshot, PodSeen(each))
    metrics.cluster.watch(lambda: snapshot)
    cpu = {
        name.partition("{")[0]: value
        for name, value in collected(metrics).items()
        if 'node_name="node-0"' in name and 'resource_type="cpu"' in name
    }
    allocatable = snapshot.nodes["node-0"].allocatable["cpu"] / 1000
    assert cpu["karpenter_nodes_allocatable"] == allocatable
    assert cpu["karpenter_nodes_total_pod_requests"] == 1.0
    assert cpu["karpenter_nodes_total_pod_limits"] == 2.0
    assert cpu["karpenter_nodes_total_daemon_requests"] == pytest.approx(0.1)
    assert "karpenter_nodes_total_daemon_limits" not in cpu


def test_a_pods_series_has_what_dashboards_of_v1_select_by():
    node = replace(factories.a_node(name="node-0"), labels={NODE_POOL: "general"})
    pods = [
        replace(factories.a_pod("web", node_name="node-0"), ready=True),
        factories.a_pod("other", node_name="not-ours"),
        factories.a_pod("pending"),
    ]
    snapshot = reduce(apply, map(PodSeen, pods), apply(Snapshot(), NodeSeen(node)))
    metrics = ClusterMetrics()
    metrics.watch(lambda: snapshot)
    read = {each.name: each.samples for each in text_string_to_metric_families(metrics.text())}
    shown = {
        sample.labels["name"]: tuple(
            sample.labels[name] for name in ("nodepool", "scheduled", "ready", "managed")
        )
        for sample in read["karpenter_pods_state"]
    }
    assert shown == {
        "web": ("general", "true", "true", "true"),
        "other": ("N/A", "true", "false", "false"),
        "pending": ("N/A", "false", "false", "false"),
    }
    assert all(
        {*sample.labels} == {*FAMILIES["karpenter_pods_state"][1]} for sample in read["karpenter_pods_state"]
    )


def test_conditions_and_deletions_are_shown_under_karpenters_names_of_each_kind_and_of_all():
    refused = Condition("Ready", "False", "NodeClassNotReady", last_transition_time=NOW - 60)
    pool = replace(a_node_pool("general"), conditions=(refused,))
    claim = replace(
        factories.a_claim("general-1", labels={NODE_POOL: "general"}, deletion_timestamp=NOW - 5),
        conditions=(Condition("Launched", "True", "Launched", last_transition_time=NOW - 30),),
    )
    provisioner = replace(factories.a_pool(), conditions=(refused,))
    seen = (PoolSeen(pool), PoolSeen(provisioner), ClaimSeen(claim))
    snapshot = reduce(apply, seen, Snapshot())
    metrics = ClusterMetrics(lambda: NOW)
    metrics.watch(lambda: snapshot)
    shown = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
        if sample.name.startswith("operator_")
    }

    def value(series, **labels):
        return shown[series, *sorted({"namespace": "", **labels}.items())]

    ready = {"name": "general", "type": "Ready", "status": "False", "reason": "NodeClassNotReady"}
    of_pool = {"group": "karpenter.sh", "kind": "NodePool"}
    assert value("operator_nodepool_status_condition_count", **ready) == 1
    assert value("operator_nodepool_status_condition_current_status_seconds", **ready) == 60
    assert value("operator_status_condition_count", **ready, **of_pool) == 1
    launched = {"name": "general-1", "type": "Launched", "status": "True", "reason": "Launched"}
    of_claim = {"karpenter_sh_nodepool": "general", "karpenter_k8s_aws_ec2nodeclass": ""}
    assert value("operator_nodeclaim_status_condition_count", **launched, **of_claim) == 1
    assert value("operator_nodeclaim_termination_current_time_seconds", name="general-1", **of_claim) == 5
    assert not any("Provisioner" in str(key) for key in shown)


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text(), st.text())
def test_any_name_is_read_back_as_it_was(zone, namespace, resource):
    node = replace(factories.a_node("node-0"), labels={ZONE: zone}, allocatable={resource: 7})
    pod = replace(factories.a_pod("web", node_name="gone"), namespace=namespace)
    snapshot = apply(apply(Snapshot(), NodeSeen(node)), PodSeen(pod))
    metrics = ClusterMetrics()
    metrics.watch(lambda: snapshot)
    read = {each.name: each.samples for each in text_string_to_metric_families(metrics.text())}
    (offered,) = read["karpenter_nodes_allocatable"]
    assert (offered.labels["zone"], offered.value) == (zone, 7)
    assert offered.labels["resource_type"] == resource.lower().replace("-", "_")
    (state,) = read["karpenter_pods_state"]
    assert (state.labels["namespace"], state.labels["node"], state.labels["zone"]) == (
        namespace,
        "gone",
        "N/A",
    )


def test_at_500_nodes_the_number_of_series_is_bounded_by_nodes_pods_and_a_constant():
    metrics = Metrics()
    nothing = len(collected(metrics))
    snapshot = a_cluster(500, 4)
    metrics.cluster.watch(lambda: snapshot)
    series = collected(metrics)
    resources = len(snapshot.nodes["node-0"].capacity)
    assert len(series) - nothing <= 500 * len([n for n in FAMILIES if "_nodes_" in n]) * resources + 2000 + 2
    assert sum(name.startswith("karpenter_pods_state") for name in series) == 2000


def test_what_is_no_node_and_no_pod_has_a_bounded_number_of_series():
    """Every loop, queue, reason and call that there is, and ten pools of both kinds."""
    metrics = Metrics()
    for name in CONTROLLERS:
        with metrics.work.measure_reconciliation(name):
            pass
    for name in (CLAIM_LIFECYCLE, POOLS):
        KeyedQueue(metrics.work.queue(name, 1)).add("a")
    for name in ("create_fleet", "describe_instances", "terminate_instances"):
        metrics.show_batch(name, 1, 0.0)
    pools = [replace(factories.a_pool(), reference=Reference("Provisioner", f"pool-{n}")) for n in range(10)]
    snapshot = Snapshot()
    for pool in pools:
        snapshot = apply(snapshot, PoolSeen(pool))
    for pool in pools:
        metrics.show_pools(snapshot, pool.name)
    metrics.disruption.show_budgets(snapshot, 0.0)
    assert len(collected(metrics)) < 1500
    metrics.disruption.show_budgets(Snapshot(), 0.0)
    assert not any('"pool-3"' in name for name in collected(metrics))


def test_nodes_that_are_not_ready_consume_budgets_of_every_reason_but_unhealthy():
    pool = a_node_pool(budgets=(Budget("3"),))
    away = {"node": {"ready": False}}
    metrics = Metrics()
    metrics.disruption.show_budgets(
        cluster(pool, node_of(pool, "a"), node_of(pool, "b", **away), node_of(pool, "c", **away)), 0.0
    )
    series = collected(metrics)
    assert series['karpenter_nodepools_nodes_consuming_budgets{nodepool="default"}'] == 2
    left = {
        reason: series[f'karpenter_nodepools_allowed_disruptions{{nodepool="default",reason="{reason}"}}']
        for reason in ("empty", "unhealthy")
    }
    assert left == {"empty": 1, "unhealthy": 3}


def test_what_pools_can_buy_is_shown_with_its_price_once_for_all_pools():
    def a_type(name, *offers):
        return instance_type(name, 2, 8, offerings=offers)

    metrics = Metrics()
    spot = Offering("us-east-1a", "spot", 0.03)
    gone = replace(spot, available=False)
    unpriced = Offering("us-east-1b", "spot", float("nan"))
    unknown = Offering("us-east-1c", "spot", 0.0, available=False)
    metrics.offerings.show(
        {"a": (a_type("m5.large", gone, unpriced, unknown),), "b": (a_type("m5.large", spot),)}
    )
    series = collected(metrics)
    where = '{instance_type="m5.large",capacity_type="spot",zone="us-east-1a"}'
    prefix = "karpenter_cloudprovider_instance_type"
    assert series[f"{prefix}_offering_available{where}"] == 1
    assert series[f"{prefix}_offering_price_estimate{where}"] == 0.03
    for zone in ("1b", "1c"):
        elsewhere = where.replace("1a", zone)
        assert series[f"{prefix}_offering_available{elsewhere}"] == 0
        assert f"{prefix}_offering_price_estimate{elsewhere}" not in series
    assert series[f'{prefix}_cpu_cores{{instance_type="m5.large"}}'] == 2
    assert series[f'{prefix}_memory_bytes{{instance_type="m5.large"}}'] == 8 << 30

    metrics.offerings.show({"a": (a_type("m5.large", gone),)})
    assert collected(metrics)[f"{prefix}_offering_available{where}"] == 0
    metrics.offerings.show({})
    assert not any(name.startswith(prefix) for name in collected(metrics))


def test_series_of_what_is_gone_disappear():
    metrics, snapshot = Metrics(), a_cluster(2, 1)
    metrics.cluster.watch(lambda: snapshot)
    assert any('"node-1"' in name for name in collected(metrics))
    snapshot = apply(apply(snapshot, PodGone("default/web-1-0")), NodeGone("node-1"))
    left = collected(metrics)
    assert not any('"node-1"' in name or '"web-1-0"' in name for name in left)
    assert any('"node-0"' in name for name in left)


def test_of_a_replica_that_has_made_no_plan_no_figure_of_a_plan_is_known():
    shown = collected(Metrics())
    figures = ("lower_bound_dollars_per_hour", "gap_ratio", "realized_ratio")
    assert all(math.isnan(shown[f"nodeless_plan_{figure}"]) for figure in figures)


def test_a_pool_shows_what_its_nodes_cost_at_the_prices_of_its_catalog():
    metrics, pool = Metrics(), factories.a_pool()
    labels = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", CAPACITY_TYPE: "spot"}
    claims = [factories.an_initialized_claim(f"{n}", labels=labels) for n in range(3)]
    snapshot = reduce(apply, [PoolSeen(pool), *map(ClaimSeen, claims)], Snapshot())
    offers = (Offering("us-east-1a", "spot", 0.03), Offering("us-east-1a", "on-demand", 0.1))
    sold = instance_type("m5.large", 2, 8, offerings=offers)
    name = f'karpenter_nodepools_cost_total{{nodepool="{pool.name}"}}'
    metrics.disruption.show_costs(snapshot, {str(pool.reference): (sold,)}, 0.0)
    assert collected(metrics)[name] == 0.09
    metrics.disruption.show_costs(snapshot, {str(pool.reference): (sold,)}, 0.01)
    assert collected(metrics)[name] == 0.12
    metrics.disruption.show_costs(Snapshot(), {}, 0.0)
    assert name not in collected(metrics)


def test_a_pools_bill_is_shown_by_part_until_the_pool_is_gone():
    metrics, pool = Metrics(), factories.a_pool()
    bill = Bill(0.03, (BillPart("volumes", 0.002), BillPart("public IPv4", None, "subnets decide")))
    offer = Offering("us-east-1a", "spot", 0.032, bill=bill)
    labels = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", CAPACITY_TYPE: "spot"}
    claims = [
        *(factories.an_initialized_claim(f"{n}", labels=labels) for n in range(2)),
        factories.an_initialized_claim("other", labels={**labels, INSTANCE_TYPE: "new9.large"}),
    ]
    snapshot = reduce(apply, [PoolSeen(pool), *map(ClaimSeen, claims)], Snapshot())
    catalog = {str(pool.reference): (instance_type("m5.large", 2, 8, offerings=(offer,)),)}

    def shown(name):
        start = f"nodeless_nodes_bill_{name}{{"
        return {
            series.split('part="')[1].split('"')[0]: value
            for series, value in collected(metrics).items()
            if series.startswith(start) and f'nodepool="{pool.name}"' in series
        }

    metrics.disruption.show_costs(snapshot, catalog, 0.01)
    dollars = shown("dollars_per_hour")
    assert dollars == {"instance": 0.06, "volumes": 0.004, "node fee": 0.02}
    total = collected(metrics)[f'karpenter_nodepools_cost_total{{nodepool="{pool.name}"}}']
    assert total == pytest.approx(sum(dollars.values()))
    assert shown("unknown_parts") == {"instance": 1, "volumes": 0, "public IPv4": 2, "node fee": 0}
    metrics.disruption.show_costs(Snapshot(), {}, 0.01)
    assert not shown("dollars_per_hour")
    assert not shown("unknown_parts")


def test_what_commitments_pay_is_off_the_bill_and_their_use_is_shown():
    metrics, pool = Metrics(), factories.a_pool()
    labels = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", CAPACITY_TYPE: "on-demand"}
    claims = [factories.an_initialized_claim(f"{n}", labels=labels) for n in range(3)]
    snapshot = reduce(apply, [PoolSeen(pool), *map(ClaimSeen, claims)], Snapshot())
    offers = (Offering("us-east-1a", "on-demand", 0.1),)
    catalog = {str(pool.reference): (instance_type("m5.large", 2, 8, offerings=offers),)}
    reserved = Commitment("reserved", instance_types=("m5.large",), instances=2)
    idle = Commitment("idle", instance_types=("m9x.large",), instances=1)
    metrics.disruption.show_costs(snapshot, catalog, 0.01, (reserved, idle))
    series = collected(metrics)
    part = f'nodeless_nodes_bill_dollars_per_hour{{nodepool="{pool.name}",part="commitments"}}'
    assert series[part] == -0.2
    assert series[f'karpenter_nodepools_cost_total{{nodepool="{pool.name}"}}'] == 0.13
    assert series['nodeless_commitments_used_ratio{commitment="reserved"}'] == 1
    assert series['nodeless_commitments_used_ratio{commitment="idle"}'] == 0
    metrics.disruption.show_costs(snapshot, catalog, 0.01)
    assert not any(name.startswith("nodeless_commitments_used_ratio") for name in collected(metrics))


@pytest.mark.parametrize(
    "offers",
    [
        (),
        (Offering("us-east-1a", "spot", 0.0, available=False),),
        (Offering("us-east-1a", "spot", float("nan")),),
        (Offering("us-east-1a", "spot", -1.0),),
        (Offering("us-east-1a", "spot", float("inf")),),
    ],
)
def test_nodes_of_unknown_price_are_told_and_are_not_free(offers):
    metrics, pool = Metrics(), factories.a_pool()
    labels = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", CAPACITY_TYPE: "spot"}
    claim = factories.an_initialized_claim(labels=labels)
    snapshot = reduce(apply, [PoolSeen(pool), ClaimSeen(claim)], Snapshot())
    catalog = {str(pool.reference): (instance_type("m5.large", 2, 8, offerings=offers),)}
    metrics.disruption.show_costs(snapshot, catalog, 0.01)
    series = collected(metrics)
    told = f'nodeless_nodes_bill_unknown_parts{{nodepool="{pool.name}",part="instance"}}'
    assert series[told] == 1
    assert not any(name.startswith("karpenter_nodepools_cost_total{") for name in series)
    assert not any(name.startswith("nodeless_nodes_bill_dollars_per_hour{") for name in series)


def test_version_ones_names_show_the_same_figures():
    metrics = Metrics()
    metrics.nodes.created.labels("provisioning", "default").inc(2)
    metrics.nodes.created.labels("consolidation/replace", "default").inc()
    metrics.scheduling_seconds.observe(0.3)
    metrics.nodes.eviction_requests.labels("429").inc(3)
    shown = collected(metrics)
    assert shown['karpenter_pods_eviction_requests_total{code="429"}'] == 3
    assert shown['karpenter_nodes_created_total{nodepool="default"}'] == 3
    assert shown['karpenter_nodeclaims_created_total{nodepool="default",reason="provisioning"}'] == 2
    assert shown["karpenter_scheduler_scheduling_duration_seconds_count"] == 1
    assert shown['karpenter_scheduler_scheduling_duration_seconds_bucket{le="0.3"}'] == 1
    names = {family.name for family in metrics.registry.collect()}
    assert {mirror.name.removesuffix("_total") for mirror in MIRRORS} <= names


async def _refuse(*_arguments, **_options):
    raise CloudUnavailable("ec2", "no answer")


class Cloud:
    find = staticmethod(_refuse)
    region = "us-east-1"


def test_calls_to_the_cloud_are_measured_with_their_errors():
    metrics = Metrics()
    cloud = measure_calls(Cloud(), metrics)

    async def scenario():
        with pytest.raises(CloudUnavailable):
            await cloud.find("i-1")

    asyncio.run(scenario())
    shown = collected(metrics)
    labels = 'controller="",method="Get",provider="aws"'
    assert shown[f"karpenter_cloudprovider_duration_seconds_count{{{labels}}}"] == 1
    wanted = 'karpenter_cloudprovider_errors_total{controller="",error="CloudUnavailable",'
    assert [value for name, value in shown.items() if name.startswith(wanted)] == [1]
    assert cloud.region == "us-east-1"


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (InsufficientCapacity("web", "nothing is left"), "InsufficientCapacityError"),
        (
            NodeClassUnresolved(Reference("EC2NodeClass", "default"), "spec.role", "no such role"),
            "NodeClassNotReadyError",
        ),
    ],
)
def test_errors_that_karpenter_tells_apart_have_its_names(error, name):
    """Its users' alerts and dashboards choose by them."""

    async def launch(*_arguments, **_options):
        raise error

    metrics = Metrics()
    cloud = measure_calls(SimpleNamespace(launch=launch), metrics)
    with pytest.raises(CloudError):
        asyncio.run(cloud.launch())
    wanted = f'karpenter_cloudprovider_errors_total{{controller="",error="{name}",method="Create",'
    assert [value for series, value in collected(metrics).items() if series.startswith(wanted)] == [1]


@pytest.mark.cluster
def test_the_scrape_of_a_process_that_made_a_node_shows_all_of_it(
    replicas, api, aws, network, namespace, control_plane
):
    process = replicas("first")
    leads(api, namespace, "first")
    for document in (
        a_template(),
        a_provisioner(limits={"resources": {"cpu": "100"}}),
        a_pod("web", namespace),
    ):
        api.create(document)
    kubelets = Kubelets(api, network)

    def shown():
        kubelets.turn()
        series = scrape(process)
        return series if any(name.startswith("karpenter_nodes_allocatable") for name in series) else None

    host = urlsplit(control_plane.endpoint).netloc
    api.wait(lambda: api.list(CLAIMS), timeout=40, what="a claim")
    series = api.wait(shown, timeout=60, what="the node's series")
    created = 'karpenter_nodes_created{provisioner="default",reason="provisioning"}'
    api.wait(lambda: scrape(process).get(created) == 1, what="the count of nodes")
    wanted = (
        'leader_election_master_status{name="karpenter-leader-election"}',
        'karpenter_provisioner_limit{provisioner="default",resource_type="cpu"}',
        'karpenter_nodepools_limit{nodepool="default",resource_type="cpu"}',
        'karpenter_cloudprovider_duration_seconds_count{controller="",method="Create",provider="aws"}',
        'nodeless_aws_call_duration_seconds_count{aws_service="ec2",operation="CreateFleet"}',
        'nodeless_aws_call_errors_total{aws_service="ec2",code="DryRunOperation",operation="DescribeInstanceTypes"}',
        "karpenter_provisioner_scheduling_duration_seconds_count",
        'controller_runtime_reconcile_total{controller="provisioner",result="success"}',
        'controller_runtime_reconcile_time_seconds_count{controller="nodeclaim_lifecycle"}',
        'controller_runtime_max_concurrent_reconciles{controller="nodeclaim_lifecycle"}',
        'workqueue_adds_total{name="nodepool"}',
        'karpenter_cloudprovider_batcher_batch_size_count{batcher="describe_instances"}',
        'karpenter_nodepools_allowed_disruptions{nodepool="default",reason="drifted"}',
        f'rest_client_requests_total{{code="201",host="{host}",method="POST"}}',
        f'rest_client_rate_limiter_duration_seconds_count{{host="{host}",verb="GET"}}',
        "karpenter_scheduler_queue_depth",
        "process_resident_memory_bytes",
    )
    # The first step of a claim ends a moment after its instance is counted.
    api.wait(lambda: not {*wanted} - {*scrape(process)}, what="every series")
    series = scrape(process)
    assert series["karpenter_cluster_state_synced"] == 1
    cost, bound = (f"nodeless_plan_{name}_dollars_per_hour" for name in ("cost", "lower_bound"))
    assert 0 <= series[bound] <= series[cost] + 1e-9
    assert 0 <= series["nodeless_plan_gap_ratio"] <= 1
    assert any(name.startswith("karpenter_build_info{") for name in series)
    assert any(name.startswith("karpenter_pods_state{") and f'"{namespace}"' in name for name in series)


class ScrapedGauge(Gauge):
    """A gauge that is scraped before each of its changes."""

    scrapes: ClassVar[list] = []

    def labels(self, *values):
        self._scrape()
        return super().labels(*values)

    def remove(self, *values):
        self._scrape()
        super().remove(*values)

    def _scrape(self):
        self.scrapes.append({sample.labels["pool"] for family in self.collect() for sample in family.samples})


def test_a_scrape_finds_the_series_that_stay_whenever_it_comes():
    gauge = ScrapedGauge("of_pools", "Of pools.", ["pool"], registry=None)
    table = GaugeTable(gauge)
    table.show({("a",): 1, ("b",): 2, ("c",): 3})
    ScrapedGauge.scrapes.clear()
    table.show({("a",): 4, ("b",): 5, ("d",): 6})
    assert ScrapedGauge.scrapes
    assert all({"a", "b"} <= found for found in ScrapedGauge.scrapes)
    shown = {sample.labels["pool"]: sample.value for family in gauge.collect() for sample in family.samples}
    assert shown == {"a": 4, "b": 5, "d": 6}


def test_a_limit_on_nodes_has_the_number_of_nodes_as_its_usage():
    metrics, pool = Metrics(), replace(a_node_pool(), limits={"nodes": 2})
    metrics.show_pools(cluster(pool, node_of(pool, "a")), pool.name)
    series, labels = collected(metrics), '{provisioner="default",resource_type="nodes"}'
    assert series[f"karpenter_provisioner_usage{labels}"] == 1
    assert series[f"karpenter_provisioner_usage_pct{labels}"] == 50
    assert series['karpenter_nodepools_usage{nodepool="default",resource_type="nodes"}'] == 1


def test_the_step_of_a_pool_shows_that_pool_and_leaves_the_others_as_they_are():
    metrics, snapshot = Metrics(), Snapshot()
    for name in ("a", "b"):
        pool = factories.a_pool(limits={"cpu": 8_000})
        snapshot = apply(snapshot, PoolSeen(replace(pool, reference=Reference("Provisioner", name))))
        metrics.show_pools(snapshot, name)
    metrics.show_pools(Snapshot(), "b")
    limits = [name for name in collected(metrics) if name.startswith("karpenter_provisioner_limit")]
    assert limits == ['karpenter_provisioner_limit{provisioner="a",resource_type="cpu"}']
