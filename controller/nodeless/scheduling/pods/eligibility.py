"""Which pods a pass considers.

Two kinds of pods need capacity: those that the scheduler could not place, and those that
run on nodes of ours that are on their way out, so that new capacity stands before they are
evicted. A NodePool's drain does not evict some of these for now (`is_held`): nothing is
planned for them, for a new node would stay empty as long. Pods that asked not to run on our
nodes, and Fargate's pods, are left alone without a word. Pods whose constraints cannot be
planned yet are considered, and refused with a reason by `constraints`.

This is the one step of a solve that looks at every pod; all others look at shapes.
"""

from collections.abc import Iterable, Iterator

from nodeless.model.disruption import PodDisruptionBudget
from nodeless.model.labels import DISRUPTED_TAINT, NODE_POOL, PROVISIONER_NAME, canonical_key
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.pods import Pod, PodShape
from nodeless.model.pools import PROVISIONER
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import DISRUPTED, find_untolerated
from nodeless.scheduling.pods.grouping import PodGroup, PodGroups
from nodeless.scheduling.pods.selecting import selects
from nodeless.state.protection import protection

#: The scheduler that EKS gives to pods which a Fargate profile selects.
FARGATE_SCHEDULER = "fargate-scheduler"
#: Labels that name the pool of a node.
POOL_KEYS = frozenset((PROVISIONER_NAME, NODE_POOL))


def pods_to_place(snapshot: Snapshot, now: float) -> tuple[Pod, ...]:
    """The pods that a pass at a time must place or refuse, in the order of their keys."""
    pods = {pod.key: pod for pod_group in to_place(snapshot, now) for pod in pod_group.pods}
    return tuple(pods[key] for key in sorted(pods))


def to_place(snapshot: Snapshot, now: float) -> list[PodGroup]:
    """The pods that a pass at a time must place or refuse, in no order."""
    pod_groups = PodGroups()
    pod_groups.gather(snapshot.pods.items(), _waits)
    leaving_pods = {pod.key: pod for pod, held in _pods_on_leaving_nodes(snapshot, now) if not held}
    pod_groups.gather(leaving_pods.items())
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
    return claim is not None or node.pool is not None


def claims_by_provider_id(snapshot: Snapshot) -> dict[str, NodeClaim]:
    """Launched claims by the provider id of their instance."""
    return {claim.provider_id: claim for claim in snapshot.claims.values() if claim.provider_id}


def held_pods(snapshot: Snapshot, now: float) -> frozenset[str]:
    """Keys of the pods on leaving nodes that nothing is planned for at a time (`is_held`)."""
    return frozenset(pod.key for pod, held in _pods_on_leaving_nodes(snapshot, now) if held)


def is_held(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: float) -> bool:
    """Whether the drain of a NodePool's node does not ask a pod to leave (Karpenter's rules).

    An annotation protects it, or the only disruption budget about it never allows an eviction, or there are
    several. A drain with a deadline deletes it in the end all the same; its successor is planned then.

    Args:
        pod: A pod on a node that is leaving.
        budgets: Those of the pod's namespace.
        now: Seconds since the epoch.
    """
    if pod.deletion_timestamp is not None:
        return False
    if protection(pod, now):
        return True
    if find_untolerated((DISRUPTED,), pod.shape.tolerations) is None:
        return False
    concerned = [budget for budget in budgets if selects(budget.selector, pod.labels)]
    return len(concerned) > 1 or any(budget.never_allows(pod) for budget in concerned)


def _pods_on_leaving_nodes(snapshot: Snapshot, now: float) -> Iterator[tuple[Pod, bool]]:
    """The pods that leave such a node once it is drained, and whether each is held there for now."""
    claims = claims_by_provider_id(snapshot)
    budgets: dict[str, list[PodDisruptionBudget]] = {}
    for budget in snapshot.disruption_budgets.values():
        budgets.setdefault(budget.namespace, []).append(budget)
    for name, node in snapshot.nodes.items():
        claim = claims.get(node.provider_id)
        if not (managed(node, claim) and leaving(node, claim)):
            continue
        pool = claim.pool if claim is not None else node.pool
        # A Provisioner's drain evicts whatever annotations say.
        may_hold = pool is not None and pool.kind != PROVISIONER
        for pod in snapshot.pods_on(name):
            if pod.reschedulable and pod.scheduler_name != FARGATE_SCHEDULER:
                yield pod, may_hold and is_held(pod, budgets.get(pod.namespace, ()), now)
