"""`pulumi package add` by path and by repository, with and without `uv`, and programs that use what it added.

The engine is real, and so is what makes environments, installs, generates and links: packages of Pulumi's
modules, behind language hosts of the local environment where Pulumi's own are not on PATH. The addresses are
those that the docs tell users to type; `localenv.code_host` answers at them, with a repository made of this
checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from infra.release import sdks
from infra.release.settings import read_settings
from localenv.aws import LocalAws
from localenv.binaries import language_hosts, pulumi_engine
from localenv.code_host import CODE, PLUGINS, CodeHost
from localenv.pulumi.aws.provider import AwsProvider
from localenv.pulumi.project import ROOT
from localenv.pulumi.provider import AttachedProvider

# They need no cluster, but programs that `make programs` builds. Each environment takes pip some seconds.
pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(900)]

ADDRESS = "github.com/nodeless/nodeless/components/plugin"
#: That of these tests: pip there takes what they lend.
INTERPRETER = str(Path(sys.executable).resolve())
#: How the engine names it among its plugins.
PLUGIN = "github.com_nodeless_nodeless.git_components_plugin"
VERSION = read_settings().version
#: Where the engine looks for plugins of providers before it asks get.pulumi.com.
RELEASES = "api.github.com"
#: The rest that is asked is the package index, whose name is this machine's affair.
FOREIGN = re.compile(r"(.*\.)?(github|githubusercontent|pulumi)\.com")
PROGRAM = """
import pulumi
import nodeless_nodeless as nodeless

network = nodeless.Network("net", cluster_name="shop", zone_count=2, cidr="10.9.0.0/16")
pulumi.export("vpc", network.vpc_id)
"""


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=nodeless", "-c", "user.email=nodeless@localhost", "-c", "gc.auto=0"]
    done = subprocess.run(["git", *named, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of what the plugin is made of, with a release, an older one, and a commit since.

    The rest of what is here, two thirds of it, is left out: the engine clones without git.
    """
    folder = tmp_path_factory.mktemp("checkout")
    made_of = ("components", "controller", "README.md", "LICENSE", "pyproject.toml")
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *made_of)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for subject, tag in (("Before", "v0.0.9"), ("Release", f"v{VERSION}"), ("Since", None)):
        (folder / "subject").write_text(subject)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", subject)
        if tag:
            git(folder, "tag", tag)
    return folder


@pytest.fixture(scope="module")
def code_host(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeHost]:
    with CodeHost(tmp_path_factory.mktemp("code-host")) as host:
        serve(checkout, host)
        yield host


def serve(checkout: Path, host: CodeHost, *further: str) -> None:
    served = host.repositories / "nodeless" / "nodeless.git"
    git(checkout, "clone", "--quiet", "--bare", *further, str(checkout), str(served))


@dataclass(frozen=True)
class Shared:
    """What outlives a test, as on a user's machine.

    Attributes:
        home: The engine's, with the plugins that it installed.
        environments: Virtual environments of programs, by the name of their toolchain.
        hosts: A folder with the language hosts alone.
    """

    home: Path
    environments: Path
    hosts: Path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    folder = tmp_path_factory.mktemp("machine")
    found = sdks.hosts(language_hosts())
    hosts = sdks._link_hosts(found, folder / "hosts")
    executor = found["python"].parent / "pulumi-language-python-exec"
    (hosts / executor.name).symlink_to(executor)
    return Shared(folder / "home", folder / "environments", hosts)


