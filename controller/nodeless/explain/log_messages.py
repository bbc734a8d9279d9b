"""Log lines of a pass, one for each stage: pods found, packing computed, room that is used, pods refused."""

from collections.abc import Sequence

from nodeless.explain.events import failed_scheduling
from nodeless.explain.words import amounts, count, listed
from nodeless.model.plan import Plan, PlannedNode, Refusal


def found_pods(pods: int) -> str:
    """`found 10 provisionable pods`."""
    return f"found {count(pods, 'provisionable pod')}"


def computed(plan: Plan) -> tuple[str, ...]:
    """How many nodes for how many pods, with the instance types that would do; a line for each kind of node.

    Empty when the plan opens no node.
    """
    groups: dict[tuple[object, ...], list[PlannedNode]] = {}
    for node in plan.new_nodes:
        options = tuple(alternative.instance_type for alternative in node.alternatives)
        groups.setdefault((node.pool, options), []).append(node)
    return tuple(_computed(nodes) for nodes in groups.values())


def spilled(plan: Plan) -> str | None:
    """How many pods will find no room as kube-scheduler binds the others, or None."""
    if not plan.spill:
        return None
    pods = count(len(plan.spill), "pod")
    return (
        f"{pods} will need more nodes, because kube-scheduler's scores spread the others; this plan "
        "is the cheapest"
    )


def reused(plan: Plan) -> str | None:
    """How many pods go where there is room already, or None."""
    if not plan.placements:
        return None
    names = sorted(set(plan.placements.values()))
    where = f"{count(len(names), 'node')} with room ({listed(names)})"
    return f"{count(len(plan.placements), 'pod')} should schedule on {where}"


def waiting_for_termination(pods: int) -> str:
    """`3 pods wait for the room of pods that are terminating; ...`."""
    verb = "waits" if pods == 1 else "wait"
    return (
        f"{count(pods, 'pod')} {verb} for the room of pods that are terminating; no node is launched for them"
    )


def refused(refusals: Sequence[Refusal]) -> tuple[str, ...]:
    """Pods without capacity, those with the same reason on one line."""
    groups: dict[str, list[str]] = {}
    for refusal in refusals:
        groups.setdefault(failed_scheduling(refusal).replace("\n", "; "), []).append(refusal.pod)
    return tuple(
        f"could not plan {count(len(pods), 'pod')} ({listed(pods)}): {reason}"
        for reason, pods in groups.items()
    )


def launching(node: PlannedNode) -> str:
    """What a claim is about to ask the cloud for."""
    types = listed([alternative.instance_type for alternative in node.alternatives])
    return (
        f"launching a node of {node.pool} with {count(len(node.pods), 'pod')} "
        f"requesting {amounts(node.requests)} from types {types}"
    )


def _computed(nodes: Sequence[PlannedNode]) -> str:
    pods = sum(len(node.pods) for node in nodes)
    types = listed([alternative.instance_type for alternative in nodes[0].alternatives])
    return f"computed {count(len(nodes), 'node')} for {count(pods, 'pod')} with instance type options {types}"
