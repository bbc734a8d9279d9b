"""One `-o` for all commands: the same words everywhere, and documents that say what they are."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import app
from tests.controllers.planning import EXAMPLES

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
        ("plan", "text, wide, json or yaml"),
        ("top", "text, wide, json or yaml"),
        ("why", "text, json or yaml"),
        ("windows", "text, json or yaml"),
        ("validate", "text, json, yaml, github or sarif"),
    ],
)
def test_another_word_is_refused_with_those_that_there_are(name, formats):
    command = next(command for command in COMMANDS.values() if command[0] == name)
    refused = nodeless(*command, "-o", "xml")
    assert refused.exit_code == 2
    assert refused.stderr == f"nodeless: --output 'xml' is not known; hint: {formats}\n"


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
    assert '::spec.template.spec.requirements[0].values[1]: "on-demnd" is no known value' in line
