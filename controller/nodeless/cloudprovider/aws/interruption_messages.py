"""The bodies of EventBridge's messages in the interruption queue as `Interruption`s. Pure.

Whoever may write to the queue decides what stands in a body: nothing of it is trusted, and
nothing raises. What is not understood becomes a message of kind NONE, which is thrown away.

| source | detail-type | kind |
|---|---|---|
| aws.ec2 | EC2 Spot Instance Interruption Warning | SPOT_INTERRUPTION |
| aws.ec2 | EC2 Instance Rebalance Recommendation | REBALANCE_RECOMMENDATION |
| aws.ec2 | EC2 Instance State-change Notification, to a state that ends | STATE_CHANGE |
| aws.ec2 | EC2 Capacity Reservation Instance Interruption Warning | RESERVATION_INTERRUPTION |
| aws.health | AWS Health Event of EC2, category scheduledChange | SCHEDULED_CHANGE |
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from nodeless.model.interruptions import Interruption, InterruptionKind

#: Bytes; EventBridge's own limit of an event, so a longer body is none of its.
MAX_BODY_BYTES = 262_144
#: Instances that one message may name; a health event has at most this many entities.
MAX_INSTANCES = 1000
_VERSION = "0"
_ENDING_STATES = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


def read_message(body: str, handle: str = "") -> Interruption:
    """What a message says; never raises."""
    if len(body) > MAX_BODY_BYTES:
        return _no_interruption(f"the body has {len(body)} characters", handle)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        return _no_interruption(f"the body is not JSON: {error}", handle)
    if not isinstance(document, dict):
        return _no_interruption("the body is not a JSON object", handle)
    source, detail_type = document.get("source"), document.get("detail-type")
    read = _READERS.get((str(source), str(detail_type)))
    if read is None or document.get("version") != _VERSION:
        return Interruption(InterruptionKind.NONE, handle=handle)
    detail = document.get("detail")
    if not isinstance(detail, dict):
        return _no_interruption(f"{detail_type} has no detail", handle)
    kind, ids, state = read(detail)
    if kind is not InterruptionKind.NONE and not ids:
        return _no_interruption(f"{detail_type} names no instance", handle)
    return Interruption(kind, ids, state, _time(document.get("time")), handle=handle)


_Reading = tuple[InterruptionKind, tuple[str, ...], str]


def _of_instance(kind: InterruptionKind) -> Callable[[Mapping[str, Any]], _Reading]:
    def read(detail: Mapping[str, Any]) -> _Reading:
        return kind, _ids([detail.get("instance-id")]), ""

    return read


def _state_change(detail: Mapping[str, Any]) -> _Reading:
    state = str(detail.get("state", "")).lower()
    if state not in _ENDING_STATES:
        return InterruptionKind.NONE, (), ""
    return InterruptionKind.STATE_CHANGE, _ids([detail.get("instance-id")]), state


def _health(detail: Mapping[str, Any]) -> _Reading:
    if detail.get("service") != "EC2" or detail.get("eventTypeCategory") != "scheduledChange":
        return InterruptionKind.NONE, (), ""
    entities = detail.get("affectedEntities")
    listed = entities[:MAX_INSTANCES] if isinstance(entities, list) else []
    values = [record.get("entityValue") for record in listed if isinstance(record, dict)]
    return InterruptionKind.SCHEDULED_CHANGE, _ids(values), ""


_READERS: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], _Reading]] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): _of_instance(InterruptionKind.SPOT_INTERRUPTION),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): _of_instance(
        InterruptionKind.REBALANCE_RECOMMENDATION
    ),
    ("aws.ec2", "EC2 Instance State-change Notification"): _state_change,
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _of_instance(
        InterruptionKind.RESERVATION_INTERRUPTION
    ),
    ("aws.health", "AWS Health Event"): _health,
}


def _ids(values: list[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str) and value))


def _time(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _no_interruption(problem: str, handle: str) -> Interruption:
    return Interruption(InterruptionKind.NONE, problem=problem, handle=handle)
