"""A role that one service account of one cluster assumes, and the policy of that role.

IAM roles for service accounts (IRSA) are what pods on Fargate have: EKS Pod Identity needs an agent on the
node. `pod_identity` makes the other kind.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import policies


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """One service account, and how AWS recognises it."""

    namespace: str
    name: str
    oidc_provider_arn: pulumi.Input[str]
    """The cluster's IAM OpenID Connect provider."""
    oidc_issuer: pulumi.Input[str]
    """The cluster's issuer, with or without https://."""


@dataclass(frozen=True, slots=True)
class RoleNames:
    """Physical names and descriptions, which runbooks and policies write down."""

    role: str
    role_description: str
    policy: str
    policy_description: str
    further_policies: tuple[str, ...] = ()
    """Names of the policies that hold what does not fit into the first."""


@dataclass(frozen=True, slots=True)
class RoleWithPolicy:
    """What was registered."""

    role: aws.iam.Role
    policy: aws.iam.Policy


def service_account_role(
    parent: pulumi.Resource,
    name: str,
    account: ServiceAccount,
    texts: RoleNames,
    policy_document: pulumi.Input[str],
    tags: Mapping[str, str],
    further_documents: Sequence[pulumi.Input[str]] = (),
) -> RoleWithPolicy:
    """Registers a role that the service account assumes with its token (IRSA), and its policy."""
    trust = pulumi.Output.all(account.oidc_provider_arn, account.oidc_issuer).apply(
        lambda known: json.dumps(
            policies.service_account_trust(known[0], known[1], account.namespace, account.name)
        )
    )
    return role_with_policy(parent, name, trust, texts, policy_document, tags, further_documents)


def role_with_policy(
    parent: pulumi.Resource,
    name: str,
    trust: pulumi.Input[str],
    texts: RoleNames,
    policy_document: pulumi.Input[str],
    tags: Mapping[str, str],
    further_documents: Sequence[pulumi.Input[str]] = (),
) -> RoleWithPolicy:
    """Registers a role with this trust policy, its policy and the attachment, named after `name`."""
    # A fixed name cannot exist twice: the old one has to go before its replacement comes.
    fixed = pulumi.ResourceOptions(parent=parent, delete_before_replace=True)
    role = aws.iam.Role(
        f"{name}-role",
        name=texts.role,
        description=texts.role_description,
        assume_role_policy=trust,
        tags=tags,
        opts=fixed,
    )
    documents = (policy_document, *further_documents)
    made = []
    for number, (called, content) in enumerate(
        zip((texts.policy, *texts.further_policies), documents, strict=True), start=1
    ):
        own_name = f"{name}-policy" if number == 1 else f"{name}-policy-{number}"
        policy = aws.iam.Policy(
            own_name,
            name=called,
            description=texts.policy_description,
            policy=content,
            tags=tags,
            opts=fixed,
        )
        aws.iam.RolePolicyAttachment(
            own_name, role=role.name, policy_arn=policy.arn, opts=pulumi.ResourceOptions(parent=parent)
        )
        made.append(policy)
    return RoleWithPolicy(role, made[0])
