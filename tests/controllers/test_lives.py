"""How long pods, nodes and replacements take, told from the events that pass by."""

from dataclasses import replace

import pytest

from nodeless.controllers.metrics.lifecycle_metrics import LifecycleMetrics
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimGone, ClaimSeen, NodeGone, NodeSeen, PodGone, PodSeen
from nodeless.model.labels import REPLACES, TERMINATION_FINALIZER
from nodeless.model.nodes import (
    DISRUPTION_REASON,
    DRAINED,
    INITIALIZED_CONDITION,
    INSTANCE_TERMINATING,
    Condition,
)
from nodeless.operator.clock import wall_clock
from nodeless.operator.metrics import Metrics
from tests import factories
from tests.controllers.test_metrics import collected


class Watching:
    def __init__(self):
        self.metrics, self.cluster = Metrics(), Cluster()
        self.cluster.listen(LifecycleMetrics(self.metrics).on_event)

    def see(self, *events):
        for event in events:
            self.cluster.handle(event)
        return collected(self.metrics)


def a_pod(**more):
    return factories.a_pod("web", created_at=100.0, **more)


def test_a_pod_that_was_seen_pending_is_measured_from_its_creation_to_its_being_ready():
    ready = a_pod(phase="Running", node_name="n", ready=True, ready_at=142.0)
    shown = Watching().see(PodSeen(a_pod()), PodSeen(ready), PodSeen(ready))
    assert shown["karpenter_pods_startup_time_seconds_count"] == 1
    assert shown["karpenter_pods_startup_time_seconds_sum"] == 42
    assert shown['karpenter_pods_startup_duration_seconds{quantile="0.5"}'] == 42


def test_a_pod_that_was_never_seen_pending_is_not_measured():
    shown = Watching().see(PodSeen(a_pod(phase="Running", node_name="n", ready=True, ready_at=142.0)))
    assert shown["karpenter_pods_startup_time_seconds_count"] == 0


def test_a_pod_that_ends_before_it_is_ready_leaves_nothing_behind():
    watching = Watching()
    watching.see(PodSeen(a_pod()), PodGone("default/web"))
    shown = watching.see(PodSeen(a_pod(phase="Running", node_name="n", ready=True, ready_at=142.0)))
    assert shown["karpenter_pods_startup_time_seconds_count"] == 0


def test_the_end_of_a_node_is_measured_from_its_deletion_and_its_creation():
    now = wall_clock()
    node = factories.a_node(
        "1", created_at=now - 500, deletion_timestamp=now - 30, finalizers=(TERMINATION_FINALIZER,)
    )
    shown = Watching().see(NodeSeen(node), NodeGone(node.name))
    assert shown["karpenter_nodes_termination_time_seconds_sum"] == pytest.approx(30, abs=20)
    (lived,) = (
        v for name, v in shown.items() if name.startswith("karpenter_nodes_lifetime_duration_seconds_sum")
    )
    assert lived == pytest.approx(500, abs=20)


def test_a_node_that_goes_by_itself_is_not_measured():
    node = factories.a_node("1")
    assert (
        Watching().see(NodeSeen(node), NodeGone(node.name))["karpenter_nodes_termination_time_seconds_count"]
        == 0
    )


def test_a_replacement_is_measured_once_it_is_initialized():
    claim = factories.a_claim("1", created_at=100.0, conditions=(), annotations={REPLACES: "old"})
    ready = replace(claim, conditions=(Condition(INITIALIZED_CONDITION, "True", "", "", 170.0),))
    shown = Watching().see(ClaimSeen(claim), ClaimSeen(ready), ClaimSeen(ready))
    name = "karpenter_deprovisioning_replacement_node_initialized_seconds"
    assert (shown[f"{name}_count"], shown[f"{name}_sum"]) == (1, 70)


def test_the_end_of_a_claim_is_measured_by_pool():
    claim = factories.a_claim("1", deletion_timestamp=wall_clock() - 10)
    shown = Watching().see(ClaimSeen(claim), ClaimGone(claim.name))
    name = f'karpenter_nodeclaims_termination_duration_seconds_count{{nodepool="{claim.pool.name}"}}'
    assert shown[name] == 1


def test_a_drain_is_counted_with_the_pods_that_leave_and_why_the_node_ends():
    now = wall_clock()
    told = Condition(DISRUPTION_REASON, "True", "Underutilized", "", now)
    ending = factories.an_initialized_claim("1", deletion_timestamp=now, conditions=(told,))
    drained = replace(ending, conditions=(told, Condition(DRAINED, "True", "", "", now)))
    gone = Condition(INSTANCE_TERMINATING, "True", "", "", now - 30)
    terminating = replace(drained, conditions=(*drained.conditions, gone))
    node = factories.a_node("1")
    pod = a_pod(phase="Running", node_name=node.name)
    shown = Watching().see(
        ClaimSeen(ending),
        NodeSeen(node),
        PodSeen(pod),
        PodGone(pod.key),
        ClaimSeen(drained),
        ClaimSeen(drained),
    )
    pool = ending.pool.name
    assert shown['karpenter_pods_drained_total{reason="underutilized"}'] == 1
    assert shown[f'karpenter_nodes_drained_total{{nodepool="{pool}"}}'] == 1
    shown = Watching().see(ClaimSeen(terminating), ClaimGone(ending.name))
    family = "karpenter_nodeclaims_instance_termination_duration_seconds_sum"
    assert shown[f'{family}{{nodepool="{pool}"}}'] == pytest.approx(30, abs=20)


def test_a_pod_that_leaves_a_node_that_stays_is_not_drained():
    pod = a_pod(phase="Running", node_name="node-1")
    shown = Watching().see(
        ClaimSeen(factories.an_initialized_claim("1")),
        NodeSeen(factories.a_node("1")),
        PodSeen(pod),
        PodGone(pod.key),
    )
    assert not [name for name in shown if name.startswith("karpenter_pods_drained_total{")]
