"""What is published: names, versions, metadata of the distributions, and the commands that install them."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import nodeless
import pulumi_nodeless
from infra.release.installs import foreign, foreign_in
from infra.release.settings import ReleaseError
from pulumi_nodeless.controller import DEFAULT_IMAGE
from tests.components.conftest import ROOT

PROVISIONER, COMPONENTS = "nodeless-provisioner", "pulumi-nodeless"
#: What an index gets, by the folder that it is made of.
PUBLISHED = {"controller": PROVISIONER, "components": COMPONENTS}
REPOSITORY = "https://github.com/nodeless/nodeless"
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)|^\[[^]]+\]: (\S+)$", re.MULTILINE)
#: Where people are told what to install, and what pip reads.
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "examples" / "README.md",
    *(ROOT / folder / "README.md" for folder in PUBLISHED),
]
LISTS = [*ROOT.glob("policy/requirements.txt"), *ROOT.glob("examples/*/requirements.txt")]
OF_COMPONENTS = re.compile(r"(CHECKOUT|\.\.)/components|subdirectory=components")
OF_CONTROLLER = re.compile(r"(CHECKOUT|\.\.)/controller|subdirectory=controller")


def projects() -> dict[Path, dict[str, Any]]:
    """Every project file of the repository."""
    files = (ROOT / "pyproject.toml", *ROOT.glob("*/pyproject.toml"))
    return {file: tomllib.loads(file.read_text()) for file in files}


def requirements(project: dict[str, Any]) -> list[Requirement]:
    table = project["project"]
    extras = table.get("optional-dependencies", {}).values()
    groups = project.get("dependency-groups", {}).values()
    return [Requirement(each) for part in (table["dependencies"], *extras, *groups) for each in part]


def published(folder: str) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    return project


def test_the_distributions_have_names_that_are_nobody_elses() -> None:
    assert {folder: published(folder)["name"] for folder in PUBLISHED} == PUBLISHED
    assert nodeless.DISTRIBUTION == PROVISIONER


def test_every_part_has_the_same_version() -> None:
    versions = {str(file): project["project"]["version"] for file, project in projects().items()}
    assert len(versions) == 4
    versions |= {"nodeless": nodeless.__version__, "pulumi_nodeless": pulumi_nodeless.__version__}
    versions["image"] = DEFAULT_IMAGE.rpartition(":")[2]
    for chart in ROOT.glob("charts/*/Chart.yaml"):
        document = yaml.safe_load(chart.read_text())
        versions |= {f"{chart} {key}": str(document[key]) for key in ("version", "appVersion")}
    assert set(versions.values()) == {nodeless.__version__}, versions


def test_the_components_need_the_provisioner_of_their_own_version() -> None:
    (pin,) = [
        each for each in map(Requirement, published("components")["dependencies"]) if "nodeless" in each.name
    ]
    assert (pin.name, str(pin.specifier)) == (PROVISIONER, f"=={pulumi_nodeless.__version__}")


def test_no_project_needs_the_other_product_of_the_same_name() -> None:
    for file, project in projects().items():
        assert "nodeless" not in {each.name for each in requirements(project)}, file


def test_uv_takes_our_distributions_from_the_folders_beside() -> None:
    """`pulumi up` in this repository runs `uv sync`."""
    workspace = projects()[ROOT / "pyproject.toml"]["tool"]["uv"]
    members = {
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["name"]
        for folder in workspace["workspace"]["members"]
    }
    assert workspace["sources"] == {name: {"workspace": True} for name in members}
    needed = {each.name for project in projects().values() for each in requirements(project)}
    assert {name for name in needed if "nodeless" in name} == members


def test_pulumi_package_add_installs_our_distributions_from_the_folders_beside() -> None:
    """What the Python language host does: pip installs the requirements, from the folder of the plugin.

    A project file with a build backend in that folder would have it install that distribution alone, before
    the requirements, and so another one of the provisioner, from an index.
    """
    plugin = ROOT / "components" / "plugin"
    assert not (plugin / "pyproject.toml").exists()
    options = yaml.safe_load((plugin / "PulumiPlugin.yaml").read_text())["runtime"]["options"]
    assert options["toolchain"] == "pip"
    listed = re.findall(r"^-e (\S+)$", (plugin / "requirements.txt").read_text(), re.MULTILINE)
    assert [(plugin / each).resolve() for each in listed] == [ROOT / "controller", ROOT / "components"]


def commands(page: Path) -> list[str]:
    """What a page says to install, command by command."""
    lines = page.read_text().replace("\\\n", " ").splitlines()
    return [line for line in lines if re.search(r"pip install|uv add", line)]


def test_who_installs_the_components_gets_the_provisioner_from_the_same_place() -> None:
    """Before a release no index has it."""
    found = [command for page in PAGES for command in commands(page) if OF_COMPONENTS.search(command)]
    assert len(found) >= 4
    assert [command for command in found if not OF_CONTROLLER.search(command)] == []
    for file in LISTS:
        assert OF_COMPONENTS.search(file.read_text()), file
        assert OF_CONTROLLER.search(file.read_text()), file


def test_nobody_is_told_to_install_the_other_product_of_the_same_name() -> None:
    other = re.compile(r"""(^|[\s'"])nodeless(\[\w+\])?([\s'"=<>~@]|$)""")
    told = [command.partition("install")[2] or command for page in PAGES for command in commands(page)]
    listed = [line for file in LISTS for line in file.read_text().splitlines() if not line.startswith("#")]
    assert [line for line in (*told, *listed) if other.search(line)] == []


@pytest.mark.parametrize("folder", PUBLISHED)
def test_links_in_the_page_of_an_index_lead_to_the_repository(folder: str) -> None:
    text = (ROOT / folder / published(folder)["readme"]).read_text()
    links = [inline or reference for inline, reference in LINK.findall(text)]
    assert links
    for link in links:
        if "://" not in link:
            assert f"\n[{link}]: " in text, f"{link} leads nowhere outside of the repository"
        elif link.startswith(f"{REPOSITORY}/"):
            kind, branch, path = link.removeprefix(f"{REPOSITORY}/").split("/", 2)
            assert branch == "main"
            there = ROOT / path
            assert there.is_dir() if kind == "tree" else there.is_file(), link


@pytest.mark.parametrize("folder", PUBLISHED)
def test_a_distribution_carries_the_license_of_the_repository(folder: str) -> None:
    """A copy: a build sees nothing above its folder, as in the image."""
    assert (ROOT / folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_an_index_refuses_the_environment_on_one_machine() -> None:
    assert published("localenv")["classifiers"] == ["Private :: Do Not Upload"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of what is published, built with the tools that build the image."""
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run([sys.executable, "-m", "venv", folder / "tools"], check=True)
    pip = [folder / "tools" / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    lock = ROOT / "controller" / "build-requirements.lock"
    subprocess.run([*pip, "install", "--require-hashes", "-r", lock], check=True)
    sources = [ROOT / each for each in PUBLISHED]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    subprocess.run([*pip, *build, *sources], check=True)
    return {name: next(folder.glob(f"{name.replace('-', '_')}-*.whl")) for name in PUBLISHED.values()}


@pytest.mark.large
@pytest.mark.parametrize("name", PUBLISHED.values())
def test_a_wheel_says_what_it_needs_and_where_it_comes_from(name: str, wheels: dict[str, Path]) -> None:
    stem = f"{name.replace('-', '_')}-{nodeless.__version__}.dist-info"
    with zipfile.ZipFile(wheels[name]) as wheel:
        files = set(wheel.namelist())
        assert wheel.read(f"{stem}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        if name == COMPONENTS:
            assert wheel.read("pulumi_nodeless/pulumi-plugin.json") == b'{"resource": false}\n'
    built = PathDistribution(zipfile.Path(wheels[name], f"{stem}/"))  # type: ignore[arg-type]
    metadata = built.metadata
    assert (metadata["Name"], metadata["Version"]) == (name, nodeless.__version__)
    ours = {
        each.name: str(each.specifier)
        for each in map(Requirement, built.requires or ())
        if "nodeless" in each.name
    }
    assert ours == ({PROVISIONER: f"=={nodeless.__version__}"} if name == COMPONENTS else {})
    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    urls = dict(each.split(", ") for each in metadata.get_all("Project-URL"))
    assert urls["Homepage"] == REPOSITORY
    assert all(url.startswith(REPOSITORY) for url in urls.values())
    assert urls.keys() >= {"Documentation", "Changelog", "Issues", "Source"}
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert f"# {name}" in str(metadata.get_payload())
    assert {path.partition("/")[0] for path in files} == {
        name.replace("-provisioner", "").replace("-", "_"),
        stem,
    }


@pytest.mark.large
def test_with_the_public_index_no_requirement_of_ours_comes_from_somebody_else(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    """What would be installed for every extra, with our own wheels and the index that people use."""
    for wheel in wheels.values():
        shutil.copy2(wheel, tmp_path)
    uv = wheels[PROVISIONER].parent / "tools" / "bin" / "uv"
    assert foreign(tmp_path, nodeless.__version__, uv) == []
    (tmp_path / wheels[PROVISIONER].name).unlink()
    with pytest.raises(ReleaseError, match=f"no version of {PROVISIONER}"):
        foreign(tmp_path, nodeless.__version__, uv)


@pytest.mark.parametrize(
    ("pins", "found"),
    [
        ({PROVISIONER: "ours", COMPONENTS: "ours", "boto3": "index"}, []),
        ({PROVISIONER: "index", COMPONENTS: "ours"}, [f"{PROVISIONER} from https://index.example/simple"]),
        (
            {PROVISIONER: "ours", COMPONENTS: "ours", "nodeless": "index"},
            ["nodeless from https://index.example/simple"],
        ),
    ],
)
def test_what_comes_from_somebody_else_is_named(
    pins: dict[str, str], found: list[str], tmp_path: Path
) -> None:
    places = {"ours": tmp_path.as_uri(), "index": "https://index.example/simple"}
    answer = "".join(
        f"{name}==1.0 ; sys_platform == 'x'\n    # from {places[at]}\n" for name, at in pins.items()
    )
    assert foreign_in(answer, tmp_path) == found


def test_an_answer_without_ours_is_no_proof(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=f"{PROVISIONER}, {COMPONENTS}: not among"):
        foreign_in("boto3==1.0\n    # from https://index.example/simple\n", tmp_path)
