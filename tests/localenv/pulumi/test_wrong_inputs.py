"""Inputs that no SDK declares: refused on the real engine, by resource and field, before anything is made.

Nested inputs go into dicts here, as a program without a type checker writes them: what is misspelt there
travels to the engine as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws as aws_sdk
import pulumi_eks as eks_sdk
import pulumi_kubernetes as k8s
import pytest

from localenv.control_plane import ControlPlane
from localenv.pulumi import StackFailed
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import in_cluster, on_aws

pytestmark = pytest.mark.cluster


def rule_with_a_misspelt_port() -> None:
    rule: Any = {"protocol": "tcp", "from_prt": 443, "to_port": 443, "cidr_blocks": ["10.0.0.0/8"]}
    aws_sdk.ec2.SecurityGroup("web", ingress=[rule], opts=on_aws())


def vpc_with_a_number_as_tag() -> None:
    tags: Any = {"owner": 7}
    aws_sdk.ec2.Vpc("net", cidr_block="10.0.0.0/16", tags=tags, opts=on_aws())


def vpc_of_a_range_that_aws_has_not() -> None:
    aws_sdk.ec2.Vpc("net", cidr_block="10.0.0.0/8", opts=on_aws())


def subnet_of_a_vpc_to_come_with_a_text_as_flag() -> None:
    options, flag = on_aws(), cast_away("no")
    vpc = aws_sdk.ec2.Vpc("net", cidr_block="10.0.0.0/16", opts=options)
    aws_sdk.ec2.Subnet("inside", vpc_id=vpc.id, map_public_ip_on_launch=flag, opts=options)


def cluster_with_a_misspelt_selector() -> None:
    fargate: Any = {"selectors": [{"namespce": "karpenter"}]}
    options = pulumi.ResourceOptions(providers=[aws_sdk.Provider("aws", region="us-east-1")])
    eks_sdk.Cluster("cluster", fargate=fargate, opts=options)


def cast_away(value: Any) -> Any:
    """The value, of which a type checker knows nothing."""
    return value


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            rule_with_a_misspelt_port,
            r"aws:ec2/securityGroup:SecurityGroup 'web': .*"
            r"SecurityGroup\.ingress\[0\]\.from_prt: no such input .*\(did you mean fromPort\?\).*"
            r"SecurityGroup\.ingress\[0\]\.fromPort: required input",
        ),
        (vpc_with_a_number_as_tag, r"aws:ec2/vpc:Vpc 'net': .*Vpc\.tags\.owner: expected str, got 7"),
        (vpc_of_a_range_that_aws_has_not, r"cidrBlock.*'10\.0\.0\.0/8' is not between /16 and /28"),
        (
            subnet_of_a_vpc_to_come_with_a_text_as_flag,
            r"aws:ec2/subnet:Subnet 'inside': .*Subnet\.mapPublicIpOnLaunch: expected bool, got 'no'",
        ),
        (
            cluster_with_a_misspelt_selector,
            r"eks:index:Cluster resource 'cluster' .*"
            r"Cluster\.fargate\.selectors\[0\]\.namespce: no such input .*did you mean namespace",
        ),
    ],
)
def test_an_input_that_the_sdk_or_the_provider_does_not_take_is_refused_by_resource_and_field(
    shop: Shop, program: Callable[[], None], told: str
) -> None:
    shop.program = program
    with pytest.raises(StackFailed, match=f"(?s)^preview failed: .*{told}"):
        shop.stack.preview()


def test_a_release_of_helm_is_checked_as_the_api_server_knows_none(
    shop: Shop, control_plane: ControlPlane
) -> None:
    repository: Any = {"rep": "https://charts.example"}

    def program() -> None:
        k8s.helm.v3.Release("web", chart="nginx", repository_opts=repository, opts=in_cluster(control_plane))

    shop.program = program
    told = r"Release 'web': .*Release\.repositoryOpts\.rep: no such input .*\(did you mean repo\?\)"
    with pytest.raises(StackFailed, match=f"(?s){told}"):
        shop.stack.preview()
