"""Fargate for what must run before the first node exists: the controller itself and CoreDNS.

`PodExecutionRole` stands before the cluster, as its aws-auth may have to name it; `FargateProfiles` comes
after it. Profiles take private subnets only, and match by label where a whole namespace would drag in
workloads that belong on nodes. EKS carries out one profile operation at a time, so they form a chain.
"""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import names, policies, shapes
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.coredns import coredns_on_fargate
from pulumi_nodeless.ordering import child_after

MAXIMUM_SELECTORS: Final = 5
"""Selectors EKS allows in one profile."""


class PodExecutionRoleArgs(TypedDict):
    """Whose Fargate pods get a role."""

    cluster_name: str
    """Name of the cluster. Only its Fargate profiles may use the role."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the role."""


class PodExecutionRole(pulumi.ComponentResource):
    """The role with which Fargate pulls images and registers its nodes."""

    role_arn: pulumi.Output[str]
    """ARN of the role."""

    def __init__(
        self, name: str, args: PodExecutionRoleArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        reader = ArgumentReader("PodExecutionRole", args, PodExecutionRoleArgs)
        cluster, tags = reader.cluster_name(), reader.tags("tags")
        reader.check()
        super().__init__("nodeless:index:PodExecutionRole", name, {}, opts)
        invoke = pulumi.InvokeOutputOptions(parent=self)
        partition = aws.get_partition_output(opts=invoke).partition
        trust = pulumi.Output.all(
            partition,
            aws.get_region_output(opts=invoke).region,
            aws.get_caller_identity_output(opts=invoke).account_id,
        ).apply(lambda known: json.dumps(policies.pod_execution_trust(known[0], known[1], known[2], cluster)))
        role = aws.iam.Role(
            f"{name}-role",
            name=names.pod_execution_role(cluster),
            description=f"Fargate pods of EKS cluster {cluster}",
            assume_role_policy=trust,
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        aws.iam.RolePolicyAttachment(
            f"{name}-{policies.POD_EXECUTION_MANAGED_POLICY}",
            role=role.name,
            policy_arn=partition.apply(
                lambda part: policies.managed_policy_arn(policies.POD_EXECUTION_MANAGED_POLICY, part)
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.role_arn = role.arn
        self.register_outputs({"roleArn": self.role_arn})


class FargateSelectorArgs(TypedDict):
    """Which pods run on a Fargate profile."""

    namespace: str
    """Namespace of the pods."""
    labels: NotRequired[Mapping[str, str]]
    """Labels that the pods must all have."""


class FargateProfileArgs(TypedDict):
    """A Fargate profile."""

    name: str
    """Name of the profile. It may not be `eks` or begin with `eks-`."""
    selectors: Sequence[FargateSelectorArgs]
    """One to five selectors of the pods that run on it."""


class FargateProfilesArgs(TypedDict):
    """Which pods of which cluster run on Fargate."""

    cluster_name: pulumi.Input[str]
    """Name of the cluster."""
    pod_execution_role_arn: pulumi.Input[str]
    """ARN of the role with which Fargate pulls images."""
    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """IDs of private subnets. Fargate rejects a subnet with a route to an internet gateway."""
    profiles: NotRequired[Sequence[FargateProfileArgs]]
    """Profiles to create, one after the other. Default: `karpenter` for the controller, `kube-system` for
    CoreDNS and the load balancer controller."""
    manage_coredns: NotRequired[bool]
    """Whether to install CoreDNS as an EKS add-on that runs on Fargate. Default: true."""
    kubernetes_version: NotRequired[pulumi.Input[str]]
    """Kubernetes version of the cluster, for which the version of CoreDNS is chosen. Default: CoreDNS stays
    at the version that it is installed with."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the profiles and the add-on."""


DNS_LABELS: Final = {"k8s-app": "kube-dns"}
"""Labels of CoreDNS's pods, in kube-system."""
_DNS: Final[FargateSelectorArgs] = {"namespace": "kube-system", "labels": DNS_LABELS}
_BALANCERS: Final[FargateSelectorArgs] = {
    "namespace": "kube-system",
    "labels": {"app.kubernetes.io/name": "aws-load-balancer-controller"},
}
_CONTROLLER_LABELS: Final = {"app.kubernetes.io/name": "karpenter"}
#: Namespaces that others run pods in, so that only the controller's own are taken of them.
_SHARED: Final = frozenset({"default", "kube-system"})


def profiles_for(namespace: str, *, dns: bool = True, shared: bool = False) -> list[FargateProfileArgs]:
    """The default Fargate profiles.

    Args:
        namespace: the controller's; of one that others use too its pods are taken alone.
        dns: whether CoreDNS is taken too.
        shared: whether others may use the namespace, whatever its name is. The profile then has a name of
            its own: under the other one, a stack that has the profile without labels would delete it first,
            and the controller's pods would be created again while no profile takes them.
    """
    controller: FargateSelectorArgs = {"namespace": namespace}
    if shared or namespace in _SHARED:
        controller["labels"] = _CONTROLLER_LABELS
    name = "karpenter-controller" if shared and namespace not in _SHARED else "karpenter"
    return [
        {"name": name, "selectors": [controller]},
        {"name": "kube-system", "selectors": [_DNS, _BALANCERS] if dns else [_BALANCERS]},
    ]


DEFAULT_PROFILES: Final[Sequence[FargateProfileArgs]] = profiles_for("karpenter")


def profile_that_takes(
    profiles: Sequence[FargateProfileArgs], namespace: str, labels: Mapping[str, str]
) -> str | None:
    """Name of the first profile that puts pods of this namespace with these labels on Fargate.

    Selectors may hold the wildcards `*` and `?`, as EKS allows.
    """
    for profile in profiles:
        for selector in profile["selectors"]:
            wanted = selector.get("labels") or {}
            if fnmatchcase(namespace, selector["namespace"]) and all(
                fnmatchcase(labels.get(key, ""), pattern) and key in labels for key, pattern in wanted.items()
            ):
                return profile["name"]
    return None


def dns_on_fargate(profiles: Sequence[FargateProfileArgs]) -> bool:
    """Whether one of the profiles takes CoreDNS."""
    return profile_that_takes(profiles, "kube-system", DNS_LABELS) is not None


class FargateProfiles(pulumi.ComponentResource):
    """Fargate profiles, and CoreDNS on them."""

    profile_names: pulumi.Output[Sequence[str]]
    """Names of the profiles."""

    def __init__(
        self, name: str, args: FargateProfilesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        reader = ArgumentReader("FargateProfiles", args, FargateProfilesArgs)
        reader.check_cluster_name()
        given = reader.value("profiles", DEFAULT_PROFILES)
        tags, coredns = reader.tags("tags"), reader.flag("manage_coredns", True)
        specs = check_profiles(reader, "profiles", given, (str, Mapping))
        reader.check()
        super().__init__("nodeless:index:FargateProfiles", name, {}, opts)
        made: list[aws.eks.FargateProfile] = []
        for spec in specs:
            made.append(
                aws.eks.FargateProfile(
                    f"{name}-{spec['name']}",
                    cluster_name=args["cluster_name"],
                    fargate_profile_name=spec["name"],
                    pod_execution_role_arn=args["pod_execution_role_arn"],
                    selectors=[
                        aws.eks.FargateProfileSelectorArgs(
                            namespace=selector["namespace"], labels=selector.get("labels")
                        )
                        for selector in spec["selectors"]
                    ],
                    subnet_ids=args["subnet_ids"],
                    tags=tags,
                    opts=child_after(self, opts, made[-1:], delete_before_replace=True),
                )
            )
        if coredns:
            coredns_on_fargate(
                f"{name}-coredns",
                self,
                opts,
                args["cluster_name"],
                tags,
                made,
                args.get("kubernetes_version"),
            )
        self.profile_names = pulumi.Output.all(*[profile.fargate_profile_name for profile in made])
        self.register_outputs({"profileNames": self.profile_names})


def check_profiles(
    reader: ArgumentReader, argument: str, specs: Sequence[Mapping[str, Any]], later: Sequence[Any] = ()
) -> list[FargateProfileArgs]:
    """The profiles that `argument` gives, in one way of writing; reports their faults.

    Args:
        reader: takes the faults.
        argument: the one with the profiles.
        specs: the profiles as they were given.
        later: kinds of members, beside their names, that may be outputs.
    """
    profiles: list[Any] = shapes.read(reader, argument, specs, Sequence[FargateProfileArgs], later)
    for index, profile in enumerate(profiles):
        path, name, selectors = f"{argument}[{index}]", profile.get("name"), profile.get("selectors")
        shapes.check_known(reader, f"{path}.name", name)
        if isinstance(name, str) and (name == "eks" or name.startswith("eks-")):
            reader.report(f"{path}.name", f"{name!r} is reserved by EKS")
        if isinstance(name, str) and name in (each.get("name") for each in profiles[:index]):
            reader.report(f"{path}.name", f"{name!r} is used twice")
        if selectors is not None and not 1 <= len(selectors) <= MAXIMUM_SELECTORS:
            reader.report(
                f"{path}.selectors", f"{len(selectors)} given, a profile has 1 to {MAXIMUM_SELECTORS}"
            )
    return profiles
