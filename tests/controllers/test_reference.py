"""The reference pages say what the tables say."""

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import ENTRIES, app
from nodeless.cli.reference import pages

DOCS = Path(__file__).parents[2] / "docs"
PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_tables_make(name):
    assert (DOCS / name).read_text() == PAGES[name], "run `nodeless reference docs`"


def test_the_command_writes_the_pages(tmp_path):
    assert CliRunner().invoke(app, ["reference", str(tmp_path)]).exit_code == 0
    written = (file for file in tmp_path.rglob("*") if file.is_file())
    assert {str(file.relative_to(tmp_path)): file.read_text() for file in written} == PAGES


def test_the_check_names_the_pages_that_are_stale(tmp_path):
    run = CliRunner()
    run.invoke(app, ["reference", str(tmp_path)])
    assert run.invoke(app, ["reference", str(tmp_path), "--check"]).exit_code == 0
    (tmp_path / "cli.md").write_text("old")
    (tmp_path / "api" / "nodepool.md").unlink()
    found = run.invoke(app, ["reference", str(tmp_path), "--check"])
    assert found.exit_code == 1
    assert "cli.md" in found.stderr
    assert "api/nodepool.md" in found.stderr


def field_paths(path, schema):
    """The paths of all fields below a field, and itself."""
    yield path
    for name, below in schema.get("properties", {}).items():
        yield from field_paths(f"{path}.{name}", below)
    for mark, member in (("[]", schema.get("items")), (".*", schema.get("additionalProperties"))):
        if isinstance(member, dict):
            yield from (found for found in field_paths(path + mark, member) if found != path + mark)


@pytest.mark.parametrize(
    "file", sorted((DOCS.parent / "controller" / "crds").glob("*.yaml")), ids=lambda f: f.stem
)
def test_every_field_of_a_kind_is_on_its_page_with_its_meaning(file):
    definition = yaml.safe_load(file.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    text = PAGES[f"api/{definition['spec']['names']['kind'].lower()}.md"]
    wanted = [
        p
        for name in ("spec", "status")
        if name in schema["properties"]
        for p in field_paths(name, schema["properties"][name])
    ]
    assert sorted(re.findall(r"^##+ `(.+)`$", text, re.MULTILINE)) == sorted(wanted)
    assert len(wanted) > 15
    for section in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]:
        heading, facts, meaning, *_ = section.split("\n\n")
        assert facts.startswith("*"), heading
        assert len(meaning.split()) > 1, heading


@pytest.mark.parametrize("kind", ["provisioner", "awsnodetemplate", "nodepool", "ec2nodeclass", "nodeclaim"])
def test_the_manifest_on_a_page_is_valid(kind):
    manifest = re.search(r"```yaml\n(.+?)```", PAGES[f"api/{kind}.md"], re.DOTALL)[1]
    checked = CliRunner().invoke(app, ["validate", "-"], input=manifest)
    assert checked.exit_code == 0, checked.output


def test_every_command_and_option_is_on_the_page():
    text = PAGES["cli.md"]
    for entry in ENTRIES:
        section = text.partition(f"### nodeless {entry.name}\n")[2].partition("\n### ")[0]
        assert section, entry.name
        options = [option for each in entry.load().params for option in each.opts if option.startswith("--")]
        assert [option for option in options if f"{option}" not in section] == [], entry.name
