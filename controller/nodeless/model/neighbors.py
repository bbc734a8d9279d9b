"""Other autoscalers of a cluster: by which signs they are known, and what is known of their groups."""

from dataclasses import dataclass

CLUSTER_AUTOSCALER = "cluster-autoscaler"
KARPENTER = "karpenter"
#: Where Cluster Autoscaler says what its groups are, in its own namespace (its flag
#: --status-config-map-name, which hardly anybody sets).
AUTOSCALER_STATUS = "cluster-autoscaler-status"


@dataclass(frozen=True, slots=True, order=True)
class ScalingGroup:
    """A group of nodes whose size Cluster Autoscaler changes.

    Attributes:
        name: As it calls it: the name of the Auto Scaling group.
        least: The fewest nodes that it keeps.
        most: The most nodes that it makes.
    """

    name: str
    least: int = 0
    most: int = 0


def program_of(image: str) -> str:
    """Which other autoscaler an image is of; empty for any other image.

    Mirrors keep the last part of a name as a rule: `registry.k8s.io/autoscaling/cluster-autoscaler`,
    `public.ecr.aws/karpenter/controller`.
    """
    if "autoscaler" not in image and "karpenter" not in image:
        return ""
    path = image.partition("@")[0].rpartition("/")
    repository, name = path[0], path[2].partition(":")[0]
    if name.endswith(CLUSTER_AUTOSCALER):
        return CLUSTER_AUTOSCALER
    if name == KARPENTER or (name == "controller" and repository.rpartition("/")[2] == KARPENTER):
        return KARPENTER
    return ""
