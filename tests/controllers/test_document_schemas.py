"""Documents of commands and their schemas: real documents obey theirs, and none changes for its readers."""

import ast
import json
from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

import nodeless.cli
from nodeless.cli.document_schemas import document_schema, kinds
from nodeless.cli.main import app
from nodeless.cli.rule_index import FILE, RULES
from nodeless.model.events import ClaimSeen, NodeSeen, PodSeen, PoolSeen
from tests.controllers.planning import EXAMPLES, saved_events
from tests.controllers.published_schemas import breaks, published
from tests.controllers.test_solve_command import PROBLEM, solve
from tests.scheduling.factories import claim, node, pods, pool, running

MIGRATION = Path(__file__).parents[1] / "migration" / "input"
CORPUS = Path(__file__).parents[1] / "corpus" / "manifests"
WIDE = (EXAMPLES, "--what-if", "scale=deploy/web:40", "--what-if", "without-zone=us-east-1a")
#: A pod of each kind of answer, and nodes.
ASKED = ("deploy/web", "deploy/model-server", "new-1", "new-2")


def run(*arguments, stdin=""):
    result = CliRunner().invoke(app, list(map(str, arguments)), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), arguments
    return result


def closed(schema):
    """The schema without the freedom to have more members: a document of ours has those that are listed."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made["additionalProperties"] = False
    return made


CLOSED = {kind: jsonschema.Draft202012Validator(closed(document_schema(kind))) for kind in kinds()}


def obeys(document):
    faults = [
        f"{fault.json_path}: {fault.message}" for fault in CLOSED[document["kind"]].iter_errors(document)
    ]
    assert faults == []


@pytest.mark.parametrize("kind", kinds())
def test_a_schema_is_one_of_its_dialect(kind):
    schema = document_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == kind


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", EXAMPLES),
        ("plan", EXAMPLES, "--target"),
        ("advise", EXAMPLES),
        ("migrate", MIGRATION),
        ("plan", *WIDE),
        ("plan", EXAMPLES, "--replicas", "max", "--spot-percent", "70"),
        ("plan", EXAMPLES, "--zones", "us-east-1b"),
        ("top", EXAMPLES),
        ("top", *WIDE, "--once", "--sort", "name"),
        *(("why", name, EXAMPLES) for name in ASKED),
        ("windows", EXAMPLES / "pools.yaml"),
        ("windows", EXAMPLES / "pools.yaml", "--days", "2", "--timezone", "Europe/Berlin", "--nodes", "7"),
        ("validate", EXAMPLES),
        ("validate", CORPUS),
    ],
    ids=lambda arguments: " ".join(map(str, (arguments[0], *arguments[2:]))),
)
def test_what_a_command_writes_obeys_its_schema(arguments):
    # As YAML it is the same document: test_output_formats.
    obeys(json.loads(run(*arguments, "-o", "json").stdout))


def test_every_finding_of_validate_obeys_its_schema(tmp_path):
    for code, rule in RULES.items():
        if rule.kind == FILE:
            (tmp_path / f"{code}.yaml").write_text(rule.example)
    obeys(json.loads(run("validate", tmp_path, "-o", "json").stdout))


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*.yaml"))[::8], ids=lambda file: file.stem)
def test_the_plan_of_a_file_of_the_corpus_obeys_its_schema(file):
    text = run("plan", file, EXAMPLES / "pools.yaml", "-o", "json").stdout
    if text:
        obeys(json.loads(text))


def test_a_saved_cluster_obeys_in_every_command(tmp_path):
    here, waiting = pods(2, "1500m")
    own = pool()
    saved = saved_events(
        tmp_path,
        PoolSeen(own),
        ClaimSeen(claim("default-one", provider_id="aws:///z1/i-n1")),
        ClaimSeen(claim("default-starts", provider_id="aws:///z1/i-n3")),
        NodeSeen(node("n1")),
        PodSeen(running(here, "n1")),
        PodSeen(waiting),
    )
    written = {}
    for arguments in (
        ("plan",),
        ("top",),
        ("why", "n1"),
        ("why", waiting.key),
        ("why", own.key),
        ("drift", "--removed", own.key),
    ):
        document = json.loads(run(*arguments, "--snapshot", saved, "-o", "json").stdout)
        obeys(document)
        written[document["kind"]] = document
    assert written["DriftReport"]["drifting"] != []
    assert "pool" in written["Explanation"]


@pytest.mark.parametrize("cpu", ["1", "40"])
def test_the_answer_to_a_packing_problem_obeys(tmp_path, cpu):
    pods = [{"name": "web", "count": 5, "requests": {"cpu": cpu}}]
    obeys(json.loads(solve(tmp_path, {**PROBLEM, "pods": pods}, "-o", "json").stdout))


def test_every_kind_that_is_written_has_a_schema():
    written = set()
    for file in Path(nodeless.cli.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "write_document":
                written.add(ast.literal_eval(call.args[0]))
    assert written == set(kinds())


@pytest.mark.parametrize("kind", published())
def test_a_schema_changes_for_no_reader_within_its_version(kind):
    """Where something was added: `python -m tests.controllers.published_schemas`."""
    assert list(breaks(published()[kind], document_schema(kind))) == []


def test_every_kind_has_been_published():
    assert set(published()) == set(kinds())


def member(schema, *path):
    for name in path:
        schema = schema["properties"][name]
    return schema


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda new: new["properties"].pop("complete"), "$.complete: is gone"),
        (lambda new: new["required"].remove("complete"), "$.complete: was always there"),
        (
            lambda new: member(new, "complete").update(type="string"),
            "$.complete: of type boolean before, now string",
        ),
        (
            lambda new: member(new, "cost", "gap").update(type=["number", "null", "string"]),
            "$.cost.gap: of type",
        ),
        (lambda new: member(new, "notes")["items"].clear(), "$.notes[]: of type string before, now any"),
        (lambda new: member(new, "kind").update(const="Plan"), "$.kind: const"),
        (
            lambda new: member(new, "launches")["items"]["properties"].pop("pool"),
            "$.launches[].pool: is gone",
        ),
    ],
    ids=["gone", "optional", "type", "one type more", "items", "const", "deep"],
)
def test_what_a_reader_would_stumble_over_is_found(change, said):
    old = document_schema("PlanReport")
    new = deepcopy(old)
    change(new)
    assert [fault for fault in breaks(old, new) if fault.startswith(said)] != []


def test_what_is_added_is_no_break():
    old = document_schema("PlanReport")
    new = deepcopy(old)
    new["properties"]["more"] = {"type": "string"}
    new["required"].append("more")
    member(new, "cost", "gap")["type"] = "number"
    assert list(breaks(old, new)) == []


def test_the_command_prints_a_schema_and_names_the_kinds():
    assert run("schema").stdout.split() == kinds()
    assert json.loads(run("schema", "PlanReport").stdout) == document_schema("PlanReport")
    refused = run("schema", "Plan")
    assert (refused.exit_code, "PlanReport" in refused.stderr) == (2, True)
