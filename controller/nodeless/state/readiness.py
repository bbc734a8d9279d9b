"""Whether a pool and its node class can make nodes, or why not."""

from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass, Pool, Reference
from nodeless.model.snapshot import Snapshot


class PoolUnusable(Exception):
    """A pool that can make no nodes now; the text says why and what to do."""


def usable(snapshot: Snapshot, pool: Reference, node_class: Reference) -> tuple[Pool, NodeClass]:
    """The pool and the node class behind two references. Raises PoolUnusable."""
    found_pool = snapshot.pools.get(str(pool))
    if found_pool is None:
        raise PoolUnusable(f"{pool} does not exist; hint: create it")
    if found_pool.invalid:
        raise PoolUnusable(found_pool.invalid)
    return found_pool, _usable_class(snapshot, node_class)


def usable_for(snapshot: Snapshot, claim: NodeClaim) -> tuple[Pool, NodeClass]:
    """The pool and the node class that a claim's instance is made by. Raises PoolUnusable.

    A claim that names no pool (a standalone NodeClaim, made by a user) is launched as it stands, by a pool
    that asks for just what the claim does (Karpenter v1).
    """
    if not claim.is_standalone:
        return usable(snapshot, claim.pool, claim.node_class)
    pool = Pool(
        reference=claim.pool,
        node_class=claim.node_class,
        labels=claim.labels,
        taints=claim.taints,
        startup_taints=claim.startup_taints,
        requirements=claim.requirements,
    )
    return pool, _usable_class(snapshot, claim.node_class)


def _usable_class(snapshot: Snapshot, node_class: Reference) -> NodeClass:
    found = snapshot.node_classes.get(str(node_class))
    if found is None:
        raise PoolUnusable(f"{node_class} does not exist; hint: create it, or correct the reference")
    if found.invalid:
        raise PoolUnusable(found.invalid)
    if found.reference.kind == EC2_NODE_CLASS and found.deletion_timestamp is not None:
        raise PoolUnusable(f"{node_class} is being deleted; hint: refer to another, or create it anew")
    return found
