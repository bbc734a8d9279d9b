"""The EKS cluster: pulumi-eks without node groups, and its own security group made discoverable.

Builds on `pulumi_eks.Cluster` and takes care of what it leaves open for a cluster without nodes: no
default node group, no extra security groups, an OpenID Connect provider for service accounts, CoreDNS
left to the Fargate component, and in ConfigMap modes the role mappings of nodes and Fargate, since a
managed `aws-auth` replaces the entries that EKS would write.

Exactly one security group carries the discovery tag: the one EKS makes for the cluster, in which the
control plane, Fargate pods and nodes already trust each other. pulumi-eks cannot tag that one, so it is
tagged by a resource of its own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from pulumi_nodeless import names
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.kubeconfig import kubeconfig, region_of

API = "API"
API_AND_CONFIG_MAP = "API_AND_CONFIG_MAP"
CONFIG_MAP = "CONFIG_MAP"
AUTHENTICATION_MODES = (API, API_AND_CONFIG_MAP, CONFIG_MAP)
_VERSION: Final = re.compile(r"1\.(?:2[3-9]|[3-9]\d)")
_NODE_GROUPS = ("system:bootstrappers", "system:nodes")


LOG_TYPES: Final = ("api", "audit", "authenticator", "controllerManager", "scheduler")
"""Logs of the control plane that EKS can keep in CloudWatch."""


class ClusterArgs(TypedDict):
    """What a cluster is made of."""

    cluster_name: str
    """Name of the cluster."""
    vpc_id: pulumi.Input[str]
    """ID of the cluster's VPC."""
    private_subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Subnets for the network interfaces of the control plane, in at least two zones. Nodes may run in other
    subnets of the VPC. Later changes are ignored, since EKS keeps a cluster in the zones of its subnets."""
    public_subnet_ids: NotRequired[pulumi.Input[Sequence[pulumi.Input[str]]]]
    """Further, public subnets for these network interfaces. Later changes are ignored."""
    kubernetes_version: NotRequired[str]
    """Kubernetes version, for example 1.33. Default: the newest that EKS offers when the cluster is
    created."""
    authentication_mode: NotRequired[str]
    """API, API_AND_CONFIG_MAP or CONFIG_MAP. Default: API_AND_CONFIG_MAP."""
    node_role_arn: NotRequired[pulumi.Input[str]]
    """ARN of the node role. Required in the modes that use the aws-auth ConfigMap."""
    pod_execution_role_arn: NotRequired[pulumi.Input[str]]
    """ARN of Fargate's pod execution role. Required in the modes that use the aws-auth ConfigMap."""
    endpoint_public_access: NotRequired[bool]
    """Whether the API server can also be reached from outside the VPC. Default: true."""
    public_access_cidrs: NotRequired[Sequence[str]]
    """CIDR blocks that may reach the public endpoint. Default: all addresses."""
    private_access_cidrs: NotRequired[Sequence[str]]
    """CIDR blocks, beside the cluster's own security group, that may reach the private endpoint: of a network
    that is connected to the VPC, where Pulumi runs. Default: none."""
    log_types: NotRequired[Sequence[str]]
    """Control plane logs to enable: api, audit, authenticator, controllerManager, scheduler. Default:
    none."""
    secrets_key_arn: NotRequired[pulumi.Input[str]]
    """ARN of a KMS key that also encrypts Secrets, in addition to EKS's own encryption. It cannot be removed
    later."""
    kubeconfig_role_arn: NotRequired[str]
    """ARN of the IAM role with which the kubeconfig signs in, and everything that is made in the cluster: the
    one that the AWS provider assumes, since it creates the cluster. Default: none is assumed."""
    kubeconfig_profile: NotRequired[str]
    """AWS CLI profile from which the kubeconfig takes credentials: that of the AWS provider. Default: the
    credentials of the environment."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of all AWS resources of the cluster."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The arguments of a cluster, checked and with defaults."""

    cluster_name: str
    kubernetes_version: str | None
    authentication_mode: str
    endpoint_public_access: bool
    public_access_cidrs: tuple[str, ...]
    private_access_cidrs: tuple[str, ...]
    log_types: tuple[str, ...]
    kubeconfig_role_arn: str
    kubeconfig_profile: str
    tags: dict[str, str]

    @classmethod
    def read(cls, args: ClusterArgs) -> "ClusterOptions":
        """Checks the arguments.

        Raises:
            ArgumentError: with every fault found.
        """
        reader = ArgumentReader("Cluster", args, ClusterArgs)
        options = cls(
            cluster_name=reader.cluster_name(),
            kubernetes_version=reader.text("kubernetes_version") or None,
            authentication_mode=reader.choice(
                "authentication_mode", AUTHENTICATION_MODES, API_AND_CONFIG_MAP
            ),
            endpoint_public_access=reader.flag("endpoint_public_access", True),
            public_access_cidrs=reader.networks("public_access_cidrs"),
            private_access_cidrs=reader.networks("private_access_cidrs"),
            log_types=reader.texts("log_types"),
            kubeconfig_role_arn=reader.text("kubeconfig_role_arn"),
            kubeconfig_profile=reader.text("kubeconfig_profile"),
            tags=reader.tags("tags"),
        )
        version = options.kubernetes_version
        if version is not None and not _VERSION.fullmatch(version):
            reader.report("kubernetes_version", f"{version!r} is not a version that EKS offers", "1.33")
        if options.public_access_cidrs and not options.endpoint_public_access:
            reader.report("public_access_cidrs", "given although the public endpoint is off")
        reader.report_repeated("private_access_cidrs", options.private_access_cidrs)
        for unknown in sorted(set(options.log_types) - set(LOG_TYPES)):
            reader.report("log_types", f"{unknown!r} is not one of {', '.join(LOG_TYPES)}")
        if options.authentication_mode != API:
            for role in ("node_role_arn", "pod_execution_role_arn"):
                if reader.value(role) is None:
                    reader.report(
                        role, f"needed in mode {options.authentication_mode}: it goes into aws-auth"
                    )
        reader.check()
        return options


