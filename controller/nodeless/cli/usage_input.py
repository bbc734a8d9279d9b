"""Where use is read from: files, a Prometheus, the metrics API of a cluster."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from nodeless.cli.bounded_files import STDIN, UnreadableFileError, read_text
from nodeless.cli.manifests.documents import BadManifests, documents_of
from nodeless.cli.manifests.files import listed_files
from nodeless.explain.advice.usage import BadUsage, Usage, add_pod_metrics, add_prometheus
from nodeless.model.resources import CPU, MEMORY

_POD_METRICS = "PodMetrics"
_GIVE = "hint: PodMetrics (kubectl get podmetrics -A -o yaml), or an answer of Prometheus' query API"
_NOT_FOUND = 404
#: Seconds that a Prometheus may take, and bytes of its answer.
_PATIENCE, _MOST_BYTES = 60.0, 256 * 2**20
_CONTAINERS = 'container!="",container!="POD",pod!=""'


def read_usage(
    names: Sequence[str], files: Sequence[str], prometheus: str, window: str, percentile: float
) -> Usage | None:
    """What files and a Prometheus say; None where there is nothing.

    Args:
        names: Files of metrics.
        files: Manifests, which may hold PodMetrics as well.
        prometheus: Address of a Prometheus; empty: none.
        window: How far it looks back, as Prometheus writes durations.
        percentile: Of the use of processors.

    Raises:
        BadUsage: Something cannot be used.
    """
    usage = Usage()
    for name in names:
        _read(name, usage, percentile)
    for name in files:
        if name != STDIN:
            _read_among(name, usage)
    if prometheus:
        _ask(prometheus, usage, window, percentile)
    return usage if usage.how else None


def _read(name: str, usage: Usage, percentile: float) -> None:
    try:
        documents = [document.value for document in documents_of(name, read_text(name, _GIVE))]
    except UnreadableFileError as error:
        raise BadUsage(str(error)) from None
    except BadManifests as error:
        raise BadUsage(error.faults[0]) from None
    metrics = [one for one in documents if isinstance(one, Mapping) and one.get("kind") == _POD_METRICS]
    others = [one for one in documents if one not in metrics]
    if others and metrics:
        hint = "give the others as manifests: PodMetrics among those are read, too"
        raise BadUsage(f"{name} holds other objects besides PodMetrics; hint: {hint}")
    if not documents:
        raise BadUsage(f"{name} holds no metrics of pods; {_GIVE}")
    try:
        add_pod_metrics(usage, metrics)
        for document in others:
            add_prometheus(usage, document, percentile=percentile)
    except BadUsage as error:
        raise BadUsage(f"{name}: {error}") from None


def _read_among(name: str, usage: Usage) -> None:
    """PodMetrics among manifests; whatever is wrong with these is said where they are read."""
    for file in listed_files(name)[0]:
        try:
            text = read_text(file)
            found = [one.value for one in documents_of(file, text)] if _POD_METRICS in text else []
        except (UnreadableFileError, BadManifests):
            continue
        add_pod_metrics(
            usage, [one for one in found if isinstance(one, Mapping) and one.get("kind") == _POD_METRICS]
        )


def queries(window: str, percentile: float) -> dict[str, str]:
    """What a Prometheus is asked for each resource: the percentile for processors, the largest for memory."""
    by = "max by (namespace, pod, container)"
    rate = f"rate(container_cpu_usage_seconds_total{{{_CONTAINERS}}}[5m])[{window}:5m]"
    memory = f"container_memory_working_set_bytes{{{_CONTAINERS}}}[{window}]"
    return {
        CPU: f"{by} (quantile_over_time({percentile / 100:g}, {rate}))",
        MEMORY: f"{by} (max_over_time({memory}))",
    }


def _ask(address: str, usage: Usage, window: str, percentile: float) -> None:
    if not address.startswith(("http://", "https://")):
        raise BadUsage(f"--prometheus {address!r} is no address; hint: http://HOST:9090")
    if not re.fullmatch(r"([0-9]+(ms|[smhdwy]))+", window):
        raise BadUsage(f"--window {window!r} is no duration; hint: as Prometheus has it, 7d or 12h")
    said = {
        CPU: f"percentile {percentile:g} of processors over {window}",
        MEMORY: f"largest memory over {window}",
    }
    for resource, query in queries(window, percentile).items():
        document = _answer(f"{address.rstrip('/')}/api/v1/query", query)
        add_prometheus(usage, document, resource=resource, how=said[resource])


def _answer(address: str, query: str) -> Any:
    """Prometheus' answer to a query. Raises BadUsage."""
    body = urllib.parse.urlencode({"query": query}).encode()
    request = urllib.request.Request(address, data=body)  # noqa: S310 - the scheme is checked
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310
            return json.loads(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        said = error.read(500).decode("utf-8", "replace")
        raise BadUsage(f"{address} answers {error.code}: {said}; hint: is it a Prometheus?") from None
    except (OSError, ValueError) as error:
        raise BadUsage(
            f"{address} cannot be asked: {error}; hint: is it a Prometheus, and is there a way?"
        ) from None


async def live_usage(notes: list[str]) -> Usage | None:
    """What metrics-server says of the cluster of the kubeconfig; None where it says nothing, with a note."""
    from nodeless.kube import ApiClient, ApiError, ApiUnavailable  # noqa: PLC0415 - files need no cluster

    usage = Usage()
    client = await ApiClient.connect()
    try:
        listed = await client.get("/apis/metrics.k8s.io/v1beta1/pods")
        add_pod_metrics(usage, [item for item in listed.get("items") or [] if isinstance(item, Mapping)])
    except (ApiError, ApiUnavailable, BadUsage) as error:
        is_missing = isinstance(error, ApiError) and error.status == _NOT_FOUND
        why = (
            "the cluster has no metrics-server" if is_missing else f"metrics-server does not answer: {error}"
        )
        notes.append(f"use of pods is not known: {why}; hint: give --prometheus or --usage")
    finally:
        await client.close()
    return usage if usage.how else None
