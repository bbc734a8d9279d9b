"""One `-o` for all commands: the same words everywhere, and documents that say what they are."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import app
from tests.api.manifests import node_template
from tests.controllers.planning import EXAMPLES, saved_events

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: shop, front
spec:
  weight: 101
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - key: karpenter.sh/capacity-type
        operator: In
        values: [spot, on-demnd]
"""
PROBLEM = {"name": "empty", "pools": [], "pods": [], "catalogue": []}


def nodeless(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def pool(tmp_path):
    path = tmp_path / "100%.yaml"
    path.write_text(POOL)
    return path


COMMANDS = {
    "PlanReport": ("plan", EXAMPLES),
    "Overview": ("top", EXAMPLES),
    "Explanation": ("why", "deploy/web", EXAMPLES),
    "DisruptionWindows": ("windows", EXAMPLES / "pools.yaml"),
    "ValidationReport": ("validate", EXAMPLES),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_json_and_yaml_are_one_document_that_begins_with_what_it_is(kind):
    as_json = json.loads(nodeless(*COMMANDS[kind], "-o", "json").stdout)
    as_yaml = yaml.safe_load(nodeless(*COMMANDS[kind], "--output", "yaml").stdout)

    assert list(as_json.items())[:2] == [("apiVersion", "cli.nodeless.dev/v1"), ("kind", kind)]
    assert as_yaml == as_json
    assert len(as_json) > 2


@pytest.mark.parametrize("name", ["plan", "top", "why"])
def test_json_has_its_short_form(name):
    command = next(command for command in COMMANDS.values() if command[0] == name)
    assert json.loads(nodeless(*command, "--json").stdout)["apiVersion"] == "cli.nodeless.dev/v1"
    refused = nodeless(*command, "--json", "-o", "yaml")
    assert refused.exit_code == 2
    assert refused.stderr == "nodeless: --json and --output yaml exclude each other; hint: give one of them\n"


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("plan", "table, wide, json, yaml, html, github or sarif"),
        ("top", "table, wide, json or yaml"),
        ("why", "table, json or yaml"),
        ("windows", "table, json or yaml"),
        ("validate", "table, json, yaml, github or sarif"),
    ],
)
def test_another_word_is_refused_with_those_that_there_are(name, formats):
    command = next(command for command in COMMANDS.values() if command[0] == name)
    refused = nodeless(*command, "-o", "xml")
    assert refused.exit_code == 2
    assert refused.stderr == f"nodeless: --output 'xml' is not known; hint: {formats}\n"


@pytest.mark.parametrize("kind", COMMANDS)
def test_the_usual_form_goes_by_two_names(kind):
    shown = [nodeless(*COMMANDS[kind], "-o", name).stdout for name in ("table", "text")]
    assert shown[0] == shown[1] == nodeless(*COMMANDS[kind]).stdout
    assert shown[0]


@pytest.mark.parametrize(
    ("arguments", "form", "forms"),
    [
        (("top", EXAMPLES), "sarif", "table, wide, json or yaml"),
        (("why", "deploy/web", EXAMPLES), "html", "table, json or yaml"),
        (("validate", EXAMPLES), "wide", "table, json, yaml, github or sarif"),
        (("convert", EXAMPLES), "table", "yaml, json, github or sarif"),
        (("advise", EXAMPLES), "github", "table, json or yaml"),
        (("windows", EXAMPLES / "pools.yaml"), "wide", "table, json or yaml"),
    ],
)
def test_a_form_that_a_command_has_not_is_refused_with_those_that_it_has(arguments, form, forms):
    refused = nodeless(*arguments, "-o", form)
    assert refused.exit_code == 2
    assert refused.stderr == f"nodeless: this command has no --output {form}; hint: it has {forms}\n"


def test_a_page_goes_to_stdout_or_to_its_file(tmp_path):
    path = tmp_path / "plan.html"
    shown = nodeless("plan", EXAMPLES, "-o", "html")
    written = nodeless("plan", EXAMPLES, "-o", "html", "--html", path)

    assert (shown.exit_code, written.exit_code) == (1, 1)
    assert shown.stdout.startswith("<!doctype html>")
    assert path.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("begin", "start"),
    [
        ("2026-12-24T18:00", "2026-12-24T18:00:00+01:00"),
        ("2026-12-24", "2026-12-24T00:00:00+01:00"),
        ("2026-12-24T18:00+00:00", "2026-12-24T19:00:00+01:00"),
    ],
)
def test_windows_begin_when_they_are_asked_about(begin, start):
    told = nodeless(
        "windows", EXAMPLES / "pools.yaml", "--from", begin, "--timezone", "Europe/Berlin", "-o", "json"
    )
    pools = json.loads(told.stdout)["pools"]
    assert {windows[0]["start"] for reasons in pools.values() for windows in reasons.values()} == {start}


