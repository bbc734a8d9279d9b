"""What is wrong with the arguments of an environment, all of it before anything is registered.

The parts check their arguments themselves, but by then other parts would be registered. So the same checks
run here first, and what they find is told by the names that the environment's arguments have.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pulumi_nodeless import names, shapes
from pulumi_nodeless.adopted_network import read_subnets
from pulumi_nodeless.arguments import ArgumentError, ArgumentReader
from pulumi_nodeless.capacity import ClassDefaults, read_pools
from pulumi_nodeless.cluster import ClusterOptions
from pulumi_nodeless.cluster_facts import read_existing_cluster
from pulumi_nodeless.controller import LABELS, NAME, ControllerOptions
from pulumi_nodeless.controller_identity import IRSA, MECHANISMS, POD_IDENTITY, POLICIES, SCOPED
from pulumi_nodeless.environment_args import EnvironmentArgs, ExistingVpcArgs
from pulumi_nodeless.fargate import (
    FargateProfileArgs,
    check_profiles,
    dns_on_fargate,
    profile_that_takes,
    profiles_for,
)
from pulumi_nodeless.image import check_buildable, read_base
from pulumi_nodeless.load_balancer import LABELS as BALANCER_LABELS
from pulumi_nodeless.load_balancer import NAME as BALANCER
from pulumi_nodeless.network import NetworkOptions
from pulumi_nodeless.teardown import drain_seconds

#: Stands for what other parts will put out.
_LATER: Final = "known-later"
#: Names of the network's arguments, by those of the environment's.
_NETWORK: Final = {
    "cluster_name": "cluster_name",
    "vpc_cidr": "cidr",
    "zone_count": "zone_count",
    "availability_zones": "availability_zones",
    "nat_gateways": "nat_gateways",
    "service_endpoints": "service_endpoints",
    "intra_subnets": "intra_subnets",
}
_CLUSTER: Final = {
    "cluster_name": "cluster_name",
    "kubernetes_version": "kubernetes_version",
    "authentication_mode": "authentication_mode",
    "endpoint_public_access": "endpoint_public_access",
    "public_access_cidrs": "public_access_cidrs",
    "private_access_cidrs": "private_access_cidrs",
    "cluster_log_types": "log_types",
}
#: What the controller's own arguments are called, here with `controller_` before it.
CONTROLLER_ARGUMENTS: Final = (
    "image",
    "replicas",
    "log_level",
    "settings",
    "environment",
    "network_policy",
    "webhook_cidrs",
)
_CONTROLLER: Final = {
    "cluster_name": "cluster_name",
    **{f"controller_{name}": name for name in ("namespace", *CONTROLLER_ARGUMENTS)},
}
_FLAGS: Final = (
    "interruption_queue",
    "load_balancer_controller",
    "manage_coredns",
    "protect",
    "preview_plan",
)
#: The last Kubernetes version for which AWS publishes AL2 images. Source:
#: https://docs.aws.amazon.com/eks/latest/userguide/eks-ami-deprecation-faqs.html.
_LAST_WITH_AL2: Final = "1.32"
#: Arguments that say how a network is made, and so contradict one that is there.
_NETWORK_ARGUMENTS: Final = (
    "vpc_cidr",
    "zone_count",
    "availability_zones",
    "nat_gateways",
    "service_endpoints",
    "intra_subnets",
)
#: Arguments that say how a cluster is made.
_CLUSTER_ARGUMENTS: Final = (
    "kubernetes_version",
    "endpoint_public_access",
    "public_access_cidrs",
    "private_access_cidrs",
    "cluster_log_types",
    "secrets_key_arn",
    "protect",
    "existing_vpc",
)


def check_environment(args: EnvironmentArgs) -> None:
    """Checks the arguments of an environment, with its first pool, and of its parts.

    Raises:
        ArgumentError: with every fault found.
    """
    reader = ArgumentReader("Environment", args, EnvironmentArgs)
    cluster, namespace = reader.cluster_name(), reader.text("controller_namespace", NAME)
    reader.tags("tags")
    for text in ("kubeconfig_role_arn", "kubeconfig_profile"):
        reader.text(text)
    patience = reader.integer("teardown_timeout_minutes", 30, 1, 24 * 60)
    drain_seconds(reader, "teardown_drain_minutes", patience)
    for flag in _FLAGS:
        reader.flag(flag, False)
    _check_contradictions(reader, args)
    _check_image(reader)
    reader.choice("controller_permissions", tuple(POLICIES), SCOPED)
    mechanism = reader.choice("controller_identity", MECHANISMS, IRSA)
    faults = len(reader.problems)
    profiles = profiles_of(reader, namespace)
    placed = len(reader.problems) == faults
    if placed:
        _check_identity(reader, mechanism, profiles, namespace)
        _check_load_balancers(reader, profiles)
    if "existing_cluster" in args:
        read_existing_cluster(reader, args["existing_cluster"])
    if "existing_vpc" in args:
        _check_vpc(reader)
    if "existing_cluster" not in args:
        if "existing_vpc" not in args:
            _check_part(reader, args, NetworkOptions.read, _NETWORK, {})
        made = ("vpc_id", "private_subnet_ids", "node_role_arn", "pod_execution_role_arn")
        _check_part(reader, args, ClusterOptions.read, _CLUSTER, dict.fromkeys(made, _LATER))
    given = ("cluster_endpoint", "default_instance_profile")
    _check_part(reader, args, ControllerOptions.read, _CONTROLLER, dict.fromkeys(given, _LATER))
    pools = read_pools(reader, ClassDefaults({names.DISCOVERY_TAG: cluster}, (), _LATER))
    if placed:
        _check_dns(reader, profiles, [*pools["provisioners"], *pools["node_pools"]])
    if "existing_cluster" not in args:
        _check_images(reader, pools)
    reader.check()


def manages_dns(reader: ArgumentReader) -> bool:
    """Whether the environment installs CoreDNS: a cluster that is there has DNS."""
    asked = reader.value("manage_coredns", reader.value("existing_cluster") is None)
    return asked is True


def profiles_of(reader: ArgumentReader, namespace: str) -> Sequence[FargateProfileArgs]:
    """The Fargate profiles, whose faults are reported.

    By default they leave the DNS of an existing cluster where it is, and other pods in the controller's
    namespace there.
    """
    existing = reader.value("existing_cluster") is not None
    defaults = profiles_for(namespace, dns=manages_dns(reader) or not existing, shared=existing)
    given = reader.value("fargate_profiles", defaults)
    return check_profiles(reader, "fargate_profiles", given)


def _check_part(
    reader: ArgumentReader,
    args: EnvironmentArgs,
    read: Callable[[Any], object],
    part_names: Mapping[str, str],
    later: Mapping[str, str],
) -> None:
    """Reports what a part finds wrong, by the environment's names of its arguments."""
    values: Mapping[str, Any] = {**args}
    given = {part: values[name] for name, part in part_names.items() if values.get(name) is not None}
    own = {part: name for name, part in part_names.items()}
    try:
        read({**later, **given})
    except ArgumentError as error:
        for problem in error.problems:
            part, rest = re.fullmatch(r"(\w+)(.*)", problem.path, re.DOTALL).groups()  # type: ignore[union-attr]
            path = own.get(part, part) + rest
            if path not in {known.path for known in reader.problems}:
                reader.report(path, problem.message, problem.hint)


