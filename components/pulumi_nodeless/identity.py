"""Who nodes are to AWS and to the cluster: their role, and their right to join.

Two components, since they live at different times: the node role stands before the cluster (whose
aws-auth names it), the access entry needs both. Policy documents come from `policies`, names from `names`.
The controller's role is `controller_identity`'s.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import names, policies
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.cluster import API_AND_CONFIG_MAP, AUTHENTICATION_MODES, CONFIG_MAP


class NodeIdentityArgs(TypedDict):
    """Whose nodes get a role."""

    cluster_name: str
    """Name of the cluster. It is part of the names of role and instance profile."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the role and the instance profile."""


class NodeIdentity(pulumi.ComponentResource):
    """The role that nodes assume, and its instance profile."""

    role_arn: pulumi.Output[str]
    """ARN of the node role."""
    role_name: pulumi.Output[str]
    """Name of the node role."""
    instance_profile_name: pulumi.Output[str]
    """Name of the instance profile, for node templates and the controller's settings."""

    def __init__(self, name: str, args: NodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        reader = ArgumentReader("NodeIdentity", args, NodeIdentityArgs)
        cluster, tags = reader.cluster_name(), reader.tags("tags")
        reader.check()
        super().__init__("nodeless:index:NodeIdentity", name, {}, opts)
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
    """ARN of the node role, without a path."""
    authentication_mode: NotRequired[str]
    """Authentication mode of the cluster. In CONFIG_MAP mode no access entry is created, since aws-auth is
    sufficient. Default: API_AND_CONFIG_MAP."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the access entry."""


class NodeAccess(pulumi.ComponentResource):
    """An access entry that lets instances with the node role join the cluster."""

    def __init__(self, name: str, args: NodeAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        reader = ArgumentReader("NodeAccess", args, NodeAccessArgs)
        reader.check_cluster_name()
        mode = reader.choice("authentication_mode", AUTHENTICATION_MODES, API_AND_CONFIG_MAP)
        tags = reader.tags("tags")
        reader.check()
        super().__init__("nodeless:index:NodeAccess", name, {}, opts)
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
