"""What the rest of an environment has to know about a cluster, whether it was made here or was there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from pulumi_nodeless import shapes
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.environment_args import ExistingClusterArgs
from pulumi_nodeless.kubeconfig import kubeconfig, region_of


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the rest of an environment has to know about a cluster, whoever made it."""

    name: pulumi.Input[str]
    arn: pulumi.Input[str]
    endpoint: pulumi.Input[str]
    oidc_provider_arn: pulumi.Input[str]
    oidc_issuer: pulumi.Input[str]
    vpc_id: pulumi.Input[str]
    private_subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    fargate_subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Those of the private subnets that Fargate profiles are made in."""
    public_subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    security_group_id: pulumi.Input[str]
    kubeconfig: pulumi.Output[Any]
    kubernetes_version: pulumi.Output[str] | None
    """None where it has to be asked for."""
    made: tuple[pulumi.Resource, ...]
    """Resources that the controller cannot work without."""


def existing_cluster(
    cluster_name: str, args: ExistingClusterArgs, role_arn: str = "", profile: str = ""
) -> ClusterFacts:
    """The facts of a cluster that is there already, out of arguments that have been checked.

    Args:
        cluster_name: its name.
        args: what is known of it.
        role_arn: the IAM role with which its kubeconfig signs in.
        profile: the AWS CLI profile from which its kubeconfig takes credentials.
    """
    document = kubeconfig(
        cluster=cluster_name,
        endpoint=args["endpoint"],
        certificate_authority=args["certificate_authority"],
        region=region_of(args["arn"]),
        role_arn=role_arn,
        profile=profile,
    )
    return ClusterFacts(
        name=cluster_name,
        arn=args["arn"],
        endpoint=args["endpoint"],
        oidc_provider_arn=args["oidc_provider_arn"],
        oidc_issuer=args["oidc_issuer"],
        vpc_id=args["vpc_id"],
        private_subnet_ids=args["private_subnet_ids"],
        fargate_subnet_ids=args["private_subnet_ids"],
        public_subnet_ids=[],
        security_group_id=args["security_group_id"],
        kubeconfig=pulumi.Output.secret(document),
        kubernetes_version=None,
        made=(),
    )


def read_existing_cluster(reader: ArgumentReader, args: object) -> None:
    """Reports faults of the argument `existing_cluster`; its ARN, which names the region, must be known."""
    given = shapes.read(reader, "existing_cluster", args, ExistingClusterArgs, (str, Sequence))
    arn = given.get("arn")
    shapes.check_known(reader, "existing_cluster.arn", arn)
    try:
        if isinstance(arn, str):
            region_of(arn)
    except ValueError as error:
        reader.report(
            "existing_cluster.arn", str(error), "as EKS shows it: arn:aws:eks:REGION:ACCOUNT:cluster/NAME"
        )
