"""Which pods a pass considers.

Two kinds of pods need capacity: those that the scheduler could not place, and those that
run on nodes of ours that are on their way out, so that new capacity stands before they are
evicted. Pods that asked not to run on our nodes, and Fargate's pods, are left alone without
a word. Pods whose constraints cannot be planned yet are considered, and refused with a
reason by `constraints`.

This is the one step of a solve that looks at every pod; all others look at shapes.
"""

from nodeless.model.labels import DISRUPTED_TAINT, NODE_POOL, PROVISIONER_NAME, canonical_key
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.pods import Pod, PodShape
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.grouping import PodGroup, PodGroups

#: The scheduler that EKS gives to pods which a Fargate profile selects.
FARGATE_SCHEDULER = "fargate-scheduler"
#: Labels that name the pool of a node.
POOL_KEYS = frozenset((PROVISIONER_NAME, NODE_POOL))


def pods_to_place(snapshot: Snapshot) -> tuple[Pod, ...]:
    """The pods that a pass must place or refuse, in the order of their keys."""
    pods = {pod.key: pod for pod_group in to_place(snapshot) for pod in pod_group.pods}
    return tuple(pods[key] for key in sorted(pods))


def to_place(snapshot: Snapshot) -> list[PodGroup]:
    """The pods that a pass must place or refuse, in no order."""
    pod_groups = PodGroups()
    pod_groups.gather(snapshot.pods.items(), _waits)
    pod_groups.gather(_pods_on_leaving_nodes(snapshot).items())
    return [
        pod_group
        for pod_group in pod_groups
        if not (pod_group.shape.required_terms and opted_out(pod_group.shape))
    ]


def _waits(pod: Pod) -> bool:
    return not pod.node_name and pod.provisionable and pod.scheduler_name != FARGATE_SCHEDULER


def opted_out(shape: PodShape) -> bool:
    """Whether a pod asks not to run on nodes of any pool (the pool's label must not exist).

    Node affinity terms are alternatives: a pod has opted out when every one of them says so.
    """
    return bool(shape.required_terms) and all(
        any(
            canonical_key(expression.key) in POOL_KEYS and expression.is_empty()
            for expression in term.expressions
        )
        for term in shape.required_terms
    )


def leaving(node: Node | None, claim: NodeClaim | None) -> bool:
    """Whether a node, a claim, or the pair of them is being removed."""
    if claim is not None and claim.deletion_timestamp is not None:
        return True
    return node is not None and (
        node.deletion_timestamp is not None or any(taint.key == DISRUPTED_TAINT for taint in node.taints)
    )


def managed(node: Node, claim: NodeClaim | None) -> bool:
    """Whether a node is one of ours: it has a claim, or carries the label of a pool."""
    return claim is not None or any(key in node.labels for key in POOL_KEYS)


def claims_by_provider_id(snapshot: Snapshot) -> dict[str, NodeClaim]:
    """Launched claims by the provider id of their instance."""
    return {claim.provider_id: claim for claim in snapshot.claims.values() if claim.provider_id}


def _pods_on_leaving_nodes(snapshot: Snapshot) -> dict[str, Pod]:
    claims = claims_by_provider_id(snapshot)
    return {
        pod.key: pod
        for name, node in snapshot.nodes.items()
        if managed(node, claims.get(node.provider_id)) and leaving(node, claims.get(node.provider_id))
        for pod in snapshot.pods_on(name)
        if pod.reschedulable and pod.scheduler_name != FARGATE_SCHEDULER
    }
