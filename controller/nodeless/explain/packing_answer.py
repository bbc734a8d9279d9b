"""The answer to a packing problem as one JSON document.

Equal nodes are folded with a `count`, pods are told by their names in the problem with their
numbers, prices are those of the cheapest offering that the node may become.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from nodeless.model.plan import Plan, PlannedNode


def packing_answer(problem: str, pods: Mapping[str, str], plan: Plan) -> dict[str, Any]:
    """The document.

    Args:
        problem: The problem's name.
        pods: Key of each pod of the problem, and its name there.
        plan: What was planned.
    """
    there: dict[str, list[str]] = {}
    for key, name in plan.placements.items():
        there.setdefault(name, []).append(key)
    fewer = plan.fewer_nodes
    return {
        "problem": problem,
        "pods": len(pods),
        "scheduledNew": sum(len(node.pods) for node in plan.new_nodes),
        "scheduledExisting": len(plan.placements),
        "unscheduledPods": len(plan.refusals),
        "newNodeCount": len(plan.new_nodes),
        "totalHourlyPrice": round(plan.cost_per_hour, 9),
        "lowerBound": None if plan.lower_bound is None else round(plan.lower_bound, 9),
        "gap": None if plan.gap is None else round(plan.gap, 9),
        "provedCheapest": plan.proved_cheapest,
        "fewerNodes": fewer.to_json() if fewer else None,
        "timedOut": False,
        "faults": list(plan.fault_notes()),
        "newNodes": _folded(plan.new_nodes, pods),
        "existingNodes": [{"name": name, "pods": _counted(there[name], pods)} for name in sorted(there)],
        "unschedulable": _refused(plan, pods),
    }


def _folded(nodes: Iterable[PlannedNode], pods: Mapping[str, str]) -> list[dict[str, Any]]:
    folded: dict[tuple[Any, ...], dict[str, Any]] = {}
    for node in nodes:
        counted = _counted(node.pods, pods)
        offering = node.alternatives[0].offering
        alike = (
            node.pool.name,
            node.instance_type,
            offering.zone,
            offering.capacity_type,
            len(node.alternatives),
            tuple((entry["name"], entry["count"]) for entry in counted),
        )
        if alike in folded:
            folded[alike]["count"] += 1
            continue
        folded[alike] = {
            "count": 1,
            "nodePool": node.pool.name,
            "instanceType": node.instance_type,
            "zone": offering.zone,
            "capacityType": offering.capacity_type,
            "price": offering.price,
            "instanceTypeOptions": len(node.alternatives),
            "pods": counted,
        }
    return list(folded.values())


def _counted(keys: Iterable[str], pods: Mapping[str, str]) -> list[dict[str, Any]]:
    counts = Counter(pods[key] for key in keys)
    return [{"name": name, "count": counts[name]} for name in sorted(counts)]


def _refused(plan: Plan, pods: Mapping[str, str]) -> list[dict[str, Any]]:
    counts = Counter((pods[refusal.pod], str(refusal)) for refusal in plan.refusals)
    return [{"name": name, "count": count, "error": why} for (name, why), count in sorted(counts.items())]
