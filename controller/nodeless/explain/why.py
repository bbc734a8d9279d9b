"""Why a planned node is what it is: its pods, its type and price, and what would have come next."""

from nodeless.explain.bill import bill_lines
from nodeless.explain.words import amounts, count, price
from nodeless.model.plan import Alternative, PlannedNode

#: Alternatives told after the intended type.
NEXT = 3


def why(node: PlannedNode) -> str:
    """A few lines: what the node must hold, what is bought for how much, and the next best types."""
    intended, pods = node.alternatives[0], count(len(node.pods), "pod")
    if node.is_static:
        room = f", which has room for {pods}" if node.pods else ""
        held, chosen, them = (
            f"one of the replicas of {node.pool}{room}",
            "cheapest of the pool",
            "its daemons",
        )
    else:
        need, their, them = ("needs", "its", "it") if len(node.pods) == 1 else ("need", "their", "them")
        held = f"{pods} of {node.pool} {need} {amounts(node.requests)} with {their} daemons"
        chosen = f"cheapest that holds {them}"
    bill = bill_lines(node.price, intended.offering.parts)
    return "\n".join((held, f"{chosen}: {_offer(intended)}", *bill, *_next(node, them)))


def one_line(node: PlannedNode) -> str:
    """The same in one line, as it stands on the node's claim."""
    return "; ".join(why(node).splitlines())


def next_offers(node: PlannedNode) -> tuple[str, ...]:
    """The types that would have come next, each with its price: `m6a.large 0.0864`."""
    others = node.alternatives[1 : 1 + NEXT]
    return tuple(f"{other.instance_type} {other.offering.price:.4f}" for other in others)


def _next(node: PlannedNode, them: str) -> tuple[str, ...]:
    others = node.alternatives[1:]
    if not others:
        return (f"no other instance type holds {them} on the same terms",)
    shown = tuple(f"next: {_offer(other)}{_dearer(other, node.price)}" for other in others[:NEXT])
    more = len(others) - NEXT
    return (*shown, f"and {count(more, 'other type')}") if more > 0 else shown


def _offer(alternative: Alternative) -> str:
    offering = alternative.offering
    return (
        f"{alternative.instance_type}, {offering.capacity_type} in {offering.zone}, {price(offering.price)}"
    )


def _dearer(alternative: Alternative, base: float) -> str:
    difference = alternative.offering.price - base
    if difference == 0:
        return " (same price)"
    return f" (+{100 * difference / base:.1f} %)" if base > 0 else ""
