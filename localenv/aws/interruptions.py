"""Warnings about instances, as EventBridge sends them, and what they warn of.

`POST /nodeless/interruptions` puts the event on the default bus, where the rules of the account decide who
hears of it. After a spot interruption warning the instance really goes: two minutes later, or after `after`
seconds; a state-change event tells of that, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from localenv.aws.moto_internals import ACCOUNT, MotoServer
from localenv.aws.state import LocalState

#: Seconds from EC2's warning to the end of a spot instance.
SPOT_NOTICE = 120.0
#: Seconds from the warning to the end of an instance in an interruptible capacity reservation.
RECLAIM_NOTICE = 120.0
_FIELDS = frozenset({"instanceId", "kind", "state", "after", "region"})
_EC2_KINDS = {
    "spot": "EC2 Spot Instance Interruption Warning",
    "rebalance": "EC2 Instance Rebalance Recommendation",
    "state-change": "EC2 Instance State-change Notification",
    "reservation": "EC2 Capacity Reservation Instance Interruption Warning",
}
KINDS = (*_EC2_KINDS, "scheduled-change")


def interrupt(state: LocalState, moto: MotoServer, document: Mapping[str, Any]) -> dict[str, Any]:
    """Send the warning; the event as it was put on the bus.

    Raises:
        ValueError: Unknown kind or field, or no such (spot) instance.
    """
    if strange := sorted(set(document) - _FIELDS):
        raise ValueError(f"unknown fields {strange} of an interruption")
    kind, instance_id = str(document.get("kind", "spot")), str(document["instanceId"])
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; one of {', '.join(KINDS)}")
    region = str(document.get("region") or state.region)
    instance = _instance(moto, region, instance_id)
    if kind == "spot" and instance.get("InstanceLifecycle") != "spot":
        raise ValueError(f"{instance_id} is not a spot instance, so EC2 does not interrupt it")
    event = _event(kind, region, instance, str(document.get("state") or "stopping"))
    _put(moto, region, event)
    if kind == "spot":
        seconds = float(document.get("after", SPOT_NOTICE))
        state.later(seconds, lambda: _end(state, moto, region, instance_id))
    return event


def warn_of_reclaim(state: LocalState, moto: MotoServer, region: str, instance_ids: Iterable[str]) -> None:
    """Warn of instances whose reserved capacity the owner takes back; EC2 ends them two minutes later."""
    for instance_id in instance_ids:
        _put(moto, region, _event("reservation", region, {"InstanceId": instance_id}, ""))
        state.later(RECLAIM_NOTICE, partial(_end, state, moto, region, instance_id))


def tell_stopped(moto: MotoServer, region: str, instances: Iterable[Mapping[str, Any]]) -> None:
    """Send what EventBridge hears of instances that were stopped."""
    for instance in instances:
        for name in ("stopping", "stopped"):
            _put(moto, region, _event("state-change", region, instance, name))


def _instance(moto: MotoServer, region: str, instance_id: str) -> dict[str, Any]:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - only needed when it fails

    try:
        answer = moto.client("ec2", region).describe_instances(InstanceIds=[instance_id])
    except ClientError as error:
        raise ValueError(f"no instance {instance_id} in {region}: {error}") from error
    instance: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
    return instance


def _event(kind: str, region: str, instance: Mapping[str, Any], state: str) -> dict[str, Any]:
    """Source, detail type and detail of an event of EC2 or AWS Health."""
    instance_id = str(instance["InstanceId"])
    if kind == "scheduled-change":
        detail: dict[str, Any] = {
            "eventArn": f"arn:aws:health:{region}::event/EC2/AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED/1",
            "service": "EC2",
            "eventTypeCode": "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
            "eventTypeCategory": "scheduledChange",
            "affectedEntities": [{"entityValue": instance_id}],
        }
        return {"Source": "aws.health", "DetailType": "AWS Health Event", "Detail": detail}
    detail = {"instance-id": instance_id}
    if kind in ("spot", "reservation"):
        detail["instance-action"] = "terminate"
    if kind == "state-change":
        detail["state"] = state
    arn = f"arn:aws:ec2:{region}:{ACCOUNT}:instance/{instance_id}"
    return {"Source": "aws.ec2", "DetailType": _EC2_KINDS[kind], "Detail": detail, "Resources": [arn]}


def _put(moto: MotoServer, region: str, event: Mapping[str, Any]) -> None:
    entry = {**event, "Detail": json.dumps(event["Detail"])}
    moto.client("events", region).put_events(Entries=[entry])


def _end(state: LocalState, moto: MotoServer, region: str, instance_id: str) -> None:
    """Take the instance back, if it still runs, and tell of it."""
    with state.lock:
        instance = _instance(moto, region, instance_id)
        if instance["State"]["Name"] not in {"pending", "running"}:
            return
        moto.client("ec2", region).terminate_instances(InstanceIds=[instance_id])
    for name in ("shutting-down", "terminated"):
        _put(moto, region, _event("state-change", region, instance, name))
