"""A whole environment: network, cluster, identities, Fargate, controller, guard and a first pool.

Composes the other components and decides their order; nothing is computed here. With `existing_cluster`
network and cluster are left out and taken from plain values. Nothing here constructs an AWS provider: it
comes with the options. The Kubernetes provider is made here, from the cluster's kubeconfig, because only
here both ends are at hand.
"""

import json
from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from pulumi_nodeless.adopted_network import AdoptedNetwork
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.capacity import Capacity
from pulumi_nodeless.cluster import API_AND_CONFIG_MAP, AUTHENTICATION_MODES, Cluster, ClusterArgs
from pulumi_nodeless.cluster_facts import ClusterFacts, existing_cluster
from pulumi_nodeless.controller import NAME, Controller, ControllerArgs
from pulumi_nodeless.controller_identity import (
    IRSA,
    MECHANISMS,
    ControllerIdentity,
    ControllerIdentityArgs,
)
from pulumi_nodeless.coredns import coredns_on_nodes
from pulumi_nodeless.default_pools import with_default_pools
from pulumi_nodeless.environment_args import EnvironmentArgs
from pulumi_nodeless.environment_checks import (
    CONTROLLER_ARGUMENTS,
    check_environment,
    manages_dns,
    profiles_of,
)
from pulumi_nodeless.fargate import (
    FargateProfileArgs,
    FargateProfiles,
    FargateProfilesArgs,
    PodExecutionRole,
    dns_on_fargate,
    profile_that_takes,
)
from pulumi_nodeless.identity import NodeAccess, NodeIdentity
from pulumi_nodeless.image import ControllerImage, ControllerImageArgs
from pulumi_nodeless.interruption import InterruptionQueue
from pulumi_nodeless.kubeconfig import region_of
from pulumi_nodeless.load_balancer import LABELS as BALANCER_LABELS
from pulumi_nodeless.load_balancer import LoadBalancerController
from pulumi_nodeless.network import Network, NetworkArgs
from pulumi_nodeless.next_steps import next_steps
from pulumi_nodeless.teardown import TeardownGuard, TeardownGuardArgs


