"""Tags on everything that is made in the cloud: they say whose it is, so ours always win over the user's.

`kubernetes.io/cluster/<cluster>=owned` and `karpenter.sh/nodeclaim` (or, for claims that are
launched together, `nodeless.dev/launch-group`) find the instances again;
`karpenter.sh/provisioner-name` and `karpenter.sh/nodepool` are what the controller's own
policy asks for before it may terminate one. A v1alpha5 pool gets both, so that the
policies of both generations fit.
"""

from collections.abc import Mapping

from nodeless.model.labels import (
    CLUSTER_NAME_TAG,
    CLUSTER_TAG_PREFIX,
    EC2_NODE_CLASS_NAME,
    LAUNCH_GROUP,
    MANAGED_TEMPLATE_TAG,
    NODE_CLAIM,
    NODE_POOL,
    PROVISIONER_NAME,
)
from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import EC2_NODE_CLASS, PROVISIONER, NodeClass, Pool

TagList = list[dict[str, str]]


def pool_tags(cluster: str, pool: Pool, node_class: NodeClass, settings: Mapping[str, str]) -> dict[str, str]:
    """Tags that all nodes of a pool share: the settings' and the node class's, ours over them."""
    ours = {
        "Name": f"{NODE_POOL}/{pool.name}",
        f"{CLUSTER_TAG_PREFIX}{cluster}": "owned",
        CLUSTER_NAME_TAG: cluster,
        NODE_POOL: pool.name,
    }
    if pool.reference.kind == PROVISIONER:
        ours |= {"Name": f"{PROVISIONER_NAME}/{pool.name}", PROVISIONER_NAME: pool.name}
    if node_class.reference.kind == EC2_NODE_CLASS:
        ours[EC2_NODE_CLASS_NAME] = node_class.reference.name
    users = {**settings, **dict(node_class.tags)}
    name = users.get("Name")
    return {**users, **ours, **({"Name": name} if name else {})}


def claim_tags(shared: Mapping[str, str], claim: NodeClaim) -> dict[str, str]:
    """Tags of a launch's instances, volumes and fleet: whose they are, the claim's or its group's."""
    group = claim.launch_group
    return {**shared, **({LAUNCH_GROUP: group} if group else {NODE_CLAIM: claim.name})}


def node_tags(cluster: str, claim: NodeClaim, present: Mapping[str, str]) -> dict[str, str]:
    """Tags that an instance lacks once its node has joined: the node's name, the claim's, the cluster's.

    What the instance bears already stays, but for the pool's name that it is launched with under `Name`.
    """
    wanted = {"Name": claim.node_name, NODE_CLAIM: claim.name, CLUSTER_NAME_TAG: cluster}
    named = present.get("Name", "") not in {"", f"{NODE_POOL}/{claim.pool.name}"}
    kept = {key for key in present if key != "Name" or named}
    return {key: value for key, value in wanted.items() if key not in kept}


def template_tags(cluster: str, shared: Mapping[str, str]) -> dict[str, str]:
    """Tags of a launch template itself."""
    return {**shared, MANAGED_TEMPLATE_TAG: cluster}


def tag_list(tags: Mapping[str, str]) -> TagList:
    """As EC2 takes them, sorted by key."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def specifications(tags: Mapping[str, str], *resource_types: str) -> list[dict[str, object]]:
    """`TagSpecifications` that put the same tags on several kinds of resource."""
    return [{"ResourceType": kind, "Tags": tag_list(tags)} for kind in resource_types]
