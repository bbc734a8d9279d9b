"""What every stack with nodeless should hold to, as pure functions over the resources that it registers.

`policy/` wraps them in a Pulumi policy pack; the tests run them on the stacks of this repository. A check
takes what the engine knows of all resources and names those that break it. Values that are not known yet
(in a preview) are passed over.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pulumi_nodeless.names import DISCOVERY_TAG


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource as the engine sees it."""

    type: str
    """Type token, for example `aws:ec2/subnet:Subnet`."""
    name: str
    """Logical name."""
    properties: Mapping[str, Any]
    """Inputs by their names on the wire (camelCase)."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A resource that breaks a check."""

    resource: str
    """Logical name, or the empty text when it is about the stack as a whole."""
    message: str
    """What is wrong, and what to do."""


Check: TypeAlias = Callable[[Sequence[Resource]], Iterator[Violation]]

_NODE_CLASSES: Final = ("AWSNodeTemplate", "EC2NodeClass")
#: pulumi-eks's component, and what it appends to its name for the cluster that it makes.
_COMPOSED: Final = "eks:index:Cluster"
_CHILD: Final = "-eksCluster"
#: Types of clusters, each with the block that says who reaches its API server.
_ENDPOINTS: Final[Mapping[str, str]] = {
    _COMPOSED: "",
    "aws:eks/cluster:Cluster": "vpcConfig",
    "aws-native:eks:Cluster": "resourcesVpcConfig",
}


def one_discoverable_security_group(resources: Sequence[Resource]) -> Iterator[Violation]:
    """Exactly one security group carries the discovery tag: with two, load balancers find none to open."""
    tagged = [
        resource.name
        for resource in resources
        if resource.type.endswith(":SecurityGroup") and _discoverable(resource)
    ]
    tagged += [
        resource.name
        for resource in resources
        if resource.type == "aws:ec2/tag:Tag"
        and resource.properties.get("key") == DISCOVERY_TAG
        and str(resource.properties.get("resourceId", "")).startswith("sg-")
    ]
    for name in tagged[1:]:
        yield Violation(
            name, f"a second security group with the tag {DISCOVERY_TAG}; hint: tag the cluster's alone"
        )


def discoverable_subnets(resources: Sequence[Resource]) -> Iterator[Violation]:
    """Subnets for nodes carry the discovery tag, public ones do not."""
    subnets = [resource for resource in resources if resource.type == "aws:ec2/subnet:Subnet"]
    if subnets and not any(_discoverable(subnet) for subnet in subnets):
        yield Violation("", f"no subnet carries the tag {DISCOVERY_TAG}; hint: tag the private subnets")
    for subnet in subnets:
        if _discoverable(subnet) and subnet.properties.get("mapPublicIpOnLaunch") is True:
            yield Violation(subnet.name, f"a public subnet has {DISCOVERY_TAG}; hint: tag private ones only")


def no_public_endpoint(resources: Sequence[Resource]) -> Iterator[Violation]:
    """The API server answers inside the VPC only."""
    clusters = [resource for resource in resources if resource.type in _ENDPOINTS]
    # What EKS is told is what the child says, where the engine has seen it; it is one cluster all the same.
    composed = {f"{cluster.name}{_CHILD}": cluster.name for cluster in clusters if cluster.type == _COMPOSED}
    children = {cluster.name for cluster in clusters if cluster.type != _COMPOSED}
    for cluster in clusters:
        block = _ENDPOINTS[cluster.type]
        settings = cluster.properties.get(block) if block else cluster.properties
        told_by_child = cluster.type == _COMPOSED and f"{cluster.name}{_CHILD}" in children
        if told_by_child or not isinstance(settings, Mapping):
            continue
        if settings.get("endpointPublicAccess", True) is True:
            name = composed.get(cluster.name, cluster.name)
            path = "" if name != cluster.name or not block else f"{block}."
            hint = f"set {path}endpointPublicAccess to false"
            yield Violation(name, f"its API server answers from the internet; hint: {hint}")


def encrypted_volumes(resources: Sequence[Resource]) -> Iterator[Violation]:
    """Volumes of nodes are encrypted; a mapping that does not say is what the account's default makes it."""
    for node_class in _node_classes(resources):
        for index, mapping in enumerate(node_class.properties["spec"].get("blockDeviceMappings") or ()):
            if mapping.get("ebs", {}).get("encrypted") is not True:
                path = f"spec.blockDeviceMappings[{index}].ebs.encrypted"
                yield Violation(node_class.name, f"{path} is not true; hint: set it")


def token_bound_metadata(resources: Sequence[Resource]) -> Iterator[Violation]:
    """Instance metadata is served to session tokens only (IMDSv2)."""
    for node_class in _node_classes(resources):
        options = node_class.properties["spec"].get("metadataOptions")
        # A block of v1alpha1 that leaves the member out means EC2's own default: optional.
        unsaid = "optional" if node_class.type.endswith(":AWSNodeTemplate") else "required"
        tokens = options.get("httpTokens", unsaid) if isinstance(options, Mapping) else "required"
        if tokens != "required":
            yield Violation(
                node_class.name, f"spec.metadataOptions.httpTokens is {tokens!r}; hint: write required"
            )


ALWAYS: Final[Mapping[str, Check]] = {
    "one-discoverable-security-group": one_discoverable_security_group,
    "discoverable-subnets": discoverable_subnets,
    "encrypted-volumes": encrypted_volumes,
    "token-bound-metadata": token_bound_metadata,
}
"""Checks by name that every stack passes."""
PRODUCTION: Final[Mapping[str, Check]] = {"no-public-endpoint": no_public_endpoint}
"""Checks by name that production stacks pass, too."""


def _discoverable(resource: Resource) -> bool:
    tags = resource.properties.get("tags")
    return isinstance(tags, Mapping) and DISCOVERY_TAG in tags


def _node_classes(resources: Sequence[Resource]) -> Iterator[Resource]:
    for resource in resources:
        kind = resource.type.rpartition(":")[2]
        if kind in _NODE_CLASSES and isinstance(resource.properties.get("spec"), Mapping):
            yield resource
