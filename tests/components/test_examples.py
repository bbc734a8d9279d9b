"""The examples in Python that need no cluster to be understood."""

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.components.conftest import ROOT
from tests.components.recorder import OTHER_STACK, Recorder, run

POOLS = ROOT / "examples" / "python-pools"


def example(folder: Path, **config: str) -> Recorder:
    """What the program of an example registers with the defaults of its project file."""
    project: dict[str, Any] = yaml.safe_load((folder / "Pulumi.yaml").read_text())
    defaults = {key: str(each["default"]) for key, each in project["config"].items()}
    settings = {f"{project['name']}:{key}": value for key, value in (defaults | config).items()}
    return run(
        lambda: runpy.run_path(str(folder / "__main__.py"), run_name="__main__"),
        config=settings,
        project=project["name"],
    )


@pytest.fixture(scope="module")
def pools() -> Recorder:
    return example(POOLS)


def test_pools_of_another_stack_take_the_instance_profile_from_it(pools: Recorder) -> None:
    assert pools.faults == []
    node_class = pools.one("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass").inputs
    assert node_class["spec"]["instanceProfile"] == OTHER_STACK["outputs"]["instanceProfileName"]
    assert node_class["spec"]["subnetSelectorTerms"] == [{"tags": {"karpenter.sh/discovery": "nodeless-dev"}}]


def test_pools_of_another_stack_live_in_its_cluster(pools: Recorder) -> None:
    pool = pools.one("kubernetes:karpenter.sh/v1:NodePool")
    assert "pulumi:providers:kubernetes::cluster" in pool.provider
    assert pool.inputs["spec"]["template"]["spec"]["taints"] == [
        {"key": "team", "value": "search", "effect": "NoSchedule"}
    ]


def test_what_the_example_reads_of_the_environment_is_what_the_environment_puts_out() -> None:
    schema = yaml.safe_load((ROOT / "components" / "schema.json").read_text())
    puts_out = schema["resources"]["nodeless:index:Environment"]["properties"]
    text = (POOLS / "__main__.py").read_text()
    for name in OTHER_STACK["outputs"]:
        assert f'require_output("{name}")' in text
        assert name in puts_out


@pytest.mark.parametrize("folder", sorted((ROOT / "examples").glob("python-*")), ids=lambda each: each.name)
def test_pulumi_install_finds_in_an_example_what_its_program_needs(folder: Path) -> None:
    project = yaml.safe_load((folder / "Pulumi.yaml").read_text())
    assert project["runtime"] == {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}}
    named = {
        line.partition(" @ ")[0]: line.rpartition("#subdirectory=")[2]
        for line in (folder / "requirements.txt").read_text().splitlines()
        if not line.startswith("#")
    }
    distributions = {
        tomllib.loads((ROOT / place / "pyproject.toml").read_text())["project"]["name"]: place
        for place in ("controller", "components")
    }
    assert named == distributions
