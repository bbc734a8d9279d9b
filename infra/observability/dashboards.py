"""Three dashboards for Grafana: what there is and costs, whether the controller is well, what is disrupted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, StackingMode
from grafana_foundation_sdk.models.dashboard import Dashboard, DataSourceRef, VariableRefresh

_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_DOLLARS, _CORES, _BYTES, _SECONDS, _PER_SECOND, _SHARE = (
    "currencyUSD",
    "cores",
    "bytes",
    "s",
    "ops",
    "percentunit",
)
#: The names of our metrics. Other controllers have some of them, too: the job tells them apart.
_METRIC = re.compile(
    r"\b((?:karpenter|nodeless|controller_runtime|workqueue|rest_client|process|leader_election)_\w+)(\{)?"
)
_JOB = 'job="$job"'
#: Grafana's grid is so wide; a panel is so high.
_WIDTH, _HEIGHT = 24, 8


@dataclass(frozen=True, slots=True)
class Query:
    """A line or a set of lines; `legend` names each by its labels (`{{pool}}`)."""

    expression: str
    legend: str = ""

    @property
    def of_job(self) -> str:
        """The expression for the job that is chosen on the dashboard."""
        return _METRIC.sub(
            lambda found: f"{found[1]}{{{_JOB}, " if found[2] else f"{found[1]}{{{_JOB}}}", self.expression
        )


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture.

    Attributes:
        title: What it shows.
        queries: What is drawn.
        unit: Grafana's name of the unit; empty for a plain number.
        help: What it means, where the title does not say it.
        single: A figure instead of lines.
        stacked: Lines on top of each other.
        negative: Lines may be below zero.
    """

    title: str
    queries: tuple[Query, ...]
    unit: str = ""
    help: str = ""
    single: bool = False
    stacked: bool = False
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One dashboard: its file's name, its title, and rows of panels by the rows' titles."""

    name: str
    title: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]

    @property
    def panels(self) -> Iterator[Panel]:
        for _, panels in self.rows:
            yield from panels


def _quantiles(metric: str, *, by: str = "") -> tuple[Query, ...]:
    """The median and the 99th of a hundred of a histogram, each `by` a label."""
    labels, legend = (f"le, {by}", f"{{{{{by}}}}} ") if by else ("le", "")
    return tuple(
        Query(
            f"histogram_quantile({quantile}, sum by ({labels}) (rate({metric}_bucket[$__rate_interval])))",
            f"{legend}{name}",
        )
        for quantile, name in ((0.5, "p50"), (0.99, "p99"))
    )


def _rate(metric: str, by: str) -> Query:
    labels = ", ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))
    return Query(f"sum by ({by}) (rate({metric}[$__rate_interval]))", labels)


def _requested_share(resource: str) -> Query:
    """How much of what nodes allocate is requested, by pool; a node without requests has no series of them."""
    pods, daemons, allocatable = (
        f'sum by (provisioner) (karpenter_nodes_{figure}{{resource_type="{resource}"}})'
        for figure in ("total_pod_requests", "total_daemon_requests", "allocatable")
    )
    requested = " + ".join(f"({part} or 0 * {allocatable})" for part in (pods, daemons))
    return Query(f"({requested}) / {allocatable}", "{{provisioner}}")


CAPACITY = Page(
    "nodeless-capacity",
    "nodeless / Capacity and cost",
    (
        (
            "Now",
            (
                Panel(
                    "Cost an hour",
                    (Query("sum(max by (nodepool) (karpenter_nodepools_cost_total))"),),
                    _DOLLARS,
                    single=True,
                ),
                Panel("Nodes", (Query("max(karpenter_cluster_state_node_count)"),), single=True),
                Panel("Pods that wait", (Query("max(karpenter_scheduler_queue_depth)"),), single=True),
                Panel("Pods no pool can place", (Query("max(nodeless_pods_without_capacity)"),), single=True),
            ),
        ),
        (
            "Cost",
            (
                Panel(
                    "Cost an hour by pool",
                    (Query("max by (nodepool) (karpenter_nodepools_cost_total)", "{{nodepool}}"),),
                    _DOLLARS,
                    "Nodes of unknown price are not in it.",
                    stacked=True,
                ),
                Panel(
                    "Cost an hour by part of the bill",
                    (
                        Query(
                            "sum by (part) (max by (part, nodepool) (nodeless_nodes_bill_dollars_per_hour))",
                            "{{part}}",
                        ),
                    ),
                    _DOLLARS,
                    "Adjustments are negative where they are discounts. Nodes of unknown price are not in it.",
                    negative=True,
                ),
                Panel(
                    "Nodes with parts of unknown price",
                    (
                        Query(
                            "max by (part, nodepool) (nodeless_nodes_bill_unknown_parts)",
                            "{{nodepool}} {{part}}",
                        ),
                    ),
                    help="Such a part is in no price, so the bill is higher than the cost shown.",
                ),
                Panel(
                    "Plan and lower bound",
                    (
                        Query("max(nodeless_plan_cost_dollars_per_hour)", "new nodes of the last plan"),
                        Query("max(nodeless_plan_lower_bound_dollars_per_hour)", "at least"),
                    ),
                    _DOLLARS,
                    "What the last plan's new nodes cost an hour, and below which no plan can be.",
                ),
                Panel(
                    "Cost above the cheapest plan",
                    (Query("max(nodeless_disruption_target_distance_dollars_per_hour)", "dollars an hour"),),
                    _DOLLARS,
                    "By how much the nodes cost more than the solver's plan for all pods that may move now.",
                ),
                Panel(
                    "Planned cost over actual cost",
                    (Query("min(nodeless_plan_realized_ratio)", "realized"),),
                    _SHARE,
                    "Price of a plan over the price of the nodes on which its pods were bound a minute later.",
                ),
            ),
        ),
        (
            "Nodes",
            (
                Panel(
                    "Nodes by pool and capacity type",
                    (
                        Query(
                            "count by (provisioner, capacity_type) "
                            '(karpenter_nodes_allocatable{resource_type="cpu"})',
                            "{{provisioner}} {{capacity_type}}",
                        ),
                    ),
                    stacked=True,
                ),
                Panel(
                    "Nodes by instance type",
                    (
                        Query(
                            'count by (instance_type) (karpenter_nodes_allocatable{resource_type="cpu"})',
                            "{{instance_type}}",
                        ),
                    ),
                    stacked=True,
                ),
                Panel("CPU requested of allocatable", (_requested_share("cpu"),), _SHARE),
                Panel("Memory requested of allocatable", (_requested_share("memory"),), _SHARE),
                Panel(
                    "Nodes launched and terminated",
                    (
                        Query("sum(increase(karpenter_nodes_created[$__rate_interval]))", "launched"),
                        Query("sum(increase(karpenter_nodes_terminated[$__rate_interval]))", "terminated"),
                    ),
                ),
                Panel(
                    "Usage of limits",
                    (
                        Query(
                            "max by (provisioner, resource_type) (karpenter_provisioner_usage_pct) / 100",
                            "{{provisioner}} {{resource_type}}",
                        ),
                    ),
                    _SHARE,
                    "Pools without limits are not shown.",
                ),
            ),
        ),
        (
            "Pods",
            (
                Panel(
                    "From pending to ready",
                    (
                        Query(
                            "sum(rate(karpenter_pods_startup_time_seconds_sum[$__rate_interval])) "
                            "/ sum(rate(karpenter_pods_startup_time_seconds_count[$__rate_interval]))",
                            "mean",
                        ),
                    ),
                    _SECONDS,
                ),
                Panel(
                    "Pods by phase",
                    (Query("sum by (phase) (karpenter_pods_state)", "{{phase}}"),),
                    stacked=True,
                ),
            ),
        ),
    ),
)

HEALTH = Page(
    "nodeless-controller",
    "nodeless / Controller",
    (
        (
            "Now",
            (
                Panel("Leaders", (Query("sum(leader_election_master_status)"),), single=True),
                Panel("Replicas", (Query("count(leader_election_master_status)"),), single=True),
                Panel("State in sync", (Query("max(karpenter_cluster_state_synced)"),), single=True),
                Panel(
                    "Objects set aside", (Query("sum(nodeless_quarantined_units) or vector(0)"),), single=True
                ),
            ),
        ),
        (
            "Work",
            (
                Panel(
                    "Reconciliations",
                    (_rate("controller_runtime_reconcile_total", "controller"),),
                    _PER_SECOND,
                ),
                Panel(
                    "Reconciliations that failed",
                    (_rate("controller_runtime_reconcile_errors_total", "controller"),),
                    _PER_SECOND,
                ),
                Panel(
                    "Reconciliation, 99 %",
                    _quantiles("controller_runtime_reconcile_time_seconds", by="controller")[1:],
                    _SECONDS,
                ),
                Panel("Keys that wait", (Query("max by (name) (workqueue_depth)", "{{name}}"),)),
                Panel(
                    "Scheduling pass",
                    _quantiles("karpenter_provisioner_scheduling_duration_seconds"),
                    _SECONDS,
                ),
                Panel(
                    "From batch to fleet request",
                    _quantiles("nodeless_decision_to_fleet_request_seconds"),
                    _SECONDS,
                ),
            ),
        ),
        (
            "AWS and Kubernetes",
            (
                Panel(
                    "Calls to AWS",
                    (_rate("nodeless_aws_call_duration_seconds_count", "aws_service, operation"),),
                    _PER_SECOND,
                ),
                Panel(
                    "Calls that AWS refused",
                    (_rate("nodeless_aws_call_errors_total", "operation, code"),),
                    _PER_SECOND,
                ),
                Panel(
                    "Calls to AWS, 99 %",
                    _quantiles("nodeless_aws_call_duration_seconds", by="operation")[1:],
                    _SECONDS,
                ),
                Panel(
                    "Requests to the API server", (_rate("rest_client_requests_total", "code"),), _PER_SECOND
                ),
                Panel(
                    "Waits for KUBE_CLIENT_QPS",
                    _quantiles("rest_client_rate_limiter_duration_seconds"),
                    _SECONDS,
                ),
                Panel(
                    "Reviews of the webhook",
                    (_rate("controller_runtime_webhook_requests_total", "webhook, code"),),
                    _PER_SECOND,
                ),
            ),
        ),
        (
            "Process",
            (
                Panel(
                    "Processor",
                    (Query("rate(process_cpu_seconds_total[$__rate_interval])", "{{instance}}"),),
                    _CORES,
                ),
                Panel(
                    "Memory",
                    (Query("process_resident_memory_bytes", "{{instance}}"),),
                    _BYTES,
                ),
            ),
        ),
    ),
)

DISRUPTION = Page(
    "nodeless-disruption",
    "nodeless / Disruption",
    (
        (
            "Decisions",
            (
                Panel(
                    "Commands begun",
                    (
                        Query(
                            "sum by (decision, reason) "
                            "(increase(karpenter_voluntary_disruption_decisions_total[$__rate_interval]))",
                            "{{decision}} {{reason}}",
                        ),
                    ),
                ),
                Panel(
                    "Saved by them",
                    (Query("max(nodeless_disruption_saving_dollars_per_hour)", "dollars an hour"),),
                    _DOLLARS,
                    "At least so much, since this leader began.",
                ),
                Panel(
                    "Held by budgets",
                    (
                        Query(
                            "max(nodeless_disruption_waiting_on_budgets_dollars_per_hour)", "dollars an hour"
                        ),
                    ),
                    _DOLLARS,
                    "What the empty nodes and the commands cost that only budgets of pools hold.",
                ),
                Panel(
                    "Disruptions that budgets allow now",
                    (
                        Query(
                            "max by (nodepool, reason) (karpenter_nodepools_allowed_disruptions)",
                            "{{nodepool}} {{reason}}",
                        ),
                    ),
                ),
                Panel(
                    "Why nodes are left alone",
                    (Query("max by (code) (nodeless_undisrupted_nodes)", "{{code}}"),),
                    stacked=True,
                ),
                Panel(
                    "Commands dropped after the wait",
                    (
                        Query(
                            "sum by (code) (increase(nodeless_disruption_dropped_moves_total[$__rate_interval]))",
                            "{{code}}",
                        ),
                    ),
                ),
            ),
        ),
        (
            "Drains",
            (
                Panel(
                    "NodeClaims disrupted",
                    (
                        Query(
                            "sum by (reason) (increase(karpenter_nodeclaims_disrupted_total[$__rate_interval]))",
                            "{{reason}}",
                        ),
                    ),
                ),
                Panel(
                    "Evictions by answer",
                    (_rate("karpenter_nodes_eviction_requests_total", "code"),),
                    _PER_SECOND,
                    "429: a disruption budget refused it; it is asked for again.",
                ),
                Panel(
                    "From deletion to the end of a NodeClaim",
                    _quantiles("karpenter_nodeclaims_termination_duration_seconds"),
                    _SECONDS,
                ),
                Panel(
                    "Search for commands",
                    _quantiles("karpenter_deprovisioning_evaluation_duration_seconds"),
                    _SECONDS,
                ),
            ),
        ),
        (
            "Interruptions",
            (
                Panel(
                    "Messages",
                    (
                        Query(
                            "sum by (message_type) "
                            "(increase(karpenter_interruption_received_messages[$__rate_interval]))",
                            "{{message_type}}",
                        ),
                    ),
                ),
                Panel(
                    "From an event to its handling",
                    _quantiles("karpenter_interruption_message_latency_time_seconds"),
                    _SECONDS,
                ),
            ),
        ),
    ),
)

PAGES = (CAPACITY, HEALTH, DISRUPTION)


def dashboard_of(page: Page) -> Dashboard:
    """A page in Grafana's form; the data source is chosen on it."""
    made = (
        dashboard.Dashboard(page.title)
        .uid(page.name)
        .tags(["nodeless", "karpenter"])
        .time("now-6h", "now")
        .refresh("1m")
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("job")
            .label("Job")
            .datasource(_SOURCE)
            .query("label_values(karpenter_build_info, job)")
            .refresh(VariableRefresh.ON_DASHBOARD_LOAD)
        )
    )
    identifiers = count(1)
    for title, panels in page.rows:
        made = made.with_row(dashboard.Row(title).id(next(identifiers)))
        for panel in panels:
            width = _WIDTH // len(panels) if panel.single else _WIDTH // 2
            made = made.with_panel(_build_panel(panel, width).id(next(identifiers)))
    return made.build()


def _build_panel(panel: Panel, width: int) -> stat.Panel | timeseries.Panel:
    if panel.single:
        built: stat.Panel | timeseries.Panel = stat.Panel().height(_HEIGHT // 2)
    else:
        legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(show_legend=True)
        lines = timeseries.Panel().height(_HEIGHT).fill_opacity(20 if panel.stacked else 5)
        if not panel.negative:
            lines = lines.min(0)
        lines = lines.legend(legend.placement(LegendPlacement.BOTTOM).calcs([]))
        if panel.stacked:
            lines = lines.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
        built = lines
    built = built.title(panel.title).description(panel.help).datasource(_SOURCE).unit(panel.unit).span(width)
    for letter, query in zip("ABCDEF", panel.queries, strict=False):
        target = prometheus.Dataquery().ref_id(letter).expr(query.of_job)
        built = built.with_target(target.legend_format(query.legend).datasource(_SOURCE))
    return built


def dashboard_file(page: Page) -> str:
    """A page as the JSON that Grafana imports."""
    return json.dumps(json.loads(JSONEncoder(sort_keys=True).encode(dashboard_of(page))), indent=2) + "\n"
