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
    return f"""# Alerts and dashboards

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

## Alerts

| Alert | Severity | After | What to do |
| --- | --- | --- | --- |
{alerts}
"""


def main() -> None:
    """Write what has changed."""
    for file, text in files():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
