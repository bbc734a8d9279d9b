"""Who the controller is to AWS: its role, that role's policy, and how its pods come by it.

By IRSA the role trusts the cluster's issuer of service account tokens; pods find it through their service
account's annotation, on Fargate as on nodes. By EKS Pod Identity the role trusts EKS itself, and an
association says which service account it belongs to; its agent is a DaemonSet, which Fargate does not run.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import names, policies
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.ordering import child_after
from pulumi_nodeless.policy_parts import part_of, parts
from pulumi_nodeless.scoped_policy import scoped_controller_policy
from pulumi_nodeless.service_account_role import (
    RoleNames,
    RoleWithPolicy,
    ServiceAccount,
    role_with_policy,
    service_account_role,
)

SCOPED: Final = "scoped"
POLICIES: Final[Mapping[str, Callable[[policies.Subject], policies.Document]]] = {
    "guide": policies.controller_policy,
    "article": policies.article_policy,
    SCOPED: scoped_controller_policy,
}
"""Policies by the name that a user chooses them with."""
IRSA: Final = "irsa"
POD_IDENTITY: Final = "pod-identity"
MECHANISMS: Final = (IRSA, POD_IDENTITY)
"""How pods come by a role."""
POD_IDENTITY_AGENT: Final = "eks-pod-identity-agent"
"""The add-on that hands credentials out on each node."""


class ControllerIdentityArgs(TypedDict):
    """Which service account of which cluster becomes the controller."""

    cluster_name: str
    """Name of the cluster. It is part of the names of role and policy, and limits which instances may be
    terminated."""
    node_role_arn: pulumi.Input[str]
    """ARN of the only role that the controller may pass to instances."""
    mechanism: NotRequired[str]
    """`irsa` (with the service account's token) or `pod-identity` (with an EKS Pod Identity association; only
    for pods on nodes, since Fargate has no agent). Default: irsa."""
    oidc_provider_arn: NotRequired[pulumi.Input[str]]
    """ARN of the cluster's IAM OpenID Connect provider. Required with irsa."""
    oidc_issuer: NotRequired[pulumi.Input[str]]
    """Issuer of the cluster, with or without https://. Required with irsa."""
    pod_identity_agent: NotRequired[bool]
    """Whether to install the add-on eks-pod-identity-agent. Default: true with pod-identity, else false."""
    interruption_queue_arn: NotRequired[pulumi.Input[str]]
    """ARN of the interruption queue that the controller may read. Default: none."""
    permissions: NotRequired[str]
    """`scoped` (limited by the cluster's tags), `guide` (the policy of Karpenter's v0.27 guide: it may tag
    anything in EC2 and can so, in two steps, terminate any instance) or `article` (the statements of that
    guide, unchanged: it may terminate any instance that has a Provisioner's name, and cannot terminate those
    of NodePools). Default: scoped."""
    namespace: NotRequired[str]
    """Namespace of the service account. Default: karpenter."""
    service_account: NotRequired[str]
    """Name of the service account. Default: karpenter."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the role and the policies."""


