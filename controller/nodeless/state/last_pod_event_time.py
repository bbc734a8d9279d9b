"""How long nothing has changed on a node, and how long a pool wants that to be before it consolidates."""

from nodeless.model.nodes import INITIALIZED_CONDITION, NodeClaim
from nodeless.model.pools import PROVISIONER, Pool


def consolidates_after(pool: Pool) -> int | None:
    """Seconds without a change after which a pool's nodes may be consolidated; None: never."""
    if pool.reference.kind == PROVISIONER:
        return 0 if pool.consolidation_enabled else None
    return pool.consolidate_after if pool.consolidation_enabled else pool.ttl_seconds_after_empty


def last_pod_event_time(claim: NodeClaim) -> float:
    """When a pod last came to its node or left it, or when the node was ready for the first time."""
    ready = claim.condition(INITIALIZED_CONDITION)
    since = ready.last_transition_time if ready is not None else claim.created_at
    return max(since, claim.last_pod_event or 0.0)