def _check_contradictions(reader: ArgumentReader, args: EnvironmentArgs) -> None:
    """Reports arguments that contradict each other about network and cluster."""
    for given in ("existing_vpc", "existing_cluster"):
        if given not in args:
            continue
        for name in (*_NETWORK_ARGUMENTS, *(_CLUSTER_ARGUMENTS if given == "existing_cluster" else ())):
            if name in args:
                reader.report(
                    name, f"says how to create what {given} already provides", f"leave it or {given} out"
                )


def _check_vpc(reader: ArgumentReader) -> None:
    """Reports faults of the VPC that is there already, as what adopts it would."""
    faults = len(reader.problems)
    given = shapes.read(reader, "existing_vpc", reader.value("existing_vpc", {}), ExistingVpcArgs, (str,))
    if len(reader.problems) == faults:
        inner = ArgumentReader("", given, ExistingVpcArgs, "existing_vpc")
        read_subnets(inner)
        reader.problems.extend(inner.problems)


def _check_image(reader: ArgumentReader) -> None:
    """Reports a build together with a given image, or without what builds."""
    builds = reader.flag("build_image", False)
    if builds and reader.value("controller_image") is not None:
        reader.report("build_image", "contradicts controller_image", "leave one of them out")
    if builds:
        check_buildable(reader, "build_image")
    if read_base(reader, "image_base") and not builds:
        reader.report("image_base", "no image is built", "give build_image, or leave it out")