class Project:
    """A user's project in Python, on the machine that is `shared`.

    Where packages are `lent`, pip finds what plugin and program need besides ours in the environment of these
    tests: otherwise it unpacks 300 MB, which takes it half a minute of processor.
    """

    def __init__(self, folder: Path, shared: Shared, host: CodeHost, *, uv: bool, lent: bool = False) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self._shared, self._host, self._uv, self._lent = shared, host, uv, lent
        options = {"toolchain": "uv" if uv else "pip", "virtualenv": str(shared.environments / str(uv))}
        settings = {"name": "added", "runtime": {"name": "python", "options": options}}
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
        if uv:
            (self.folder / "pyproject.toml").write_text(
                '[project]\nname = "added"\nversion = "0"\nrequires-python = ">=3.11"\n'
                'dependencies = ["pulumi>=3.272,<4"]\n'
            )
        else:
            (self.folder / "requirements.txt").write_text("pulumi>=3.272,<4\n")
        (self.folder / "__main__.py").write_text(PROGRAM)

    def pulumi(self, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        folders = sdks._folders_of_programs(uv_program() if self._uv else None)
        home = self._shared.home
        home.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            **sdks._environment(home),
            **self._host.environment(),
            "PATH": os.pathsep.join([str(self._shared.hosts), *folders]),
            "PULUMI_BACKEND_URL": self.folder.as_uri(),
            "PIP_NO_COMPILE": "1",
            "PULUMI_PYTHON_CMD": INTERPRETER,
            "UV_PYTHON": INTERPRETER,
            **variables,
        }
        for ours in ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT"):
            environment.pop(ours, None)
        if self._lent:
            environment["PYTHONPATH"] = sysconfig.get_path("purelib")
        found = shutil.which("uv", path=environment["PATH"])
        assert (found is not None) is self._uv
        return subprocess.run(
            [pulumi_engine(), *arguments, "--non-interactive"],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def add(self, source: str | Path) -> None:
        done = self.pulumi("package", "add", source)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Added package nodeless/nodeless" in done.stderr

    def refused(self, source: str) -> str:
        done = self.pulumi("package", "add", source)
        assert done.returncode != 0
        assert not (self.folder / "sdks").exists()
        assert "packages" not in self.settings
        return done.stderr

    @property
    def settings(self) -> dict[str, object]:
        loaded: dict[str, object] = yaml.safe_load((self.folder / "Pulumi.yaml").read_text())
        return loaded

    @property
    def plugin(self) -> dict[str, object]:
        """What the SDK says of the plugin that it needs."""
        sdk = self.folder / "sdks" / "nodeless-nodeless" / "nodeless_nodeless"
        loaded: dict[str, object] = json.loads((sdk / "pulumi-plugin.json").read_text())
        return loaded

    def operate(self, operation: str, aws: LocalAws, *further: str) -> str:
        """Run the program against the local AWS; what the engine prints."""
        provider = AwsProvider(aws)
        served = AttachedProvider(provider)
        try:
            done = self.pulumi(
                *(operation, "--stack", "local", *further),
                PULUMI_DEBUG_PROVIDERS=f"aws:{served.port}",
                AWS_REGION="us-east-1",
            )
        finally:
            served.stop()
            provider.close()
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def uv_program() -> Path:
    """The uv that `make install` has made, or that on PATH."""
    found = shutil.which("uv") or f"{sys.prefix}.uv/bin/uv"
    assert Path(found).exists()
    return Path(found)


@pytest.fixture(params=[False, True], ids=["without uv", "with uv"])
def project(request: pytest.FixtureRequest, tmp_path: Path, shared: Shared, code_host: CodeHost) -> Project:
    code_host.asked.clear()
    code_host.read.clear()
    return Project(tmp_path, shared, code_host, uv=request.param)


@pytest.fixture(params=[False, True], ids=["without uv", "with uv"])
def lent(request: pytest.FixtureRequest, tmp_path: Path, shared: Shared, code_host: CodeHost) -> Project:
    """The same, where pip finds what others have made."""
    code_host.asked.clear()
    return Project(tmp_path, shared, code_host, uv=request.param, lent=True)


def others(host: CodeHost) -> set[str]:
    """Hosts of GitHub's and Pulumi's beside those that the engine asks for repositories and plugins."""
    return {each for each in host.asked if FOREIGN.fullmatch(each)} - {CODE, PLUGINS, RELEASES}


@pytest.mark.drawn("ways to add the package")
def test_by_path_the_checkout_is_added_and_used(
    project: Project, checkout: Path, code_host: CodeHost, aws: LocalAws
) -> None:
    project.add(checkout / "components" / "plugin")

    assert project.settings["packages"] == {"nodeless": str(checkout / "components" / "plugin")}
    assert project.plugin == {"resource": True, "name": "nodeless", "version": VERSION}
    assert not [path for path in code_host.read if path.startswith("/nodeless/")]
    assert not others(code_host)
    project.pulumi("stack", "init", "local")
    project.operate("up", aws, "--yes", "--skip-preview")
    [vpc] = [vpc for vpc in aws.client("ec2").describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")]
    assert vpc["CidrBlock"] == "10.9.0.0/16"
    assert project.pulumi("stack", "output", "vpc").stdout.strip() == vpc["VpcId"]


@pytest.mark.drawn("ways to add the package")
def test_by_repository_the_latest_release_is_added_and_used(
    lent: Project, shared: Shared, code_host: CodeHost, aws: LocalAws
) -> None:
    lent.add(ADDRESS)

    # The engine writes the version beside the address where it had the plugin before; the SDK has it always.
    assert lent.settings["packages"] in ({"nodeless": ADDRESS}, {"nodeless": f"{ADDRESS}@{VERSION}"})
    assert lent.plugin["version"] == VERSION
    assert lent.plugin["server"] == f"git://{ADDRESS}"
    installed = shared.home / "plugins" / f"resource-{PLUGIN}-v{VERSION}"
    assert (installed / "subject").read_text() == "Release"
    assert not others(code_host)
    lent.pulumi("stack", "init", "local")
    assert "nodeless:index:Network" in lent.operate("preview", aws)


@pytest.mark.drawn("ways to add the package")
@pytest.mark.parametrize("lent", [False], indirect=True, ids=["without uv"])
def test_by_repository_a_version_is_the_tag_of_that_release(lent: Project) -> None:
    lent.add(f"{ADDRESS}@{VERSION}")

    assert lent.settings["packages"] == {"nodeless": f"{ADDRESS}@{VERSION}"}
    assert lent.plugin["version"] == VERSION


@pytest.mark.drawn("ways to add the package")
def test_by_repository_a_commit_is_added_and_used(
    tmp_path: Path, shared: Shared, code_host: CodeHost, checkout: Path, aws: LocalAws
) -> None:
    commit = git(checkout, "rev-parse", "main")
    project = Project(tmp_path, shared, code_host, uv=False, lent=True)

    project.add(f"{ADDRESS}@{commit}")

    assert project.settings["packages"] == {"nodeless": f"{ADDRESS}@{commit}"}
    installed = shared.home / "plugins" / f"resource-{PLUGIN}-v0.0.0-x{commit}"
    assert (installed / "subject").read_text() == "Since"
    project.pulumi("stack", "init", "local")
    assert "nodeless:index:Network" in project.operate("preview", aws)


@pytest.mark.drawn("ways to add the package")
def test_by_repository_without_a_release_the_newest_commit_is_added(
    tmp_path: Path, shared: Shared, checkout: Path
) -> None:
    commit = git(checkout, "rev-parse", "main")
    with CodeHost(tmp_path / "code-host") as host:
        serve(checkout, host, "--no-tags")
        project = Project(tmp_path, shared, host, uv=False, lent=True)

        project.add(ADDRESS)

    assert project.settings["packages"] == {"nodeless": f"{ADDRESS}@{commit}"}
    assert (shared.home / "plugins" / f"resource-{PLUGIN}-v0.0.0-x{commit}" / "subject").exists()


@pytest.mark.drawn
@pytest.mark.parametrize("project", [False], indirect=True, ids=["without uv"])
@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("9.9.9", "couldn't find remote ref: refs/tags/v9.9.9"),
        ("main", "VERSION must be valid semver or git commit hash: main"),
        ("badc0de", "reference not found"),
    ],
)
def test_by_repository_what_is_not_there_is_refused_by_its_name(
    project: Project, version: str, told: str
) -> None:
    assert told in project.refused(f"{ADDRESS}@{version}")


def test_the_docs_tell_the_addresses_that_are_tried_here() -> None:
    page = (ROOT / "components" / "README.md").read_text()
    for told in (f"pulumi package add {ADDRESS}\n", "pulumi package add CHECKOUT/components/plugin\n"):
        assert told in page
    assert "VERSION must be valid semver or git commit hash: main" in page
    assert "couldn't find remote ref: refs/tags/" in page
