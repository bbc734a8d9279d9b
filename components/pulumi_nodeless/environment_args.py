"""The arguments of a whole environment; `environment_checks` says what is wrong with them."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from pulumi_nodeless.fargate import FargateProfileArgs
from pulumi_nodeless.pools import NodeTemplateArgs, ProvisionerArgs
from pulumi_nodeless.pools_v1 import NodeClassArgs, NodePoolArgs


class ExistingClusterArgs(TypedDict):
    """An existing cluster, described by plain values."""

    arn: str
    """ARN of the cluster."""
    endpoint: str
    """URL of the API server."""
    certificate_authority: str
    """CA bundle of the API server: PEM, base64-encoded."""
    oidc_provider_arn: str
    """ARN of its IAM OpenID Connect provider."""
    oidc_issuer: str
    """Its issuer, with or without https://."""
    vpc_id: str
    """ID of its VPC."""
    private_subnet_ids: Sequence[str]
    """IDs of private subnets that have the discovery tag."""
    security_group_id: str
    """ID of the only security group that has the discovery tag."""


class ExistingVpcArgs(TypedDict):
    """An existing VPC for the cluster."""

    vpc_id: str
    """ID of the VPC."""
    private_subnet_ids: Sequence[str]
    """Subnets for nodes and Fargate pods, in at least two zones."""
    public_subnet_ids: NotRequired[Sequence[str]]
    """Subnets for internet-facing load balancers. Default: none."""
    discovery_tag: NotRequired[bool]
    """Whether the private subnets get the tag karpenter.sh/discovery with the name of the cluster. A subnet
    has it for one cluster only: set this to false where another one selects these subnets by it.
    Default: true."""


