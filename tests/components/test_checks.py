"""The checks of the policy pack: quiet on this repository's stacks, loud on what they are for."""

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from pulumi_nodeless.checks import ALWAYS, PRODUCTION, Check, Resource
from tests.components.conftest import ROOT, program
from tests.components.recorder import Recorder, run
from tests.components.test_project_files import STACKS, as_config

DISCOVERY = "karpenter.sh/discovery"


def resources(recorder: Recorder) -> list[Resource]:
    return [
        Resource(resource.token, resource.name, resource.inputs) for resource in recorder.resources.values()
    ]


def reported(check: Check, *given: Resource) -> list[str]:
    return [f"{violation.resource}: {violation.message}" for violation in check(given)]


def template(kind: str = "karpenter.k8s.aws/v1alpha1:AWSNodeTemplate", **spec: Any) -> Resource:
    return Resource(f"kubernetes:{kind}", "nodes", {"metadata": {"name": "default"}, "spec": spec})


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_the_stacks_of_this_repository_pass(path: Path) -> None:
    made = resources(run(program, config=as_config(yaml.safe_load(path.read_text())["config"])))

    checks = ALWAYS | (PRODUCTION if path.name == "Pulumi.prod.yaml" else {})
    assert {name: list(check(made)) for name, check in checks.items()} == {name: [] for name in checks}


def test_a_stack_with_a_public_endpoint_is_none_for_production(environment: Recorder) -> None:
    (message,) = reported(PRODUCTION["no-public-endpoint"], *resources(environment))
    assert message.startswith("nodeless-cluster-eks: its API server answers from the internet")


EKS, AWS_EKS, NATIVE_EKS = "eks:index:Cluster", "aws:eks/cluster:Cluster", "aws-native:eks:Cluster"


@pytest.mark.parametrize("answers", [True, False, None], ids=["public", "private", "unsaid"])
@pytest.mark.parametrize(
    ("token", "block"), [(EKS, ""), (AWS_EKS, "vpcConfig"), (NATIVE_EKS, "resourcesVpcConfig")]
)
def test_a_cluster_that_the_internet_reaches_is_named_whatever_declares_it(
    token: str, block: str, answers: bool | None
) -> None:
    said = {} if answers is None else {"endpointPublicAccess": answers}
    messages = reported(
        PRODUCTION["no-public-endpoint"], Resource(token, "own", {block: said} if block else said)
    )
    path = f"{block}.endpointPublicAccess" if block else "endpointPublicAccess"
    hint = f"own: its API server answers from the internet; hint: set {path} to false"
    assert messages == ([] if answers is False else [hint])


@pytest.mark.parametrize("answers", [True, False])
def test_a_cluster_of_pulumi_eks_is_told_once_and_by_what_eks_is_told(answers: bool) -> None:
    """Some versions of the engine show the inputs of a component, others none."""
    child = Resource(AWS_EKS, "own-eksCluster", {"vpcConfig": {"endpointPublicAccess": answers}})
    for inputs in ({"endpointPublicAccess": answers}, {}):
        messages = reported(PRODUCTION["no-public-endpoint"], Resource(EKS, "own", inputs), child)
        assert [message.partition(";")[0] for message in messages] == (
            ["own: its API server answers from the internet"] if answers else []
        )
        assert all(message.endswith("set endpointPublicAccess to false") for message in messages)


def test_a_second_security_group_that_can_be_discovered_is_named() -> None:
    groups = [
        Resource("aws:ec2/tag:Tag", "cluster", {"resourceId": "sg-1", "key": DISCOVERY, "value": "shop"}),
        Resource("aws:ec2/securityGroup:SecurityGroup", "extra", {"tags": {DISCOVERY: "shop"}}),
    ]
    check = ALWAYS["one-discoverable-security-group"]
    assert reported(check, groups[0]) == []
    (message,) = reported(check, *groups)
    assert "a second security group" in message


def test_subnets_for_nodes_must_be_found_and_private() -> None:
    check = ALWAYS["discoverable-subnets"]
    plain = Resource("aws:ec2/subnet:Subnet", "plain", {"tags": {"Name": "plain"}})
    public = Resource(
        "aws:ec2/subnet:Subnet", "public", {"tags": {DISCOVERY: "shop"}, "mapPublicIpOnLaunch": True}
    )
    assert "no subnet carries the tag" in reported(check, plain)[0]
    assert reported(check, plain, public)[0].startswith("public: a public subnet has")
    assert reported(check) == []


@pytest.mark.parametrize(
    ("ebs", "broken"), [({"encrypted": True}, False), ({"encrypted": False}, True), ({}, True)]
)
def test_a_volume_that_is_not_said_to_be_encrypted_is_named(ebs: dict[str, Any], broken: bool) -> None:
    given = template(blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": ebs}])
    messages = reported(ALWAYS["encrypted-volumes"], given)
    assert bool(messages) == broken
    assert all("spec.blockDeviceMappings[0].ebs.encrypted" in message for message in messages)


@pytest.mark.parametrize(
    ("kind", "options", "broken"),
    [
        ("karpenter.k8s.aws/v1alpha1:AWSNodeTemplate", None, False),
        ("karpenter.k8s.aws/v1alpha1:AWSNodeTemplate", {"httpTokens": "required"}, False),
        ("karpenter.k8s.aws/v1alpha1:AWSNodeTemplate", {"httpEndpoint": "enabled"}, True),
        ("karpenter.k8s.aws/v1:EC2NodeClass", {"httpEndpoint": "enabled"}, False),
        ("karpenter.k8s.aws/v1:EC2NodeClass", {"httpTokens": "optional"}, True),
    ],
)
def test_metadata_without_session_tokens_is_named(
    kind: str, options: dict[str, Any] | None, broken: bool
) -> None:
    given = template(kind, **({} if options is None else {"metadataOptions": options}))
    assert bool(reported(ALWAYS["token-bound-metadata"], given)) == broken


def test_the_policy_pack_wraps_the_checks_and_nothing_else() -> None:
    tree = ast.parse((ROOT / "policy" / "__main__.py").read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules - {"collections.abc", "contextlib", "typing"} == {
        "pulumi_nodeless.checks",
        "pulumi_policy",
        "pulumi_policy.proxy",
    }
    assert yaml.safe_load((ROOT / "policy" / "PulumiPolicy.yaml").read_text())["runtime"]["name"] == "python"