def _check_identity(
    reader: ArgumentReader, mechanism: str, profiles: Sequence[FargateProfileArgs], namespace: str
) -> None:
    """Reports EKS Pod Identity for a controller that profiles put on Fargate."""
    if mechanism != POD_IDENTITY:
        return
    profile = profile_that_takes(profiles, namespace, LABELS)
    if profile is not None:
        reader.report(
            "controller_identity",
            f"{POD_IDENTITY!r} cannot work on Fargate, where the profile {profile!r} puts the controller",
            "use irsa, or set fargate_profiles so that the controller runs on your own nodes",
        )


def _check_dns(
    reader: ArgumentReader,
    profiles: Sequence[FargateProfileArgs],
    pools: Sequence[Mapping[str, Any]],
) -> None:
    """Reports CoreDNS on nodes where nothing would make one: the engine waits for its pods."""
    if reader.value("existing_cluster") is not None or not manages_dns(reader) or dns_on_fargate(profiles):
        return
    if not any(_takes_dns(pool) for pool in pools):
        reader.report(
            "manage_coredns",
            "no Fargate profile selects CoreDNS, and no declared pool would create a node for it",
            "select namespace kube-system with label k8s-app=kube-dns in fargate_profiles, declare a pool "
            "without taints, or set this to false and install DNS when nodes have joined",
        )


def _takes_dns(pool: Mapping[str, Any]) -> bool:
    """Whether CoreDNS, as EKS installs it, may run on nodes of the pool, as far as its taints say."""
    return not any(
        taint.get("effect") in ("NoSchedule", "NoExecute") and taint.get("key") != "CriticalAddonsOnly"
        for taint in pool.get("taints", ())
    )


def _check_images(reader: ArgumentReader, pools: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Reports AL2 with a Kubernetes version for which AWS publishes no images of it.

    Without a version the cluster gets EKS's newest. That of an existing cluster is not known here.
    """
    version = reader.value("kubernetes_version")
    if isinstance(version, str) and not _lacks_al2(version):
        return
    wanted = f"Kubernetes {version}" if version else "the newest Kubernetes version, which is the default"
    for argument, path, hint in (
        ("node_templates", "ami_family", "use Bottlerocket, or node_pools with node_classes for AL2023"),
        ("node_classes", "ami_alias", "use al2023@latest or bottlerocket@latest"),
    ):
        for index, item in enumerate(pools[argument]):
            if _takes_al2(argument, item):
                implied = "" if item.get(path) else "is AL2 by default; "
                reader.report(
                    f"{argument}[{index}].{path}",
                    f"{implied}AWS publishes no AL2 images for {wanted}",
                    f"{hint}; for a cluster of up to {_LAST_WITH_AL2}, set kubernetes_version to its version",
                )


def _lacks_al2(version: str) -> bool:
    """Whether AWS publishes no AL2 images for the version; of what is no version others report the fault."""
    major, _, minor = version.partition(".")
    return (major, minor.isdecimal()) == ("1", True) and int(minor) > int(_LAST_WITH_AL2.partition(".")[2])


def _takes_al2(argument: str, item: Mapping[str, Any]) -> bool:
    """Whether nodes of a template or class start from the AL2 images that AWS publishes."""
    if argument == "node_classes":
        return str(item.get("ami_alias") or "").partition("@")[0] == "al2"
    return (item.get("ami_family") or "AL2") == "AL2" and not item.get("ami_selector")


def _check_load_balancers(reader: ArgumentReader, profiles: Sequence[FargateProfileArgs]) -> None:
    """Reports a load balancer controller that no profile takes: it comes before the first node."""
    wanted = reader.value("load_balancer_controller", True) is True
    if wanted and profile_that_takes(profiles, "kube-system", BALANCER_LABELS) is None:
        reader.report(
            "load_balancer_controller",
            "no Fargate profile selects its pods, and it is installed before the first node",
            f"select namespace kube-system with label app.kubernetes.io/name={BALANCER} in fargate_profiles, "
            "or set this to false",
        )
