"""Static pools: a number of nodes whatever the pods are (`spec.replicas` of a NodePool).

Pods may run on their nodes as on any that exist, but never cause one; those that are made in the same pass
count as room on its way. A pool holds as many nodes as its replicas, fewer where its limit of nodes says so;
what is being deleted counts against the limit until it is gone. A node that is being replaced counts once,
together with its replacement.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nodeless.model.events import ClaimSeen
from nodeless.model.labels import INSTANCE_TYPE
from nodeless.model.nodes import NodeClaim
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.pools import Pool
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.resources import total
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.pool_table import NODES
from nodeless.state.applying import apply
from nodeless.state.usage import stands_in

#: Nodes that a pass makes for one static pool: its replicas may be any number of 64 bits.
MOST_AT_ONCE = 1_000
_NAME = "planned.nodeless.dev/{}/{}"


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


def with_planned(snapshot: Snapshot, nodes: Sequence[PlannedNode]) -> Snapshot:
    """The cluster as if the claims of planned nodes of static pools were there already."""
    for number, node in enumerate(nodes):
        pool = snapshot.pools[str(node.pool)]
        others = [each for each in node.requirements.values() if each.key != INSTANCE_TYPE]
        types = Requirement.of(INSTANCE_TYPE, IN, [each.instance_type for each in node.alternatives])
        claim = NodeClaim(
            _name(number, node),
            node.pool,
            node.node_class,
            Requirements([*others, types]),
            node.requests,
            labels={
                **node.requirements.single_values(),
                **pool.labels,
                pool.reference.pool_label: pool.name,
            },
            taints=pool.taints,
            startup_taints=pool.startup_taints,
        )
        snapshot = apply(snapshot, ClaimSeen(claim))
    return snapshot


def with_pods(nodes: Sequence[PlannedNode], plan: Plan, snapshot: Snapshot) -> Plan:
    """A plan made `with_planned` nodes: it buys them too, and the pods that it places there are theirs.

    Args:
        nodes: The nodes.
        plan: The plan.
        snapshot: What it was made for.
    """
    numbers = {_name(number, node): number for number, node in enumerate(nodes)}
    theirs: dict[int, list[str]] = defaultdict(list)
    for pod, place in plan.placements.items():
        if place in numbers:
            theirs[numbers[place]].append(pod)
    made = [
        replace(
            node,
            pods=tuple(sorted(keys)),
            requests=total((node.requests, *(dict(snapshot.pods[key].shape.requests) for key in keys))),
        )
        if (keys := theirs.get(number))
        else node
        for number, node in enumerate(nodes)
    ]
    return replace(
        plan,
        new_nodes=(*plan.new_nodes, *made),
        placements={pod: place for pod, place in plan.placements.items() if place not in numbers},
    )


def _name(number: int, node: PlannedNode) -> str:
    return _NAME.format(node.pool.name, number)


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
