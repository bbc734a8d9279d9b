"""Whether a pool and its node class can make nodes, or why not."""

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
    found_class = snapshot.node_classes.get(str(node_class))
    if found_class is None:
        raise PoolUnusable(f"{node_class} does not exist; hint: create it, or correct the reference")
    if found_class.invalid:
        raise PoolUnusable(found_class.invalid)
    if found_class.reference.kind == EC2_NODE_CLASS and found_class.deletion_timestamp is not None:
        raise PoolUnusable(f"{node_class} is being deleted; hint: refer to another, or create it anew")
    return found_pool, found_class
