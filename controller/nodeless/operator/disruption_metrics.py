"""Metrics of voluntary commands, under the names of both generations.

v0.27 names what is done by method and action (`consolidation/replace`), v1 by reason and decision.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Gauge, Histogram

from nodeless.disruption.budgets import allowance
from nodeless.disruption.target import Target
from nodeless.explain.bill import pool_bills
from nodeless.model.commitments import Commitment
from nodeless.model.disruption import Command, Decisions, DisruptionReason, VerdictCode
from nodeless.model.instance_types import Catalog
from nodeless.model.snapshot import Snapshot
from nodeless.operator.metric_types import DURATIONS, Count, GaugeTable
from nodeless.scheduling.capacity.coverage import running_coverage

REASONS = tuple(DisruptionReason)
#: v0.27 measures one thing, and calls it so.
EVALUATION = "Replace/Delete"
#: v0.27's methods by our reasons; `emptiness` is the end after ttlSecondsAfterEmpty.
_METHODS = {
    "expired": "expiration",
    "drifted": "drift",
    "emptiness": "emptiness",
    "empty": "consolidation",
    "underutilized": "consolidation",
    "unhealthy": "repair",
}


def method_and_action(reason: str, *, replaced: bool) -> str:
    """How v0.27 calls what was done for a reason; a reason that is no voluntary move stays as it is."""
    method = _METHODS.get(reason.lower())
    if method is None:
        return reason
    # v0.27 calls every expiration a replacement, also when nothing had to be launched.
    return f"{method}/{'replace' if replaced or method == 'expiration' else 'delete'}"


class DisruptionMetrics:
    """Families of voluntary commands."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.evaluation_seconds = Histogram(
            "karpenter_deprovisioning_evaluation_duration_seconds",
            "Duration of one search for disruption commands.",
            ["method"],
            buckets=DURATIONS,
            registry=registry,
        )
        self.replacement_seconds = Histogram(
            "karpenter_deprovisioning_replacement_node_initialized_seconds",
            "Time from the creation of a replacement node until it was initialized.",
            buckets=DURATIONS,
            registry=registry,
        )
        self.actions = Count(
            "karpenter_deprovisioning_actions_performed",
            "Disruption commands that were started, by method and action.",
            ["action"],
            registry=registry,
        )
        self.decisions = Count(
            "karpenter_voluntary_disruption_decisions_total",
            "Disruption commands that were started, by decision (replace, delete, reboot) and reason.",
            ["decision", "reason"],
            registry=registry,
        )
        self.eligible = Gauge(
            "karpenter_voluntary_disruption_eligible_nodes",
            "Nodes that the last pass put into a command or tried to consolidate without success, by reason.",
            ["reason"],
            registry=registry,
        )
        self.failed_validations = Count(
            "karpenter_voluntary_disruption_failed_validations_total",
            "Commands that were no longer valid after the validation period.",
            ["reason"],
            registry=registry,
        )
        self.dropped = Count(
            "nodeless_disruption_dropped_moves_total",
            "Commands that were dropped during validation, by the code of the reason.",
            ["code"],
            registry=registry,
        )
        self.failures = Count(
            "karpenter_voluntary_disruption_queue_failures_total",
            "Nodes that were not disrupted because their replacement failed.",
            registry=registry,
        )
        self.disrupted = Count(
            "karpenter_nodeclaims_disrupted_total",
            "NodeClaims that were deleted because of disruption, expiration, an interruption, or a launch or "
            "registration that failed, not because their node, pool or stack was deleted.",
            ["reason", "nodepool", "capacity_type"],
            registry=registry,
        )
        self.undisrupted = GaugeTable(
            Gauge(
                "nodeless_undisrupted_nodes",
                "Nodes that the last pass did not disrupt, by the code of the reason.",
                ["code"],
                registry=registry,
            )
        )
        self.saving = Gauge(
            "nodeless_disruption_saving_dollars_per_hour",
            "Lower bound for what the started consolidation commands save, in total since this process "
            "started.",
            registry=registry,
        )
        self.distance = Gauge(
            "nodeless_disruption_target_distance_dollars_per_hour",
            "How much more the cluster costs than the solver's plan for all pods that may move now.",
            registry=registry,
        )
        self.waiting_on_budgets = Gauge(
            "nodeless_disruption_waiting_on_budgets_dollars_per_hour",
            "What nodeless would save if disruption budgets did not block the removal of empty nodes and "
            "other commands.",
            registry=registry,
        )
        self._make_costs(registry)
        self._make_budgets(registry)

    def _make_costs(self, registry: CollectorRegistry) -> None:
        self.costs = GaugeTable(
            Gauge(
                "karpenter_nodepools_cost_total",
                "Price of a pool's nodes in dollars an hour, with all parts of their bills. Nodes without a "
                "known price do not count. The series is missing if no node has a known price.",
                ["nodepool"],
                registry=registry,
            )
        )
        self.bills = GaugeTable(
            Gauge(
                "nodeless_nodes_bill_dollars_per_hour",
                "Price of a pool's nodes in dollars an hour, by part of their bills (instance, CPU credits, "
                "license, volumes, public IPv4, adjustments, commitments, node fee). Nodes without a known "
                "price do not count.",
                ["part", "nodepool"],
                registry=registry,
            )
        )
        self.unknown_parts = GaugeTable(
            Gauge(
                "nodeless_nodes_bill_unknown_parts",
                "Nodes of a pool for which this part of the bill is not known. A node without a known "
                "instance price is in no total.",
                ["part", "nodepool"],
                registry=registry,
            )
        )

        self.commitments_used = GaugeTable(
            Gauge(
                "nodeless_commitments_used_ratio",
                "Part of a Reserved Instance or Savings Plan in nodeless.commitments that the cluster's "
                "nodes use, from 0 to 1.",
                ["commitment"],
                registry=registry,
            )
        )

    def _make_budgets(self, registry: CollectorRegistry) -> None:
        of = ["nodepool", "reason"]
        self.allowed = GaugeTable(
            Gauge(
                "karpenter_nodepools_allowed_disruptions",
                "Number of a pool's nodes that its budgets allow to be disrupted now, by reason.",
                of,
                registry=registry,
            )
        )
        self.consuming = GaugeTable(
            Gauge(
                "karpenter_nodepools_nodes_consuming_budgets",
                "Number of a pool's nodes that count against its budgets now.",
                ["nodepool"],
                registry=registry,
            )
        )

    def show_pass(self, decisions: Decisions, snapshot: Snapshot, seconds: float) -> None:
        """Count one pass, and show for how many nodes there was a reason, and why others stay."""
        self.evaluation_seconds.labels(EVALUATION).observe(seconds)
        found = eligible(decisions)
        for reason in REASONS:
            self.eligible.labels(reason.lower()).set(found[reason])
        stay = Counter(
            verdict.code for name, verdict in decisions.verdicts.items() if name in snapshot.claims
        )
        self.undisrupted.show({(code,): count for code, count in sorted(stay.items())})

    def show_costs(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        node_fee: float,
        commitments: Sequence[Commitment] = (),
    ) -> None:
        """Show what the nodes of each pool cost at the catalog's prices, and a fee for each, by part.

        Series of pools that are gone, and of parts that no node of a pool has any more, disappear.
        """
        coverage = running_coverage(snapshot, catalog, commitments)
        bills = pool_bills(snapshot, catalog, node_fee, coverage)
        self.commitments_used.show(
            {(each.name,): round(1 - coverage.left[each.name] / each.amount, 6) for each in commitments}
        )
        self.costs.show(
            {(name,): round(bill.total, 6) for name, bill in bills.items() if bill.total is not None}
        )
        self.bills.show(
            {
                (part, name): round(dollars, 6)
                for name, bill in bills.items()
                for part, dollars in bill.parts.items()
            }
        )
        self.unknown_parts.show(
            {(part, name): nodes for name, bill in bills.items() for part, nodes in bill.unknown.items()}
        )

    def show_command(self, command: Command) -> None:
        """Count a command that begins."""
        action = method_and_action(command.reason, replaced=bool(command.replacements))
        self.actions.labels("repair/reboot" if command.reboots else action).inc()
        self.decisions.labels(command.action, command.reason.lower()).inc()
        if command.reason in (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED):
            self.saving.inc(command.saving)

    def show_invalid(self, command: Command) -> None:
        """Count a command that was not right any more during validation."""
        self.failed_validations.labels(command.reason.lower()).inc()

    def show_waiting(self, dollars: float) -> None:
        """Show what would be saved but for budgets, in dollars an hour."""
        self.waiting_on_budgets.set(round(dollars, 6))

    def show_target(self, found: Target) -> None:
        """Show how far the cluster is from the whole that consolidation walks to."""
        self.distance.set(round(found.distance, 6))

    def show_dropped(self, code: str) -> None:
        """Count why a command was not right any more."""
        self.dropped.labels(code).inc()

    def show_budgets(self, snapshot: Snapshot, now: float) -> None:
        """Show what the budgets of every pool leave; series of pools that are gone disappear."""
        allowed: dict[tuple[str, ...], float] = {}
        consuming: dict[tuple[str, ...], float] = {}
        for pool in snapshot.pools.values():
            left = {reason: allowance(snapshot, pool, reason, now) for reason in REASONS}
            for reason, count in left.items():
                allowed[pool.name, reason.lower()] = count.remaining
            # As for every reason but Unhealthy, nodes that are not Ready count.
            consuming[(pool.name,)] = left[DisruptionReason.EMPTY].disrupted
        self.allowed.show(allowed)
        self.consuming.show(consuming)


def eligible(decisions: Decisions) -> Mapping[str, int]:
    """How many claims a pass found in commands, or looked at for consolidation in vain, by reason."""
    found: Counter[str] = Counter()
    for command in decisions.commands:
        found[command.reason] += len(command.claims)
    found[DisruptionReason.UNDERUTILIZED] += sum(
        verdict.code == VerdictCode.UNCONSOLIDATABLE for verdict in decisions.verdicts.values()
    )
    return found
