"""Kinds of metric families that the Prometheus client does not have in the form that Karpenter shows.

Karpenter's counters of v0.27 bear no suffix `_total`, which the client would add, and its summaries
have quantiles, which the client's do not.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

#: Upper bounds of Karpenter's histograms of durations, in seconds; those beyond a minute are v1's.
DURATIONS = (
    *(0.005, 0.01, 0.025),
    *(step / 20 for step in range(1, 11)),
    *(step / 10 for step in range(6, 11)),
    *(1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
    *(120, 150, 300, 450, 600),
)
QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)
#: Quantiles are of the last ten minutes (Go's client), and of so many observations at most.
WINDOW_SECONDS = 600.0
_MOST_OBSERVATIONS = 10_000


class Count(Gauge):
    """A counter that is shown under exactly its name. It only grows."""


class GaugeTable:
    """The series of a gauge, shown together: a scrape finds those that stay, whenever it comes.

    Metrics are rendered in a thread, which would read a gauge between its clearing and its filling.
    """

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._shown: set[tuple[str, ...]] = set()

    def show(self, values: Mapping[tuple[str, ...], float], label: str = "") -> None:
        """Set values by the values of their labels, in the labels' order, and remove other series.

        Args:
            values: What is shown from now on.
            label: The value of the last label to which this is limited; empty: all series.
        """
        for labels, value in values.items():
            self._gauge.labels(*labels).set(value)
        gone = {labels for labels in self._shown - values.keys() if label in ("", labels[-1])}
        for labels in gone:
            self._gauge.remove(*labels)
        self._shown = (self._shown - gone) | values.keys()


def counters(registry: CollectorRegistry) -> frozenset[str]:
    """Names of the families that are to be shown as counters."""
    # Collectors do not tell their names by public attributes.
    return frozenset(
        collector_to_name._name
        for collector_to_name in registry._collector_to_names
        if isinstance(collector_to_name, Count)
    )


class Quantiles(Collector):
    """A summary without labels: quantiles of the last ten minutes, sum and number of all observations."""

    _type = "summary"
    _labelnames: Sequence[str] = ()

    def __init__(self, name: str, documentation: str, *, registry: CollectorRegistry) -> None:
        self._name = name
        self._documentation = documentation
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MOST_OBSERVATIONS)
        self._sum = 0.0
        self._count = 0
        self._lock = threading.Lock()
        registry.register(self)

    def observe(self, value: float, now: float | None = None) -> None:
        """Take one observation in; `now` is the monotonic clock's."""
        with self._lock:
            self._recent.append((time.monotonic() if now is None else now, value))
            self._sum += value
            self._count += 1

    def collect(self, now: float | None = None) -> Iterable[Metric]:
        """The summary as it is now; a quantile of nothing is not a number."""
        oldest = (time.monotonic() if now is None else now) - WINDOW_SECONDS
        with self._lock:
            while self._recent and self._recent[0][0] < oldest:
                self._recent.popleft()
            values = sorted(value for _, value in self._recent)
            total, count = self._sum, self._count
        metric = Metric(self._name, self._documentation, self._type)
        for quantile in QUANTILES:
            rank = min(int(quantile * len(values)), len(values) - 1)
            value = values[rank] if values else float("nan")
            metric.add_sample(self._name, {"quantile": f"{quantile:g}"}, value)
        metric.add_sample(f"{self._name}_sum", {}, total)
        metric.add_sample(f"{self._name}_count", {}, count)
        yield metric

    def describe(self) -> Iterable[Metric]:
        """The family, without samples."""
        return [Metric(self._name, self._documentation, self._type)]
