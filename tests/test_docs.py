"""The documents: links that lead somewhere, commands that exist."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from nodeless.cli.main import ENTRIES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
COMMANDS = {entry.name: entry.load() for entry in ENTRIES}
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CALL = re.compile(r"^ *\$ (?:\S+=\S+ )*nodeless ([^|>\n]*)", re.MULTILINE)
TARGET = re.compile(r"(?:`|\$ |run: )make ([a-z]+(?:-[a-z]+)*)")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
SETTING = re.compile(r"pulumi config set (?:--path )?'?nodeless:(\w+)")


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_link_leads_to_a_file_that_is_there(page: Path) -> None:
    links = [link.replace("\\", "") for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_command_that_a_reader_is_told_to_type_exists_with_its_options(page: Path) -> None:
    for call in CALL.findall(page.read_text()):
        words = shlex.split(call)
        command = COMMANDS.get(words[0])
        assert command is not None, f"nodeless {call}: no such command"
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
        assert unknown == [], f"nodeless {call}"


def test_every_configuration_that_a_reader_is_told_to_set_is_declared() -> None:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    told = {name for page in PAGES for name in SETTING.findall(page.read_text())}
    assert told
    assert told <= set(declared)


@pytest.mark.parametrize("page", [*PAGES, *WORKFLOWS], ids=ids)
def test_every_target_that_is_named_is_in_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(TARGET.findall(page.read_text())) <= targets


def test_a_workflow_runs_each_part_of_the_tests() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yaml").read_text())["jobs"]
    named = {
        step.get("run", "").replace("${{ github.job }}", job) for job in jobs for step in jobs[job]["steps"]
    }
    assert {f"make {part}" for part in ("check", "unit", "cluster", "environment")} <= named


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "AGENTS.md"])
def test_a_contributor_finds_every_file_and_folder_that_is_named(page: str) -> None:
    folders = "controller|components|infra|localenv|bench|tests"
    named = set(re.findall(rf"`((?:{folders})/[\w/.-]+)`", (ROOT / page).read_text()))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
