"""The components as programs in other languages use them: served by the component host to the real engine.

The host is the package's own `components/plugin/__main__.py`, started as the engine starts it. The program
here registers remote components by type token with plain values, which is all that a TypeScript, Go or YAML
program does; the names of the tests say so. `pulumi package add` itself, and a program in a language of
its own, are tried in test_package_add.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws_sdk
import pytest
import yaml

from localenv.aws import LocalAws
from localenv.binaries import pulumi_engine
from localenv.control_plane import ControlPlane
from localenv.pulumi import ResourceStep, Stack, StackFailed
from localenv.pulumi.project import ROOT
from tests.localenv.pulumi.conftest import Shop

pytestmark = pytest.mark.cluster

EXAMPLE = ROOT / "examples" / "yaml" / "Pulumi.yaml"


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder with the component host as a program that the engine finds by its name."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    program = folder / "pulumi-resource-nodeless"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "components" / "plugin"}" "$@"\n')
    program.chmod(0o755)
    return folder


def network(**properties: Any) -> None:
    class Network(pulumi.ComponentResource):
        vpcId: pulumi.Output[str]  # noqa: N815 - the output's name in the schema

    options = pulumi.ResourceOptions(providers=[aws_sdk.Provider("aws", region="us-east-1")])
    made = Network("nodeless:index:Network", "net", {**properties, "vpcId": None}, options, remote=True)
    pulumi.export("vpc", made.vpcId)


def test_a_network_from_another_language_without_its_host_is_made_once_and_destroyed_whole(
    shop: Shop, plugins: Path, aws: LocalAws
) -> None:
    # Whole numbers travel as floating point ones.
    shop.program = lambda: network(clusterName="shop", zoneCount=2.0, cidr="10.9.0.0/16")
    stack = shop.stack = shop.another(plugins=plugins)

    made = stack.up()

    assert set(made) == {"create"}
    [vpc] = [vpc for vpc in aws.client("ec2").describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")]
    assert vpc["CidrBlock"] == "10.9.0.0/16"
    assert stack.outputs()["vpc"] == vpc["VpcId"]
    assert stack.up() == {"same": made["create"]}


def test_a_wrong_argument_from_another_language_without_its_host_is_named_before_anything_is_made(
    shop: Shop, plugins: Path, aws: LocalAws
) -> None:
    shop.program = lambda: network(clusterName="shop", natGateways="many", cidr="10.9.0.0/28")
    stack = shop.stack = shop.another(plugins=plugins)

    with pytest.raises(StackFailed) as failed:
        stack.up()

    told = str(failed.value)
    assert "natGateways" in told
    assert "'many' is not one of" in told
    assert "cidr" in told
    assert "pulumi_nodeless" not in told, "no traceback of the components"
    assert [vpc for vpc in aws.client("ec2").describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")] == []


def test_the_yaml_example_without_the_yaml_host_previews_as_a_whole_environment(
    shop: Shop, plugins: Path
) -> None:
    example = yaml.safe_load(EXAMPLE.read_text())

    def program() -> None:
        options = pulumi.ResourceOptions(providers=[aws_sdk.Provider("aws", region="us-east-1")])
        for name, resource in example["resources"].items():
            pulumi.ComponentResource(resource["type"], name, resource["properties"], options, remote=True)

    shop.program = program
    stack = shop.another(plugins=plugins)
    changes = stack.preview()

    assert set(changes) == {"create"}
    assert changes["create"] > 80


def test_package_get_schema_without_the_python_host_gives_what_is_committed(
    tmp_path: Path, plugins: Path
) -> None:
    """The engine's own reading of the schema, from which it generates the SDKs of other languages."""
    done = subprocess.run(
        [pulumi_engine(), "package", "get-schema", plugins / "pulumi-resource-nodeless"],
        env={
            **os.environ,
            "PULUMI_HOME": str(tmp_path / "home"),
            "PULUMI_BACKEND_URL": tmp_path.as_uri(),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read, committed = json.loads(done.stdout), json.loads((ROOT / "components" / "schema.json").read_text())
    assert (read["name"], read["namespace"]) == (committed["name"], committed["namespace"])
    assert read["types"].keys() == committed["types"].keys()
    assert read["resources"].keys() == committed["resources"].keys()
    for token, resource in committed["resources"].items():
        for part in ("inputProperties", "properties"):
            assert read["resources"][token].get(part, {}).keys() == resource.get(part, {}).keys(), token
        required = read["resources"][token].get("requiredInputs", [])
        assert sorted(required) == sorted(resource.get("requiredInputs", [])), token


def test_the_examples_use_inputs_and_outputs_that_the_schema_has() -> None:
    schema = yaml.safe_load((ROOT / "components" / "schema.json").read_text())
    example = yaml.safe_load(EXAMPLE.read_text())
    environment = example["resources"]["environment"]
    known = schema["resources"][environment["type"]]
    script = (ROOT / "examples" / "typescript" / "index.ts").read_text()
    for inputs, outputs in (
        (
            environment["properties"],
            re.findall(r"\{environment\.(\w+)\}", " ".join(example["outputs"].values())),
        ),
        (re.findall(r"^    (\w+):", script, re.MULTILINE), re.findall(r"= environment\.(\w+);", script)),
        (in_go(r"^\t{3}(\w+):"), in_go(r"environment\.(\w+)\)")),
    ):
        assert set(inputs) <= set(known["inputProperties"])
        assert set(known["requiredInputs"]) <= set(inputs)
        assert outputs
        assert set(outputs) <= set(known["properties"])


def in_go(pattern: str) -> list[str]:
    """Names in the example in Go, as the schema writes them."""
    text = (ROOT / "examples" / "go" / "main.go").read_text()
    return [name[0].lower() + name[1:] for name in re.findall(pattern, text, re.MULTILINE)]


def test_the_members_of_pools_in_go_are_those_of_the_schema() -> None:
    types = yaml.safe_load((ROOT / "components" / "schema.json").read_text())["types"]
    for name, depth in (("ProvisionerArgs", 4), ("RequirementArgs", 5)):
        members = in_go(rf"^\t{{{depth}}}(\w+): ")
        assert set(types[f"nodeless:index:{name}"]["required"]) <= set(members)
        assert set(members) <= set(types[f"nodeless:index:{name}"]["properties"])


def test_the_sdks_are_imported_by_the_names_that_the_engine_gives_them() -> None:
    """Of a package from git its owner there is the namespace; of one from a path, what the schema says."""
    added = "github.com/nodeless/nodeless/components/plugin"
    owner = added.split("/")[1]
    schema = yaml.safe_load((ROOT / "components" / "schema.json").read_text())
    assert (schema["namespace"], schema["name"]) == (owner, "nodeless")
    examples = ROOT / "examples"
    assert f'from "@{owner}/nodeless"' in (examples / "typescript" / "index.ts").read_text()
    module = f"github.com/{owner}/pulumi-nodeless/sdk/go"
    assert f'"{module}/nodeless"' in (examples / "go" / "main.go").read_text()
    assert f"replace {module} => ./sdks/{owner}-nodeless" in (examples / "go" / "go.mod").read_text()
    for language in ("typescript", "go", "yaml"):
        assert f"pulumi package add {added}" in (examples / language / "Pulumi.yaml").read_text()


def test_the_example_with_an_existing_cluster_previews_without_making_one(
    tmp_path: Path, control_plane: ControlPlane, aws: LocalAws
) -> None:
    authority = base64.b64encode(control_plane.certificate_authority.read_bytes()).decode()
    config = {"endpoint": control_plane.endpoint, "certificateAuthority": authority}
    stack = Stack(
        tmp_path,
        control_plane,
        aws,
        config={f"existing-cluster:{key}": value for key, value in config.items()},
        root=ROOT / "examples" / "python-existing-cluster",
    )
    steps: list[ResourceStep] = []

    stack.preview(steps.append)

    kinds = {step.type for step in steps}
    assert "kubernetes:karpenter.sh/v1alpha5:Provisioner" in kinds
    assert not {"aws:ec2/vpc:Vpc", "eks:index:Cluster", "aws:eks/cluster:Cluster"} & kinds


def test_the_package_folder_is_what_the_engine_looks_for() -> None:
    plugin = yaml.safe_load((Path(ROOT) / "components" / "plugin" / "PulumiPlugin.yaml").read_text())
    assert plugin["runtime"]["name"] == "python"
