"""What a cluster costs, and what it would cost if all pods that may move were planned again."""

from dataclasses import dataclass, replace
from math import fsum

from nodeless.disruption.blocking import Blocking
from nodeless.explain.decisions import Situation
from nodeless.explain.fill import existing_nodes
from nodeless.explain.what_if import without_nodes
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import NODE_POOL, PROVISIONER_NAME
from nodeless.model.nodes import Node
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.draining import drain_taint
from nodeless.scheduling.capacity.pricing import priced

#: Seconds of work for a cheaper plan in each try; the same in all, so that they compare.
TIME_BOX = 0.25


@dataclass(frozen=True, slots=True)
class Bill:
    """US dollars an hour.

    Attributes:
        price: Of all nodes, with what is launched.
        refused: Pods without a place.
        unpriced: Nodes whose price is not known, which are in no figure.
        held: Nodes that stay because of their pods, with the pod and the reason.
    """

    price: float
    refused: int
    unpriced: int = 0
    held: tuple[tuple[str, str], ...] = ()


def bill_now(situation: Situation, wide: Catalog) -> Bill:
    """The nodes that exist, and those for the pods that wait."""
    return _bill(situation, wide)


def bill_anew(situation: Situation, wide: Catalog) -> Bill:
    """The same if the nodes of pools were gone, but for those whose pods must stay."""
    snapshot = situation.snapshot
    blocking = Blocking(snapshot)
    leaving, held = [], []
    for name, node in sorted(snapshot.nodes.items()):
        pool = node.pool
        if pool is None or not is_ours(snapshot, node):
            continue
        verdict = blocking.first_blocker(snapshot.pods_on(name), situation.now, drain_taint(pool))
        if verdict is None:
            leaving.append(name)
        else:
            held.append((name, verdict.message))
    emptied = without_nodes(snapshot, leaving)
    return replace(_bill(replace(situation, snapshot=emptied), wide), held=tuple(held))


def is_ours(snapshot: Snapshot, node: Node) -> bool:
    """Whether a pool of the snapshot made a node."""
    return any(
        f"{kind}/{node.labels[key]}" in snapshot.pools
        for key, kind in ((NODE_POOL, "NodePool"), (PROVISIONER_NAME, "Provisioner"))
        if key in node.labels
    )


def _bill(situation: Situation, wide: Catalog) -> Bill:
    snapshot, policy = situation.snapshot, replace(situation.policy, time_box=TIME_BOX)
    plan = replace(situation, policy=policy).plan()
    catalog = priced(wide, snapshot.pools.values(), policy.price_adjustments, policy.node_fee)
    fills = existing_nodes(snapshot, catalog, replace(plan, new_nodes=(), placements={}), policy.commitments)
    known = [fill.price for fill in fills if fill.price is not None]
    return Bill(fsum((*known, plan.cost_per_hour)), len(plan.refusals), len(fills) - len(known))
