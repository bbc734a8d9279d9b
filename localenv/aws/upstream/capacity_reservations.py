"""Capacity reservations: on-demand ones, capacity blocks, interruptible ones.

moto knows none of them. In EC2 an instance takes a place of a reservation when its launch template
targets it, or when the reservation is open and the template does not say that no reservation shall be
used. What is left is counted from the instances that live. A reservation that has ended gives its
instances back to on-demand; those of a capacity block EC2 ends 30 minutes before the block does. What a
reservation lends to an interruptible one is told in `interruptible_reservations`.

Source: EC2 user guide, "On-Demand Capacity Reservations" and "Capacity Blocks for ML"; the actions' API
reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.moto_internals import ACCOUNT, MotoServer
from localenv.aws.state import LocalState
from localenv.aws.upstream import interruptible_reservations as interruptible
from localenv.aws.upstream.pages import page

BLOCK = "capacity-block"
#: The market type that a launch template names to use an interruptible reservation.
INTERRUPTIBLE = "interruptible-capacity-reservation"
EXCEEDED = "ReservationCapacityExceeded"
#: Before its end, EC2 ends the instances of a capacity block.
_BLOCK_ENDS_EARLY = timedelta(minutes=30)
_GONE = ("terminated", "shutting-down")


def create(call: Call) -> dict[str, Any]:
    """ec2.CreateCapacityReservation: active at once."""
    parameters = call.parameters
    record = _record(
        call.state,
        InstanceType=parameters["InstanceType"],
        InstancePlatform=parameters["InstancePlatform"],
        AvailabilityZone=parameters["AvailabilityZone"],
        TotalInstanceCount=int(parameters["InstanceCount"]),
        Tenancy=parameters.get("Tenancy") or "default",
        InstanceMatchCriteria=parameters.get("InstanceMatchCriteria") or "open",
        EndDate=parameters.get("EndDate"),
        Tags=_tags(call),
    )
    return {"CapacityReservation": _describe(call.state, call.client("ec2"), record)}


def make(state: LocalState, moto: MotoServer, document: Mapping[str, Any]) -> dict[str, Any]:
    """A reservation that no call can make at once: a capacity block, or one that may be interrupted.

    Raises:
        ValueError: Its kind is unknown.
    """
    kind = document.get("kind", BLOCK)
    if kind not in (BLOCK, "interruptible", "default"):
        raise ValueError(f"unknown kind {kind!r} of a reservation; one of {BLOCK}, interruptible, default")
    end = document.get("endsIn")
    record = _record(
        state,
        InstanceType=document["instanceType"],
        InstancePlatform=document.get("platform", "Linux/UNIX"),
        AvailabilityZone=document["zone"],
        TotalInstanceCount=int(document.get("count", 1)),
        Tenancy=document.get("tenancy", "default"),
        InstanceMatchCriteria="targeted",
        EndDate=None if end is None else datetime.now(UTC) + timedelta(seconds=float(end)),
        Tags=[{"Key": k, "Value": v} for k, v in (document.get("tags") or {}).items()],
        ReservationType=BLOCK if kind == BLOCK else "default",
        Interruptible=kind == "interruptible",
        OwnerId=document.get("owner", ACCOUNT),
    )
    if kind == BLOCK and record["EndDate"] is not None:
        seconds = (record["EndDate"] - _BLOCK_ENDS_EARLY - datetime.now(UTC)).total_seconds()
        client = moto.client("ec2", state.region)
        state.later(max(seconds, 0.0), lambda: _end_instances(state, client, record))
    return {"id": record["CapacityReservationId"]}


def allocate(call: Call) -> dict[str, Any]:
    """ec2.CreateInterruptibleCapacityReservationAllocation: lend unused capacity; active at once."""
    with call.state.lock:
        source = _find(call, call.parameters["CapacityReservationId"])
        members, answer = interruptible.create(call, source, _available(call, source))
        interruptible.note_made(source, _record(call.state, **members, Tags=_tags(call)))
        return answer


def reallocate(call: Call) -> dict[str, Any]:
    """ec2.UpdateInterruptibleCapacityReservationAllocation: lend more, or take back."""
    with call.state.lock:
        source = _find(call, call.parameters["CapacityReservationId"])
        available = _available(call, source)
        lent = interruptible.active_allocation(source)["InterruptibleCapacityReservationId"]
        return interruptible.update(
            call, source, available, _live_instances(call.state, call.client("ec2"), lent)
        )


def modify(call: Call) -> dict[str, Any]:
    """ec2.ModifyCapacityReservation: another count, or another end."""
    record = _find(call, call.parameters["CapacityReservationId"])
    _settle(call, record)
    count, ends = call.parameters.get("InstanceCount"), call.parameters.get("EndDate") is not None
    interruptible.refuse_change(record, count=None if count is None else int(count), ends=ends)
    if call.parameters.get("InstanceCount") is not None:
        record["TotalInstanceCount"] = int(call.parameters["InstanceCount"])
    if call.parameters.get("EndDate") is not None:
        record["EndDate"] = call.parameters["EndDate"]
    return {"Return": True}


def cancel(call: Call) -> dict[str, Any]:
    """ec2.CancelCapacityReservation: its instances run on as on-demand ones."""
    record = _find(call, call.parameters["CapacityReservationId"])
    _settle(call, record)
    interruptible.refuse_change(record, ends=True)
    record["State"] = "cancelled"
    return {"Return": True}


def describe(call: Call) -> dict[str, Any]:
    """ec2.DescribeCapacityReservations: by id or filter, in pages."""
    wanted = call.parameters.get("CapacityReservationIds")
    records = [_find(call, each) for each in wanted] if wanted else list(call.state.reservations.values())
    client = call.client("ec2")
    shown = [_describe(call.state, client, record) for record in records]
    for given in call.parameters.get("Filters") or ():
        shown = [each for each in shown if _meets(each, given["Name"], given.get("Values") or [])]
    listed, token = page(shown, call.parameters, default=None, maximum=1000)
    return {"CapacityReservations": listed} | ({"NextToken": token} if token else {})


def target_of(data: Mapping[str, Any]) -> str:
    """The reservation that a launch template asks for; empty: none."""
    given = data.get("CapacityReservationSpecification") or {}
    return str((given.get("CapacityReservationTarget") or {}).get("CapacityReservationId") or "")


def market_type(data: Mapping[str, Any]) -> str:
    """The market that a launch template buys in; empty: on-demand."""
    return str((data.get("InstanceMarketOptions") or {}).get("MarketType") or "")


def room(
    call: Call, identifier: str, instance_type: str, zone: str, market: str = ""
) -> tuple[int, tuple[str, str]]:
    """How many instances of a type a reservation holds in a zone yet, and what EC2 says when it is full.

    Args:
        call: The call.
        identifier: Of the reservation.
        instance_type: Of the instances.
        zone: Where they are to be.
        market: The launch template's market type; an interruptible reservation serves its own alone.
    """
    record = call.state.reservations.get(identifier)
    if record is None:
        message = f"The capacity reservation ID '{identifier}' does not exist"
        return 0, ("InvalidCapacityReservationId.NotFound", message)
    message = "The requested reservation does not have sufficient compatible and available capacity."
    fits = (record["InstanceType"], record["AvailabilityZone"]) == (instance_type, zone)
    fits &= bool(record.get("Interruptible")) == (market == INTERRUPTIBLE)
    left = _describe(call.state, call.client("ec2"), record)
    count = int(left["AvailableInstanceCount"]) if fits and left["State"] == "active" else 0
    return count, (EXCEEDED, message)


def take(call: Call, data: Mapping[str, Any], instance_type: str, zone: str, ids: Sequence[str]) -> None:
    """Have instances take their places: those of the targeted reservation, or of open ones."""
    given = data.get("CapacityReservationSpecification") or {}
    target, market = target_of(data), market_type(data)
    for instance_id in ids:
        chosen = target
        if not chosen and given.get("CapacityReservationPreference", "open") == "open":
            chosen = _open_one(call, instance_type, zone)
        details = call.state.instance_details.setdefault(instance_id, {})
        if given:
            details["CapacityReservationSpecification"] = dict(given)
        if chosen:
            details["CapacityReservationId"] = chosen
        if market:
            details["InstanceLifecycle"] = market


def current(state: LocalState, details: Mapping[str, Any]) -> dict[str, Any]:
    """What is true now of an instance: a reservation that has ended holds it no more."""
    record = state.reservations.get(str(details.get("CapacityReservationId", "")))
    if record is None or _state(record) == "active":
        return dict(details)
    return {name: value for name, value in details.items() if name != "CapacityReservationId"}


def _open_one(call: Call, instance_type: str, zone: str) -> str:
    for identifier, record in call.state.reservations.items():
        if record["InstanceMatchCriteria"] == "open" and room(call, identifier, instance_type, zone)[0] > 0:
            return identifier
    return ""


def _record(state: LocalState, **members: Any) -> dict[str, Any]:
    identifier = f"cr-{digest(state.number(), 17)}"
    end = members.get("EndDate")
    record = {
        "CapacityReservationId": identifier,
        "OwnerId": ACCOUNT,
        "State": "active",
        "EndDateType": "unlimited" if end is None else "limited",
        "CreateDate": datetime.now(UTC),
        "StartDate": datetime.now(UTC),
        "ReservationType": "default",
        **members,
    }
    state.reservations[identifier] = record
    return record


def _find(call: Call, identifier: str) -> dict[str, Any]:
    record: dict[str, Any] | None = call.state.reservations.get(identifier)
    if record is None:
        message = f"The capacity reservation ID '{identifier}' does not exist"
        raise AwsError("InvalidCapacityReservationId.NotFound", message)
    return record


def _state(record: Mapping[str, Any]) -> str:
    end = record.get("EndDate")
    if record["State"] == "active" and end is not None and _aware(end) <= datetime.now(UTC):
        return "expired"
    return str(record["State"])


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _tags(call: Call) -> list[dict[str, str]]:
    return [
        tag
        for specification in call.parameters.get("TagSpecifications") or ()
        if specification.get("ResourceType") == "capacity-reservation"
        for tag in specification.get("Tags", ())
    ]


def _available(call: Call, record: dict[str, Any]) -> int:
    return int(_describe(call.state, call.client("ec2"), record)["AvailableInstanceCount"])


def _settle(call: Call, record: dict[str, Any]) -> None:
    """Note what a reservation has got back of what it lent."""
    _describe(call.state, call.client("ec2"), record)


def _describe(state: LocalState, client: Any, record: dict[str, Any]) -> dict[str, Any]:
    lent = interruptible.lent_to(state, record)
    if lent is not None:
        interruptible.settle(state, lent, len(_live_instances(state, client, lent["CapacityReservationId"])))
    used = len(_live_instances(state, client, record["CapacityReservationId"]))
    interruptible.settle(state, record, used)
    left = max(record["TotalInstanceCount"] - used - interruptible.count_lent(record), 0)
    shown = {**record, "State": _state(record), "AvailableInstanceCount": left}
    return {name: value for name, value in shown.items() if value is not None}


def _live_instances(state: LocalState, client: Any, identifier: str) -> list[str]:
    held = [
        instance_id
        for instance_id, details in state.instance_details.items()
        if details.get("CapacityReservationId") == identifier
    ]
    if not held:
        return []
    answer = client.describe_instances(InstanceIds=held)
    instances = (instance for reservation in answer["Reservations"] for instance in reservation["Instances"])
    return [instance["InstanceId"] for instance in instances if instance["State"]["Name"] not in _GONE]


def _end_instances(state: LocalState, client: Any, record: Mapping[str, Any]) -> None:
    living = _live_instances(state, client, record["CapacityReservationId"])
    if living:
        client.terminate_instances(InstanceIds=living)


def _meets(record: Mapping[str, Any], name: str, values: Iterable[str]) -> bool:
    members = {
        "instance-type": "InstanceType",
        "owner-id": "OwnerId",
        "instance-platform": "InstancePlatform",
        "availability-zone": "AvailabilityZone",
        "tenancy": "Tenancy",
        "state": "State",
        "instance-match-criteria": "InstanceMatchCriteria",
    }
    tags = {tag["Key"]: tag["Value"] for tag in record.get("Tags") or ()}
    if name == "tag-key":
        found = list(tags)
    elif name.startswith("tag:"):
        found = [tags[name[4:]]] if name[4:] in tags else []
    elif name in members:
        found = [str(record[members[name]])]
    else:
        raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return any(fnmatchcase(each, pattern) for each in found for pattern in values)


HANDLERS: Handlers = {
    ("ec2", "CreateCapacityReservation"): create,
    ("ec2", "CreateInterruptibleCapacityReservationAllocation"): allocate,
    ("ec2", "UpdateInterruptibleCapacityReservationAllocation"): reallocate,
    ("ec2", "ModifyCapacityReservation"): modify,
    ("ec2", "CancelCapacityReservation"): cancel,
    ("ec2", "DescribeCapacityReservations"): describe,
}
