"""The controller's image: what its Dockerfile says, read as instructions."""

import json
import re
import subprocess
import tomllib

from pulumi_nodeless.deployment import HEALTH_PORT, METRICS_PORT, USER, WEBHOOK_PORT
from tests.components.conftest import ROOT


def stages() -> list[list[tuple[str, str]]]:
    """Instructions of each stage, continuation lines joined; what precedes the first FROM comes first."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "controller" / "Dockerfile").read_text())
    found: list[list[tuple[str, str]]] = [[]]
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            if name == "FROM":
                found.append([])
            found[-1].append((name, rest))
    return found


def test_the_image_is_built_in_two_stages_from_named_bases() -> None:
    arguments, build, final = stages()
    bases = dict(rest.split("=") for name, rest in arguments if name == "ARG")
    assert set(bases) == {"BUILD_BASE", "RUN_BASE"}
    for base in bases.values():
        assert ":" in base
        assert not base.endswith(":latest")
    assert build[0] == ("FROM", "${BUILD_BASE} AS build")
    assert final[0] == ("FROM", "${RUN_BASE}")


def test_only_the_environment_reaches_the_final_stage() -> None:
    copies = [rest for name, rest in stages()[-1] if name in ("COPY", "ADD")]
    assert copies == ["--from=build /opt/nodeless /opt/nodeless"]
    assert not [rest for name, rest in stages()[-1] if name == "RUN"]


def test_it_runs_without_root_and_without_a_shell() -> None:
    final = dict(stages()[-1])
    assert final["USER"] == f"{USER}:{USER}"
    assert json.loads(final["ENTRYPOINT"]) == ["nodeless"]
    assert json.loads(final["CMD"]) == ["run"]
    assert "HEALTHCHECK" not in final, "probes belong to the pod"
    assert {int(port) for port in final["EXPOSE"].split()} == {METRICS_PORT, HEALTH_PORT, WEBHOOK_PORT}


def test_the_entry_point_is_one_that_the_distribution_installs() -> None:
    project = tomllib.loads((ROOT / "controller" / "pyproject.toml").read_text())["project"]
    assert "nodeless" in project["scripts"]
    assert "controller" in project["optional-dependencies"]


def test_every_file_the_build_copies_is_in_a_clone() -> None:
    copied = [rest.split()[:-1] for name, rest in stages()[1] if name == "COPY"]
    for path in (path for paths in copied for path in paths):
        tracked = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "--", path], capture_output=True, text=True, check=True
        )
        assert tracked.stdout, f"{path} is not part of a clone"


def test_the_image_gets_the_dependencies_that_the_tests_run_with() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^([\w.-]+==[\w.]+)", (ROOT / lock).read_text(), re.MULTILINE))

    image = pins("controller/requirements.lock")
    assert image
    assert image <= pins("requirements.lock")
    assert not {pin for pin in image if pin.startswith(("pulumi", "moto", "pytest"))}
