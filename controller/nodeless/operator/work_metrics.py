"""What the loops do, under the names of controller-runtime and client-go: reconciliations, queues, API calls.

Each loop is a controller; those that Karpenter v0.27 has bear its names.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge, Histogram

from nodeless.operator.metric_types import DURATIONS, Count

PROVISIONER = "provisioner"
DEPROVISIONING = "deprovisioning"
INTERRUPTION = "interruption"
CLAIM_LIFECYCLE = "nodeclaim_lifecycle"
CLAIM_COLLECTION = "nodeclaim_garbagecollection"
CLAIM_DRIFT = "nodeclaim_disruption"
POOLS = "nodepool"
CONTROLLERS = (
    PROVISIONER,
    DEPROVISIONING,
    INTERRUPTION,
    CLAIM_LIFECYCLE,
    CLAIM_COLLECTION,
    CLAIM_DRIFT,
    POOLS,
)
#: client-go's: ten nanoseconds and each ten times the one before.
_QUEUE_BUCKETS = tuple(10.0**power for power in range(-8, 4))
_CONFLICT = 409


class MeasuredQueue(Protocol):
    """A queue, as its gauges look at it when they are asked for."""

    @property
    def length(self) -> int: ...
    def ages(self) -> list[float]: ...


class Outcome:
    """How one reconciliation ended: `success` unless it is set or an exception passes through."""

    def __init__(self) -> None:
        self.result = "success"

    def again_later(self) -> None:
        """It asked to be called again at a time."""
        self.result = "requeue_after"


class QueueMetrics:
    """The series of one queue."""

    def __init__(self, families: "WorkMetrics", name: str) -> None:
        self._families = families
        self._name = name

    def follow(self, queue: MeasuredQueue) -> None:
        """Show the length of a queue and the age of the work under way whenever somebody looks."""
        families, name = self._families, self._name
        families.depth.labels(name).set_function(lambda: queue.length)
        families.unfinished.labels(name).set_function(lambda: sum(queue.ages()))
        families.longest.labels(name).set_function(lambda: max(queue.ages(), default=0.0))

    def record_added(self) -> None:
        self._families.adds.labels(self._name).inc()

    def record_retried(self) -> None:
        self._families.retries.labels(self._name).inc()

    def record_taken(self, waited: float) -> None:
        self._families.waited.labels(self._name).observe(waited)

    def record_finished(self, worked: float) -> None:
        self._families.worked.labels(self._name).observe(worked)


class WorkMetrics:
    """Families `controller_runtime_*`, `workqueue_*` and `rest_client_*`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._make_reconciliations(registry)
        self._make_queues(registry)
        self._make_requests(registry)
        self._make_reviews(registry)

    def _make_reconciliations(self, registry: CollectorRegistry) -> None:
        of = ["controller"]
        self.reconciles = Count(
            "controller_runtime_reconcile_total",
            "Reconciliations, by result.",
            ["controller", "result"],
            registry=registry,
        )
        self.errors = Count(
            "controller_runtime_reconcile_errors_total", "Reconciliations that failed.", of, registry=registry
        )
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of one reconciliation.",
            of,
            buckets=DURATIONS,
            registry=registry,
        )
        self.most_workers = Gauge(
            "controller_runtime_max_concurrent_reconciles",
            "Number of reconciliations that may run at the same time.",
            of,
            registry=registry,
        )
        self.workers = Gauge(
            "controller_runtime_active_workers",
            "Number of reconciliations that are running.",
            of,
            registry=registry,
        )

    def _make_queues(self, registry: CollectorRegistry) -> None:
        of = ["name"]
        self.depth = Gauge("workqueue_depth", "Number of keys in the queue.", of, registry=registry)
        self.adds = Count("workqueue_adds_total", "Keys that were added to the queue.", of, registry=registry)
        self.retries = Count(
            "workqueue_retries_total",
            "Keys that were put back into the queue for a later retry.",
            of,
            registry=registry,
        )
        self.waited = Histogram(
            "workqueue_queue_duration_seconds",
            "How long a key waits in the queue for a worker.",
            of,
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long it takes to process a key.",
            of,
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Total time that the keys in progress have taken so far.",
            of,
            registry=registry,
        )
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Time that the longest-running key in progress has taken so far.",
            of,
            registry=registry,
        )

    def _make_requests(self, registry: CollectorRegistry) -> None:
        self.requests = Count(
            "rest_client_requests_total",
            "Requests to the API server, by status. `<error>` means that there was no answer.",
            ["code", "method", "host"],
            registry=registry,
        )
        self.throttled = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long requests wait because of KUBE_CLIENT_QPS and KUBE_CLIENT_BURST.",
            ["verb", "host"],
            buckets=(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60),
            registry=registry,
        )

    def _make_reviews(self, registry: CollectorRegistry) -> None:
        self.reviews = Count(
            "controller_runtime_webhook_requests_total",
            "Admission reviews that the webhook answered, by status.",
            ["webhook", "code"],
            registry=registry,
        )
        self.review_seconds = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Duration of one admission review.",
            ["webhook"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        self.open_reviews = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Number of admission reviews in progress.",
            ["webhook"],
            registry=registry,
        )

    @contextmanager
    def measure_review(self, webhook: str) -> Iterator[Callable[[int], None]]:
        """Measure one review; what it gives is told the status of the answer."""
        started, status = time.perf_counter(), 500

        def report_status(code: int) -> None:
            nonlocal status
            status = code

        with self.open_reviews.labels(webhook).track_inprogress():
            try:
                yield report_status
            finally:
                self.review_seconds.labels(webhook).observe(time.perf_counter() - started)
                self.reviews.labels(webhook, str(status)).inc()

    def queue(self, name: str, workers: int) -> QueueMetrics:
        """The series of the queue of a controller that has so many workers."""
        self.most_workers.labels(name).set(workers)
        return QueueMetrics(self, name)

    @contextmanager
    def measure_reconciliation(self, controller: str) -> Iterator[Outcome]:
        """Measure one reconciliation: what passes through counts as its result, and is raised again."""
        outcome, started = Outcome(), time.perf_counter()
        self.workers.labels(controller).inc()
        try:
            yield outcome
        except Exception as error:
            # Somebody else wrote first: nothing is wrong, and it is looked at again.
            conflict = getattr(error, "status", None) == _CONFLICT
            outcome.result = "requeue" if conflict else "error"
            raise
        finally:
            self.workers.labels(controller).dec()
            self.seconds.labels(controller).observe(time.perf_counter() - started)
            self.reconciles.labels(controller, outcome.result).inc()
            if outcome.result == "error":
                self.errors.labels(controller).inc()

    def show_request(self, method: str, code: str, host: str) -> None:
        """Count one request to the API server."""
        self.requests.labels(code, method, host).inc()

    def show_throttled(self, method: str, host: str, seconds: float) -> None:
        """Count the time that a request waited for its turn."""
        self.throttled.labels(method, host).observe(seconds)
