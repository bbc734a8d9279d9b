"""Whether a node became what was bought: what is missing is told, nothing is done about it.

Two checks, as Karpenter has them, told every ten minutes for as long as they fail: a node that is not
initialized an hour after it joined, and a node that reports much less of a resource than its type has.
Karpenter's third, a drain that a disruption budget holds up, is told where the eviction is refused.
"""

from nodeless.model.instructions import Instruction, ReportFailedCheck, UpdateClaimStatus
from nodeless.model.nodes import CONSISTENT_STATE_FOUND, Node, NodeClaim
from nodeless.model.resources import format_amount
from nodeless.nodeclaim.view import ClaimView, Step, cause_of, changed_condition

#: A node that takes longer to be initialized waits for something that will not come by itself.
LONGEST_INITIALIZATION = 3600.0
#: Part of what its type has that a node must report: the rest is firmware, kernel and reserved memory.
LEAST_CAPACITY = 0.9
#: How often a check that fails is told again.
TELL_AGAIN = 600.0
REASON = "FailedConsistencyCheck"
FAILED_INIT, NODE_SHAPE, TERMINATION = "FailedInit", "NodeShape", "Termination"


def step_consistency(view: ClaimView, now: float) -> Step:
    """The event and the condition `ConsistentStateFound` of a registered claim's node."""
    claim, node = view.claim, view.node
    if node is None or not node.registered:
        return Step()
    cause = cause_of(claim)
    failures = _failures(view, node, now)
    if not failures:
        found = changed_condition(claim, CONSISTENT_STATE_FOUND, "True", now) if node.initialized else ()
        status = (UpdateClaimStatus(cause, claim.name, found),) if found else ()
        return Step(status, None if node.initialized else node.created_at + LONGEST_INITIALIZATION + 1)
    message = "; ".join(failures)
    condition = changed_condition(claim, CONSISTENT_STATE_FOUND, "False", now, reason=REASON, message=message)
    instructions: list[Instruction] = [UpdateClaimStatus(cause, claim.name, condition)] if condition else []
    check = NODE_SHAPE if node.initialized else FAILED_INIT
    instructions.append(ReportFailedCheck(cause, check, node.name, message, node.uid))
    return Step(tuple(instructions), now + TELL_AGAIN)


def _failures(view: ClaimView, node: Node, now: float) -> tuple[str, ...]:
    claim, served = view.claim, view.served_by_devices
    if node.initialized:
        return tuple(
            _shortage(name, claim, node)
            for name in sorted(claim.capacity)
            if name not in served and _short(name, claim, node)
        )
    if now - node.created_at <= LONGEST_INITIALIZATION:
        return ()
    hours = f"not initialized within {LONGEST_INITIALIZATION / 60:.0f} minutes"
    left = [taint for taint in claim.startup_taints if any(taint.matches(other) for other in node.taints)]
    missing = [
        name
        for name in sorted(claim.requests)
        if claim.requests[name] and not node.allocatable.get(name) and name not in served
    ]
    if not node.ready:
        return (f"{hours}: the node is not Ready",)
    return tuple(
        [f"{hours}: startup taint {taint} is still there" for taint in left]
        + [f"{hours}: the node does not report any {name}" for name in missing]
    ) or (hours,)


def _short(name: str, claim: NodeClaim, node: Node) -> bool:
    has = node.capacity.get(name, 0)
    if not has and "/" in name and not claim.requests.get(name):
        # A device (a GPU, EFA) that nobody asked for: then nobody needs its plugin on the node either.
        return False
    return has < LEAST_CAPACITY * claim.capacity[name]


def _shortage(name: str, claim: NodeClaim, node: Node) -> str:
    has, expected = node.capacity.get(name, 0), claim.capacity[name]
    amounts = f"{format_amount(name, has)} of {format_amount(name, expected)}"
    return f"the node reports {amounts} {name} that its type has ({has / expected:.0%})"