class Environment(pulumi.ComponentResource):
    """An EKS cluster whose nodes come and go with the pods that need them."""

    cluster_name: pulumi.Output[str]
    """Name of the cluster."""
    cluster_endpoint: pulumi.Output[str]
    """URL of the API server."""
    kubeconfig: pulumi.Output[Any]
    """Kubeconfig that authenticates with the AWS CLI; a secret."""
    vpc_id: pulumi.Output[str]
    """ID of the VPC."""
    private_subnet_ids: pulumi.Output[Sequence[str]]
    """IDs of the subnets for nodes and Fargate pods."""
    public_subnet_ids: pulumi.Output[Sequence[str]]
    """IDs of the subnets for internet-facing load balancers."""
    cluster_security_group_id: pulumi.Output[str]
    """ID of the security group of nodes and control plane."""
    node_role_arn: pulumi.Output[str]
    """ARN of the node role."""
    node_role_name: pulumi.Output[str]
    """Name of the node role."""
    instance_profile_name: pulumi.Output[str]
    """Name of the nodes' instance profile."""
    controller_role_arn: pulumi.Output[str]
    """ARN of the controller's role."""
    controller_role_name: pulumi.Output[str]
    """Name of the controller's role."""
    interruption_queue_name: pulumi.Output[str]
    """Name of the interruption queue; empty without one."""
    pod_execution_role_arn: pulumi.Output[str]
    """ARN of Fargate's pod execution role."""
    oidc_provider_arn: pulumi.Output[str]
    """ARN of the cluster's IAM OpenID Connect provider."""
    controller_namespace: pulumi.Output[str]
    """Namespace of the controller."""
    controller_service_account: pulumi.Output[str]
    """Name of the controller's service account."""
    controller_image: pulumi.Output[str]
    """Image of the controller: by digest where it was built here or given by digest."""
    next_steps: pulumi.Output[Sequence[str]]
    """Commands to continue with: connect to the cluster, look at the controller, watch nodes launch."""
    fargate_profile_names: pulumi.Output[Sequence[str]]
    """Names of the Fargate profiles."""
    provisioner_names: pulumi.Output[Sequence[str]]
    """Names of the Provisioners."""
    node_pool_names: pulumi.Output[Sequence[str]]
    """Names of the NodePools."""

    def __init__(self, name: str, args: EnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_environment(args := with_default_pools(args))
        super().__init__("nodeless:index:Environment", name, {}, opts)
        reader = ArgumentReader("Environment", args, EnvironmentArgs)
        cluster_name = reader.cluster_name()
        mode = reader.choice("authentication_mode", AUTHENTICATION_MODES, API_AND_CONFIG_MAP)
        namespace = reader.text("controller_namespace", NAME)
        minutes = reader.integer("teardown_timeout_minutes", 30, 1, 24 * 60)
        with_queue = reader.flag("interruption_queue", True)
        tags = reader.tags("tags")
        mechanism = reader.choice("controller_identity", MECHANISMS, IRSA)
        profiles, with_dns = profiles_of(reader, namespace), manages_dns(reader)
        self._builds_image = reader.flag("build_image", False)
        self._name, self._args, self._tags = name, args, tags
        # What the engine is told to protect of a component it protects of its children, too.
        self._lasting = pulumi.ResourceOptions(parent=self, protect=reader.flag("protect", False) or None)
        child = pulumi.ResourceOptions(parent=self)

        nodes = NodeIdentity(f"{name}-nodes", {"cluster_name": cluster_name, "tags": tags}, child)
        execution = PodExecutionRole(
            f"{name}-pod-execution", {"cluster_name": cluster_name, "tags": tags}, child
        )
        cluster = (
            existing_cluster(
                cluster_name,
                args["existing_cluster"],
                reader.text("kubeconfig_role_arn"),
                reader.text("kubeconfig_profile"),
            )
            if args.get("existing_cluster")
            else self._cluster(cluster_name, mode, nodes, execution)
        )
        access = NodeAccess(
            f"{name}-access",
            {
                "cluster_name": cluster.name,
                "node_role_arn": nodes.role_arn,
                "authentication_mode": mode,
                "tags": tags,
            },
            child,
        )
        queue = (
            InterruptionQueue(f"{name}-interruption", {"cluster_name": cluster_name, "tags": tags}, child)
            if with_queue
            else None
        )
        identity_args: ControllerIdentityArgs = {
            "cluster_name": cluster_name,
            "oidc_provider_arn": cluster.oidc_provider_arn,
            "oidc_issuer": cluster.oidc_issuer,
            "node_role_arn": nodes.role_arn,
            "namespace": namespace,
            "service_account": NAME,
            "mechanism": mechanism,
            "tags": tags,
        }
        if "controller_permissions" in args:
            identity_args["permissions"] = args["controller_permissions"]
        if queue is not None:
            identity_args["interruption_queue_arn"] = queue.queue_arn
        identity = ControllerIdentity(
            f"{name}-identity",
            identity_args,
            # By token it needs the cluster's issuer only; an association needs the cluster.
            child if mechanism == IRSA else pulumi.ResourceOptions(parent=self, depends_on=[*cluster.made]),
        )
        fargate = self._fargate(cluster, execution, profiles, with_dns=with_dns)
        provider = k8s.Provider(
            f"{name}-kubernetes",
            kubeconfig=cluster.kubeconfig.apply(_to_json),
            # A changed kubeconfig is not another cluster.
            cluster_identifier=cluster.arn,
            enable_server_side_apply=True,
            # Otherwise a changed setting deletes the controller's ConfigMaps before it makes them again.
            enable_config_map_mutable=True,
            enable_secret_mutable=True,
            # Otherwise what is there already stops an up: a guard that the controller made again, or one
            # that the state lost, definitions that a chart left, what an interrupted create had made.
            upsert_existing_objects=True,
            # Its private endpoint may have to be opened to whoever runs this.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*cluster.made]),
        )
        in_cluster = pulumi.ResourceOptions(parent=self, providers=[provider])
        foundations: list[pulumi.Resource] = [*cluster.made, nodes, execution, access, identity, fargate]
        foundations += [queue] if queue is not None else []
        controller = Controller(
            f"{name}-controller",
            self._controller_args(cluster, nodes, identity if mechanism == IRSA else None, namespace, queue),
            pulumi.ResourceOptions.merge(in_cluster, pulumi.ResourceOptions(depends_on=foundations)),
        )
        served: list[pulumi.Resource] = [*foundations, controller]
        if reader.flag("load_balancer_controller", True):
            served.append(self._load_balancers(cluster, profiles, [*cluster.made, fargate], in_cluster))
        guard = TeardownGuard(
            f"{name}-teardown",
            self._guard_args(controller, minutes),
            self._options_of_pools(in_cluster, served),
        )
        capacity = Capacity(
            f"{name}-capacity",
            {
                "cluster_name": cluster_name,
                "node_templates": args["node_templates"],
                "provisioners": args["provisioners"],
                "node_classes": reader.value("node_classes", ()),
                "node_pools": reader.value("node_pools", ()),
                # The discovery tag of subnets that clusters share names one of these.
                "subnet_ids": args.get("existing_vpc", {}).get("private_subnet_ids", ()),
                "instance_profile": nodes.instance_profile_name,
                "timeout_minutes": minutes,
                "preview_kubeconfig": cluster.kubeconfig,
                "preview_plan": reader.flag("preview_plan", True),
                "controller_namespace": namespace,
                "region": pulumi.Output.from_input(cluster.arn).apply(region_of),
            },
            self._options_of_pools(in_cluster, [*served, guard]),
        )
        if with_dns and not dns_on_fargate(profiles):
            coredns_on_nodes(
                f"{name}-fargate-coredns",
                self,
                fargate,
                cluster.name,
                tags,
                [*served, guard, capacity],
                self._version_of(cluster),
            )
        self.cluster_name = pulumi.Output.from_input(cluster.name)
        self.cluster_endpoint = pulumi.Output.from_input(cluster.endpoint)
        self.kubeconfig = cluster.kubeconfig
        self.vpc_id = pulumi.Output.from_input(cluster.vpc_id)
        self.private_subnet_ids = _texts(cluster.private_subnet_ids)
        self.public_subnet_ids = _texts(cluster.public_subnet_ids)
        self.cluster_security_group_id = pulumi.Output.from_input(cluster.security_group_id)
        self.node_role_arn = nodes.role_arn
        self.node_role_name = nodes.role_name
        self.instance_profile_name = nodes.instance_profile_name
        self.controller_role_arn = identity.role_arn
        self.controller_role_name = identity.role_name
        self.interruption_queue_name = queue.queue_name if queue else pulumi.Output.from_input("")
        self.pod_execution_role_arn = execution.role_arn
        self.oidc_provider_arn = pulumi.Output.from_input(cluster.oidc_provider_arn)
        self._tell_of(controller, cluster)
        self.fargate_profile_names = fargate.profile_names
        self.provisioner_names = capacity.provisioner_names
        self.node_pool_names = capacity.node_pool_names
        self.register_outputs(self.outputs())

    def outputs(self) -> dict[str, pulumi.Output[Any]]:
        """Every output by its name in other languages: what a stack exports."""
        return {
            "clusterName": self.cluster_name,
            "clusterEndpoint": self.cluster_endpoint,
            "kubeconfig": self.kubeconfig,
            "vpcId": self.vpc_id,
            "privateSubnetIds": self.private_subnet_ids,
            "publicSubnetIds": self.public_subnet_ids,
            "clusterSecurityGroupId": self.cluster_security_group_id,
            "nodeRoleArn": self.node_role_arn,
            "nodeRoleName": self.node_role_name,
            "instanceProfileName": self.instance_profile_name,
            "controllerRoleArn": self.controller_role_arn,
            "controllerRoleName": self.controller_role_name,
            "interruptionQueueName": self.interruption_queue_name,
            "podExecutionRoleArn": self.pod_execution_role_arn,
            "oidcProviderArn": self.oidc_provider_arn,
            "controllerNamespace": self.controller_namespace,
            "controllerServiceAccount": self.controller_service_account,
            "controllerImage": self.controller_image,
            "nextSteps": self.next_steps,
            "fargateProfileNames": self.fargate_profile_names,
            "provisionerNames": self.provisioner_names,
            "nodePoolNames": self.node_pool_names,
        }

    def _version_of(self, cluster: ClusterFacts) -> pulumi.Output[str]:
        """The cluster's Kubernetes version."""
        if cluster.kubernetes_version is not None:
            return cluster.kubernetes_version
        found = aws.eks.get_cluster_output(name=cluster.name, opts=pulumi.InvokeOutputOptions(parent=self))
        return found.apply(lambda answer: answer.version)

    def _tell_of(self, controller: Controller, cluster: ClusterFacts) -> None:
        """Sets the outputs about the controller."""
        self.controller_namespace = controller.namespace
        self.controller_service_account = controller.service_account
        self.controller_image = controller.image
        self.next_steps = pulumi.Output.all(cluster.name, cluster.arn, controller.namespace).apply(
            lambda known: next_steps(*known)
        )

    def _cluster(
        self, cluster_name: str, mode: str, nodes: NodeIdentity, execution: PodExecutionRole
    ) -> ClusterFacts:
        """Makes network and cluster."""
        network = self._network(cluster_name)
        # EKS keeps a cluster in the zones of its subnets, so it gets those that every update leaves alone.
        lasting = network.fargate_subnet_ids if isinstance(network, Network) else network.private_subnet_ids
        cluster_args: ClusterArgs = {
            "cluster_name": cluster_name,
            "vpc_id": network.vpc_id,
            "private_subnet_ids": lasting,
            "authentication_mode": mode,
            "node_role_arn": nodes.role_arn,
            "pod_execution_role_arn": execution.role_arn,
            "tags": self._tags,
        }
        if isinstance(network, AdoptedNetwork):
            cluster_args["public_subnet_ids"] = network.public_subnet_ids
        for name in (
            "kubernetes_version",
            "endpoint_public_access",
            "public_access_cidrs",
            "private_access_cidrs",
            "secrets_key_arn",
            "kubeconfig_role_arn",
            "kubeconfig_profile",
        ):
            if name in self._args:
                cluster_args[name] = self._args[name]
        if "cluster_log_types" in self._args:
            cluster_args["log_types"] = self._args["cluster_log_types"]
        cluster = Cluster(f"{self._name}-cluster", cluster_args, self._lasting)
        return ClusterFacts(
            name=cluster.cluster_name,
            arn=cluster.arn,
            endpoint=cluster.endpoint,
            oidc_provider_arn=cluster.oidc_provider_arn,
            oidc_issuer=cluster.oidc_issuer,
            vpc_id=network.vpc_id,
            private_subnet_ids=network.private_subnet_ids,
            fargate_subnet_ids=lasting,
            public_subnet_ids=network.public_subnet_ids,
            security_group_id=cluster.security_group_id,
            kubeconfig=cluster.kubeconfig,
            kubernetes_version=cluster.kubernetes_version,
            made=(network, cluster),
        )

    def _fargate(
        self,
        cluster: ClusterFacts,
        execution: PodExecutionRole,
        profiles: Sequence[FargateProfileArgs],
        *,
        with_dns: bool,
    ) -> FargateProfiles:
        """Makes the Fargate profiles, and CoreDNS where one of them takes it."""
        dns = with_dns and dns_on_fargate(profiles)
        args: FargateProfilesArgs = {
            "cluster_name": cluster.name,
            "pod_execution_role_arn": execution.role_arn,
            "subnet_ids": cluster.fargate_subnet_ids,
            "profiles": profiles,
            "manage_coredns": dns,
            "tags": self._tags,
        }
        if dns:
            args["kubernetes_version"] = self._version_of(cluster)
        options = pulumi.ResourceOptions(parent=self, depends_on=[execution])
        return FargateProfiles(f"{self._name}-fargate", args, options)

    def _load_balancers(
        self,
        cluster: ClusterFacts,
        profiles: Sequence[FargateProfileArgs],
        before: Sequence[pulumi.Resource],
        in_cluster: pulumi.ResourceOptions,
    ) -> LoadBalancerController:
        """Makes the load balancer controller; it stays until the last node has gone from its targets."""
        return LoadBalancerController(
            f"{self._name}-load-balancers",
            {
                "cluster_name": self._args["cluster_name"],
                "vpc_id": cluster.vpc_id,
                "oidc_provider_arn": cluster.oidc_provider_arn,
                "oidc_issuer": cluster.oidc_issuer,
                "fargate_profile": profile_that_takes(profiles, "kube-system", BALANCER_LABELS) or "",
                "tags": self._tags,
            },
            pulumi.ResourceOptions.merge(in_cluster, pulumi.ResourceOptions(depends_on=list(before))),
        )

    def _network(self, cluster_name: str) -> Network | AdoptedNetwork:
        """Makes a network, or takes the one that is there."""
        name, child = f"{self._name}-network", self._lasting
        if "existing_vpc" in self._args:
            return AdoptedNetwork(name, {"cluster_name": cluster_name, **self._args["existing_vpc"]}, child)
        args: NetworkArgs = {"cluster_name": cluster_name, "tags": self._tags}
        if "vpc_cidr" in self._args:
            args["cidr"] = self._args["vpc_cidr"]
        for key in ("zone_count", "availability_zones", "nat_gateways", "service_endpoints", "intra_subnets"):
            if key in self._args:
                args[key] = self._args[key]
        return Network(name, args, child)

    def _options_of_pools(
        self, in_cluster: pulumi.ResourceOptions, after: Sequence[pulumi.Resource]
    ) -> pulumi.ResourceOptions:
        """Of guard and pools: protected like the network, or all nodes would end before that refuses."""
        protected = pulumi.ResourceOptions.merge(self._lasting, in_cluster)
        return pulumi.ResourceOptions.merge(protected, pulumi.ResourceOptions(depends_on=list(after)))

    def _guard_args(self, controller: Controller, minutes: int) -> TeardownGuardArgs:
        args: TeardownGuardArgs = {"namespace": controller.namespace, "timeout_minutes": minutes}
        if "teardown_drain_minutes" in self._args:
            args["drain_minutes"] = self._args["teardown_drain_minutes"]
        return args

    def _controller_args(
        self,
        cluster: ClusterFacts,
        nodes: NodeIdentity,
        by_token: ControllerIdentity | None,
        namespace: str,
        queue: InterruptionQueue | None,
    ) -> ControllerArgs:
        args: ControllerArgs = {
            "cluster_name": self._args["cluster_name"],
            "cluster_endpoint": cluster.endpoint,
            "default_instance_profile": nodes.instance_profile_name,
            "namespace": namespace,
            "aws_tags": self._tags,
            "shared_cluster": bool(self._args.get("existing_cluster")),
        }
        if self._builds_image:
            image_args: ControllerImageArgs = {
                "cluster_name": self._args["cluster_name"],
                "tags": self._tags,
            }
            if "image_base" in self._args:
                image_args["base"] = self._args["image_base"]
            own = pulumi.ResourceOptions(parent=self)
            args["image"] = ControllerImage(f"{self._name}-image", image_args, own).image
        if by_token is not None:
            args["role_arn"] = by_token.role_arn
        for name in CONTROLLER_ARGUMENTS:
            if f"controller_{name}" in self._args:
                args[name] = self._args[f"controller_{name}"]  # type: ignore[literal-required]
        if queue is not None:
            # A queue of the user's own wins.
            args["settings"] = {"aws.interruptionQueueName": queue.queue_name, **args.get("settings", {})}
        return args


def _texts(values: pulumi.Input[Sequence[pulumi.Input[str]]]) -> pulumi.Output[Sequence[str]]:
    known: pulumi.Output[Any] = pulumi.Output.from_input(values)
    return known


def _to_json(document: Any) -> str:
    return json.dumps(document)