class Cluster(pulumi.ComponentResource):
    """An EKS cluster without node groups, ready for nodes that nodeless launches."""

    cluster_name: pulumi.Output[str]
    """Name of the cluster, available once the cluster exists."""
    arn: pulumi.Output[str]
    """ARN of the cluster."""
    endpoint: pulumi.Output[str]
    """URL of the API server."""
    kubernetes_version: pulumi.Output[str]
    """Kubernetes version of the cluster, available once it runs that version."""
    certificate_authority: pulumi.Output[str]
    """CA bundle of the API server: PEM, base64-encoded."""
    security_group_id: pulumi.Output[str]
    """ID of the security group that EKS created, the only one with the discovery tag."""
    oidc_provider_arn: pulumi.Output[str]
    """ARN of the IAM OpenID Connect provider for service accounts."""
    oidc_issuer: pulumi.Output[str]
    """Issuer of the service account tokens, without https://."""
    kubeconfig: pulumi.Output[Any]
    """Kubeconfig that authenticates with the AWS CLI; a secret."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        options = ClusterOptions.read(args)
        super().__init__("nodeless:index:Cluster", name, {}, opts)
        self._eks = eks.Cluster(
            f"{name}-eks",
            name=options.cluster_name,
            version=self._check_offered(options.kubernetes_version),
            vpc_id=args["vpc_id"],
            private_subnet_ids=args["private_subnet_ids"],
            public_subnet_ids=args.get("public_subnet_ids"),
            skip_default_node_group=True,
            skip_default_security_groups=True,
            create_oidc_provider=True,
            authentication_mode=eks.AuthenticationMode(options.authentication_mode),
            role_mappings=_role_mappings(options.authentication_mode, args),
            # A replaced aws-auth is gone for a moment, and with it the access of every node.
            enable_config_map_mutable=True,
            bootstrap_self_managed_addons=False,
            # CoreDNS has to wait for its Fargate profile, which pulumi-eks does not know here.
            coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
            endpoint_private_access=True,
            endpoint_public_access=options.endpoint_public_access,
            public_access_cidrs=_public_access_cidrs(options),
            enabled_cluster_log_types=list(options.log_types) or None,
            encryption_config_key_arn=args.get("secrets_key_arn"),
            provider_credential_opts=_credentials(options),
            tags=options.tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                transforms=[
                    _keep_subnets,
                    partial(_tag_issuer, options.tags),
                    partial(_name_role, options.cluster_name),
                ],
            ),
        )
        made = self._eks.eks_cluster
        self.cluster_name = made.apply(lambda cluster: cluster.name)
        self.arn = made.apply(lambda cluster: cluster.arn)
        self.endpoint = made.apply(lambda cluster: cluster.endpoint)
        self.kubernetes_version = made.apply(lambda cluster: cluster.version)
        self.certificate_authority = made.apply(_certificate_authority)
        self.security_group_id = self._security_group(made.apply(lambda cluster: cluster.id))
        self._open_private_endpoint(name, options.private_access_cidrs)
        self.oidc_provider_arn = self._eks.oidc_provider_arn
        self.oidc_issuer = self._eks.oidc_issuer.apply(lambda issuer: issuer.removeprefix("https://"))
        self.kubeconfig = pulumi.Output.secret(
            pulumi.Output.all(self.endpoint, self.certificate_authority, self.arn).apply(
                lambda known: kubeconfig(
                    cluster=options.cluster_name,
                    endpoint=known[0],
                    certificate_authority=known[1],
                    region=region_of(known[2]),
                    role_arn=options.kubeconfig_role_arn,
                    profile=options.kubeconfig_profile,
                )
            )
        )
        aws.ec2.Tag(
            f"{name}-discovery",
            resource_id=self.security_group_id,
            key=names.DISCOVERY_TAG,
            value=options.cluster_name,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs(
            {
                "clusterName": self.cluster_name,
                "arn": self.arn,
                "endpoint": self.endpoint,
                "kubernetesVersion": self.kubernetes_version,
                "certificateAuthority": self.certificate_authority,
                "securityGroupId": self.security_group_id,
                "oidcProviderArn": self.oidc_provider_arn,
                "oidcIssuer": self.oidc_issuer,
                "kubeconfig": self.kubeconfig,
            }
        )

    def _security_group(self, cluster: pulumi.Output[str]) -> pulumi.Output[str]:
        """The group that EKS made.

        Asked of EKS: in a preview that changes the cluster the resource does not tell it, and what depends on
        it would look as if it had to be replaced.
        """
        told = aws.eks.get_cluster_output(name=cluster, opts=pulumi.InvokeOutputOptions(parent=self))
        return told.apply(lambda answer: str(answer.vpc_config.cluster_security_group_id))

    def _open_private_endpoint(self, name: str, blocks: Sequence[str]) -> None:
        """Admits networks to the private endpoint.

        One rule for each block: a changed rule is another one, made while the old one has its blocks.
        """
        for block in blocks:
            aws.ec2.SecurityGroupRule(
                f"{name}-private-access-{block}",
                type="ingress",
                security_group_id=self.security_group_id,
                protocol="tcp",
                from_port=443,
                to_port=443,
                description="the private endpoint of the API server",
                cidr_blocks=None if ":" in block else [block],
                ipv6_cidr_blocks=[block] if ":" in block else None,
                opts=pulumi.ResourceOptions(parent=self),
            )

    def _check_offered(self, version: str | None) -> pulumi.Input[str] | None:
        """The version, if EKS offers it: asked of EKS while the program runs, in a preview as well."""
        if version is None:
            return None
        listed = aws.eks.get_cluster_versions_output(opts=pulumi.InvokeOutputOptions(parent=self))
        return listed.apply(lambda answer: require_offered(version, answer.cluster_versions))


def _credentials(options: ClusterOptions) -> eks.KubeconfigOptionsArgs | None:
    """What pulumi-eks itself signs in to the cluster with."""
    role, profile = options.kubeconfig_role_arn, options.kubeconfig_profile
    if not role and not profile:
        return None
    return eks.KubeconfigOptionsArgs(role_arn=role or None, profile_name=profile or None)


def _public_access_cidrs(options: ClusterOptions) -> list[str] | None:
    """The CIDR blocks that may reach the public endpoint.

    All addresses are spelled out: left out, the provider would keep the blocks before.
    """
    if not options.endpoint_public_access:
        return None
    return list(options.public_access_cidrs) or ["0.0.0.0/0"]


def _keep_subnets(resource: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Leaves the cluster in the subnets that it was made with.

    EKS takes others only in exactly the same zones, and earlier stacks gave it those of every zone. Source:
    https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html.
    """
    if resource.type_ != "aws:eks/cluster:Cluster":
        return None
    keeping = pulumi.ResourceOptions(ignore_changes=["vpcConfig.subnetIds"])
    return pulumi.ResourceTransformResult(
        resource.props, pulumi.ResourceOptions.merge(resource.opts, keeping)
    )


