"""The example for existing clusters: what it plans, and what the charts make of the values that it gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from localenv.opentofu import Tofu, TofuFailed
from pulumi_nodeless import policies
from tests.charts.conftest import CHART, DEFINITIONS, Helm, by_name, helm_program  # noqa: F401
from tests.charts.test_same_objects import comparable, component  # noqa: F401
from tests.terraform.conftest import Cloud, planned

pytestmark = pytest.mark.cluster

CONTROLLER, CRDS = "helm_release.controller", "helm_release.definitions"


@pytest.fixture(scope="module")
def variables(cloud: Cloud) -> dict[str, Any]:
    return {
        "cluster_name": "demo",
        "region": "us-east-1",
        "private_subnet_ids": list(cloud.subnets),
        "image_repository": "example.test/nodeless",
        "image_tag": "1",
    }


@pytest.fixture(scope="module")
def on_fargate(example: Tofu, variables: dict[str, Any], component: Any) -> Iterator[dict[str, Any]]:  # noqa: F811
    """The plan of the releases once all in AWS is made, with the image of the component's Deployment."""
    deployment = component["Deployment", "karpenter", "karpenter"]
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    repository, _, tag = image.rpartition(":")
    given = {**variables, "image_repository": repository, "image_tag": tag}
    targets = ("module.nodeless", "aws_eks_fargate_profile.controller")
    example.apply(given, state="fargate", targets=targets)
    yield planned(example.plan(given, state="fargate"))
    example.destroy(given, state="fargate")


def test_the_charts_make_the_objects_of_the_component(
    on_fargate: dict[str, Any],
    component: Any,  # noqa: F811
    helm_program: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    release = on_fargate[CONTROLLER]
    files = []
    for number, text in enumerate(release["values"]):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        files += ["--values", str(file)]
    helm = Helm(helm_program, tmp_path)
    namespace = ("--namespace", release["namespace"])
    rendered = by_name(helm.run("template", release["name"], CHART, *namespace, *files))
    made = {name: comparable(each) for name, each in rendered.items()}
    assert made == {name: comparable(each) for name, each in component.items()}


def test_the_controllers_pods_have_a_place_without_a_node(
    on_fargate: dict[str, Any],
    cloud: Cloud,
    component: Any,  # noqa: F811
) -> None:
    profile = cloud.client("eks").describe_fargate_profile(clusterName="demo", fargateProfileName="karpenter")
    made = profile["fargateProfile"]
    assert [selector["namespace"] for selector in made["selectors"]] == ["karpenter"]
    assert sorted(made["subnets"]) == sorted(cloud.subnets)
    role = cloud.client("iam").get_role(RoleName=made["podExecutionRoleArn"].rpartition("/")[2])["Role"]
    trust = policies.pod_execution_trust("aws", "us-east-1", cloud.account, "demo")
    assert role["AssumeRolePolicyDocument"] == trust
    attached = cloud.client("iam").list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]
    assert [policy["PolicyName"] for policy in attached] == [policies.POD_EXECUTION_MANAGED_POLICY]
    account = component["ServiceAccount", "karpenter", "karpenter"]["metadata"]["annotations"]
    values = yaml.safe_load(on_fargate[CONTROLLER]["values"][0])
    assert values["serviceAccount"]["annotations"] == account


def test_on_nodes_the_role_comes_by_pod_identity(example: Tofu, variables: dict[str, Any]) -> None:
    found = planned(example.plan({**variables, "run_on": "nodes", "private_subnet_ids": []}))
    assert found["aws_eks_addon.pod_identity_agent[0]"]["addon_name"] == "eks-pod-identity-agent"
    assert "module.nodeless.aws_eks_pod_identity_association.karpenter[0]" in found
    assert not [address for address in found if "fargate" in address or "pod_execution" in address]
    without = {**variables, "run_on": "nodes", "create_pod_identity_agent": False}
    assert "aws_eks_addon.pod_identity_agent[0]" not in planned(example.plan(without))


def test_the_charts_are_those_of_the_checkout(example: Tofu, variables: dict[str, Any]) -> None:
    found = planned(example.plan(variables))
    paths = {address: (example.folder / found[address]["chart"]).resolve() for address in (CRDS, CONTROLLER)}
    assert paths == {CRDS: DEFINITIONS, CONTROLLER: CHART}
    assert found[CRDS]["create_namespace"] is True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run_on": "moon"}, "hint: use fargate or nodes"),
        ({"private_subnet_ids": []}, "without a route to an internet gateway"),
    ],
)
def test_a_bad_value_is_refused(
    example: Tofu, variables: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(TofuFailed) as refused:
        example.plan({**variables, **change})
    assert message in " ".join(str(refused.value).replace("│", " ").split())


def test_releases_wait_for_roles_and_place(example: Tofu) -> None:
    configuration = json.loads(example.run("show", "-json", "-config"))["root_module"]["resources"]
    (release,) = [each for each in configuration if each["address"] == CONTROLLER]
    assert {
        "module.nodeless",
        CRDS,
        "aws_eks_fargate_profile.controller",
        "aws_eks_addon.pod_identity_agent",
    } <= set(release["depends_on"])
