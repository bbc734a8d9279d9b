"""Series of voluntary disruption, under v0.27's names and under v1's where they differ."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from nodeless.model.disruption import DRIFTED, EMPTY, EXPIRED, UNDERUTILIZED, UNHEALTHY, Move, Verdict
from nodeless.model.snapshot import Snapshot

_METHODS = {EXPIRED: "expiration", DRIFTED: "drift", EMPTY: "emptiness", UNHEALTHY: "repair"}
_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 180)
#: Gauges that only grow.
DISRUPTION_COUNTERS = ("karpenter_deprovisioning_actions_performed",)


class DisruptionMetrics:
    """What was looked at, decided, dropped and done."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.evaluation_seconds = Histogram(
            "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
            "Duration of one look at the cluster for moves",
            buckets=_SECONDS,
            registry=registry,
        )
        self._actions = Gauge(
            "karpenter_deprovisioning_actions_performed",
            "Moves that were begun, as METHOD/ACTION",
            ["action"],
            registry=registry,
        )
        self._decisions = Counter(
            "karpenter_voluntary_disruption_decisions",
            "Moves that were begun",
            ["decision", "reason"],
            registry=registry,
        )
        self._invalid = Counter(
            "karpenter_voluntary_disruption_failed_validations",
            "Moves that were not right any more when they were looked at again",
            ["reason"],
            registry=registry,
        )
        self.queue_failures = Counter(
            "karpenter_voluntary_disruption_queue_failures",
            "Nodes whose replacement failed",
            registry=registry,
        )
        self._verdicts = Gauge(
            "nodeless_undisrupted_nodes",
            "Nodes that the last look left alone, by the code of the one reason",
            ["code"],
            registry=registry,
        )
        self._saving = Gauge(
            "nodeless_disruption_saving_dollars_per_hour",
            "What the moves that were begun save at least, since this process began",
            registry=registry,
        )

    def show_begun(self, move: Move) -> None:
        """Count a move that is begun."""
        method = _METHODS.get(move.reason, "consolidation")
        self._actions.labels(f"{method}/{move.action}").inc()
        self._decisions.labels(move.action, move.reason.lower()).inc()
        if move.reason in (EMPTY, UNDERUTILIZED):
            self._saving.inc(move.saving)

    def show_invalid(self, move: Move) -> None:
        """Count a move that was dropped at its second look."""
        self._invalid.labels(move.reason.lower()).inc()

    def show_verdicts(self, verdicts: Mapping[str, Verdict], snapshot: Snapshot) -> None:
        """Show the reasons of the last look."""
        self._verdicts.clear()
        codes = sorted(verdict.code for name, verdict in verdicts.items() if name in snapshot.claims)
        for code, some in groupby(codes):
            self._verdicts.labels(code).set(_count(some))


def _count(some: Iterable[str]) -> int:
    return sum(1 for _ in some)
