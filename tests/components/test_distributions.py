"""What is published: names, versions, metadata of the distributions, and the commands that install them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

import nodeless
import pulumi_nodeless
from pulumi_nodeless.controller import DEFAULT_IMAGE
from tests.components.conftest import ROOT

PROVISIONER, COMPONENTS = "nodeless-provisioner", "pulumi-nodeless"
#: What an index gets, by the folder that it is made of.
PUBLISHED = {"controller": PROVISIONER, "components": COMPONENTS}
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
    """`pulumi package add CHECKOUT/components` and `pulumi up` run `uv sync`."""
    workspace = projects()[ROOT / "pyproject.toml"]["tool"]["uv"]
    members = {
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["name"]
        for folder in workspace["workspace"]["members"]
    }
    assert workspace["sources"] == {name: {"workspace": True} for name in members}
    needed = {each.name for project in projects().values() for each in requirements(project)}
    assert {name for name in needed if "nodeless" in name} == members


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
