"""Each alert fires for what it is about, says so, and is quiet otherwise: as promtool finds."""

import math
import subprocess
from dataclasses import dataclass

import pytest
import yaml
from prometheus_client.utils import floatToGoString

from infra.observability.__main__ import ROOT
from infra.observability.alerts import ALERTS
from localenv.binaries import promtool
from nodeless.operator.metric_types import DURATIONS

pytestmark = pytest.mark.cluster

RULES = ROOT / "charts" / "nodeless" / "files" / "alerts.yaml"
LEADER = 'leader_election_master_status{name="karpenter-leader-election", job="k", instance="1"}'
OURS = {'karpenter_build_info{version="1", job="k", instance="1"}': "1x500"}
OF_ANOTHER = 'controller="other", job="other", instance="9"'


@dataclass(frozen=True)
class Case:
    """Series by the minute, when they are looked at, and what is said then, or nothing."""

    alert: str
    series: dict[str, str]
    summary: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    at: str = "60m"


def lasting(alert, metric, value, summary, **labels):
    """A gauge that has had a value for hours."""
    text = ", ".join(f'{name}="{label}"' for name, label in labels.items())
    return Case(alert, {f"{metric}{{{text}}}": f"{value}x500"}, summary, tuple(labels.items()), "400m")


def buckets(metric, seconds):
    """A histogram with the bounds that it has, of one observation each second that took so long."""
    return {
        f'{metric}_bucket{{le="{floatToGoString(bound)}"}}': "0+60x500" if seconds <= bound else "0x500"
        for bound in (*DURATIONS, math.inf)
    }


