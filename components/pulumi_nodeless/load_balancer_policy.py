"""What the AWS Load Balancer Controller may do in AWS, as plain data.

The permissions that the project publishes for the version of `load_balancer.CHART_VERSION` (its page
docs/install/iam_policy.json), for any partition. What it makes it must tag with the name of its cluster
(`elbv2.k8s.aws/cluster`), and only what bears that tag it may change or delete. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pulumi_nodeless.policies import Document, document

_TAG: Final = "elbv2.k8s.aws/cluster"
_ASKED: Final = {"Null": {f"aws:RequestTag/{_TAG}": "false"}}
_OWN: Final = {"Null": {f"aws:ResourceTag/{_TAG}": "false"}}
_OWN_AND_STAYS_SO: Final = {
    "Null": {f"aws:RequestTag/{_TAG}": "true", f"aws:ResourceTag/{_TAG}": "false"},
}

_READ: Final[Mapping[str, Sequence[str]]] = {
    "ec2": (
        "DescribeAccountAttributes",
        "DescribeAddresses",
        "DescribeAvailabilityZones",
        "DescribeCoipPools",
        "DescribeInstances",
        "DescribeInternetGateways",
        "DescribeIpamPools",
        "DescribeNetworkInterfaces",
        "DescribeRouteTables",
        "DescribeSecurityGroups",
        "DescribeSubnets",
        "DescribeTags",
        "DescribeVpcPeeringConnections",
        "DescribeVpcs",
        "GetCoipPoolUsage",
        "GetSecurityGroupsForVpc",
    ),
    "elasticloadbalancing": (
        "DescribeCapacityReservation",
        "DescribeListenerAttributes",
        "DescribeListenerCertificates",
        "DescribeListeners",
        "DescribeLoadBalancerAttributes",
        "DescribeLoadBalancers",
        "DescribeRules",
        "DescribeSSLPolicies",
        "DescribeTags",
        "DescribeTargetGroupAttributes",
        "DescribeTargetGroups",
        "DescribeTargetHealth",
        "DescribeTrustStores",
    ),
}
_PROTECT: Final[Mapping[str, Sequence[str]]] = {
    "acm": ("DescribeCertificate", "ListCertificates"),
    "cognito-idp": ("DescribeUserPoolClient",),
    "iam": ("GetServerCertificate", "ListServerCertificates"),
    "shield": ("CreateProtection", "DeleteProtection", "DescribeProtection", "GetSubscriptionState"),
    "waf-regional": ("AssociateWebACL", "DisassociateWebACL", "GetWebACL", "GetWebACLForResource"),
    "wafv2": ("AssociateWebACL", "DisassociateWebACL", "GetWebACL", "GetWebACLForResource"),
}
_CHANGE_OWN: Final = (
    "DeleteLoadBalancer",
    "DeleteTargetGroup",
    "ModifyCapacityReservation",
    "ModifyIpPools",
    "ModifyListenerAttributes",
    "ModifyLoadBalancerAttributes",
    "ModifyTargetGroup",
    "ModifyTargetGroupAttributes",
    "SetIpAddressType",
    "SetSecurityGroups",
    "SetSubnets",
)
_CHANGE_RULES: Final = (
    "AddListenerCertificates",
    "CreateListener",
    "CreateRule",
    "DeleteListener",
    "DeleteRule",
    "ModifyListener",
    "ModifyRule",
    "RemoveListenerCertificates",
    "SetRulePriorities",
    "SetWebAcl",
)


def load_balancer_policy(partition: str) -> Document:
    """What the load balancer controller may do in a partition of AWS."""
    balancing = f"arn:{partition}:elasticloadbalancing:*:*"
    groups = f"arn:{partition}:ec2:*:*:security-group/*"
    target_groups = f"{balancing}:targetgroup/*/*"
    balancers = [target_groups, f"{balancing}:loadbalancer/net/*/*", f"{balancing}:loadbalancer/app/*/*"]
    listeners = [
        f"{balancing}:{kind}/{balancer}/*/*/*"
        for kind in ("listener", "listener-rule")
        for balancer in ("net", "app")
    ]
    return document(
        _allow(
            _of("iam", "CreateServiceLinkedRole"),
            "*",
            {"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}},
        ),
        _allow(_actions(_READ), "*"),
        _allow(_actions(_PROTECT), "*"),
        _allow(
            _of("ec2", "AuthorizeSecurityGroupIngress", "CreateSecurityGroup", "RevokeSecurityGroupIngress"),
            "*",
        ),
        _allow(
            _of("ec2", "CreateTags"),
            groups,
            {"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup"}, **_ASKED},
        ),
        _allow(_of("ec2", "CreateTags", "DeleteTags"), groups, _OWN_AND_STAYS_SO),
        _allow(_of("ec2", "DeleteSecurityGroup"), "*", _OWN),
        _allow(_of("elasticloadbalancing", "CreateLoadBalancer", "CreateTargetGroup"), "*", _ASKED),
        _allow(_of("elasticloadbalancing", *_CHANGE_RULES), "*"),
        _allow(_of("elasticloadbalancing", "AddTags", "RemoveTags"), balancers, _OWN_AND_STAYS_SO),
        _allow(_of("elasticloadbalancing", "AddTags", "RemoveTags"), listeners),
        _allow(_of("elasticloadbalancing", *_CHANGE_OWN), "*", _OWN),
        _allow(
            _of("elasticloadbalancing", "AddTags"),
            balancers,
            {
                "StringEquals": {
                    "elasticloadbalancing:CreateAction": ["CreateLoadBalancer", "CreateTargetGroup"]
                },
                **_ASKED,
            },
        ),
        _allow(_of("elasticloadbalancing", "DeregisterTargets", "RegisterTargets"), target_groups),
    )


def _of(service: str, *actions: str) -> list[str]:
    return [f"{service}:{action}" for action in actions]


def _actions(table: Mapping[str, Sequence[str]]) -> list[str]:
    return [action for service, actions in table.items() for action in _of(service, *actions)]


def _allow(
    actions: Sequence[str], resources: str | Sequence[str], condition: Mapping[str, Any] | None = None
) -> Document:
    statement: Document = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return statement if condition is None else {**statement, "Condition": condition}
