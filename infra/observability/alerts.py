"""What wakes somebody up, or tells them in the morning, and what to do then."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from nodeless.model.object_names import LEASE_NAME


class Severity(StrEnum):
    """How soon somebody has to look."""

    CRITICAL = "critical"
    """Now: pods get no nodes, or nodes end without a warning being heard."""
    WARNING = "warning"
    """Within the day."""
    INFO = "info"
    """It costs money, nothing is broken."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule.

    Attributes:
        name: In CamelCase, as Prometheus shows it.
        severity: The label `severity`.
        expression: In PromQL; what it gives is what is wrong.
        lasting: For how long, before it fires, as Prometheus writes durations.
        summary: One line, with the labels' values.
        action: What it means, and what to do.
    """

    name: str
    severity: Severity
    expression: str
    lasting: str
    summary: str
    action: str


#: Other controllers expose metrics of these names, too: those count that stand beside ours.
_OURS = "* on (job, instance) group_left () karpenter_build_info"
_FAILED_CALLS = (
    'sum by (aws_service, operation) (rate(nodeless_aws_call_errors_total{code!="DryRunOperation"}[10m]))'
)
_CALLS = "sum by (aws_service, operation) (rate(nodeless_aws_call_duration_seconds_count[10m]))"

ALERTS: tuple[Alert, ...] = (
    Alert(
        "NodelessNoLeader",
        Severity.CRITICAL,
        f'absent(leader_election_master_status{{name="{LEASE_NAME}"}} == 1)',
        "5m",
        "No replica of nodeless leads",
        "No node is launched, drained or replaced. Check whether the controller's pods run (`kubectl get pods`; frequent causes are the "
        "Fargate profile, the image, and the role of the service account), and whether they can write the Lease "
        f"`{LEASE_NAME}`.",
    ),
    Alert(
        "NodelessPodsWithoutCapacity",
        Severity.WARNING,
        "max(nodeless_pods_without_capacity) > 0",
        "15m",
        "{{ $value }} pods cannot be placed by any pool",
        "`nodeless why POD` and the pod's event FailedScheduling say which rule, limit or price of each pool prevents a node for it.",
    ),
    Alert(
        "NodelessPendingPods",
        Severity.WARNING,
        "min_over_time(max(karpenter_scheduler_queue_depth)[30m:1m]) > 0 and "
        "max(karpenter_scheduler_queue_depth) >= max(karpenter_scheduler_queue_depth offset 30m)",
        "5m",
        "{{ $value }} pods or more have waited for capacity for half an hour, and their number does not fall",
        "Launches fail, or launched nodes do not become ready. `kubectl get nodeclaims` shows the progress of each; the events of a "
        "NodeClaim that is not ready say what it is waiting for.",
    ),
    Alert(
        "NodelessLaunchesFail",
        Severity.CRITICAL,
        'sum by (error) (rate(karpenter_cloudprovider_errors_total{method="Create"}[15m])) > 0',
        "15m",
        "Launches fail: {{ $labels.error }}",
        "The events of the NodeClaims and the log name the call and AWS's answer. InsufficientCapacity: allow more instance types "
        "and zones in the pool. Refused calls: compare the role with the policy in docs/components/permissions.md.",
    ),
    Alert(
        "NodelessAwsCallsFail",
        Severity.WARNING,
        f"{_FAILED_CALLS} / {_CALLS} > 0.5",
        "15m",
        "{{ $value | humanizePercentage }} of the calls to {{ $labels.aws_service }}:{{ $labels.operation }} fail",
        "`nodeless_aws_call_errors_total` has the codes. RequestLimitExceeded: something else in the account uses up the request limit. "
        "UnauthorizedOperation: the role lacks the permission.",
    ),
    Alert(
        "NodelessInterruptionsLate",
        Severity.CRITICAL,
        "histogram_quantile(0.9, sum by (le) "
        "(rate(karpenter_interruption_message_latency_time_seconds_bucket[10m]))) > 60",
        "10m",
        "Warnings of interruptions are handled {{ $value | humanizeDuration }} late",
        "EC2 reclaims a spot instance two minutes after its warning. Check whether the queue is long, and whether something else "
        "reads from it.",
    ),
    Alert(
        "NodelessSettingsInvalid",
        Severity.WARNING,
        "max by (config_map, key) (nodeless_settings_invalid) == 1",
        "1m",
        "{{ $labels.key }} of ConfigMap {{ $labels.config_map }} cannot be used",
        "The last valid value stays in force until the process restarts. The ConfigMap's event says what is allowed.",
    ),
    Alert(
        "NodelessPoolNearLimit",
        Severity.WARNING,
        # A limit of 0 is how a pool is turned off.
        "max by (provisioner, resource_type) (karpenter_provisioner_usage_pct) > 90 and "
        "max by (provisioner, resource_type) (karpenter_provisioner_limit) > 0",
        "15m",
        "Pool {{ $labels.provisioner }} uses {{ $value }} % of its limit of {{ $labels.resource_type }}",
        "When the pool reaches its limit, pods that need it stay pending. Raise the limit, or find out what uses it: "
        "`nodeless top`.",
    ),
    Alert(
        "NodelessReconcilesFail",
        Severity.WARNING,
        f"sum by (controller) (rate(controller_runtime_reconcile_errors_total[10m]) {_OURS}) "
        f"/ sum by (controller) (rate(controller_runtime_reconcile_total[10m]) {_OURS}) > 0.1",
        "15m",
        "{{ $value | humanizePercentage }} of the reconciliations of {{ $labels.controller }} fail",
        "The log names the object that fails and the error. All other objects are still reconciled.",
    ),
    Alert(
        "NodelessObjectsSetAside",
        Severity.WARNING,
        "max by (unit) (nodeless_quarantined_units) > 0",
        "30m",
        "{{ $value }} objects of kind {{ $labels.unit }} are set aside after repeated failures",
        "The log line `set aside` names each object and its error. nodeless retries it after longer and longer pauses, and at once when "
        "it changes.",
    ),
    Alert(
        "NodelessWebhookFails",
        Severity.WARNING,
        f'sum(rate(controller_runtime_webhook_requests_total{{code!="200"}}[10m]) {_OURS}) '
        f"/ sum(rate(controller_runtime_webhook_requests_total[10m]) {_OURS}) > 0.05",
        "10m",
        "{{ $value | humanizePercentage }} of the reviews of pools and node classes fail",
        "Changes to pools are refused, or accepted without a check, depending on the webhook's failurePolicy. See the logs of the "
        "controller's pods.",
    ),
    Alert(
        "NodelessReplacementsFail",
        Severity.WARNING,
        "sum(increase(karpenter_voluntary_disruption_queue_failures_total[1h])) > 3",
        "5m",
        "{{ $value | humanize }} replacements of nodes failed within an hour",
        "The nodes that should be replaced are kept. The events of the new NodeClaims say why their nodes did not become ready.",
    ),
    Alert(
        "NodelessDrainsHeld",
        Severity.INFO,
        'sum(rate(karpenter_nodes_eviction_requests_total{code="429"}[30m])) > 0',
        "1h",
        "Disruption budgets have refused evictions for an hour",
        "A node cannot be drained. Its event FailedDraining names the pods and their PodDisruptionBudgets. Frequent causes are a budget "
        "that allows no disruption, and pods that are not ready.",
    ),
    Alert(
        "NodelessNodesInconsistent",
        Severity.INFO,
        "sum by (check) (increase(karpenter_consistency_errors[1h])) > 0",
        "5m",
        "Nodes do not match what was launched: {{ $labels.check }}",
        "The events of the nodes say what is wrong: resources that the instance type should have are missing, or the node is not "
        "initialized after an hour.",
    ),
    Alert(
        "NodelessSavingsHeldByBudgets",
        Severity.INFO,
        "max(nodeless_disruption_waiting_on_budgets_dollars_per_hour) > 1",
        "6h",
        "Budgets of pools hold changes worth {{ $value | humanize }} dollars an hour",
        "`nodeless top` names the pools. A budget of 10 % of two nodes, for example, allows one disruption at a time.",
    ),
    Alert(
        "NodelessPlansNotFollowed",
        Severity.INFO,
        "min(nodeless_plan_realized_ratio) < 0.8",
        "1h",
        "Plans cost {{ $value | humanizePercentage }} of what runs in the end",
        "kube-scheduler binds pods to other nodes than planned. Check whether the log says that nominations are refused "
        "(docs/decisions/0015-planned-pods-are-nominated.md), and whether another scheduler binds pods.",
    ),
)


def rule_groups() -> dict[str, Any]:
    """The rules, as Prometheus reads them from a file and the operator from `spec` of a PrometheusRule."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasting,
            "labels": {"severity": alert.severity.value},
            "annotations": {"summary": alert.summary, "description": alert.action},
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "nodeless", "rules": rules}]}


def rules_file() -> str:
    """The same as YAML."""
    return yaml.safe_dump(rule_groups(), sort_keys=False, width=120)
