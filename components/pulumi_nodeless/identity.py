"""Who may do what in AWS: the nodes' role, the controller's role, and the nodes' right to join.

Three components, since they live at different times: the node role stands before the cluster (whose
aws-auth names it), the controller's role after it (it trusts the cluster's issuer), and the access entry
needs both. Policy documents come from `policies`, names from `names`.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import names, policies
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.cluster import API_AND_CONFIG_MAP, AUTHENTICATION_MODES, CONFIG_MAP
from pulumi_nodeless.scoped_policy import scoped_controller_policy
from pulumi_nodeless.service_account_role import RoleNames, ServiceAccount, service_account_role

GUIDE: Final = "guide"
_POLICIES: Final = {GUIDE: policies.controller_policy, "scoped": scoped_controller_policy}


class NodeIdentityArgs(TypedDict):
    """Whose nodes get a role."""

    cluster_name: str
    """Name of the cluster; part of the names of role and instance profile."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of role and instance profile."""


class NodeIdentity(pulumi.ComponentResource):
    """The role that nodes assume, and the instance profile that carries it."""

    role_arn: pulumi.Output[str]
    """ARN of the node role."""
    role_name: pulumi.Output[str]
    """Name of the node role."""
    instance_profile_name: pulumi.Output[str]
    """Name of the instance profile, for node templates and the controller's settings."""

    def __init__(self, name: str, args: NodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("nodeless:index:NodeIdentity", name, {}, opts)
        reader = ArgumentReader("NodeIdentity", args, NodeIdentityArgs)
        cluster, tags = reader.text("cluster_name"), reader.mapping("tags")
        reader.check()
        partition = aws.get_partition_output(opts=pulumi.InvokeOutputOptions(parent=self))
        # A fixed name cannot exist twice: the old one has to go before its replacement comes.
        fixed = pulumi.ResourceOptions(parent=self, delete_before_replace=True)
        role = aws.iam.Role(
            f"{name}-role",
            name=names.node_role(cluster),
            description=f"Nodes of EKS cluster {cluster}",
            assume_role_policy=partition.dns_suffix.apply(
                lambda suffix: json.dumps(policies.node_trust(suffix))
            ),
            tags=tags,
            opts=fixed,
        )
        for policy in policies.NODE_MANAGED_POLICIES:
            aws.iam.RolePolicyAttachment(
                f"{name}-{policy}",
                role=role.name,
                policy_arn=partition.partition.apply(partial(policies.managed_policy_arn, policy)),
                opts=pulumi.ResourceOptions(parent=self),
            )
        profile = aws.iam.InstanceProfile(
            f"{name}-profile", name=names.instance_profile(cluster), role=role.name, tags=tags, opts=fixed
        )
        self.role_arn = role.arn
        self.role_name = role.name
        self.instance_profile_name = profile.name
        self.register_outputs(
            {
                "roleArn": self.role_arn,
                "roleName": self.role_name,
                "instanceProfileName": self.instance_profile_name,
            }
        )


class NodeAccessArgs(TypedDict):
    """Which role's instances may join which cluster."""

    cluster_name: pulumi.Input[str]
    """Name of the cluster."""
    node_role_arn: pulumi.Input[str]
    """Role of the nodes, without path."""
    authentication_mode: NotRequired[str]
    """The cluster's mode. In CONFIG_MAP mode aws-auth does the work alone. Default API_AND_CONFIG_MAP."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the access entry."""


class NodeAccess(pulumi.ComponentResource):
    """The right of instances with the node role to join the cluster as nodes."""

    def __init__(self, name: str, args: NodeAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("nodeless:index:NodeAccess", name, {}, opts)
        reader = ArgumentReader("NodeAccess", args, NodeAccessArgs)
        mode = reader.choice("authentication_mode", AUTHENTICATION_MODES, API_AND_CONFIG_MAP)
        tags = reader.mapping("tags")
        reader.check()
        if mode != CONFIG_MAP:
            aws.eks.AccessEntry(
                f"{name}-entry",
                cluster_name=args["cluster_name"],
                principal_arn=args["node_role_arn"],
                type="EC2_LINUX",
                tags=tags,
                opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
            )
        self.register_outputs({})


class ControllerIdentityArgs(TypedDict):
    """Which service account of which cluster becomes the controller."""

    cluster_name: str
    """Name of the cluster; part of the names of role and policy, and of what may be terminated."""
    oidc_provider_arn: pulumi.Input[str]
    """The cluster's IAM OpenID Connect provider."""
    oidc_issuer: pulumi.Input[str]
    """The cluster's issuer, with or without https://."""
    node_role_arn: pulumi.Input[str]
    """The one role that the controller may pass to instances."""
    interruption_queue_arn: NotRequired[pulumi.Input[str]]
    """The queue of warnings that the controller may read. Default: none."""
    permissions: NotRequired[str]
    """`guide` (the policy of Karpenter's v0.27 guide, the default) or `scoped` (by the cluster's tags)."""
    namespace: NotRequired[str]
    """Namespace of the service account. Default karpenter."""
    service_account: NotRequired[str]
    """Name of the service account. Default karpenter."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of role and policy."""


class ControllerIdentity(pulumi.ComponentResource):
    """The role that the controller's pods assume with their service account token, and its policy."""

    role_arn: pulumi.Output[str]
    """ARN of the role, for the service account's annotation."""
    role_name: pulumi.Output[str]
    """Name of the role."""
    policy_arn: pulumi.Output[str]
    """ARN of the policy."""

    def __init__(
        self, name: str, args: ControllerIdentityArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("nodeless:index:ControllerIdentity", name, {}, opts)
        reader = ArgumentReader("ControllerIdentity", args, ControllerIdentityArgs)
        cluster, tags = reader.text("cluster_name"), reader.mapping("tags")
        namespace = reader.text("namespace", "karpenter")
        service_account = reader.text("service_account", "karpenter")
        self._make_policy = _POLICIES[reader.choice("permissions", tuple(_POLICIES), GUIDE)]
        reader.check()
        made = service_account_role(
            self,
            name,
            ServiceAccount(namespace, service_account, args["oidc_provider_arn"], args["oidc_issuer"]),
            RoleNames(
                role=names.controller_role(cluster),
                role_description=f"Node provisioner of EKS cluster {cluster}",
                policy=names.controller_policy(cluster),
                policy_description=f"What the node provisioner of EKS cluster {cluster} may do",
            ),
            self._policy(cluster, args["node_role_arn"], args.get("interruption_queue_arn", "")),
            tags,
        )
        role, policy = made.role, made.policy
        self.role_arn = role.arn
        self.role_name = role.name
        self.policy_arn = policy.arn
        self.register_outputs(
            {"roleArn": self.role_arn, "roleName": self.role_name, "policyArn": self.policy_arn}
        )

    def _policy(
        self, cluster: str, node_role_arn: pulumi.Input[str], queue_arn: pulumi.Input[str]
    ) -> pulumi.Output[str]:
        invoke = pulumi.InvokeOutputOptions(parent=self)
        partition = aws.get_partition_output(opts=invoke)
        known = pulumi.Output.all(
            partition.partition,
            partition.dns_suffix,
            aws.get_region_output(opts=invoke).region,
            aws.get_caller_identity_output(opts=invoke).account_id,
            node_role_arn,
            queue_arn,
        )

        return known.apply(
            lambda parts: json.dumps(
                self._make_policy(
                    partition=parts[0],
                    dns_suffix=parts[1],
                    region=parts[2],
                    account=parts[3],
                    cluster=cluster,
                    node_role_arn=parts[4],
                    interruption_queue_arn=parts[5],
                )
            )
        )
