"""`python -m infra.observability`: write alerts, dashboards and their page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from infra.observability.alerts import ALERTS, rules_file
from infra.observability.dashboards import PAGES, dashboard_file

ROOT = Path(__file__).parents[2]
_CHART = ROOT / "charts" / "nodeless" / "files"


def files() -> Iterator[tuple[Path, str]]:
    """Every file that is made, with its text."""
    yield _CHART / "alerts.yaml", rules_file()
    for page in PAGES:
        yield _CHART / "dashboards" / f"{page.name}.json", dashboard_file(page)
    yield ROOT / "docs" / "observability.md", _page()


def _page() -> str:
    alerts = "\n".join(
        f"| `{alert.name}` | {alert.severity} | {alert.lasting} | {alert.action} |" for alert in ALERTS
    )
    dashboards = "\n".join(
        f"| [{page.title}](../charts/nodeless/files/dashboards/{page.name}.json) | "
        f"{', '.join(title for title, _ in page.rows)} |"
        for page in PAGES
    )
    return f"""# Alerts, dashboards and traces

<!-- Made by `python -m infra.observability` from the code: change that. -->

The controller exposes [metrics](metrics.md) on port 8080. What to draw and what to be woken for comes with the
[chart](guides/install-with-helm.md):

```yaml
serviceMonitor:
  enabled: true     # Prometheus scrapes the controller
prometheusRule:
  enabled: true     # the alerts below
dashboards:
  enabled: true     # a ConfigMap for each dashboard, labeled grafana_dashboard: "1"
```

The first two need the kinds of the Prometheus operator. Grafana's sidecar finds dashboards by their label; set
`dashboards.labels` where yours looks for another one. Without operator or sidecar: give Prometheus
[alerts.yaml](../charts/nodeless/files/alerts.yaml) as a rule file, and import the JSON below into Grafana.

## Dashboards

| Dashboard | Shows |
| --- | --- |
{dashboards}

Made with Grafana's Foundation SDK for Grafana 11.6, and read through its schema by a test
(`tests/observability/test_files.py`). Every query is asked of a real Prometheus that scrapes a running controller. What has not been done is to
look at the pages in Grafana itself, which no package registry has: if one looks wrong to you, open an issue.

## Alerts

| Alert | Severity | After | What to do |
| --- | --- | --- | --- |
{alerts}

## Traces

Where a pod's time went, from its first sight to its running: one OpenTelemetry trace for each pod that needed capacity. Off until the
controller's environment names a collector's OTLP/HTTP port; then, with the chart:

```yaml
controller:
  env:
    - name: OTEL_EXPORTER_OTLP_ENDPOINT
      value: http://collector.observability:4318
    - name: OTEL_TRACES_SAMPLER
      value: traceidratio
    - name: OTEL_TRACES_SAMPLER_ARG
      value: "0.1"
```

The Pulumi component takes the same variables as `environment`. The image has what is needed; elsewhere it is the extra `tracing`:
`pip install 'nodeless-provisioner[controller,tracing]'`.

| Span | From | To |
| --- | --- | --- |
| `pod` | the controller sees the pod | the pod runs |
| `pending` | the controller sees the pod | kube-scheduler found no room for it |
| `batch` | then | the batch window closed |
| `solve` | a pass began | it had its plan; a refused pod has the reason as the span's error |
| `claim` | the NodeClaim is written | the API server has taken it |
| `launch` | EC2 is asked for an instance | it gave one, or refused: the span's error |
| `register` | the instance is there | its node has registered |
| `initialize` | then | the node is initialized |
| `bind` | the last of these before it | kube-scheduler has bound the pod |
| `run` | then | the pod runs |

Times are those at which the controller did or saw each thing. What was not seen is not there: a pod that goes to a node that runs already
has no `claim` to `initialize`, and a new leader begins new traces.

The span `pod` has what to search by: `k8s.pod.name`, `k8s.pod.uid`, `k8s.namespace.name`, `nodeless.workload`, `nodeless.pool`,
`nodeless.claim`, `host.id`, `host.type`, `cloud.availability_zone`, `karpenter.sh/capacity-type`, `nodeless.price` (US dollars an
hour), `k8s.node.name`, `nodeless.passes` (passes that considered the pod) and `nodeless.outcome`: `running`, `failed`, `deleted`,
`waiting` (it did not run in 20 minutes; the error says what it waits for) or `stopped` (the controller ended).

What it costs is bounded: 500 pods are followed at a time, 50 of one workload, 16 steps of each, 512 characters of a text, 8192 spans in
the queue. Pods beyond that have no trace; a sampler makes the selection yours. A collector that is down, slow or answers errors
costs spans and one line in the log. When the controller ends it sends what is queued, for 3 s at most.

| Variable | Here |
| --- | --- |
| `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | the collector; empty: no traces |
| `OTEL_EXPORTER_OTLP_PROTOCOL` | `http/protobuf`, nothing else |
| `OTEL_EXPORTER_OTLP_HEADERS`, `_CERTIFICATE`, `_CLIENT_KEY`, `_CLIENT_CERTIFICATE`, `_COMPRESSION`, `_TIMEOUT` | as everywhere |
| `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | default `nodeless`, with `service.version`, `service.instance.id` (the pod) and `k8s.cluster.name` |
| `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` | default all pods, within the bounds above |
| `OTEL_BSP_MAX_QUEUE_SIZE` and others of `OTEL_BSP_`, `OTEL_SPAN_` | as everywhere, with the defaults above |
| `OTEL_TRACES_EXPORTER=none`, `OTEL_SDK_DISABLED=true` | no traces |

[Decision 29](decisions/0029-one-trace-for-each-pod.md) says why a trace is a pod's.
"""


def main() -> None:
    """Write what has changed."""
    for file, text in files():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
