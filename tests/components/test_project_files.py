"""Pulumi.yaml, the stack files and the program agree on the configuration."""

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.components.conftest import CONFIG, ROOT, program
from tests.components.recorder import Recorder, run

PROJECT = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
DECLARED: dict[str, Any] = PROJECT["config"]
STACKS = sorted((ROOT / PROJECT["stackConfigDir"]).glob("Pulumi.*.yaml"))
KINDS = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def fits(value: Any, declared: dict[str, Any]) -> bool:
    if declared["type"] == "integer" and isinstance(value, bool):
        return False
    fitting = isinstance(value, KINDS[declared["type"]])
    if fitting and declared["type"] == "array":
        return all(isinstance(item, KINDS[declared["items"]["type"]]) for item in value)
    return fitting


def own_keys() -> set[str]:
    return {key for key in DECLARED if ":" not in key}


def keys_read() -> set[str]:
    """Names given to the configuration's getters in the program."""
    tree = ast.parse((ROOT / "infra" / "__main__.py").read_text())
    return {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "config"
        and isinstance(node.args[0], ast.Constant)
    }


def test_the_project_points_to_the_program_and_the_stacks() -> None:
    assert PROJECT["name"] == "nodeless"
    assert (ROOT / PROJECT["main"] / "__main__.py").is_file()
    assert PROJECT["runtime"]["options"]["toolchain"] == "uv"
    assert {each.name for each in STACKS} >= {"Pulumi.dev.yaml", "Pulumi.local.yaml"}


def test_every_key_read_is_declared_and_every_declared_key_is_read() -> None:
    assert keys_read() == own_keys()


@pytest.mark.parametrize("key", sorted(own_keys()))
def test_every_key_has_a_description_and_a_default_of_its_type(key: str) -> None:
    declared = DECLARED[key]
    assert declared["description"]
    assert fits(declared["default"], declared), f"{declared['default']!r} is no {declared['type']}"


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_stack_files_set_declared_keys_to_values_of_their_type(path: Path) -> None:
    values = yaml.safe_load(path.read_text())["config"]
    assert values["aws:region"] == "us-east-1"
    for name, value in values.items():
        namespace, _, key = name.partition(":")
        if namespace == PROJECT["name"]:
            assert fits(value, DECLARED[key]), f"{name}: {value!r} is no {DECLARED[key]['type']}"
        else:
            assert name in DECLARED


def as_config(values: dict[str, Any]) -> dict[str, str]:
    import json  # noqa: PLC0415

    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    return {key if ":" in key else f"{PROJECT['name']}:{key}": text for key, text in texts.items()}


def registered(recorder: Recorder) -> dict[str, Any]:
    return {urn: (each.inputs, each.dependencies) for urn, each in recorder.resources.items()}


def test_the_declared_defaults_are_the_components(environment: Recorder) -> None:
    defaults = as_config({key: DECLARED[key]["default"] for key in own_keys()})
    assert registered(run(program, config={**defaults, **CONFIG})) == registered(environment)


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_every_stack_can_be_made(path: Path) -> None:
    recorder = run(program, config=as_config(yaml.safe_load(path.read_text())["config"]))
    assert recorder.faults == []
    assert recorder.one("kubernetes:apps/v1:Deployment")


def test_outputs_are_those_of_the_environment() -> None:
    from pulumi.runtime import get_root_resource  # noqa: PLC0415

    run(program, config=CONFIG)
    exported = get_root_resource().outputs
    assert {
        "clusterName",
        "clusterEndpoint",
        "kubeconfig",
        "vpcId",
        "privateSubnetIds",
        "nodeRoleArn",
        "instanceProfileName",
        "controllerRoleArn",
        "controllerRoleName",
        "interruptionQueueName",
    } <= set(exported)
    assert all(name[0].islower() and "_" not in name for name in exported)
