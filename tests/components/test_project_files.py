"""Pulumi.yaml, the stack files and the program agree on the configuration."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pulumi_nodeless import EnvironmentArgs
from pulumi_nodeless.configuration import KEYS, WITHOUT_KEY
from pulumi_nodeless.shapes import python_name
from tests.components.conftest import CONFIG, ROOT, program
from tests.components.recorder import Recorder, run

PROJECT = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
DECLARED: dict[str, Any] = PROJECT["config"]
STACKS = sorted((ROOT / PROJECT["stackConfigDir"] / "templates").glob("Pulumi.*.yaml"))
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


def test_the_project_points_to_the_program_and_the_stacks() -> None:
    assert PROJECT["name"] == "nodeless"
    assert (ROOT / PROJECT["main"] / "__main__.py").is_file()
    assert PROJECT["runtime"]["options"]["toolchain"] == "uv"
    assert {stack.name for stack in STACKS} >= {"Pulumi.dev.yaml", "Pulumi.local.yaml"}


def test_nothing_that_git_keeps_is_written_by_the_engine() -> None:
    """`stack init` and `config set` write the stack's settings, beside the templates."""
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert f"/{PROJECT['stackConfigDir']}/Pulumi.*.yaml" in ignored


#: Keys that are no argument: without the first pool, `node_templates` and `provisioners` are empty.
WITHOUT_ARGUMENT = {"default_pool"}


def test_every_argument_of_the_environment_has_a_key() -> None:
    given = {python_name(key) for key in own_keys()} - WITHOUT_ARGUMENT
    assert given == set(EnvironmentArgs.__annotations__) - {*WITHOUT_KEY}
    read_me = (ROOT / "examples" / "README.md").read_text()
    assert all(f"`{name}`" in read_me for name in WITHOUT_KEY)


def configured(**values: Any) -> Recorder:
    return run(program, config={**CONFIG, **as_config(values)})


def test_pools_come_from_configuration_with_members_in_camel_case() -> None:
    recorder = configured(
        controllerNamespace="nodes",
        nodeTemplates=[{"name": "own", "amiFamily": "Bottlerocket", "tags": {"costCenter": 12}}],
        provisioners=[{"name": "v1alpha5", "nodeTemplate": "own", "ttlSecondsAfterEmpty": 60}],
        nodeClasses=[{"name": "own", "blockDevices": [{"deviceName": "/dev/xvda", "volumeSize": "50Gi"}]}],
        nodePools=[
            {
                "name": "v1",
                "nodeClass": "own",
                "limits": {"cpu": 200},
                "requirements": [
                    {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": [4], "minValues": 1}
                ],
            }
        ],
    )
    assert recorder.faults == []
    made = {
        each.token.rpartition(":")[2]: each.inputs["spec"]
        for each in recorder.custom()
        if each.token.startswith("kubernetes:karpenter.")
    }
    assert made["AWSNodeTemplate"]["amiFamily"] == "Bottlerocket"
    assert made["AWSNodeTemplate"]["tags"] == {"costCenter": "12"}, "keys of maps are the user's own"
    assert made["Provisioner"]["ttlSecondsAfterEmpty"] == 60
    assert made["EC2NodeClass"]["blockDeviceMappings"][0]["ebs"] == {"volumeSize": "50Gi"}
    assert made["NodePool"]["limits"] == {"cpu": "200"}
    (requirement,) = made["NodePool"]["template"]["spec"]["requirements"]
    assert (requirement["values"], requirement["minValues"]) == (["4"], 1)
    namespace = recorder.one("kubernetes:core/v1:Namespace").inputs["metadata"]["name"]
    assert namespace == "nodes"


def test_without_the_first_pool_a_stack_has_those_that_it_names() -> None:
    mine = {"name": "mine", "nodeTemplate": "mine"}
    recorder = configured(
        defaultPool=False, nodeTemplates=[{"name": "mine", "amiFamily": "Ubuntu"}], provisioners=[mine]
    )
    (pool,) = [each for each in recorder.custom() if each.token.endswith(":Provisioner")]
    assert pool.inputs["metadata"]["name"] == "mine"


@pytest.mark.parametrize("default_pool", [True, False])
@pytest.mark.parametrize("v1", [True, False])
def test_provisioners_of_ones_own_get_the_default_template_where_none_is_given(
    default_pool: bool, v1: bool
) -> None:
    own = {"provisioners": [{"name": "mine", "nodeTemplate": "default"}], "defaultPool": default_pool}
    further = {"nodeClasses": [{"name": "c"}], "nodePools": [{"name": "p", "nodeClass": "c"}]} if v1 else {}
    recorder = configured(**own, **further)
    made = {
        each.token.rpartition(":")[2]: each.inputs["metadata"]["name"]
        for each in recorder.custom()
        if each.token.startswith("kubernetes:karpenter.")
    }
    assert made.items() >= {"Provisioner": "mine", "AWSNodeTemplate": "default"}.items()
    assert ("NodePool" in made) is v1


def test_every_key_read_is_declared_and_every_declared_key_is_read() -> None:
    assert set(KEYS) == own_keys()


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
    return {urn: (resource.inputs, resource.dependencies) for urn, resource in recorder.resources.items()}


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
        "controllerImage",
        "nextSteps",
    } <= set(exported)
    assert all(name[0].islower() and "_" not in name for name in exported)
