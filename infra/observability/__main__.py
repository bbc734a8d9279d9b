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

This page describes the alerts and dashboards that come with nodeless, and how to trace what happens to each pod.

The controller exposes [metrics](metrics.md) on port 8080. The [Helm chart](guides/install-with-helm.md) can install the scrape configuration, the alerts and the dashboards:

```yaml
serviceMonitor:
  enabled: true     # Prometheus scrapes the controller
prometheusRule:
  enabled: true     # the alerts below
dashboards:
  enabled: true     # a ConfigMap for each dashboard, labeled grafana_dashboard: "1"
```

`serviceMonitor` and `prometheusRule` need the CRDs of the Prometheus operator. Grafana's sidecar finds dashboards by their label; if yours looks for another label, set
`dashboards.labels`. Without the operator, use [alerts.yaml](../charts/nodeless/files/alerts.yaml) as a rule file of Prometheus. Without the sidecar, import the JSON files below
into Grafana.

## Dashboards

| Dashboard | Shows |
| --- | --- |
{dashboards}

The dashboards are made for Grafana 11.6 with its Foundation SDK, and a test checks them against Grafana's schema (`tests/observability/test_files.py`). Another test runs every query on a real
Prometheus that scrapes a running controller. The dashboards have not been viewed in Grafana itself yet. If one looks wrong to you, please open an
issue.

## Alerts

| Alert | Severity | Fires after | What to do |
| --- | --- | --- | --- |
{alerts}

## Traces

nodeless can write one OpenTelemetry trace for each pod that needs capacity. The trace shows where the time went, from the moment the controller first sees the pod until the pod runs.

Traces are off by default. To enable them, set the OTLP/HTTP endpoint of your collector in the controller's environment. With the chart:

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

With the Pulumi component, set the same variables as `environment`. The image contains the packages that tracing needs. Elsewhere, install the extra `tracing`:
`pip install 'nodeless-provisioner[controller,tracing]'`.

### Spans

| Span | Begins when | Ends when |
| --- | --- | --- |
| `pod` | the controller first sees the pod | the pod runs |
| `pending` | the controller first sees the pod | kube-scheduler has found no node for it |
| `batch` | `pending` ends | the batch window closes |
| `solve` | a pass begins | the pass has planned the pod; if it refuses the pod, the reason is the span's error |
| `claim` | nodeless writes the NodeClaim | the API server has accepted it |
| `launch` | nodeless requests an instance from EC2 | EC2 has launched it, or refused; a refusal is the span's error |
| `register` | the instance exists | its node has registered |
| `initialize` | `register` ends | the node is initialized |
| `bind` | the last of the spans above ends | kube-scheduler has bound the pod |
| `run` | `bind` ends | the pod runs |

All times are those at which the controller did or saw something. A trace contains only what the controller saw: a pod that goes to an existing node has no spans `claim` to `initialize`,
and a new leader starts new traces.

The span `pod` has attributes that you can search for: `k8s.pod.name`, `k8s.pod.uid`, `k8s.namespace.name`, `nodeless.workload`, `nodeless.pool`, `nodeless.claim`, `host.id`, `host.type`,
`cloud.availability_zone`, `karpenter.sh/capacity-type`, `nodeless.price` (US dollars an hour), `k8s.node.name`, `nodeless.passes` (how many passes considered the pod) and
`nodeless.outcome`. The outcome is one of:

- `running`, `failed` or `deleted`: what became of the pod;
- `waiting`: the pod did not run within 20 minutes, and the span's error says what it is waiting for;
- `stopped`: the controller stopped.

### Limits

nodeless traces at most 500 pods at a time, 50 of them of one workload, with at most 16 steps for each pod and 512 characters for each text. It queues at most 8192 spans. Pods beyond these
limits have no trace; use a sampler if you want to control which pods are traced. If the collector is down, slow, or answers with errors, spans are lost and the controller logs one line. When
the controller stops, it takes up to 3 s to send the spans that are still queued.

### Configuration

| Variable | Supported values |
| --- | --- |
| `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | the collector; if empty, there are no traces |
| `OTEL_EXPORTER_OTLP_PROTOCOL` | only `http/protobuf` |
| `OTEL_EXPORTER_OTLP_HEADERS`, `_CERTIFICATE`, `_CLIENT_KEY`, `_CLIENT_CERTIFICATE`, `_COMPRESSION`, `_TIMEOUT` | as OpenTelemetry specifies |
| `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | by default `nodeless`, with `service.version`, `service.instance.id` (the pod) and `k8s.cluster.name` |
| `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` | by default all pods, within the limits above |
| `OTEL_BSP_MAX_QUEUE_SIZE` and other variables that start with `OTEL_BSP_` or `OTEL_SPAN_` | as OpenTelemetry specifies, with the defaults above |
| `OTEL_TRACES_EXPORTER=none`, `OTEL_SDK_DISABLED=true` | no traces |

[Decision 29](decisions/0029-one-trace-for-each-pod.md) explains why each trace belongs to one pod.
"""


def main() -> None:
    """Write what has changed."""
    for file, text in files():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