def _tag_issuer(
    tags: Mapping[str, Any], resource: pulumi.ResourceTransformArgs
) -> pulumi.ResourceTransformResult | None:
    """Tags the OpenID Connect provider, of all that can have tags the one to which pulumi-eks gives none."""
    if resource.type_ != "aws:iam/openIdConnectProvider:OpenIdConnectProvider" or not tags:
        return None
    return pulumi.ResourceTransformResult({**resource.props, "tags": tags}, resource.opts)


def _name_role(cluster: str, resource: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Names the control plane's role where no name can be made up of its component's, which is too long."""
    called = names.cluster_role(resource.name, cluster)
    if resource.type_ != "aws:iam/role:Role" or called is None:
        return None
    return pulumi.ResourceTransformResult({**resource.props, "name": called}, resource.opts)


def require_offered(
    version: str, listed: Sequence[aws.eks.outputs.GetClusterVersionsClusterVersionResult]
) -> str:
    """The version, which has to be one that EKS supports, be it at extra cost.

    Raises:
        RunError: EKS offers others.
    """
    offered = {each.cluster_version for each in listed if each.version_status != "UNSUPPORTED"}
    if version not in offered:
        told = ", ".join(sorted(offered, key=lambda each: [int(part) for part in each.split(".")]))
        raise pulumi.RunError(
            f"EKS offers no Kubernetes version {version!r} here (kubernetesVersion); it offers {told}"
        )
    return version


def _role_mappings(mode: str, args: ClusterArgs) -> list[eks.RoleMappingArgs] | None:
    """Entries of aws-auth for nodes and for Fargate; none where access entries do the work alone."""
    if mode == API:
        return None
    return [
        eks.RoleMappingArgs(
            role_arn=args["node_role_arn"],
            username="system:node:{{EC2PrivateDNSName}}",
            groups=list(_NODE_GROUPS),
        ),
        eks.RoleMappingArgs(
            role_arn=args["pod_execution_role_arn"],
            username="system:node:{{SessionName}}",
            groups=[*_NODE_GROUPS, "system:node-proxier"],
        ),
    ]


def _certificate_authority(cluster: aws.eks.Cluster) -> pulumi.Output[str]:
    return cluster.certificate_authority.apply(lambda authority: str(authority.data))
