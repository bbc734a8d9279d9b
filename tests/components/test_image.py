"""The controller's image: what its Dockerfile says, and its steps carried out without Docker."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from infra.image import LOCK, SBOM, bill_of_materials, controller_version, pins
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
    assert copies == [
        "--from=build /opt/nodeless /opt/nodeless",
        "controller/sbom.cdx.json /opt/nodeless/sbom.cdx.json",
    ]
    assert not [rest for name, rest in stages()[-1] if name == "RUN"]


def test_it_runs_without_root_and_without_a_shell() -> None:
    final = dict(stages()[-1])
    assert final["USER"] == f"{USER}:{USER}"
    assert json.loads(final["ENTRYPOINT"]) == ["nodeless"]
    assert json.loads(final["CMD"]) == ["run"]
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


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, ROOT / "controller" / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_labels_say_what_is_inside() -> None:
    (labels,) = [rest for name, rest in stages()[-1] if name == "LABEL"]
    named = dict(part.split("=", 1) for part in shlex.split(labels))
    prefix = "org.opencontainers.image."
    assert {key.removeprefix(prefix) for key in named} == {
        "title",
        "description",
        "licenses",
        "version",
        "revision",
        "created",
    }
    arguments = dict(rest.split("=", 1) for name, rest in stages()[-1] if name == "ARG")
    assert arguments["VERSION"] == controller_version()


def test_the_bill_of_materials_names_what_the_lock_pins() -> None:
    document = json.loads(SBOM.read_text())
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "nodeless")
    assert {f"{component['name']}=={component['version']}" for component in document["components"]} == {
        f"{pin.name}=={pin.version}" for pin in pins(LOCK.read_text())
    }
    assert SBOM.read_text() == bill_of_materials(LOCK.read_text(), controller_version())


def test_a_pin_without_a_hash_is_refused() -> None:
    with pytest.raises(ValueError, match="boto3 is pinned without a hash"):
        bill_of_materials("boto3==1.44.0\n", "0.1.0")


@contextmanager
def probed(status: int) -> Iterator[int]:
    """The port of a server that answers every request with this status."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (500, False)])
def test_the_health_check_asks_the_controller(status: int, healthy: bool) -> None:
    (check,) = [rest for name, rest in stages()[-1] if name == "HEALTHCHECK"]
    python, *arguments = json.loads(check.partition("CMD ")[2])
    assert python == "python"
    with probed(status) as port:
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "HEALTH_PROBE_PORT": str(port)},
            capture_output=True,
            check=False,
        )
    assert (done.returncode == 0) == healthy


@dataclass(frozen=True, slots=True)
class Built:
    """What the build stage leaves: the Python that built, and the environment that it made."""

    base: Path
    made: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The build stage carried out in its order: folders instead of layers, a fresh Python as base."""
    folder = tmp_path_factory.mktemp("image")
    base, made, source = folder / "base", folder / "opt" / "nodeless", folder / "src"
    source.mkdir()
    subprocess.run([sys.executable, "-m", "venv", base], check=True)
    foreign = ("PYTHON", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment["PATH"] = f"{base / 'bin'}:/usr/bin:/bin"
    for name, rest in stages()[1][1:]:
        text = rest.replace("/opt/nodeless", str(made))
        if name == "ENV":
            environment |= dict(part.split("=", 1) for part in shlex.split(text))
        elif name == "COPY":
            *paths, target = text.split()
            copy(paths, source / target)
        elif name == "RUN":
            subprocess.run(["/bin/sh", "-c", text], cwd=source, env=environment, check=True)
    return Built(base, made)


@pytest.mark.large
def test_the_build_steps_make_an_environment_whose_entry_point_runs(built: Built) -> None:
    entry = json.loads(dict(stages()[-1])["ENTRYPOINT"])
    done = subprocess.run(
        [built.made / "bin" / entry[0], "version"],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == controller_version()
    packages = built.made.glob("lib/python*/site-packages/*.dist-info")
    installed = {path.name.partition("-")[0] for path in packages}
    assert "nodeless_provisioner" in installed
    assert not {"uv", "hatchling", "pip"} & installed, "what builds stays behind"


@pytest.mark.large
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_every_dependency_has_a_wheel_for_the_architecture(architecture: str, built: Built) -> None:
    """Without one, the slim base would have to compile."""
    (base,) = [rest.partition("=")[2] for name, rest in stages()[0] if rest.startswith("RUN_BASE=")]
    subprocess.run(
        [
            *(built.base / "bin" / "uv", "pip", "install", "--quiet", "--dry-run", "--require-hashes"),
            *("--only-binary", ":all:", "--python-platform", f"{architecture}-unknown-linux-gnu"),
            *("--python-version", base.partition(":")[2].partition("-")[0]),
            *("--target", built.base / architecture, "-r", LOCK),
        ],
        check=True,
    )


def copy(paths: list[str], target: Path) -> None:
    """Like COPY: folders are copied by what is in them."""
    for path in paths:
        if (ROOT / path).is_dir():
            shutil.copytree(
                ROOT / path,
                target,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
            )
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, target)
