"""Which change of an AWS resource makes the real provider replace it: its own lists, as data.

pulumi-aws takes them from the Terraform provider that it is made of: an attribute with `ForceNew`, a change
of which `CustomizeDiff` may force besides. Every input that the local AWS takes is either on such a list or
named by its resource's `in_place`; the tests hold that each is on exactly one of the two, so that no input is
taken whose rule nobody looked up. Each list was compared with the file that its rule names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from localenv.pulumi import wire

Inputs = Mapping[str, Any]
Condition = Callable[[Inputs, Inputs], bool]


@dataclass(frozen=True, slots=True)
class ForceNew:
    """The rule of one type of resource.

    Attributes:
        source: File of hashicorp/terraform-provider-aws (v6, below `internal/service`) that says so.
        inputs: Inputs any change of which replaces.
        conditions: Input -> whether its change from old to new inputs replaces; others are in place.
        defaults: Input -> what it is where it is not given (`Default`): to spell that out changes nothing.
        kept: Inputs that stay as they are in the cloud where they are given no longer (`Computed` beside
            `Optional`, or a difference that is suppressed): to take one out changes nothing.
        kept_members: Members of nested inputs of which the same is true.
    """

    source: str
    inputs: frozenset[str]
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    defaults: Inputs = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    kept_members: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def settle_inputs(self, old: Inputs, new: Inputs) -> tuple[Inputs, Inputs]:
        """Old and new inputs as the real provider compares them."""
        stays = {key: old[key] for key in self.kept if key in old}
        nested = {
            key: {**{member: old[key][member] for member in members if member in old[key]}, **new[key]}
            for key, members in self.kept_members.items()
            if isinstance(old.get(key), Mapping) and isinstance(new.get(key), Mapping)
        }
        return {**self.defaults, **old}, {**self.defaults, **stays, **new, **nested}

    def with_defaults(self, /, **defaults: Any) -> ForceNew:
        """The same rule, with defaults."""
        return replace(self, defaults=MappingProxyType(defaults))

    def keeping(self, *inputs: str) -> ForceNew:
        """The same rule, with inputs that stay when they are taken out."""
        return replace(self, kept=frozenset(inputs))

    def keeping_members(self, key: str, *members: str) -> ForceNew:
        """The same rule, with members of a nested input that stay when they are taken out."""
        return replace(self, kept_members=MappingProxyType({key: frozenset(members)}))


def _members(key: str, *members: str) -> Condition:
    """A change of one of these members of a nested input."""

    def has_changed(old: Inputs, new: Inputs) -> bool:
        before, after = old.get(key) or {}, new.get(key) or {}
        # An attribute that is not given keeps what the cloud made of it.
        return any(member in after and before.get(member) != after[member] for member in members)

    return has_changed


def _admin_rights_of_creator(old: Inputs, new: Inputs) -> bool:
    def is_given(inputs: Inputs) -> bool:
        # EKS does not tell; where they are not refused the provider records them as given.
        access = inputs.get("accessConfig") or {}
        return bool(access.get("bootstrapClusterCreatorAdminPermissions", True))

    # Not known yet: the engine asks so of what depends on a resource that is replaced.
    return not wire.is_unknown(new.get("accessConfig")) and is_given(old) != is_given(new)


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
        "aws:ec2/vpc:Vpc": _rule(
            "ec2/vpc_.go", "cidrBlock", instanceTenancy=_to_another_than_default
        ).with_defaults(instanceTenancy="default", enableDnsSupport=True),
        "aws:ec2/subnet:Subnet": _rule("ec2/vpc_subnet.go", "vpcId", "cidrBlock", "availabilityZone")
        .with_defaults(mapPublicIpOnLaunch=False)
        .keeping("availabilityZone"),
        "aws:ec2/internetGateway:InternetGateway": _rule("ec2/vpc_internet_gateway.go").keeping("vpcId"),
        "aws:ec2/eip:Eip": _rule("ec2/ec2_eip.go", "domain").keeping("domain"),
        "aws:ec2/natGateway:NatGateway": _rule(
            "ec2/vpc_nat_gateway.go", "subnetId", "allocationId", "connectivityType"
        ).with_defaults(connectivityType="public"),
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
        ).with_defaults(vpcEndpointType="Gateway"),
        "aws:ec2/tag:Tag": _rule("ec2/tag_gen.go", "resourceId", "key"),
        "aws:ec2/securityGroup:SecurityGroup": _rule(
            "ec2/vpc_security_group.go", "name", "description", "vpcId"
        )
        .with_defaults(description="Managed by Pulumi", revokeRulesOnDelete=False)
        .keeping("vpcId", "ingress", "egress"),
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
        )
        .with_defaults(self=False)
        .keeping("sourceSecurityGroupId"),
        "aws:iam/role:Role": _rule("iam/role.go", "name", "path").with_defaults(
            path="/", maxSessionDuration=3600, forceDetachPolicies=False
        ),
        "aws:iam/rolePolicy:RolePolicy": _rule("iam/role_policy.go", "name", "role"),
        "aws:iam/policy:Policy": _rule("iam/policy.go", "name", "path", "description").with_defaults(
            path="/"
        ),
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _rule(
            "iam/role_policy_attachment.go", "role", "policyArn"
        ),
        "aws:iam/instanceProfile:InstanceProfile": _rule(
            "iam/instance_profile.go", "name", "path"
        ).with_defaults(path="/"),
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider": _rule(
            "iam/openid_connect_provider.go", "url"
        ).keeping("thumbprintLists"),
        "aws:sqs/queue:Queue": _rule("sqs/queue.go", "name"),
        "aws:sqs/queuePolicy:QueuePolicy": _rule("sqs/queue_policy.go", "queueUrl"),
        "aws:cloudwatch/eventRule:EventRule": _rule("events/rule.go", "name"),
        "aws:cloudwatch/eventTarget:EventTarget": _rule("events/target.go", "rule", "targetId"),
        "aws:ecr/repository:Repository": _rule("ecr/repository.go", "name", "encryptionConfigurations")
        .with_defaults(imageTagMutability="MUTABLE", encryptionConfigurations=[{"encryptionType": "AES256"}])
        .keeping("encryptionConfigurations", "imageScanningConfiguration"),
        "aws:ecr/lifecyclePolicy:LifecyclePolicy": _rule("ecr/lifecycle_policy.go", "policy", "repository"),
        "aws:eks/cluster:Cluster": _rule(
            "eks/cluster.go",
            "name",
            "roleArn",
            "bootstrapSelfManagedAddons",
            accessConfig=_admin_rights_of_creator,
            # Envelope encryption cannot be disabled once it is there.
            encryptionConfig=_taken_away("encryptionConfig"),
            kubernetesNetworkConfig=_members("kubernetesNetworkConfig", "ipFamily", "serviceIpv4Cidr"),
        )
        .with_defaults(bootstrapSelfManagedAddons=True)
        .keeping("accessConfig", "kubernetesNetworkConfig", "version")
        .keeping_members("vpcConfig", "publicAccessCidrs"),
        "aws:eks/fargateProfile:FargateProfile": _rule(
            "eks/fargate_profile.go",
            "clusterName",
            "fargateProfileName",
            "podExecutionRoleArn",
            "selectors",
            "subnetIds",
        ),
        "aws:eks/accessEntry:AccessEntry": _rule("eks/access_entry.go", "clusterName", "principalArn", "type")
        .with_defaults(type="STANDARD")
        .keeping("kubernetesGroups", "userName"),
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _rule(
            "eks/access_policy_association.go", "clusterName", "principalArn", "policyArn", "accessScope"
        ),
        "aws:eks/podIdentityAssociation:PodIdentityAssociation": _rule(
            "eks/pod_identity_association.go", "clusterName", "namespace", "serviceAccount"
        ),
        "aws:eks/addon:Addon": _rule("eks/addon.go", "clusterName", "addonName").keeping(
            "addonVersion", "configurationValues"
        ),
    }
)