DESCRIBE = 'aws_service="ec2", operation="a"'
LATENCY = "karpenter_interruption_message_latency_time_seconds"
CASES = [
    Case("NodelessNoLeader", {LEADER: "0x500"}, "No replica of nodeless leads"),
    Case("NodelessNoLeader", {LEADER: "1x500"}),
    Case(
        "NodelessNoLeader",
        {'leader_election_master_status{name="another-controller"}': "1x500"},
        "No replica of nodeless leads",
    ),
    lasting(
        "NodelessPodsWithoutCapacity",
        "nodeless_pods_without_capacity",
        3,
        "3 pods cannot be placed by any pool",
    ),
    lasting("NodelessPodsWithoutCapacity", "nodeless_pods_without_capacity", 0, ""),
    lasting(
        "NodelessPendingPods",
        "karpenter_scheduler_queue_depth",
        4,
        "4 pods or more have waited for capacity for half an hour, and their number does not fall",
    ),
    Case("NodelessPendingPods", {"karpenter_scheduler_queue_depth": "60-1x60 0x400"}, at="50m"),
    Case(
        "NodelessPendingPods",
        {"karpenter_scheduler_queue_depth": "5 5 0 5 0 5 0 5 0 5 0 5x10 0 5x500"},
        at="40m",
    ),
    Case(
        "NodelessLaunchesFail",
        {'karpenter_cloudprovider_errors_total{method="Create", error="InsufficientCapacity"}': "0+1x500"},
        "Launches fail: InsufficientCapacity",
        (("error", "InsufficientCapacity"),),
    ),
    Case(
        "NodelessLaunchesFail", {'karpenter_cloudprovider_errors_total{method="Get", error="a"}': "0+1x500"}
    ),
    Case(
        "NodelessAwsCallsFail",
        {
            'nodeless_aws_call_errors_total{aws_service="ec2", operation="CreateFleet", code="a"}': "0+3x500",
            'nodeless_aws_call_duration_seconds_count{aws_service="ec2", operation="CreateFleet"}': "0+4x500",
        },
        "75% of the calls to ec2:CreateFleet fail",
        (("aws_service", "ec2"), ("operation", "CreateFleet")),
    ),
    Case(
        "NodelessAwsCallsFail",
        {
            f'nodeless_aws_call_errors_total{{{DESCRIBE}, code="DryRunOperation"}}': "0+4x500",
            f"nodeless_aws_call_duration_seconds_count{{{DESCRIBE}}}": "0+4x500",
        },
    ),
    Case(
        "NodelessInterruptionsLate",
        buckets(LATENCY, 100),
        "Warnings of interruptions are handled 1m 54s late",
    ),
    Case(
        "NodelessInterruptionsLate",
        buckets(LATENCY, 5000),
        "Warnings of interruptions are handled 10m 0s late",
    ),
    Case("NodelessInterruptionsLate", buckets(LATENCY, 20)),
    lasting(
        "NodelessSettingsInvalid",
        "nodeless_settings_invalid",
        1,
        "batchMaxDuration of ConfigMap karpenter-global-settings cannot be used",
        config_map="karpenter-global-settings",
        key="batchMaxDuration",
    ),
    Case(
        "NodelessPoolNearLimit",
        {
            'karpenter_provisioner_usage_pct{provisioner="default", resource_type="cpu"}': "95x500",
            'karpenter_provisioner_limit{provisioner="default", resource_type="cpu"}': "100x500",
        },
        "Pool default uses 95 % of its limit of cpu",
        (("provisioner", "default"), ("resource_type", "cpu")),
    ),
    Case(
        "NodelessPoolNearLimit",
        {
            'karpenter_provisioner_usage_pct{provisioner="off", resource_type="cpu"}': "100x500",
            'karpenter_provisioner_limit{provisioner="off", resource_type="cpu"}': "0x500",
        },
    ),
    lasting(
        "NodelessPoolNearLimit",
        "karpenter_provisioner_usage_pct",
        50,
        "",
        provisioner="a",
        resource_type="cpu",
    ),
    Case(
        "NodelessReconcilesFail",
        OURS
        | {
            'controller_runtime_reconcile_errors_total{controller="a", job="k", instance="1"}': "0+1x500",
            'controller_runtime_reconcile_total{controller="a", job="k", instance="1"}': "0+4x500",
        },
        "25% of the reconciliations of a fail",
        (("controller", "a"),),
    ),
    Case(
        "NodelessReconcilesFail",
        OURS
        | {
            f"controller_runtime_reconcile_errors_total{{{OF_ANOTHER}}}": "0+4x500",
            f"controller_runtime_reconcile_total{{{OF_ANOTHER}}}": "0+4x500",
        },
    ),
    lasting(
        "NodelessObjectsSetAside",
        "nodeless_quarantined_units",
        2,
        "2 objects of kind claim are set aside after repeated failures",
        unit="claim",
    ),
    Case(
        "NodelessWebhookFails",
        OURS
        | {
            'controller_runtime_webhook_requests_total{code="500", job="k", instance="1"}': "0+1x500",
            'controller_runtime_webhook_requests_total{code="200", job="k", instance="1"}': "0+3x500",
        },
        "25% of the reviews of pools and node classes fail",
    ),
    Case(
        "NodelessWebhookFails",
        OURS | {'controller_runtime_webhook_requests_total{code="200", job="k", instance="1"}': "0+3x500"},
    ),
    Case(
        "NodelessReplacementsFail",
        {"karpenter_voluntary_disruption_queue_failures_total": "0+0.1x500"},
        "6 replacements of nodes failed within an hour",
        at="120m",
    ),
    Case(
        "NodelessReplacementsFail",
        {"karpenter_voluntary_disruption_queue_failures_total": "0x60 1x440"},
        at="120m",
    ),
    Case(
        "NodelessDrainsHeld",
        {'karpenter_nodes_eviction_requests_total{code="429"}': "0+10x500"},
        "Disruption budgets have refused evictions for an hour",
        at="120m",
    ),
    Case(
        "NodelessDrainsHeld", {'karpenter_nodes_eviction_requests_total{code="201"}': "0+10x500"}, at="120m"
    ),
    Case(
        "NodelessNodesInconsistent",
        {'karpenter_consistency_errors{check="NodeShape"}': "0x60 1x440"},
        "Nodes do not match what was launched: NodeShape",
        (("check", "NodeShape"),),
        at="80m",
    ),
    lasting(
        "NodelessSavingsHeldByBudgets",
        "nodeless_disruption_waiting_on_budgets_dollars_per_hour",
        2.5,
        "Budgets of pools hold changes worth 2.5 dollars an hour",
    ),
    lasting(
        "NodelessPlansNotFollowed",
        "nodeless_plan_realized_ratio",
        0.7,
        "Plans cost 70% of what runs in the end",
    ),
    lasting("NodelessPlansNotFollowed", "nodeless_plan_realized_ratio", 1.0, ""),
]


def test_there_is_a_case_for_each_alert():
    assert {case.alert for case in CASES if case.summary} == {alert.name for alert in ALERTS}


def test_prometheus_loads_the_rules():
    done = run("check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert f"{len(ALERTS)} rules found" in done


def test_alerts_fire_for_what_they_are_about_and_for_nothing_else(tmp_path):
    by_name = {alert.name: alert for alert in ALERTS}
    tests = []
    for case in CASES:
        alert = by_name[case.alert]
        told = {
            "exp_labels": {"severity": alert.severity.value, **dict(case.labels)},
            "exp_annotations": {"summary": case.summary, "description": alert.action},
        }
        looked_at = {
            "eval_time": case.at,
            "alertname": case.alert,
            "exp_alerts": [told] if case.summary else [],
        }
        series = [{"series": name, "values": values} for name, values in case.series.items()]
        tests.append({"interval": "1m", "input_series": series, "alert_rule_test": [looked_at]})
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": tests}))
    assert "SUCCESS" in run("test", "rules", file)


def run(*arguments):
    done = subprocess.run([promtool(), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
