"""What the real AWS provider refuses by itself, refused here, and nothing that it takes."""

from __future__ import annotations

from typing import Any

import pytest

from localenv.pulumi import wire
from localenv.pulumi.aws.provider import RESOURCES
from localenv.pulumi.aws.validation import CHECKS, TOGETHER, find_refusals

ROLE = "arn:aws:iam::123456789012:role/node"
#: Token, input, a value that is refused, one that is taken.
VALUES: list[tuple[str, str, Any, Any]] = [
    ("aws:ec2/vpc:Vpc", "cidrBlock", "10.0.0.0/8", "10.0.0.0/16"),
    ("aws:ec2/vpc:Vpc", "cidrBlock", "10.0.0.1/16", "10.1.0.0/28"),
    ("aws:ec2/vpc:Vpc", "instanceTenancy", "host", "dedicated"),
    ("aws:ec2/subnet:Subnet", "cidrBlock", "10.0.0.9/24", "10.0.9.0/24"),
    ("aws:ec2/eip:Eip", "domain", "classic", "vpc"),
    ("aws:ec2/natGateway:NatGateway", "connectivityType", "Public", "private"),
    ("aws:ec2/securityGroup:SecurityGroup", "name", "sg-web", "web-sg-"),
    ("aws:ec2/securityGroup:SecurityGroup", "description", "x" * 256, "x" * 255),
    ("aws:iam/role:Role", "name", "a" * 65, "a" * 64),
    ("aws:iam/role:Role", "name", "a/b", "a+b=c,d.e@f-g_h"),
    ("aws:iam/role:Role", "name", "größe", "size"),
    ("aws:iam/role:Role", "maxSessionDuration", 3599, 43200),
    ("aws:iam/role:Role", "permissionsBoundary", "boundary", "arn:aws-us-gov:iam::aws:policy/x"),
    ("aws:iam/role:Role", "assumeRolePolicy", "{", "{}"),
    ("aws:iam/policy:Policy", "policy", "[]", "{}"),
    ("aws:iam/rolePolicy:RolePolicy", "role", ROLE, "node"),
    ("aws:iam/openIdConnectProvider:OpenIdConnectProvider", "url", "oidc.eks/id", "https://oidc.eks/id"),
    ("aws:iam/openIdConnectProvider:OpenIdConnectProvider", "url", "https://a/b?c=d", "https://a/b"),
    ("aws:iam/openIdConnectProvider:OpenIdConnectProvider", "thumbprintLists", ["9e"], ["9e" * 20]),
    ("aws:sqs/queue:Queue", "name", "demo.fifo", "demo_queue-1"),
    ("aws:sqs/queue:Queue", "messageRetentionSeconds", 59, 300),
    ("aws:cloudwatch/eventRule:EventRule", "name", "demo/spot", "demo.spot"),
    ("aws:cloudwatch/eventTarget:EventTarget", "arn", "demo", "arn:aws:sqs:us-east-1:123456789012:demo"),
    ("aws:eks/cluster:Cluster", "name", "-demo", "0demo_a-b"),
    ("aws:eks/cluster:Cluster", "name", "a" * 101, "a" * 100),
    ("aws:eks/cluster:Cluster", "roleArn", "arn:aws:iam:::", ROLE),
    (
        "aws:eks/cluster:Cluster",
        "accessConfig",
        {"authenticationMode": "IAM"},
        {"authenticationMode": "API"},
    ),
    ("aws:eks/cluster:Cluster", "enabledClusterLogTypes", ["api", "Audit"], ["api", "audit"]),
    (
        "aws:eks/cluster:Cluster",
        "kubernetesNetworkConfig",
        {"serviceIpv4Cidr": "100.64.0.0/16"},
        {"serviceIpv4Cidr": "172.20.0.0/16"},
    ),
    (
        "aws:eks/cluster:Cluster",
        "vpcConfig",
        {"publicAccessCidrs": ["0.0.0.0/0", "10.0.0.1/8"]},
        {"publicAccessCidrs": ["0.0.0.0/0"]},
    ),
    ("aws:eks/fargateProfile:FargateProfile", "selectors", [{"namespace": ""}], [{"namespace": "a"}]),
    ("aws:eks/accessEntry:AccessEntry", "type", "LINUX", "EC2_LINUX"),
    ("aws:eks/addon:Addon", "addonVersion", "1.11.4", "v1.11.4-eksbuild.2"),
    ("aws:eks/addon:Addon", "resolveConflictsOnCreate", "PRESERVE", "OVERWRITE"),
]
RULE, GROUP_RULE = "aws:cloudwatch/eventRule:EventRule", "aws:ec2/securityGroupRule:SecurityGroupRule"


def faults(token: str, inputs: dict[str, Any]) -> list[str]:
    """The inputs that are refused for their own values."""
    return [fault.path for fault in find_refusals(token, inputs) if "can be given" not in fault.reason]


@pytest.mark.parametrize(("token", "key", "bad", "good"), VALUES)
def test_a_value_is_refused_by_its_input_and_one_beside_it_taken(
    token: str, key: str, bad: Any, good: Any
) -> None:
    assert faults(token, {key: bad}) == [key]
    assert faults(token, {key: good}) == []
    assert faults(token, {key: wire.UNKNOWN}) == []
    assert faults(token, {}) == []


@pytest.mark.parametrize(
    ("token", "inputs", "taken"),
    [
        ("aws:ec2/route:Route", {"gatewayId": "igw-1"}, True),
        ("aws:ec2/route:Route", {"gatewayId": wire.UNKNOWN}, True),
        ("aws:ec2/route:Route", {"gatewayId": "igw-1", "natGatewayId": "nat-1"}, False),
        ("aws:ec2/route:Route", {}, False),
        (RULE, {"eventPattern": "{}"}, True),
        (RULE, {"eventPattern": "{}", "scheduleExpression": "rate(1 day)"}, True),
        (RULE, {}, False),
        (GROUP_RULE, {"cidrBlocks": ["10.0.0.0/8"], "ipv6CidrBlocks": ["::/0"]}, True),
        (GROUP_RULE, {"cidrBlocks": ["10.0.0.0/8"], "prefixListIds": ["pl-1"]}, True),
        (GROUP_RULE, {"cidrBlocks": ["10.0.0.0/8"], "self": True}, False),
        (GROUP_RULE, {"self": True, "sourceSecurityGroupId": "sg-1"}, False),
        (GROUP_RULE, {}, False),
    ],
)
def test_inputs_that_exclude_or_need_each_other(token: str, inputs: dict[str, Any], taken: bool) -> None:
    assert (not find_refusals(token, inputs)) == taken


def test_checks_are_of_inputs_that_are_taken() -> None:
    for token in CHECKS.keys() | TOGETHER.keys():
        known = RESOURCES[token].required | RESOURCES[token].optional
        assert CHECKS.get(token, {}).keys() <= known
        assert {key for each in TOGETHER.get(token, ()) for key in each.keys} <= known
