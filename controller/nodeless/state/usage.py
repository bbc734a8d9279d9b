"""What a pool's nodes hold: the figure in its status, and what counts against its limits."""

from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.pools import Pool
from nodeless.model.resources import Resources, total
from nodeless.model.snapshot import Snapshot


def pool_members(snapshot: Snapshot, pool: Pool) -> tuple[tuple[NodeClaim, Node | None], ...]:
    """The claims of a pool with their nodes, by name."""
    mine = [(name, claim) for name, claim in snapshot.claims.items() if claim.pool == pool.reference]
    return tuple((claim, snapshot.node_of(claim)) for _, claim in sorted(mine))


def stands_in(snapshot: Snapshot, claim: NodeClaim) -> bool:
    """Whether a claim was made in the place of one that still stands: the two count as one of their pool."""
    olds = (snapshot.claims.get(name) for name in claim.replaces)
    return any(old is not None and old.deletion_timestamp is None for old in olds)


def pool_usage(snapshot: Snapshot, pool: Pool) -> dict[str, int]:
    """The capacity of a pool's claims that are not being deleted; zero amounts left out.

    Karpenter's `status.resources` (v0.27 controller `counter`): capacity, not requests.
    """
    amounts = total(_capacity(claim, node) for claim, node in pool_members(snapshot, pool))
    return {name: amount for name, amount in amounts.items() if amount}


def _capacity(claim: NodeClaim, node: Node | None) -> Resources:
    if claim.deletion_timestamp is not None or (node is not None and node.deletion_timestamp is not None):
        return {}
    if node is not None and node.initialized:
        return node.capacity
    return claim.capacity
