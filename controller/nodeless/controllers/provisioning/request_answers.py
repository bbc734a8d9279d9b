"""What a provisioning request is answered after a pass: pure, from its conditions and a plan.

The conditions are the state: a controller that starts anew reads from them how far a request has come.
`Accepted`, `Provisioned`, `Failed`, `CapacityRevoked` and `BookingExpired` are Cluster Autoscaler's names, as
are a booking of ten minutes and seven days after which a request without capacity fails
(https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nodeless.api.times import format_time, parse_time
from nodeless.controllers.provisioning.plan_shares import Share
from nodeless.model.conditions import Condition
from nodeless.model.provisioning_requests import (
    ACCEPTED,
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    CHECK_CAPACITY,
    FAILED,
    NO_RETRY,
    PROVISIONED,
    VALID_UNTIL_SECONDS,
    Phase,
    ProvisioningRequest,
)
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.existing import initialized
from nodeless.scheduling.pods.requests import invalid, problem_of

#: Seconds for which room is kept once it is there.
BOOKING_SECONDS = 600.0
#: Seconds since its creation after which a request that has no capacity fails, where it does not say.
VALID_SECONDS = 7 * 86400.0
#: Seconds since its first launch in which all nodes of a request must be ready: as long as a node may take
#: to register (Karpenter). After that the request fails, and what was launched for it is let go.
LAUNCH_SECONDS = 900.0
#: Seconds for which booked room may be missing, as with a node that is restarted, before it is revoked.
REVOKE_AFTER_SECONDS = 60.0
#: When the first node was launched for a request, among its details.
LAUNCHING_SINCE = "LaunchingSince"
_LONGEST_MESSAGE = 2_000


class RequestReason(StrEnum):
    """Reasons of a provisioning request's conditions."""

    ACCEPTED = "Accepted"
    POD_TEMPLATE_NOT_USABLE = "PodTemplateNotUsable"
    INVALID_REQUEST = "InvalidRequest"
    CAPACITY_FOUND = "CapacityIsFound"
    CAPACITY_NOT_FOUND = "CapacityIsNotFound"
    BEING_LAUNCHED = "CapacityIsBeingLaunched"
    PROVISIONED = "CapacityIsProvisioned"
    LAUNCH_TOOK_TOO_LONG = "LaunchTookTooLong"
    EXPIRED = "Expired"
    BOOKING_EXPIRED = "BookingExpired"
    CAPACITY_REVOKED = "CapacityRevoked"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is to be written to a request: the conditions that are observed, and its details."""

    conditions: tuple[Condition, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)
    incomplete: bool = False
    """No plan has all its pods: it is planned again after a pause."""


def valid_until(request: ProvisioningRequest) -> float:
    """When a request that has no capacity fails, in seconds since the epoch."""
    said = dict(request.parameters).get(VALID_UNTIL_SECONDS)
    return request.created_at + (float(said) if said else VALID_SECONDS)


def booked_until(request: ProvisioningRequest) -> float:
    """Until when the room of a request that is booked is kept."""
    provisioned = request.condition(PROVISIONED)
    return (provisioned.last_transition_time if provisioned else request.created_at) + BOOKING_SECONDS


def answer_to(
    snapshot: Snapshot,
    request: ProvisioningRequest,
    share: Share,
    now: float,
    *,
    used: bool = False,
    missing_since: float | None = None,
) -> Answer:
    """What a request is answered.

    Args:
        snapshot: The cluster with its requests.
        request: One of them that is ours.
        share: What the plan of the pass says of it; of a request that checks capacity and is not booked, the
            plan that checked it.
        now: Seconds since the epoch.
        used: Pods that use it have come.
        missing_since: Since when a part of its booked room is missing; None: nothing is.
    """
    if request.phase == Phase.OVER:
        return Answer()
    if request.phase == Phase.BOOKED:
        return _of_booking(request, share, now, used=used, missing_since=missing_since)
    if wrong := invalid(request):
        return _answer_failure(RequestReason.INVALID_REQUEST, wrong)
    problem = problem_of(snapshot, request)
    if now >= valid_until(request):
        provisioned = request.condition(PROVISIONED)
        last = problem or (provisioned.message if provisioned else "nodeless has not planned it yet")
        seconds = valid_until(request) - request.created_at
        return _answer_failure(RequestReason.EXPIRED, f"no capacity within {seconds:.0f} s: {last}")
    if problem:
        return Answer((Condition(ACCEPTED, "False", RequestReason.POD_TEMPLATE_NOT_USABLE, problem),))
    return _of_capacity(snapshot, request, share, now)


def missing_room(share: Share) -> str:
    """What of a booking has no room any more; empty: all of it has."""
    lost = share.refusals
    return f"room for {len(lost)} of its pods is no longer available: {lost[0]}" if lost else ""


def _of_booking(
    request: ProvisioningRequest, share: Share, now: float, *, used: bool, missing_since: float | None
) -> Answer:
    if now >= booked_until(request):
        text = f"room was kept for {BOOKING_SECONDS:.0f} s"
        return Answer((Condition(BOOKING_EXPIRED, "True", RequestReason.BOOKING_EXPIRED, text),))
    missing = missing_room(share)
    if missing and not used and missing_since is not None and now - missing_since >= REVOKE_AFTER_SECONDS:
        return Answer((Condition(CAPACITY_REVOKED, "True", RequestReason.CAPACITY_REVOKED, missing),))
    return Answer()


def _of_capacity(snapshot: Snapshot, request: ProvisioningRequest, share: Share, now: float) -> Answer:
    accepted = Condition(ACCEPTED, "True", RequestReason.ACCEPTED)
    ready = sum(_is_ready(snapshot, name) for name in share.places)
    checks = request.provisioning_class == CHECK_CAPACITY
    if ready == request.pods:
        reason = RequestReason.CAPACITY_FOUND if checks else RequestReason.PROVISIONED
        text = f"room for {ready} pods is kept for {BOOKING_SECONDS:.0f} s"
        return Answer((accepted, Condition(PROVISIONED, "True", reason, text)))
    if checks:
        text = f"the cluster has room for {ready} of {request.pods} pods"
        if dict(request.parameters).get(NO_RETRY) == "true":
            return _answer_failure(RequestReason.CAPACITY_NOT_FOUND, text, accepted)
        return Answer((accepted, _lacking(text)), incomplete=True)
    since = _launching_since(request)
    if since is not None and now - since >= LAUNCH_SECONDS:
        text = _last_refusal(request, share) or f"room for {ready} of {request.pods} pods is ready"
        text = f"not all nodes were ready {LAUNCH_SECONDS:.0f} s after the first launch: {text}"
        return _answer_failure(RequestReason.LAUNCH_TOOK_TOO_LONG, text, accepted)
    if share.refusals:
        return Answer((accepted, _lacking(str(share.refusals[0]))), incomplete=True)
    if len(share.places) + share.coming < request.pods:
        # It was set aside, or its turn comes with a later pass: what was said of it stands.
        known = request.condition(PROVISIONED)
        return Answer((accepted,) if known else (accepted, _lacking("it has not been planned yet")))
    text = f"room for {ready} of {request.pods} pods is ready, nodes for the others are being launched"
    launching = Condition(PROVISIONED, "False", RequestReason.BEING_LAUNCHED, text)
    return Answer((accepted, launching), {LAUNCHING_SINCE: format_time(now if since is None else since)})


def _last_refusal(request: ProvisioningRequest, share: Share) -> str:
    """What was last said to lack: by this plan, or, where the request rests, by the last that held it."""
    if share.refusals:
        return str(share.refusals[0])
    known = request.condition(PROVISIONED)
    return known.message if known is not None and known.reason == RequestReason.CAPACITY_NOT_FOUND else ""


def _is_ready(snapshot: Snapshot, name: str) -> bool:
    node = snapshot.nodes.get(name)
    return node is not None and initialized(node, snapshot.claim_of(node))


def _launching_since(request: ProvisioningRequest) -> float | None:
    try:
        return parse_time(dict(request.details)[LAUNCHING_SINCE])
    except (KeyError, ValueError):
        return None


def _lacking(message: str) -> Condition:
    return Condition(PROVISIONED, "False", RequestReason.CAPACITY_NOT_FOUND, message[:_LONGEST_MESSAGE])


def _answer_failure(reason: RequestReason, message: str, *others: Condition) -> Answer:
    return Answer((*others, Condition(FAILED, "True", reason, message[:_LONGEST_MESSAGE])))