@pytest.mark.parametrize("begin", ["christmas", "2026-13-01", "9999-12-31T23:59"])
def test_windows_refuse_what_is_no_time(begin):
    refused = nodeless("windows", EXAMPLES / "pools.yaml", "--from", begin, "--days", "366")
    assert refused.exit_code == 2
    assert f"--from '{begin}' is not a time; hint: write it as 2026-12-24T18:00" in refused.stderr


WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: many
  template: {spec: {containers: []}}
"""


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_faults_of_what_is_planned_are_annotations_too(pool, tmp_path, command):
    """Drift reads them on top of a cluster that is saved."""
    pool.write_text(POOL.replace("shop, front", "shop") + "---\n" + WEB)
    arguments = [command, pool, "-o", "github"]
    if command == "drift":
        arguments += ["--snapshot", saved_events(tmp_path)]
    result = nodeless(*arguments)

    assert result.exit_code == 2, result.output
    file = str(pool).replace("%", "%25")
    weight, replicas = result.stdout.splitlines()
    assert weight.startswith(
        f"::error file={file},line=6,col=11,title=OutOfRange::NodePool/shop: spec.weight: 101"
    )
    assert replicas.startswith(f"::error file={file},line=19,col=13,title=InvalidObject::Deployment/web: ")
    assert result.stderr.endswith("nodeless: 2 faults in the manifests; hint: see stdout\n")


def test_faults_of_what_is_migrated_are_annotations_too(tmp_path):
    path = tmp_path / "objects.yaml"
    path.write_text("kind: [\n---\n" + WEB)
    result = nodeless("migrate", path, "-o", "github")

    assert result.exit_code == 2, result.output
    assert result.stdout.startswith(f"::error file={path},line=2,col=1,title=InvalidYaml::not YAML: ")
    assert result.stderr.endswith("nodeless: 1 fault in the input; hint: see stdout\n")


def test_what_strict_refuses_is_an_annotation_too(tmp_path):
    path = tmp_path / "quota.yaml"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "shop"}, "spec": {}}
    path.write_text(yaml.safe_dump(quota))
    refused = nodeless("plan", EXAMPLES, path, "--strict", "-o", "github")

    assert refused.exit_code == 2
    assert refused.stdout == (
        f"::error file={path},line=1,col=1,title=KindNotRead::ResourceQuota/shop: ignored: "
        "their limits are not applied [KindNotRead]\n"
    )


def findings(*arguments):
    (run,) = json.loads(nodeless(*arguments, "-o", "sarif").stdout)["runs"]
    return run["results"], {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}


def test_pods_without_a_place_are_findings_of_a_plan_where_their_workload_is():
    results, rules = findings("plan", EXAMPLES)

    (result,) = [each for each in results if "model-server" in each["message"]["text"]]
    location = result["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("model-server.yaml")
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "Deployment/model-server"
    assert "2 pods of shop/model-server (Deployment) not placed: " in result["message"]["text"]
    assert "hint: " in result["message"]["text"]
    assert rules[result["ruleId"]]["helpUri"].endswith(f"/messages.md#{result['ruleId'].lower()}")


def test_what_a_conversion_loses_or_changes_are_findings(tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text(yaml.safe_dump(node_template(launchTemplate="mine")))
    shown = nodeless("convert", path, "-o", "github")

    assert shown.exit_code == 1
    assert shown.stdout.splitlines()
    assert all(line.startswith(("::error file=", "::warning file=")) for line in shown.stdout.splitlines())
    assert "launchTemplate" in shown.stdout
    assert shown.stderr == ""
    results, _ = findings("convert", path)
    assert {result["level"] for result in results} <= {"error", "warning"}


def test_a_page_and_a_document_cannot_both_go_to_stdout():
    refused = nodeless("plan", EXAMPLES, "--html", "-", "-o", "yaml")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("nodeless: --html - and -o yaml both write to stdout")


def test_faults_are_annotations_for_a_workflow_on_github(pool):
    result = nodeless("validate", "-o", "github", pool)

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    file = str(pool).replace("%", "%25")
    weight = next(line for line in lines if "spec.weight" in line)
    place = f"file={file},line=6,col=11,endLine=6,endColumn=14"
    assert weight.startswith(f"::error {place},title=NodePool/shop%2C front%3A OutOfRange::spec.weight: 101 ")
    assert all(line.startswith(("::error ", "::warning ")) for line in lines)


def test_what_may_be_wrong_is_an_annotation_of_its_own_level(pool):
    pool.write_text(POOL.replace("weight: 101", "weight: 10").replace("shop, front", "shop"))
    result = nodeless("validate", "-o", "github", pool)

    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    assert line.startswith("::warning ")
    assert '::spec.template.spec.requirements[0].values[1]: "on-demnd" is not a known value' in line
