"""Messages of the Kubernetes events that a pass publishes on pods, and their reasons.

The reasons are Karpenter's, so that dashboards and alerts keep working. A refusal names one
failing thing for each pool, however many instance types were looked at.
"""

from collections.abc import Sequence

from nodeless.explain.why import next_offers
from nodeless.explain.words import count, price
from nodeless.model.plan import PlannedNode, PoolRefusal, Refusal, RefusalCode

NOMINATED = "Nominated"
FAILED_SCHEDULING = "FailedScheduling"
WAITING = "WaitingForTermination"
NO_COMPATIBLE_TYPES = "NoCompatibleInstanceTypes"
#: Pools told one by one in a message.
POOLS_SHOWN = 5
#: Characters of an event's message (Kubernetes' validation of events).
LONGEST = 1024


def placed(name: str, relaxed: Sequence[str] = ()) -> str:
    """The message for a pod that has its place on a node or claim that is there.

    Args:
        name: The node or claim.
        relaxed: Preferences of the pod that were relaxed, a line each.
    """
    return f"Pod should schedule on {name}, which has room{_relaxed(relaxed)}"[:LONGEST]


def waits(name: str, seconds: float) -> str:
    """The message for a pod that waits for the room of pods that terminate on a node, so long at most."""
    return (
        f"Pod should schedule on {name} once the pods that terminate there are gone; "
        f"a node is launched for it if it still waits after {seconds:g} s"
    )


def nominated(name: str, node: PlannedNode, relaxed: Sequence[str] = ()) -> str:
    """The message for a pod for which a node is launched.

    Args:
        name: The node's claim.
        node: The plan of that node.
        relaxed: Preferences of the pod that were relaxed, a line each.
    """
    types, next_best = (
        len(node.alternatives),
        "".join(f"; next: {next_offer}" for next_offer in next_offers(node)),
    )
    offering = node.alternatives[0].offering
    pods = count(len(node.pods), "pod")
    if node.is_static:
        chosen = "one of the replicas of its pool"
    elif types > 1:
        chosen = f"the cheapest of {types} types that hold its {pods}"
    else:
        chosen = f"the only type that holds its {pods}"
    return (
        f"Pod should schedule on {name}, a new node of {node.pool}: {node.instance_type} or similar, "
        f"{offering.capacity_type}, in {offering.zone} or another allowed zone, {price(offering.price)}, "
        f"{chosen}{next_best}{_relaxed(relaxed)}"
    )[:LONGEST]


def _relaxed(relaxed: Sequence[str]) -> str:
    return "".join(f"\nrelaxed: {relaxation}" for relaxation in relaxed)


def no_compatible_instance_types(refusal: PoolRefusal) -> str:
    """The message for a pool that can make no node, in Karpenter's words: clients compare it."""
    why = " due to minValues incompatibility" if refusal.code == RefusalCode.MIN_VALUES_NOT_MET else ""
    return f"NodePool requirements filtered out all compatible available instance types{why}"


def failed_scheduling(refusal: Refusal, remedies: Sequence[str] = ()) -> str:
    """The message for a pod that gets no capacity: one reason, or one line for each of a few pools.

    What would help comes last, and is what stays whole when an event has no room for all.
    """
    reasons = _reasons(refusal)
    if not remedies:
        return reasons
    helped = f"\nwould fit: {'; or: '.join(remedies)}"[:LONGEST]
    room = LONGEST - len(helped)
    return (reasons if len(reasons) <= room else f"{reasons[: max(0, room - 3)]}...") + helped


def _reasons(refusal: Refusal) -> str:
    if refusal.message or not refusal.reasons:
        return f"No capacity for this pod: {refusal.message or refusal.code}"
    lines = [f"{reason.pool}: {reason.message}" for reason in refusal.reasons[:POOLS_SHOWN]]
    more = len(refusal.reasons) - POOLS_SHOWN
    if more > 0:
        codes = sorted({reason.code for reason in refusal.reasons[POOLS_SHOWN:]})
        lines.append(f"and {count(more, 'other pool')} ({', '.join(codes)})")
    if len(lines) == 1:
        return f"No capacity for this pod: {lines[0]}"
    return "\n".join(["No pool can make a node for this pod:", *lines])
