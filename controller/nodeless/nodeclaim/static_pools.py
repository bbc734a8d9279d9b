"""Static pools that hold more nodes than they should (`spec.replicas` was lowered).

Claims that were never launched go first, then empty nodes, then those whose pods are the cheapest to
move; nodes with pods that must not be disrupted go last. Budgets do not hold this up, as Karpenter has
it. A node that is being replaced counts once, together with its replacement.
"""

from nodeless.model.instructions import DeleteClaim
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.state.disruption_cost import disturbance_of
from nodeless.state.protection import protection
from nodeless.state.usage import pool_members, stands_in


def surplus(snapshot: Snapshot, pool: Pool, now: float) -> tuple[DeleteClaim, ...]:
    """The deletions that bring a static pool down to its replicas; none for other pools."""
    if pool.replicas is None:
        return ()
    living = [
        (claim, node)
        for claim, node in pool_members(snapshot, pool)
        if claim.deletion_timestamp is None and not stands_in(snapshot, claim)
    ]
    living.sort(key=lambda member: _order(snapshot, member[0], member[1], now))
    victims = living[: max(len(living) - pool.replicas, 0)]
    return tuple(DeleteClaim(f"pool:{pool.key}", claim.name, "scaled_down") for claim, _ in victims)


def _order(
    snapshot: Snapshot, claim: NodeClaim, node: Node | None, now: float
) -> tuple[bool, bool, bool, float, float, str]:
    pods = [pod for pod in snapshot.pods_on(node.name) if pod.occupies] if node is not None else []
    guarded = any(protection(pod, now) for pod in pods)
    cost = disturbance_of(pods)
    return bool(claim.provider_id), guarded, bool(pods), cost, -claim.created_at, claim.name
