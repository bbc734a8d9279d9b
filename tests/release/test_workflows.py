"""The workflows: what linters find, least rights, actions by commit, and nothing published by accident."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.release import dry_run, publishing
from infra.release.settings import ROOT, read_settings
from localenv.binaries import actionlint

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yaml"))
ACTION = re.compile(r"uses: (?P<action>\S+?)(?:@(?P<revision>\S+))?(?: # (?P<comment>.*))?$", re.MULTILINE)


def ids(path: Path) -> str:
    return path.name


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return document


JOBS: dict[str, dict[str, Any]] = read("release.yaml")["jobs"]
PUBLISHING = {name: job for name, job in JOBS.items() if "environment" in job}


@pytest.mark.cluster  # it needs no cluster, but a program that `make programs` builds
def test_actionlint_finds_nothing() -> None:
    done = subprocess.run(
        [actionlint(), "-shellcheck=", "-pyflakes=", *WORKFLOWS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.cluster
def test_actionlint_finds_a_fault(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((FOLDER / "release.yaml").read_text().replace("needs: tag", "needs: tags"))
    done = subprocess.run([actionlint(), "-shellcheck=", wrong], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert '"tags"' in done.stdout


def test_zizmor_finds_no_weakness() -> None:
    command = [Path(sys.executable).parent / "zizmor", "--offline", "--quiet", "--no-progress", FOLDER]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=ids)
def test_every_action_is_a_commit_with_the_version_that_it_is(workflow: Path) -> None:
    found = [*ACTION.finditer(workflow.read_text())]
    assert found
    for match in found:
        if match["action"].startswith("./"):
            continue
        assert re.fullmatch(r"[0-9a-f]{40}", match["revision"]), match[0]
        assert re.fullmatch(r"v\d+\.\d+\.\d+", match["comment"]), match[0]


def test_one_action_has_one_commit_in_all_workflows() -> None:
    revisions: dict[str, set[str]] = {}
    for workflow in WORKFLOWS:
        for match in ACTION.finditer(workflow.read_text()):
            revisions.setdefault(match["action"], set()).add(f"{match['revision']} {match['comment']}")
    assert {action: found for action, found in revisions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=ids)
def test_a_workflow_runs_targets_of_the_makefile_and_nothing_else(workflow: Path) -> None:
    jobs = read(workflow.name)["jobs"].values()
    commands = [step["run"] for job in jobs for step in job.get("steps", ()) if "run" in step]
    assert [command for command in commands if not re.fullmatch(r"make [^\n;&|]+", command.strip())] == []


def test_only_a_tag_of_a_version_starts_a_release() -> None:
    # In YAML 1.1 the key `on` is a boolean.
    assert read("release.yaml")[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
    assert read("release.yaml")["permissions"] == {}


def test_nothing_is_published_before_the_tests_and_the_dry_run_went_well() -> None:
    assert set(PUBLISHING) == {"pypi", "image", "charts", "github"}

    def behind(job: str) -> set[str]:
        needs = JOBS[job].get("needs", [])
        direct = {needs} if isinstance(needs, str) else set(needs)
        return direct.union(*map(behind, direct)) if direct else direct

    for name in PUBLISHING:
        assert behind(name) >= {"tag", "test", "dry-run"}, name
    assert behind("github") >= {"pypi", "image", "charts"}


def test_a_job_has_the_rights_that_it_needs_and_no_more() -> None:
    rights = {name: job["permissions"] for name, job in JOBS.items()}
    reading = {"contents": "read"}
    assert rights == {
        "tag": reading,
        "test": reading,
        "dry-run": reading,
        "pypi": {"id-token": "write"},
        "image": {**reading, "id-token": "write", "packages": "write"},
        "charts": {**reading, "id-token": "write", "packages": "write"},
        "github": {"attestations": "write", "contents": "write", "id-token": "write"},
    }


def test_a_release_needs_no_secret() -> None:
    assert "secrets." not in (FOLDER / "release.yaml").read_text()


def test_what_is_published_is_all_that_can_be() -> None:
    steps = [step for job in PUBLISHING.values() for step in job["steps"]]
    told = {match[1] for step in steps if (match := re.search(r"WHAT=(\w+)", step.get("run", "")))}
    assert told == publishing.PARTS.keys()


def test_the_workflow_is_logged_in_to_the_registry_of_image_and_charts() -> None:
    settings = read_settings()
    hosts = {address.partition("/")[0] for address in (settings.image, settings.charts)}
    logins = {
        step["with"]["registry"]
        for job in JOBS.values()
        for step in job.get("steps", ())
        if step.get("uses", "").startswith("docker/login-action")
    }
    assert logins == hosts, "hint: the registry of docker/login-action in release.yaml"


def test_steps_that_the_workflow_does_not_let_be_skipped_exist() -> None:
    (command,) = [step["run"] for step in JOBS["dry-run"]["steps"] if "run" in step]
    (names,) = re.findall(r"--require (\S+?)\"", command)
    steps = dry_run.step_names()
    for name in names.split(","):
        assert [step for step in steps if step == name or step.startswith(f"{name}-")], name