class EnvironmentArgs(TypedDict):
    """What an environment is made of."""

    cluster_name: str
    """Name of the cluster."""
    kubernetes_version: NotRequired[str]
    """Kubernetes version, for example 1.33. Default: the newest that EKS offers when the cluster is
    created."""
    vpc_cidr: NotRequired[str]
    """CIDR block of the VPC, between /16 and /22. Default: 10.0.0.0/16."""
    zone_count: NotRequired[int]
    """Number of availability zones to use. Default: 3."""
    availability_zones: NotRequired[Sequence[str]]
    """Names of the availability zones to use, instead of the first ones of the region."""
    nat_gateways: NotRequired[str]
    """`single`, `per-zone` or `none`. Default: single."""
    service_endpoints: NotRequired[bool]
    """Whether to create VPC endpoints for the AWS services that a cluster needs. Default: only without NAT
    gateways."""
    intra_subnets: NotRequired[bool]
    """Whether each zone also gets a small subnet without a route to the internet. Default: false."""
    existing_vpc: NotRequired[ExistingVpcArgs]
    """An existing VPC for the cluster, instead of a new network. Its subnets are tagged."""
    authentication_mode: NotRequired[str]
    """API, API_AND_CONFIG_MAP or CONFIG_MAP. Default: API_AND_CONFIG_MAP."""
    endpoint_public_access: NotRequired[bool]
    """Whether the API server can also be reached from outside the VPC. Default: true."""
    public_access_cidrs: NotRequired[Sequence[str]]
    """CIDR blocks that may reach the public endpoint. Default: all addresses."""
    private_access_cidrs: NotRequired[Sequence[str]]
    """CIDR blocks, beside the cluster's own security group, that may reach the private endpoint: of a network
    that is connected to the VPC, where Pulumi runs. Default: none."""
    cluster_log_types: NotRequired[Sequence[str]]
    """Control plane logs to enable: api, audit, authenticator, controllerManager, scheduler. Default:
    none."""
    secrets_key_arn: NotRequired[pulumi.Input[str]]
    """ARN of a KMS key that also encrypts Secrets, in addition to EKS's own encryption. It cannot be removed
    later."""
    protect: NotRequired[bool]
    """Whether Pulumi refuses to delete the network and the cluster until this is set to false. Default:
    false."""
    controller_namespace: NotRequired[str]
    """Namespace of the controller. It is created here, unless every cluster has it (kube-system, for
    example). Default: karpenter."""
    controller_image: NotRequired[pulumi.Input[str]]
    """Image of the controller, preferably by digest. Default: the released image of this version."""
    build_image: NotRequired[bool]
    """Whether to build the image from source and push it to ECR, which needs docker buildx. Default:
    false."""
    image_base: NotRequired[str]
    """Python base image of a build, preferably by digest, for example `python:3.13-slim-trixie@sha256:...`.
    Default: the one in controller/Dockerfile, by tag."""
    controller_replicas: NotRequired[int]
    """Number of replicas of the controller, of which one is the leader. Default: 2."""
    controller_log_level: NotRequired[str]
    """debug, info, warn or error. Default: info."""
    controller_settings: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Additional keys of the ConfigMap karpenter-global-settings."""
    controller_environment: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Additional environment variables of the controller."""
    controller_network_policy: NotRequired[bool]
    """Whether to create a NetworkPolicy that lets only API servers, metrics scrapers and probes reach the
    controller's pods. Default: true."""
    controller_webhook_cidrs: NotRequired[Sequence[str]]
    """CIDR blocks of the API servers, from which the NetworkPolicy allows traffic to the webhook. Default:
    all addresses."""
    controller_permissions: NotRequired[str]
    """`scoped` (limited by the cluster's tags), `guide` (the policy of Karpenter's v0.27 guide: it may tag
    anything in EC2 and can so, in two steps, terminate any instance) or `article` (the statements of that
    guide, unchanged: it may terminate any instance that has a Provisioner's name, and cannot terminate those
    of NodePools). Default: scoped."""
    controller_identity: NotRequired[str]
    """`irsa` (with the service account's token) or `pod-identity` (with EKS Pod Identity: the controller's
    pods then need nodes of their own, since Fargate has no agent). Default: irsa."""
    interruption_queue: NotRequired[bool]
    """Whether to create an interruption queue, by which AWS's warnings about instances reach the controller.
    Default: true."""
    load_balancer_controller: NotRequired[bool]
    """Whether to install the AWS Load Balancer Controller on Fargate, which needs a profile that selects its
    pods. Default: true."""
    manage_coredns: NotRequired[bool]
    """Whether to install CoreDNS as an EKS add-on: on Fargate if a profile selects its pods, else on nodes,
    after the pools. Default: true; false with `existing_cluster`, whose DNS is not changed. True with
    `existing_cluster` takes over a CoreDNS that is not yet an add-on."""
    fargate_profiles: NotRequired[Sequence[FargateProfileArgs]]
    """Fargate profiles, in the first two zones. Default: `karpenter` for the controller (in an existing
    cluster `karpenter-controller`, for its pods alone), and `kube-system` for the load balancer controller
    and CoreDNS (an existing cluster keeps its own CoreDNS)."""
    node_templates: NotRequired[Sequence[NodeTemplateArgs]]
    """AWSNodeTemplates: how nodes are launched. Default: one named `default`: Bottlerocket, in what has the
    discovery tag."""
    provisioners: NotRequired[Sequence[ProvisionerArgs]]
    """Provisioners: which nodes may be launched. Default: one named `default`, with current c, m and r
    instances."""
    node_classes: NotRequired[Sequence[NodeClassArgs]]
    """EC2NodeClasses: how the nodes of NodePools are launched. Default: none."""
    node_pools: NotRequired[Sequence[NodePoolArgs]]
    """NodePools: which nodes may be launched, in the v1 API. With these, no Provisioner is created by
    default."""
    preview_plan: NotRequired[bool]
    """Whether a preview asks the live cluster which nodes a change of pools would replace, and what that
    costs. Default: true."""
    teardown_timeout_minutes: NotRequired[int]
    """How many minutes `destroy` waits for the controller to terminate its nodes. Default: 30."""
    teardown_drain_minutes: NotRequired[int]
    """How many minutes a node may then drain while something blocks its pods (a PodDisruptionBudget, for
    example); after that the pods are deleted. Default: 10, or half of `teardown_timeout_minutes` where that
    is less."""
    kubeconfig_role_arn: NotRequired[str]
    """ARN of the IAM role with which the kubeconfig signs in, and everything that is made in the cluster: the
    one that the AWS provider assumes. Default: none is assumed."""
    kubeconfig_profile: NotRequired[str]
    """AWS CLI profile from which the kubeconfig takes credentials: that of the AWS provider. Default: the
    credentials of the environment."""
    existing_cluster: NotRequired[ExistingClusterArgs]
    """An existing cluster to install into, instead of a new network and cluster."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of all AWS resources of the environment and of everything that the controller creates."""
