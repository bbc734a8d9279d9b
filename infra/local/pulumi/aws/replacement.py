"""Which change of an AWS resource makes the real provider replace it: its own lists, as data.

pulumi-aws takes them from the Terraform provider that it is made of: an attribute with `ForceNew`, a change
of which `CustomizeDiff` may force besides. Every input that the local AWS takes is either on such a list or
named by its resource's `in_place`; the tests hold that each is on exactly one of the two, so that no input is
taken whose rule nobody looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

Inputs = Mapping[str, Any]
Condition = Callable[[Inputs, Inputs], bool]


@dataclass(frozen=True, slots=True)
class ForceNew:
    """The rule of one type of resource.

    Attributes:
        source: File of hashicorp/terraform-provider-aws (v6, below `internal/service`) that says so.
        inputs: Inputs any change of which replaces.
        conditions: Input -> whether its change from old to new inputs replaces; others are in place.
    """

    source: str
    inputs: frozenset[str]
    conditions: Mapping[str, Condition] = field(default_factory=dict)


def _members(key: str, *members: str) -> Condition:
    """A change of one of these members of a nested input."""

    def changed(old: Inputs, new: Inputs) -> bool:
        before, after = old.get(key) or {}, new.get(key) or {}
        # An attribute that is not given keeps what the cloud made of it.
        return any(each in after and before.get(each) != after[each] for each in members)

    return changed


def _taken_away(key: str) -> Condition:
    return lambda old, new: bool(old.get(key)) and not new.get(key)


def _not_an_interface(old: Inputs, new: Inputs) -> bool:
    return bool(new.get("vpcEndpointType") != "Interface")


def _to_another_than_default(old: Inputs, new: Inputs) -> bool:
    return (old.get("instanceTenancy"), new.get("instanceTenancy", "default")) != ("dedicated", "default")


def _rule(source: str, *inputs: str, **conditions: Condition) -> ForceNew:
    return ForceNew(source, frozenset(inputs), MappingProxyType(conditions))


#: By token.
FORCE_NEW: Final[Mapping[str, ForceNew]] = MappingProxyType(
    {
        "aws:ec2/vpc:Vpc": _rule("ec2/vpc_.go", "cidrBlock", instanceTenancy=_to_another_than_default),
        "aws:ec2/subnet:Subnet": _rule("ec2/vpc_subnet.go", "vpcId", "cidrBlock", "availabilityZone"),
        "aws:ec2/internetGateway:InternetGateway": _rule("ec2/vpc_internet_gateway.go"),
        "aws:ec2/eip:Eip": _rule("ec2/ec2_eip.go", "domain"),
        "aws:ec2/natGateway:NatGateway": _rule(
            "ec2/vpc_nat_gateway.go", "subnetId", "allocationId", "connectivityType"
        ),
        "aws:ec2/routeTable:RouteTable": _rule("ec2/vpc_route_table.go", "vpcId"),
        "aws:ec2/route:Route": _rule("ec2/vpc_route.go", "routeTableId", "destinationCidrBlock"),
        "aws:ec2/routeTableAssociation:RouteTableAssociation": _rule(
            "ec2/vpc_route_table_association.go", "subnetId"
        ),
        "aws:ec2/vpcEndpoint:VpcEndpoint": _rule(
            "ec2/vpc_endpoint.go",
            "vpcId",
            "serviceName",
            "vpcEndpointType",
            privateDnsEnabled=_not_an_interface,
        ),
        "aws:ec2/tag:Tag": _rule("ec2/tag_gen.go", "resourceId", "key"),
        "aws:ec2/securityGroup:SecurityGroup": _rule(
            "ec2/vpc_security_group.go", "name", "description", "vpcId"
        ),
        "aws:ec2/securityGroupRule:SecurityGroupRule": _rule(
            "ec2/vpc_security_group_rule.go",
            "type",
            "securityGroupId",
            "protocol",
            "fromPort",
            "toPort",
            "self",
            "cidrBlocks",
            "ipv6CidrBlocks",
            "prefixListIds",
            "sourceSecurityGroupId",
        ),
        "aws:iam/role:Role": _rule("iam/role.go", "name", "path"),
        "aws:iam/rolePolicy:RolePolicy": _rule("iam/role_policy.go", "name", "role"),
        "aws:iam/policy:Policy": _rule("iam/policy.go", "name", "path", "description"),
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _rule(
            "iam/role_policy_attachment.go", "role", "policyArn"
        ),
        "aws:iam/instanceProfile:InstanceProfile": _rule("iam/instance_profile.go", "name", "path"),
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider": _rule("iam/openid_connect_provider.go", "url"),
        "aws:sqs/queue:Queue": _rule("sqs/queue.go", "name"),
        "aws:sqs/queuePolicy:QueuePolicy": _rule("sqs/queue_policy.go", "queueUrl"),
        "aws:cloudwatch/eventRule:EventRule": _rule("events/rule.go", "name"),
        "aws:cloudwatch/eventTarget:EventTarget": _rule("events/target.go", "rule", "targetId"),
        "aws:ecr/repository:Repository": _rule("ecr/repository.go", "name", "encryptionConfigurations"),
        "aws:ecr/lifecyclePolicy:LifecyclePolicy": _rule("ecr/lifecycle_policy.go", "policy", "repository"),
        "aws:eks/cluster:Cluster": _rule(
            "eks/cluster.go",
            "name",
            "roleArn",
            "bootstrapSelfManagedAddons",
            accessConfig=_members("accessConfig", "bootstrapClusterCreatorAdminPermissions"),
            # Envelope encryption cannot be disabled once it is there.
            encryptionConfig=_taken_away("encryptionConfig"),
            kubernetesNetworkConfig=_members("kubernetesNetworkConfig", "ipFamily", "serviceIpv4Cidr"),
        ),
        "aws:eks/fargateProfile:FargateProfile": _rule(
            "eks/fargate_profile.go",
            "clusterName",
            "fargateProfileName",
            "podExecutionRoleArn",
            "selectors",
            "subnetIds",
        ),
        "aws:eks/accessEntry:AccessEntry": _rule(
            "eks/access_entry.go", "clusterName", "principalArn", "type"
        ),
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _rule(
            "eks/access_policy_association.go", "clusterName", "principalArn", "policyArn", "accessScope"
        ),
        "aws:eks/podIdentityAssociation:PodIdentityAssociation": _rule(
            "eks/pod_identity_association.go", "clusterName", "namespace", "serviceAccount"
        ),
        "aws:eks/addon:Addon": _rule("eks/addon.go", "clusterName", "addonName"),
    }
)
