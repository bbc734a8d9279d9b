"""The physical names that other systems rely on, and the keys they are found by.

Most resources leave their physical name to the engine. The ones here are written down elsewhere: node
templates name the instance profile, runbooks and policies name the roles, selectors name the discovery
tag. They follow the names of Karpenter's installation guide. A name longer than its service allows is
shortened and ends with a digest of the full one, so that two long names never meet.
"""

import re
from hashlib import sha256

DISCOVERY_TAG = "karpenter.sh/discovery"
"""Tag of the subnets and the one security group that node templates select; its value is the cluster."""
TEARDOWN_FINALIZER = "nodeless.dev/teardown"
TEARDOWN_LABEL = "nodeless.dev/teardown"
TEARDOWN_DRAIN = "nodeless.dev/teardown-drain"
"""Annotation of the guard: how long a drain may take while the stack is destroyed."""
TEARDOWN_GUARD = "nodeless-teardown"
HOLD_NAMESPACE = "kube-system"
"""Of the Lease by which a stack holds its capacity: a move of the controller leaves it where it is."""
PATCH_FORCE = "pulumi.com/patchForce"
"""Annotation with which pulumi-kubernetes takes fields over from other owners."""
MEASURED_CAPACITY = "nodeless-measured-capacity"
GANG_PAUSES = "nodeless-gang-pauses"

IMAGE_REPOSITORY = "ghcr.io/nodeless/controller"
"""Where released images of the controller are; `python -m infra.release set --image` changes it."""

ROLE_LIMIT = 64
POLICY_LIMIT = 128
INSTANCE_PROFILE_LIMIT = 128
QUEUE_LIMIT = 80
RULE_LIMIT = 64
REPOSITORY_LIMIT = 256
_RANDOM_LENGTH = 8
"""Characters that pulumi-aws appends to a name which it makes up: a hyphen and seven digits."""
_DIGEST_LENGTH = 8
CLUSTER_NAME_LIMIT = 100
_CLUSTER_NAME = re.compile(rf"[0-9A-Za-z][0-9A-Za-z_-]{{0,{CLUSTER_NAME_LIMIT - 1}}}")


def valid_cluster_name(name: str) -> bool:
    """Whether EKS accepts the name: a letter or digit, then up to 99 letters, digits, `-` or `_`."""
    return _CLUSTER_NAME.fullmatch(name) is not None


def shorten(name: str, limit: int) -> str:
    """The name itself, or its beginning and a digest of the whole when it is longer than `limit`."""
    if len(name) <= limit:
        return name
    digest = sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: limit - _DIGEST_LENGTH - 1]}-{digest}"


def _unless_made_up(resource: str, name: str, limit: int) -> str | None:
    """The name, where that of a resource leaves no room for what pulumi-aws appends to make one up of it."""
    return None if len(resource) + _RANDOM_LENGTH <= limit else shorten(name, limit)


def hold(urn: str) -> str:
    """The Lease by which the guard with this URN holds its stack's capacity.

    Another place in the program is another Lease: when a guard is renamed without an alias, the engine makes
    what it takes for the new one before it deletes the old, and a hold stands all the time. The names of
    stack and project are left out, so that a renamed stack changes nothing.
    """
    types, name = urn.split("::", 3)[2:]
    place = f"{types.removeprefix('pulumi:pulumi:Stack$')}::{name}"
    return f"nodeless-hold-{sha256(place.encode()).hexdigest()[:_DIGEST_LENGTH]}"


def node_role(cluster: str) -> str:
    """The role that nodes assume."""
    return shorten(f"KarpenterNodeRole-{cluster}", ROLE_LIMIT)


def instance_profile(cluster: str) -> str:
    """The instance profile that holds the node role."""
    return shorten(f"KarpenterNodeInstanceProfile-{cluster}", INSTANCE_PROFILE_LIMIT)


def controller_role(cluster: str) -> str:
    """The role that the controller's service account assumes."""
    return shorten(f"KarpenterControllerRole-{cluster}", ROLE_LIMIT)


def controller_policy(cluster: str, part: int = 1) -> str:
    """The managed policy of the controller's role; further ones, where it takes several, are numbered."""
    tail = "" if part == 1 else f"-{part}"
    return shorten(f"KarpenterControllerPolicy-{cluster}", POLICY_LIMIT - len(tail)) + tail


def cluster_role(resource: str, cluster: str) -> str | None:
    """The control plane's role; None: pulumi-aws makes a name up of its resource's."""
    return _unless_made_up(resource, f"{cluster}-eksRole", ROLE_LIMIT)


def pod_execution_role(cluster: str) -> str:
    """The role that Fargate uses to pull images and to register its nodes; one for each cluster."""
    return shorten(f"AmazonEKSFargatePodExecutionRole-{cluster}", ROLE_LIMIT)


def load_balancer_role(cluster: str) -> str:
    """The role that the load balancer controller's service account assumes."""
    return shorten(f"AmazonEKSLoadBalancerControllerRole-{cluster}", ROLE_LIMIT)


def load_balancer_policy(cluster: str) -> str:
    """The managed policy of the load balancer controller's role."""
    return shorten(f"AWSLoadBalancerControllerIAMPolicy-{cluster}", POLICY_LIMIT)


def interruption_queue(cluster: str) -> str:
    """The SQS queue of warnings about instances; it bears the cluster's name alone."""
    return shorten(cluster, QUEUE_LIMIT)


def interruption_rule(resource: str, cluster: str, key: str) -> str | None:
    """A rule that fills the queue; None: pulumi-aws makes a name up of its resource's."""
    return _unless_made_up(resource, f"{cluster}-{key}", RULE_LIMIT)


def image_repository(cluster: str) -> str:
    """The ECR repository of the controller's image; ECR takes small letters only."""
    return shorten(f"nodeless/{cluster.lower().strip('-_')}", REPOSITORY_LIMIT)


def private_subnet_tags(cluster: str) -> dict[str, str]:
    """Tags by which nodes and internal load balancers find their subnets."""
    return {"kubernetes.io/role/internal-elb": "1", DISCOVERY_TAG: cluster, **_shared_tags(cluster)}


def public_subnet_tags(cluster: str) -> dict[str, str]:
    """Tags by which internet-facing load balancers find their subnets."""
    return {"kubernetes.io/role/elb": "1", **_shared_tags(cluster)}


def _shared_tags(cluster: str) -> dict[str, str]:
    return {f"kubernetes.io/cluster/{cluster}": "shared"}
