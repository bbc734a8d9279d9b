"""A real Prometheus scrapes the real controller: every panel shows something, every alert is evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.observability.__main__ import ROOT
from infra.observability.alerts import ALERTS
from infra.observability.dashboards import PAGES
from localenv.environment import NAMESPACE
from localenv.prometheus import scraping
from tests.environment.user import NODES, User

pytestmark = pytest.mark.environment

#: Counters of what goes wrong have no series before it did.
EMPTY_WHILE_ALL_IS_WELL = {"Reconciliations that failed", "Commands dropped after the wait"}


def test_every_panel_of_the_dashboards_shows_what_the_controller_does(user: User, tmp_path: Path) -> None:
    environment, api = user.environment, user.api
    pods = [api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}") for name in environment.controller_pods()]
    targets = [f"{environment.kubelets.local_address(pod['status']['podIP'])}:8080" for pod in pods]
    alerts = ROOT / "charts" / "nodeless" / "files" / "alerts.yaml"
    with scraping({"karpenter": targets}, tmp_path, rules=alerts) as prometheus:
        # A node that is interrupted, one whose pods are evicted, and one that is empty in the end.
        user.pool(limits={"resources": {"cpu": "100"}}, consolidation={"enabled": True})
        user.deploy("web", cpu="1500m")
        (warned,) = user.runs("web")
        user.deploy("shop", cpu="1500m")
        (deleted,) = user.runs("shop")
        instance = api.get(f"{NODES}/{warned}")["spec"]["providerID"].rpartition("/")[2]
        environment.aws.interrupt(instance, "scheduled-change")
        api.delete(f"{NODES}/{deleted}")
        gone = {f"{NODES}/{name}" for name in (warned, deleted)}
        api.wait(lambda: not any(map(api.find, gone)), timeout=120, what=f"{gone} to go")
        for name in ("web", "shop"):
            user.runs(name, timeout=120)
            path = f"/apis/apps/v1/namespaces/{user.namespace}/deployments/{name}"
            api.patch(path, {"spec": {"replicas": 0}})
        api.wait(lambda: not user.nodes(), timeout=120, what="empty nodes to go")

        def empty() -> list[str]:
            return [
                f"{page.name}: {panel.title}: {query.expression}"
                for page in PAGES
                for panel in page.panels
                if panel.title not in EMPTY_WHILE_ALL_IS_WELL
                for query in panel.queries
                if not prometheus.query(_shown(query.of_job))
            ]

        api.wait(empty, lambda left: not left, timeout=60, what="every panel to show something")
        unwell = {rule["name"]: rule["lastError"] for rule in prometheus.rules() if rule["health"] != "ok"}
        assert not unwell
        assert len(prometheus.rules()) == len(ALERTS)
        firing = {series["metric"]["alertname"] for series in prometheus.query('ALERTS{alertstate="firing"}')}
        assert not firing


def _shown(expression: str) -> str:
    """What Grafana draws of the job, of the last minutes."""
    asked = expression.replace("$__rate_interval", "10m").replace("$job", "karpenter")
    return f"last_over_time(({asked})[10m:2s])"
