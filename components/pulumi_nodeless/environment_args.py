"""The arguments of a whole environment; `environment_checks` says what is wrong with them."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from pulumi_nodeless.fargate import FargateProfileArgs
from pulumi_nodeless.pools import NodeTemplateArgs, ProvisionerArgs
from pulumi_nodeless.pools_v1 import NodeClassArgs, NodePoolArgs


class ExistingClusterArgs(TypedDict):
    """A cluster that is there already, by plain values."""

    arn: str
    """ARN of the cluster."""
    endpoint: str
    """URL of its API server."""
    certificate_authority: str
    """CA bundle of its API server, PEM in base64."""
    oidc_provider_arn: str
    """Its IAM OpenID Connect provider."""
    oidc_issuer: str
    """Its issuer, with or without https://."""
    vpc_id: str
    """Its VPC."""
    private_subnet_ids: Sequence[str]
    """Private subnets, which carry the discovery tag."""
    security_group_id: str
    """The one security group that carries the discovery tag."""


class ExistingVpcArgs(TypedDict):
    """A VPC that is there already, to put the cluster in."""

    vpc_id: str
    """The VPC."""
    private_subnet_ids: Sequence[str]
    """Subnets of nodes and Fargate pods, in two zones at least."""
    public_subnet_ids: NotRequired[Sequence[str]]
    """Subnets of internet-facing load balancers. Default none."""


class EnvironmentArgs(TypedDict):
    """What an environment is made of."""

    cluster_name: str
    """Name of the cluster."""
    kubernetes_version: NotRequired[str]
    """Kubernetes version, for example 1.33. Default: the newest that EKS offers when the cluster is made."""
    vpc_cidr: NotRequired[str]
    """Address range of the VPC, between /16 and /22. Default 10.0.0.0/16."""
    zone_count: NotRequired[int]
    """How many availability zones to use. Default 3."""
    availability_zones: NotRequired[Sequence[str]]
    """Names of the zones to use, instead of the first of the region."""
    nat_gateways: NotRequired[str]
    """`single`, `per-zone` or `none`. Default single."""
    service_endpoints: NotRequired[bool]
    """Whether AWS services are reached by endpoints inside the VPC. Default: only without NAT gateways."""
    intra_subnets: NotRequired[bool]
    """Whether each zone gets a small subnet without a way to the internet too. Default false."""
    existing_vpc: NotRequired[ExistingVpcArgs]
    """A VPC to put the cluster in, instead of making a network; its subnets are tagged."""
    authentication_mode: NotRequired[str]
    """API, API_AND_CONFIG_MAP or CONFIG_MAP. Default API_AND_CONFIG_MAP."""
    endpoint_public_access: NotRequired[bool]
    """Whether the API server answers outside the VPC too. Default true."""
    public_access_cidrs: NotRequired[Sequence[str]]
    """Addresses that may reach the public endpoint. Default: all."""
    cluster_log_types: NotRequired[Sequence[str]]
    """Control plane logs to keep: api, audit, authenticator, controllerManager, scheduler. Default none."""
    secrets_key_arn: NotRequired[pulumi.Input[str]]
    """KMS key that Secrets are encrypted with, beside EKS's own encryption."""
    protect: NotRequired[bool]
    """Whether the engine refuses to delete network and cluster until this is false again. Default false."""
    controller_namespace: NotRequired[str]
    """Namespace of the controller; made unless every cluster has it, as kube-system. Default karpenter."""
    controller_image: NotRequired[pulumi.Input[str]]
    """Image of the controller, best by digest. Default: the released one."""
    build_image: NotRequired[bool]
    """Whether the image is built from the source instead and pushed to ECR; needs docker buildx. Default
    false."""
    image_base: NotRequired[str]
    """Python image that a build starts from, best by digest, as `python:3.13-slim-trixie@sha256:...`.
    Default: that of controller/Dockerfile, by tag."""
    controller_replicas: NotRequired[int]
    """Replicas of the controller. Default 2."""
    controller_log_level: NotRequired[str]
    """debug, info, warn or error. Default info."""
    controller_settings: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Further keys of the ConfigMap karpenter-global-settings."""
    controller_environment: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Further environment variables of the controller."""
    controller_network_policy: NotRequired[bool]
    """Whether a NetworkPolicy admits API servers, metrics and probes alone to the controller's pods. Default
    true."""
    controller_webhook_cidrs: NotRequired[Sequence[str]]
    """Networks in which API servers may be, from which that policy admits to the webhook. Default:
    everywhere."""
    controller_permissions: NotRequired[str]
    """`scoped` (by the cluster's tags; the default), `guide` (the policy of Karpenter's v0.27 guide: it may
    tag anything in EC2 and so, in two steps, end any instance) or `article` (that guide to the letter: it
    may end any instance that has a Provisioner's name, and cannot end those of NodePools)."""
    controller_identity: NotRequired[str]
    """`irsa` (by the service account's token, the default) or `pod-identity` (by EKS Pod Identity: the
    controller's pods need nodes of their own, as Fargate has no agent)."""
    interruption_queue: NotRequired[bool]
    """Whether AWS's warnings about instances reach the controller through a queue. Default true."""
    load_balancer_controller: NotRequired[bool]
    """Whether to install the AWS Load Balancer Controller, on Fargate: a profile has to take its pods.
    Default true."""
    manage_coredns: NotRequired[bool]
    """Whether to install CoreDNS as an EKS add-on: on Fargate where a profile takes its pods, else on nodes,
    after the pools. Default true, and false with `existing_cluster`, whose DNS is left as it is; true there
    takes over a CoreDNS that is no add-on yet."""
    fargate_profiles: NotRequired[Sequence[FargateProfileArgs]]
    """Fargate profiles, in the first two zones, when they are not the default ones: `karpenter` for the
    controller, and `kube-system` for the load balancer controller and, unless an existing cluster has its
    own, CoreDNS."""
    node_templates: NotRequired[Sequence[NodeTemplateArgs]]
    """How nodes are made. Default: one named `default`, by the discovery tag."""
    provisioners: NotRequired[Sequence[ProvisionerArgs]]
    """Which nodes may be made. Default: one named `default`, with current c, m and r instances."""
    node_classes: NotRequired[Sequence[NodeClassArgs]]
    """How nodes of NodePools are made. Default none."""
    node_pools: NotRequired[Sequence[NodePoolArgs]]
    """Which nodes may be made, in the v1 generation. With these no Provisioner is made by default."""
    preview_plan: NotRequired[bool]
    """Whether a preview asks the live cluster which nodes a change of pools would replace, and what that
    costs. Default true."""
    teardown_timeout_minutes: NotRequired[int]
    """How long destruction waits for the controller to give its nodes back. Default 30."""
    teardown_drain_minutes: NotRequired[int]
    """How long a node may take to drain then, whatever holds its pods (a PodDisruptionBudget, say); after
    that they are deleted. Default 10, or half of `teardown_timeout_minutes` where that is less."""
    existing_cluster: NotRequired[ExistingClusterArgs]
    """A cluster to install into, instead of making network and cluster."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of every AWS resource of the environment, and of what the controller makes."""
