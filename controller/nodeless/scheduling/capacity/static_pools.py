"""Static pools: a number of nodes whatever the pods are (`spec.replicas` of a NodePool).

Pods may run on their nodes as on any that exist, but never cause one. A pool holds as many nodes as
its replicas, fewer where its limit of nodes says so; what is being deleted counts against the limit
until it is gone. A node that is being replaced counts once, together with its replacement.
"""

from collections.abc import Iterator

from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.pool_table import NODES
from nodeless.state.usage import stands_in

#: Nodes that a pass makes for one static pool: its replicas may be any number of 64 bits.
MOST_AT_ONCE = 1_000


def static_shortage(snapshot: Snapshot) -> dict[str, int]:
    """How many nodes each static pool lacks now, by pool key; pools that lack none are left out.

    At most `MOST_AT_ONCE` of each: the next pass makes the next ones.
    """
    lacking = {}
    for pool in _static_pools(snapshot):
        claims = [claim for claim in snapshot.claims.values() if claim.pool == pool.reference]
        living = sum(claim.deletion_timestamp is None and not stands_in(snapshot, claim) for claim in claims)
        missing = (pool.replicas or 0) - living
        limit = (pool.limits or {}).get(NODES)
        if limit is not None:
            missing = min(missing, limit - len(claims))
        if missing > 0:
            lacking[pool.key] = min(missing, MOST_AT_ONCE)
    return lacking


def has_slot(snapshot: Snapshot, pool: Pool) -> bool:
    """Whether the pool's limit of nodes leaves one more, beside those that are being deleted."""
    limit = (pool.limits or {}).get(NODES)
    return limit is None or sum(claim.pool == pool.reference for claim in snapshot.claims.values()) < limit


def spare_slots(pool: Pool) -> int | None:
    """How many nodes a static pool's limit leaves beside its replicas, for replacements; None: no limit."""
    limit = (pool.limits or {}).get(NODES)
    return None if limit is None else max(limit - (pool.replicas or 0), 0)


def _static_pools(snapshot: Snapshot) -> Iterator[Pool]:
    for _, pool in sorted(snapshot.pools.items()):
        if pool.replicas is not None and pool.deletion_timestamp is None and not pool.invalid:
            yield pool
