"""Alerts and dashboards speak of metrics that there are, and what is committed is what the code makes."""

import json
import re

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from infra.observability.__main__ import ROOT, files
from infra.observability.alerts import ALERTS, rules_file
from infra.observability.dashboards import PAGES, dashboard_file
from nodeless.operator.cluster_metrics import ClusterMetrics
from tests.disruption.world import a_node_pool, a_provisioner, cluster, node_of

DASHBOARDS = ROOT / "charts" / "nodeless" / "files" / "dashboards"
METRIC = re.compile(r"\b(?:karpenter|nodeless|controller_runtime|workqueue|rest_client|leader_election)_\w+")
LABEL = re.compile(r"\{\{\s*\$labels\.(\w+)")
BY = re.compile(r"\bby \(([^)]*)\)")


def documented():
    """Every metric of docs/metrics.md, those of a histogram or summary by all their names."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+)? ?\|?", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE)
    endings = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}
    return {f"{name}{ending}" for name, kind in rows for ending in endings.get(kind, ("",))}


def expressions():
    yield from ((alert.name, alert.expression) for alert in ALERTS)
    for page in PAGES:
        yield from (
            (f"{page.name}: {panel.title}", query.expression)
            for panel in page.panels
            for query in panel.queries
        )


@pytest.mark.parametrize("file", [file for file, _ in files()], ids=lambda file: file.name)
def test_what_is_committed_is_what_the_code_makes(file):
    hint = "run: .venv/bin/python -m infra.observability"
    assert file.read_text() == dict(files())[file], hint


@pytest.mark.parametrize(("what", "expression"), [*expressions()], ids=lambda part: part[:60])
def test_an_expression_asks_for_metrics_that_there_are(what, expression):
    assert set(METRIC.findall(expression)) <= documented()


@pytest.mark.parametrize(("what", "expression"), [*expressions()], ids=lambda part: part[:60])
def test_an_expression_groups_by_no_label_that_prometheus_sets_of_what_it_scrapes(what, expression):
    """With a ServiceMonitor these name Service and pod; a label of the metric becomes `exported_...`."""
    kept = {label.strip() for labels in BY.findall(expression) for label in labels.split(",")}
    assert kept.isdisjoint({"namespace", "service", "pod", "container", "endpoint", "node", "job"})


@pytest.mark.parametrize("pool", [a_provisioner(), a_node_pool()], ids=lambda pool: pool.key)
def test_panels_of_nodes_name_their_pool_whatever_its_generation(pool):
    """By the label that has the pool of either; `nodepool` says nothing of the nodes of a Provisioner."""
    metrics, snapshot = ClusterMetrics(), cluster(pool, node_of(pool, "n", "large"))
    metrics.watch(lambda: snapshot)
    (node,) = {line for line in metrics.text().splitlines() if "allocatable" in line and '"cpu"' in line}
    by = [labels for _, text in expressions() if "nodes_allocatable" in text for labels in BY.findall(text)]
    named = {label.strip() for labels in by for label in labels.split(",")} & {"nodepool", "provisioner"}
    assert named
    assert all(f'{label}="{pool.name}"' in node for label in named)


def test_each_alert_has_a_name_of_its_own_and_says_what_to_do():
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    for alert in ALERTS:
        assert re.fullmatch(r"Nodeless([A-Z][a-z]+)+", alert.name)
        assert len(alert.action) > 60


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_summary_names_labels_that_the_expression_keeps(alert):
    kept = {label.strip() for labels in BY.findall(alert.expression) for label in labels.split(",")}
    assert set(LABEL.findall(alert.summary)) <= kept


def as_grafana_reads_it(document):
    """A dashboard, read into the types of Grafana's schema and written again: what they lack is lost."""
    register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(document)))


@pytest.mark.parametrize("file", sorted(DASHBOARDS.glob("*.json")), ids=lambda file: file.stem)
def test_grafanas_schema_has_every_field_of_a_dashboard(file):
    document = json.loads(file.read_text())
    assert as_grafana_reads_it(document) == document


OF_A_PANEL = [(), ("options",), ("fieldConfig", "defaults", "custom"), ("targets", 0)]


@pytest.mark.parametrize("where", [("templating",), *(("panels", 6, *part) for part in OF_A_PANEL)])
def test_a_field_that_grafanas_schema_does_not_have_is_noticed(where):
    document = json.loads(dashboard_file(PAGES[0]))
    part = document
    for step in where:
        part = part[step]
    part["colour"] = "red"
    assert as_grafana_reads_it(document) != document


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_dashboard_has_panels_side_by_side_on_the_grid_each_for_the_job_that_is_chosen(page):
    document = json.loads(dashboard_file(page))
    assert (document["uid"], document["title"]) == (page.name, page.title)
    assert [variable["name"] for variable in document["templating"]["list"]] == ["datasource", "job"]
    taken = set()
    for panel in document["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    identifiers = [panel["id"] for panel in document["panels"]]
    assert len(set(identifiers)) == len(identifiers)
    targets = [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
    for expression in targets:
        names = METRIC.findall(expression)
        assert expression.count('{job="$job"') >= len(names)


def test_prometheus_reads_the_alerts_as_yaml():
    (group,) = yaml.safe_load(rules_file())["groups"]
    assert [rule["alert"] for rule in group["rules"]] == [alert.name for alert in ALERTS]


def test_the_chart_lets_these_alerts_be_left_out_and_no_others():
    schema = json.loads((ROOT / "charts" / "nodeless" / "values.schema.json").read_text())
    excluded = schema["properties"]["prometheusRule"]["properties"]["exclude"]
    assert excluded["items"]["enum"] == [alert.name for alert in ALERTS]
