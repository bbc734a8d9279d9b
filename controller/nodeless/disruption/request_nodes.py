"""Nodes that were launched for provisioning requests which never get their capacity: they end.

A claim names the requests for which it was launched (`LAUNCHED_FOR_REQUEST`).

| what is seen | what is done |
|---|---|
| one of the requests has no capacity yet, and is not over | nothing |
| each of the others got its capacity, now or before | the claim names them no more |
| each of the others failed before that, or is gone | the node ends, if nothing runs or is planned there |
| the same of a node that has pods | the claim names them no more |

A pool may keep empty nodes for ever; what was bought for a part of a request, which is worth nothing, is
not its user's wish. Room that was there whole and that nobody used goes as the pool says.
"""

from collections.abc import Mapping

from nodeless.disruption.gangs import is_for_others, is_without_pods, names_of, release, waiting_digests
from nodeless.model.instructions import AnnotateClaim, Instruction
from nodeless.model.labels import LAUNCHED_FOR_REQUEST
from nodeless.model.nodes import NodeClaim
from nodeless.model.provisioning_requests import FAILED, PROVISIONED, Phase
from nodeless.model.snapshot import Snapshot

#: Reason of the deletion, as in the label of `karpenter_nodes_terminated`.
REASON = "request_failed"
RELEASED = "RequestNodesReleased"
_LONGEST_CAUSE = 500


def request_node_steps(snapshot: Snapshot, now: float) -> Mapping[str, tuple[Instruction, ...]]:
    """What follows for the claims that were launched for provisioning requests, by claim.

    Args:
        snapshot: The cluster, with all its requests.
        now: Seconds since the epoch.
    """
    claims = {
        name: claim
        for name, claim in sorted(snapshot.claims.items())
        if LAUNCHED_FOR_REQUEST in claim.annotations
        and claim.deletion_timestamp is None
        and not claim.invalid
    }
    if not claims or snapshot.teardown:
        return {}
    expected: frozenset[str] | None = None
    steps: dict[str, tuple[Instruction, ...]] = {}
    for name, claim in claims.items():
        named = tuple(filter(None, claim.annotations[LAUNCHED_FOR_REQUEST].split(",")))
        left = [request for request in named if _is_under_way(snapshot, request)]
        lost = [why for request in named if (why := _why_lost(snapshot, request))]
        if len(left) == len(named) > 0:
            continue
        if not left and len(lost) == len(named) > 0 and is_without_pods(snapshot, claim):
            expected = waiting_digests(snapshot) if expected is None else expected
            if not _is_planned_for(snapshot, claim, expected, now):
                steps[name] = release(claim, lost[0], RELEASED, REASON)
            continue
        note = {LAUNCHED_FOR_REQUEST: ",".join(left) or None}
        steps[name] = (AnnotateClaim(f"claim:{name}", name, note),)
    return steps


def _is_under_way(snapshot: Snapshot, key: str) -> bool:
    """Whether a request may still get its capacity."""
    request = snapshot.provisioning_requests.get(key)
    return request is not None and request.ours and request.phase == Phase.PENDING


def _why_lost(snapshot: Snapshot, key: str) -> str:
    """Why a request never gets its capacity; empty: it may, or it had it."""
    request = snapshot.provisioning_requests.get(key)
    if request is None or request.deletion_timestamp is not None:
        return f"ProvisioningRequest {key} is gone"
    provisioned, failed = request.condition(PROVISIONED), request.condition(FAILED)
    if provisioned is not None and provisioned.status == "True":
        return ""
    if failed is None or failed.status != "True":
        return ""
    return f"ProvisioningRequest {key} failed: {failed.message[:_LONGEST_CAUSE]}"


def _is_planned_for(snapshot: Snapshot, claim: NodeClaim, expected: frozenset[str], now: float) -> bool:
    """Whether pods that wait, buffers or other requests are to have room on a claim's node."""
    return is_for_others(snapshot, claim, expected) or any(
        snapshot.is_nominated(name, now) for name in names_of(snapshot, claim)
    )
