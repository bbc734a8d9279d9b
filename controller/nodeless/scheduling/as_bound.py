"""The plan that is cheapest as kube-scheduler will bind it, where pods are not nominated to their nodes.

The scheduler follows its scores (`binding`), so the tighter a plan packs its pods, the more of them find no
room in the end, and the rest costs further nodes. Price of a plan as bound:

    its nodes + the nodes of a plan for the pods that spill, as bound itself, and so on

Plans are made as if each node cost more than it does, up to the plan with the fewest nodes: the fewer and
larger the nodes, the less is lost on them. The one that is cheapest as bound is taken, and told at its real
prices. Decided by prices alone; no pod loses its place by it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from immutables import Map

from nodeless.model.instance_types import Catalog, Offering
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.pricing import priced
from nodeless.scheduling.policy import FEWEST_NODES, LOWEST_PRICE, Policy

#: What a node is taken to cost more, in parts of what a node of the first plan costs on average.
_FEES = (0.25, 1.0, 4.0)
#: Where what spills costs so small a part of a plan that was searched for, no other plan is made: it would
#: cost more by itself. Of first-fit plans one with fewer nodes may be cheaper.
_LITTLE = 0.01
#: How often the pods that spill are planned and bound again.
_ROUNDS = 3

Planner = Callable[[Snapshot, Catalog, Policy], Plan]
"""Plans for the pods that lack capacity."""


def cheapest_as_bound(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, planner: Planner
) -> Plan:
    """The first plan, or another one that leaves nobody else out and is cheaper as bound.

    Args:
        plan: The first plan, with its spill.
        snapshot: What it was made for.
        catalog: What each pool may buy.
        policy: How it was made.
        planner: Makes plans.
    """
    if not plan.spill or not plan.new_nodes:
        return plan
    best, least = plan, _price_as_bound(plan, snapshot, catalog, policy, planner)
    searched = policy.time_box and policy.most_new_nodes is None
    if searched and least <= (1 + _LITTLE) * plan.cost_per_hour:
        return plan
    for other in _others(plan, snapshot, catalog, policy, planner):
        if _refused(other) <= _refused(plan):
            price = _price_as_bound(other, snapshot, catalog, policy, planner)
            if price < least:
                best, least = other, price
    return replace(best, lower_bound=plan.lower_bound)


def _refused(plan: Plan) -> set[str]:
    return {refusal.pod for refusal in plan.refusals}


def _others(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, planner: Planner
) -> Iterator[Plan]:
    """Plans with ever fewer nodes, at real prices; they take together as long as the first one."""
    if policy.packing != LOWEST_PRICE:
        return
    policy = replace(policy, time_box=policy.time_box / (len(_FEES) + 1))
    average = plan.cost_per_hour / len(plan.new_nodes)
    real = _prices(snapshot, catalog, policy)
    for part in _FEES:
        dearer = replace(policy, node_fee=policy.node_fee + part * average)
        yield _at(real, planner(snapshot, catalog, dearer))
    yield planner(snapshot, catalog, replace(policy, packing=FEWEST_NODES))


def _price_as_bound(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, planner: Planner
) -> float:
    """Dollars an hour of a plan's nodes and of those for what it spills."""
    price, waiting = plan.cost_per_hour, plan.spill
    a_pod = price / max(sum(len(node.pods) for node in plan.new_nodes), 1)
    for _ in range(_ROUNDS):
        if not waiting:
            break
        more = planner(_alone(snapshot, waiting), catalog, replace(policy, time_box=0.0))
        # Who cannot be planned alone costs what a pod costs.
        price += more.cost_per_hour + a_pod * len(more.refusals)
        waiting = more.spill
    return price + a_pod * len(waiting)


def _alone(snapshot: Snapshot, keys: Iterable[str]) -> Snapshot:
    """Some pods that wait, and nothing that runs."""
    return Snapshot(
        pods=Map({key: snapshot.pods[key] for key in keys}),
        pools=snapshot.pools,
        node_classes=snapshot.node_classes,
        daemon_sets=snapshot.daemon_sets,
        namespaces=snapshot.namespaces,
        volume_claims=snapshot.volume_claims,
        volumes=snapshot.volumes,
        storage_classes=snapshot.storage_classes,
    )


_Prices = Mapping[tuple[str, str, str, str, str], Offering]
"""Offerings by pool, type, zone, capacity type and reservation."""


def _prices(snapshot: Snapshot, catalog: Catalog, policy: Policy) -> _Prices:
    offered = priced(catalog, snapshot.pools.values(), policy.price_adjustments, policy.node_fee)
    return {
        (pool, instance_type.name, each.zone, each.capacity_type, each.reservation): each
        for pool, types in offered.items()
        for instance_type in types
        for each in instance_type.offerings
    }


def _at(real: _Prices, plan: Plan) -> Plan:
    return replace(plan, new_nodes=tuple(_node_at(real, node) for node in plan.new_nodes))


def _node_at(real: _Prices, node: PlannedNode) -> PlannedNode:
    """A node with its real prices: what all cost more changes nothing about their order."""

    def offering(instance_type: str, each: Offering) -> Offering:
        return real[str(node.pool), instance_type, each.zone, each.capacity_type, each.reservation]

    return replace(
        node,
        alternatives=tuple(
            replace(each, offering=offering(each.instance_type, each.offering)) for each in node.alternatives
        ),
    )
