"""What two plans differ in, one line for each thing that only one of them has."""

from collections import Counter
from collections.abc import Mapping

from nodeless.explain.words import count, listed, price
from nodeless.model.plan import Plan, PlannedNode

#: Lines told of each subject.
SHOWN = 10


def differences(before: Plan, after: Plan) -> tuple[str, ...]:
    """Lines that start with `-` (only before) or `+` (only after); empty when the plans say the same.

    Nodes are compared by pool, type, offering and pods; what else may differ of them (the order of
    alternatives, requests) is told as one line.
    """
    lines = [
        *_compared(Counter(map(_node, before.new_nodes)), Counter(map(_node, after.new_nodes))),
        *_entries(_placements(before), _placements(after)),
        *_entries(_refusals(before), _refusals(after)),
        *_entries(_relaxations(before), _relaxations(after)),
    ]
    if before.cost_per_hour != after.cost_per_hour:
        lines.append(f"  cost: {price(before.cost_per_hour)} before, {price(after.cost_per_hour)} after")
    if not lines and before != after:
        lines.append(
            "  same nodes, placements and refusals, but their details differ (alternatives, requests)"
        )
    return tuple(lines)


def _node(node: PlannedNode) -> str:
    offering = node.alternatives[0].offering
    return (
        f"node of {node.pool}: {node.instance_type}, {offering.capacity_type} in {offering.zone}, "
        f"for {count(len(node.pods), 'pod')} ({listed(node.pods)})"
    )


def _placements(plan: Plan) -> dict[str, str]:
    return {pod: f"{pod} on {name}" for pod, name in plan.placements.items()}


def _refusals(plan: Plan) -> dict[str, str]:
    return {refusal.pod: f"{refusal.pod} refused: {refusal}" for refusal in plan.refusals}


def _relaxations(plan: Plan) -> dict[str, str]:
    return {
        f"{pod} {relaxation.message}": f"{pod} relaxed {relaxation.message}"
        for relaxation in plan.relaxations
        for pod in relaxation.pods
    }


def _entries(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return _compared(Counter(before.values()), Counter(after.values()))


def _compared(before: Counter[str], after: Counter[str]) -> list[str]:
    return [*_signed("-", before - after), *_signed("+", after - before)]


def _signed(sign: str, some: Counter[str]) -> list[str]:
    texts = sorted(some.elements())
    more = len(texts) - SHOWN
    return [f"{sign} {text}" for text in texts[:SHOWN]] + ([f"{sign} and {more} more"] if more > 0 else [])
