"""SDKs of the components, by the engine and its generators, as `make release-dry-run` makes them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from infra.release import sdks
from infra.release.commands import NotHere
from infra.release.settings import ROOT, ReleaseError, read_settings
from localenv.binaries import HOSTED_LANGUAGES, language_hosts, pulumi_engine

# They need no cluster, but programs that `make programs` builds.
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The SDKs by language."""
    folder = tmp_path_factory.mktemp("sdks")
    hosts = language_hosts()
    return {
        language: sdks.generate(
            pulumi_engine(), language, hosts / f"pulumi-language-{language}", folder, folder / "home"
        )
        for language in HOSTED_LANGUAGES
    }


def test_the_examples_find_in_the_sdks_what_they_import(made: dict[str, Path]) -> None:
    script = (ROOT / "examples" / "typescript" / "index.ts").read_text()
    environment = (made["nodejs"] / "environment.ts").read_text()
    for name in re.findall(r"^    (\w+):", script, re.MULTILINE):
        assert re.search(rf"^ +{name}\??: ", environment, re.MULTILINE), name
    program = (ROOT / "examples" / "go" / "main.go").read_text()
    structs = "".join(file.read_text() for file in made["go"].rglob("*.go"))
    for name in re.findall(r"^\t{3,5}(\w+):", program, re.MULTILINE):
        assert re.search(rf"^\t{name} ", structs, re.MULTILINE), name


def test_the_sdks_carry_the_version(made: dict[str, Path]) -> None:
    version = read_settings().version
    assert f'"version": "{version}"' in (made["nodejs"] / "package.json").read_text()
    assert version in (made["python"] / "setup.py").read_text() + "".join(
        file.read_text() for file in made["python"].glob("pyproject.toml")
    )


def test_a_module_for_go_can_be_required_as_it_is(made: dict[str, Path]) -> None:
    (module,) = made["go"].rglob("go.mod")
    assert "module github.com/nodeless/pulumi-nodeless/sdk/go" in module.read_text()


def test_an_sdk_that_lacks_a_component_is_refused(made: dict[str, Path], tmp_path: Path) -> None:
    schema = {"name": "nodeless", "resources": {"nodeless:index:Telescope": {}}}
    with pytest.raises(ReleaseError, match="the SDK for go has no Telescope"):
        sdks._check("go", made["go"], schema)


def test_a_language_without_its_host_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sdks.hosts(None) == {}
    assert sdks.hosts(language_hosts()).keys() == set(HOSTED_LANGUAGES)
    with pytest.raises(NotHere, match="no pulumi-language-python and no pulumi-language-nodejs"):
        sdks.add_to_project(pulumi_engine(), {}, tmp_path / "added", tmp_path / "home", uv=None)
    assert not (tmp_path / "added").exists()


@pytest.mark.parametrize("program", ["actionlint", "helm", "language-hosts", "pulumi"])
def test_the_dry_run_is_told_where_programs_are(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "localenv", "which", program], capture_output=True, text=True, check=True
    )
    (line,) = done.stdout.splitlines()
    assert Path(line).exists()
    assert program in ("language-hosts", Path(line).name)
