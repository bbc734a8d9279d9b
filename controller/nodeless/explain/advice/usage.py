"""What containers use, as metrics-server or Prometheus says it, and the requests that would do.

metrics-server has one sample of each container: no percentile. Prometheus has as many as its window holds.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from nodeless.explain.words import count
from nodeless.model.quantity import QuantityError, parse_decimal
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of

#: Room above what is used: processors are shared when they run short, memory is not.
CPU_ROOM, MEMORY_ROOM = 1.15, 1.25
#: Requests are rounded up to these: milli-CPU, bytes.
_STEPS = {CPU: 10, MEMORY: 16 * 2**20}
#: Part of a request that must be unused for a smaller one to be proposed.
LEAST_GAIN = 0.1


class BadUsage(ValueError):
    """Metrics that cannot be used; the text says why and what to do."""


@dataclass(slots=True)
class Usage:
    """What containers use.

    Attributes:
        used: By pod (`namespace/name`) and container: milli-CPU and bytes by resource.
        how: What the figures are: percentile and window.
    """

    used: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    how: list[str] = field(default_factory=list)

    def add(self, pod: str, container: str, resource: str, amount: float) -> None:
        """Note what a container uses; of several figures the largest counts."""
        amounts = self.used.setdefault(pod, {}).setdefault(container, {})
        amounts[resource] = max(amounts.get(resource, 0), math.ceil(amount))


@dataclass(frozen=True, slots=True)
class Fitting:
    """Requests that would do for the pods of one workload."""

    workload: Workload
    pods: int
    """Pods whose use is known."""
    requested: Mapping[str, int] = field(hash=False)
    """What each of them requests now."""
    wanted: Mapping[str, int] = field(hash=False)
    """What it would request."""
    containers: Mapping[str, Mapping[str, int]] = field(hash=False)


def add_pod_metrics(usage: Usage, manifests: Iterable[Mapping[str, Any]]) -> None:
    """Objects of metrics-server. Raises BadUsage."""
    times: set[str] = set()
    number = 0
    for manifest in manifests:
        metadata, containers = manifest.get("metadata"), manifest.get("containers")
        if not isinstance(metadata, Mapping) or not isinstance(containers, list):
            raise BadUsage(
                "PodMetrics without metadata or containers; hint: kubectl get podmetrics -A -o yaml"
            )
        key = f"{metadata.get('namespace', 'default')}/{metadata.get('name')}"
        number += 1
        times.add(str(manifest.get("timestamp") or ""))
        for container in containers:
            amounts = container.get("usage") if isinstance(container, Mapping) else None
            for resource, text in (amounts or {}).items():
                if resource in _STEPS:
                    usage.add(key, str(container.get("name")), resource, _amount(resource, text, key))
    if number:
        when = f" at {max(times)}" if any(times) else ""
        usage.how.append(
            f"metrics-server, {count(number, 'pod')}: one sample{when}, no percentile: look at a day of "
            f"Prometheus "
            "before you lower requests"
        )


def _amount(resource: str, text: Any, pod: str) -> float:
    try:
        value = float(_nano(str(text)))
    except (QuantityError, ValueError, ArithmeticError):
        raise BadUsage(f"PodMetrics/{pod}: {resource} {text!r} is not a quantity") from None
    return value * 1000 if resource == CPU else value


def _nano(text: str) -> Any:
    """A quantity; metrics-server counts in billionths of a processor."""
    for suffix, factor in (("n", 1e-9), ("u", 1e-6)):
        if text.endswith(suffix):
            return float(text[:-1]) * factor
    return parse_decimal(text)


def add_prometheus(
    usage: Usage, document: Any, *, resource: str = "", percentile: float = 95, how: str = ""
) -> None:
    """An answer of Prometheus' query API: a vector, or a matrix of which the percentile is taken.

    Args:
        usage: What is added to.
        document: The answer.
        resource: `cpu` (in cores) or `memory` (in bytes); empty: as the series say.
        percentile: Of a matrix, 0 to 100.
        how: What the figures are; empty: worked out from the series.

    Raises:
        BadUsage: It is no such answer.
    """
    data = document.get("data") if isinstance(document, Mapping) else None
    if not isinstance(data, Mapping) or document.get("status") != "success":
        error = document.get("error") if isinstance(document, Mapping) else document
        raise BadUsage(
            f"not an answer of Prometheus: {error or 'no data'}; hint: /api/v1/query or /api/v1/query_range"
        )
    series = data.get("result")
    if not isinstance(series, list):
        raise BadUsage("not an answer of Prometheus: result is not a list; hint: a vector or a matrix")
    first, last = math.inf, -math.inf
    for one in series:
        metric, samples = _samples(one)
        kind = resource or _resource(metric)
        pod, container = metric.get("pod"), metric.get("container")
        if not pod or not container or container == "POD":
            continue
        values = sorted(value for _, value in samples)
        if values:
            amount = values[min(len(values) - 1, math.ceil(len(values) * percentile / 100) - 1)]
            usage.add(
                f"{metric.get('namespace', 'default')}/{pod}",
                container,
                kind,
                amount * (1000 if kind == CPU else 1),
            )
            first, last = min(first, samples[0][0]), max(last, samples[-1][0])
    if not how and last > first:
        how = f"percentile {percentile:g} of samples of {(last - first) / 3600:.1f} h"
    elif not how and last > -math.inf:
        how = f"as the query says, at {datetime.fromtimestamp(last, UTC):%Y-%m-%d %H:%M} UTC"
    if how:
        usage.how.append(f"Prometheus, {count(len(series), 'series', 'series')}: {how}")


def _samples(series: Any) -> tuple[dict[str, str], list[tuple[float, float]]]:
    """Labels and samples of a series; NaN is left out."""
    metric = series.get("metric") if isinstance(series, Mapping) else None
    values = [series.get("value")] if isinstance(series, Mapping) and "value" in series else None
    values = values or (series.get("values") if isinstance(series, Mapping) else None)
    if not isinstance(metric, dict) or not isinstance(values, list):
        raise BadUsage("a series has no labels or no values; hint: a vector or a matrix")
    try:
        samples = [(float(at), float(value)) for at, value in values]
    except (TypeError, ValueError):
        raise BadUsage(f"a value of the series {metric} is not a number") from None
    return metric, [sample for sample in samples if math.isfinite(sample[1]) and sample[1] >= 0]


def _resource(metric: Mapping[str, str]) -> str:
    name = f"{metric.get('resource', '')} {metric.get('__name__', '')}"
    for word in (CPU, MEMORY):
        if word in name:
            return word
    raise BadUsage(
        f"the series {dict(metric)} does not say whether it is cpu or memory; hint: give it a label "
        f"resource, by "
        'label_replace(QUERY, "resource", "cpu", "", "")'
    )


def fittings(snapshot: Snapshot, usage: Usage) -> tuple[list[Fitting], list[str]]:
    """Workloads whose requests are too large, and lines on those that use more than they request."""
    pods: dict[Workload, list[str]] = {}
    for key in usage.used:
        pod = snapshot.pods.get(key)
        if pod is not None and pod.occupies:
            pods.setdefault(workload_of(pod), []).append(key)
    found, over = [], []
    for workload, keys in sorted(pods.items()):
        containers = _largest(usage.used[key] for key in keys)
        requested = snapshot.pods[keys[0]].requests
        wanted = {
            resource: sum(amounts.get(resource, 0) for amounts in containers.values())
            for resource in (CPU, MEMORY)
        }
        # Init containers, overhead and requests of the pod as a whole stay as they are.
        least = dict(snapshot.pods[keys[0]].least_requests)
        lower = {
            resource: reached
            for resource, amount in wanted.items()
            if amount
            and (reached := max(amount, least.get(resource, 0)))
            <= (1 - LEAST_GAIN) * requested.get(resource, 0)
        }
        over += [
            f"{workload}: uses more {resource} than it requests, with room for peaks: its nodes may run short"
            for resource, amount in wanted.items()
            if amount > requested.get(resource, 0) * (1 + LEAST_GAIN)
        ]
        if lower:
            kept = {
                name: {key: one for key, one in amounts.items() if key in lower}
                for name, amounts in containers.items()
            }
            found.append(Fitting(workload, len(keys), requested, lower, kept))
    return found, over


def _largest(pods: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Of each container, what the pod that uses most needs, with room, rounded up."""
    largest: dict[str, dict[str, int]] = {}
    for containers in pods:
        for name, amounts in containers.items():
            there = largest.setdefault(name, {})
            for resource, amount in amounts.items():
                room = CPU_ROOM if resource == CPU else MEMORY_ROOM
                step = _STEPS[resource]
                there[resource] = max(there.get(resource, 0), math.ceil(amount * room / step) * step, step)
    return largest


def with_requests(snapshot: Snapshot, fitting: Fitting) -> Snapshot:
    """The pods of a workload with the requests that would do."""
    pods = snapshot.pods
    for key, pod in snapshot.pods.items():
        if workload_of(pod) == fitting.workload and pod.occupies:
            requests = tuple(sorted({**pod.requests, **fitting.wanted}.items()))
            pods = pods.set(key, replace(pod, shape=replace(pod.shape, requests=requests)))
    return replace(snapshot, pods=pods)
