"""The instance profile that stands for the role of an EC2NodeClass: its name, path and tags. Pure.

Name and path follow from the node class and its role alone, so whoever makes the profile again after a
crash makes the same one; another role is another profile. Whose a profile is stands in its path,
`/karpenter/<region>/<cluster>/<uid of the node class>/`, as in Karpenter v1.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from nodeless.model.labels import CLUSTER_NAME_TAG, CLUSTER_TAG_PREFIX, EC2_NODE_CLASS_NAME, REGION
from nodeless.model.pools import NodeClass


@dataclass(frozen=True, slots=True)
class WantedProfile:
    """An instance profile as it should be; `tags` are sorted by key."""

    name: str
    path: str
    role: str
    tags: tuple[tuple[str, str], ...]


def cluster_path(region: str, cluster: str) -> str:
    """Path of all instance profiles that are made for a cluster."""
    return f"/karpenter/{region}/{cluster}/"


def class_path(region: str, cluster: str, uid: str) -> str:
    """Path of all instance profiles that are made for one node class."""
    return f"{cluster_path(region, cluster)}{uid}/"


def wanted_profile(
    region: str, cluster: str, node_class: NodeClass, settings: Mapping[str, str]
) -> WantedProfile:
    """The profile of a node class that names a role; `settings` are tags for everything that is made.

    IAM knows roles by name alone, so the path of a role that is given with one is left out.
    """
    uid, role = node_class.reference.uid, (node_class.role or "").rpartition("/")[2]
    digest = hashlib.sha256("\0".join((region, cluster, uid, role)).encode()).hexdigest()[:16]
    ours = {
        f"{CLUSTER_TAG_PREFIX}{cluster}": "owned",
        CLUSTER_NAME_TAG: cluster,
        EC2_NODE_CLASS_NAME: node_class.reference.name,
        REGION: region,
    }
    tags = {**settings, **dict(node_class.tags), **ours}
    return WantedProfile(
        f"{cluster}_{digest}", class_path(region, cluster, uid), role, tuple(sorted(tags.items()))
    )