class ControllerIdentity(pulumi.ComponentResource):
    """The role that the controller's pods assume, its policy and, with Pod Identity, its association."""

    role_arn: pulumi.Output[str]
    """ARN of the role, for the service account's annotation."""
    role_name: pulumi.Output[str]
    """Name of the role."""
    policy_arn: pulumi.Output[str]
    """ARN of the policy; of the first one where IAM's size limit requires several."""

    def __init__(
        self, name: str, args: ControllerIdentityArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        reader = ArgumentReader("ControllerIdentity", args, ControllerIdentityArgs)
        self._name, self._args, self._given = name, args, opts
        self._cluster, self._tags = reader.cluster_name(), reader.tags("tags")
        self._namespace = reader.text("namespace", "karpenter")
        self._service_account = reader.text("service_account", "karpenter")
        permissions = reader.choice("permissions", tuple(POLICIES), SCOPED)
        mechanism = reader.choice("mechanism", MECHANISMS, IRSA)
        with_agent = reader.flag("pod_identity_agent", mechanism == POD_IDENTITY)
        if mechanism == IRSA:
            for needed in ("oidc_provider_arn", "oidc_issuer"):
                if reader.value(needed) is None:
                    reader.report(needed, "needed with irsa: the role trusts the cluster's issuer")
        reader.check()
        super().__init__("nodeless:index:ControllerIdentity", name, {}, opts)
        self._make_policy = POLICIES[permissions]
        self._parts = parts(self._make_policy, self._cluster)
        made = self._by_token() if mechanism == IRSA else self._by_association()
        if with_agent:
            aws.eks.Addon(
                f"{name}-pod-identity-agent",
                cluster_name=self._cluster,
                addon_name=POD_IDENTITY_AGENT,
                tags=self._tags,
                opts=child_after(self, opts),
            )
        self.role_arn = made.role.arn
        self.role_name = made.role.name
        self.policy_arn = made.policy.arn
        self.register_outputs(
            {"roleArn": self.role_arn, "roleName": self.role_name, "policyArn": self.policy_arn}
        )

    def _names(self) -> RoleNames:
        return RoleNames(
            role=names.controller_role(self._cluster),
            role_description=f"Node provisioner of EKS cluster {self._cluster}",
            policy=names.controller_policy(self._cluster),
            policy_description=f"What the node provisioner of EKS cluster {self._cluster} may do",
            further_policies=tuple(
                names.controller_policy(self._cluster, number + 1) for number in range(1, len(self._parts))
            ),
        )

    def _by_token(self) -> RoleWithPolicy:
        first, *further = self._policies()
        return service_account_role(
            self,
            self._name,
            ServiceAccount(
                self._namespace,
                self._service_account,
                self._args["oidc_provider_arn"],
                self._args["oidc_issuer"],
            ),
            self._names(),
            first,
            self._tags,
            further,
        )

    def _by_association(self) -> RoleWithPolicy:
        trust = self._place().apply(
            lambda place: json.dumps(
                policies.pod_identity_trust(
                    policies.cluster_arn(place[0], place[2], place[3], self._cluster),
                    self._namespace,
                    self._service_account,
                )
            )
        )
        first, *further = self._policies()
        made = role_with_policy(self, self._name, trust, self._names(), first, self._tags, further)
        aws.eks.PodIdentityAssociation(
            f"{self._name}-association",
            cluster_name=self._cluster,
            namespace=self._namespace,
            service_account=self._service_account,
            role_arn=made.role.arn,
            tags=self._tags,
            # EKS knows one association for each service account.
            opts=child_after(self, self._given, delete_before_replace=True),
        )
        return made

    def _place(self) -> pulumi.Output[list[str]]:
        """Partition, DNS suffix, region and account."""
        invoke = pulumi.InvokeOutputOptions(parent=self)
        partition = aws.get_partition_output(opts=invoke)
        return pulumi.Output.all(
            partition.partition,
            partition.dns_suffix,
            aws.get_region_output(opts=invoke).region,
            aws.get_caller_identity_output(opts=invoke).account_id,
        )

    def _policies(self) -> list[pulumi.Output[str]]:
        """The documents of the managed policies that the controller's policy takes."""
        known = pulumi.Output.all(
            self._place(), self._args["node_role_arn"], self._args.get("interruption_queue_arn", "")
        )
        whole = known.apply(
            lambda told: self._make_policy(
                policies.Subject(
                    partition=told[0][0],
                    dns_suffix=told[0][1],
                    region=told[0][2],
                    account=told[0][3],
                    cluster=self._cluster,
                    node_role_arn=told[1],
                    interruption_queue_arn=told[2],
                )
            )
        )
        return [whole.apply(partial(_document_of, sids)) for sids in self._parts]


def _document_of(sids: frozenset[str], policy: policies.Document) -> str:
    return json.dumps(part_of(policy, sids))
