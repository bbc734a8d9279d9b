"""Interruptible capacity reservations: unused capacity of a reservation that its owner lends and takes back.

moto knows none. In EC2 an on-demand capacity reservation (the source) allocates instances to an
interruptible one, which EC2 makes for it; there is one allocation per source at most. When the owner asks
for fewer, unused capacity returns at once. The instances that are too many are warned of over EventBridge
and ended two minutes later; until then the allocation is `updating`. At zero the interruptible
reservation is cancelled, unless it is to be retained.

Source: the EC2 user guide, "Interruptible Capacity Reservations", and the API reference of the two
actions. EC2 makes the reservation a moment after the call; here it is there at once. The codes of the
refusals are not documented: `InvalidCapacityReservationState` stands for what the state of the source
forbids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from localenv.aws.calls import AwsError, Call
from localenv.aws.interruptions import warn_of_reclaim

if TYPE_CHECKING:
    from localenv.aws.state import LocalState

#: Instances that one allocation can hold.
_MOST = 1000
_ALLOCATION = "InterruptibleCapacityAllocation"
_PREFERENCES = ("default", "retain")
#: The only way in which EC2 takes instances back: whenever the owner asks.
_TYPE = "adhoc"


def count_lent(record: Mapping[str, Any]) -> int:
    """Instances that a source has lent."""
    return int((record.get(_ALLOCATION) or {}).get("InstanceCount", 0))


def lent_to(state: LocalState, source: Mapping[str, Any]) -> dict[str, Any] | None:
    """The interruptible reservation that a source has lent to."""
    allocation = source.get(_ALLOCATION) or {}
    found: dict[str, Any] | None = state.reservations.get(
        str(allocation.get("InterruptibleCapacityReservationId"))
    )
    return found


def settle(state: LocalState, record: dict[str, Any], living: int) -> None:
    """Note what EC2 has taken back of an interruptible reservation of which so many instances live."""
    lender = (record.get("InterruptionInfo") or {}).get("SourceCapacityReservationId")
    source = state.reservations.get(str(lender))
    allocation = (source or {}).get(_ALLOCATION) or {}
    if allocation.get("Status") != "updating":
        return
    target = int(allocation["TargetInstanceCount"])
    record["TotalInstanceCount"] = allocation["InstanceCount"] = max(target, living)
    if living > target:
        return
    ends = target == 0 and allocation["ZeroSizePreference"] == "default"
    allocation["Status"] = "canceled" if ends else "active"
    if ends:
        record["State"] = "cancelled"


def refuse_change(record: Mapping[str, Any], *, count: int | None = None, ends: bool = False) -> None:
    """Refuse what an allocation forbids of a reservation: to cancel it, to have it end, or to lend too much.

    Raises:
        AwsError: The reservation is interruptible itself, or has lent what would be lost.
    """
    identifier = record["CapacityReservationId"]
    if record.get("Interruptible"):
        message = (
            f"The Capacity Reservation '{identifier}' is interruptible. Change the allocation of its source"
        )
        raise AwsError("InvalidCapacityReservationState", message)
    lent = _is_lent(record)
    if lent and (ends or (count is not None and count < count_lent(record))):
        message = f"The Capacity Reservation '{identifier}' has an active interruptible capacity allocation"
        raise AwsError("InvalidCapacityReservationState", message)


def create(call: Call, source: dict[str, Any], available: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """ec2.CreateInterruptibleCapacityReservationAllocation of a source with so much available.

    Returns:
        The members of the reservation that is to be made, and EC2's answer.

    Raises:
        AwsError: The source cannot lend, has lent already, or has not so many.
    """
    count = int(call.parameters["InstanceCount"])
    _refuse_source(source)
    _refuse_count(count, available, least=1)
    preference = _preference(call, "default")
    source[_ALLOCATION] = {
        "InstanceCount": count,
        "TargetInstanceCount": count,
        "Status": "active",
        "InterruptionType": _TYPE,
        "ZeroSizePreference": preference,
    }
    same = ("InstanceType", "InstancePlatform", "AvailabilityZone", "Tenancy")
    members = {
        **{name: source[name] for name in same},
        "TotalInstanceCount": count,
        # A launch reaches it by its id alone.
        "InstanceMatchCriteria": "targeted",
        "Interruptible": True,
        "InterruptionInfo": {
            "SourceCapacityReservationId": source["CapacityReservationId"],
            "InterruptionType": _TYPE,
        },
    }
    answer = {
        "SourceCapacityReservationId": source["CapacityReservationId"],
        "TargetInstanceCount": count,
        "Status": "active",
        "InterruptionType": _TYPE,
    }
    return members, answer


def note_made(source: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Tell a source the id of the reservation that was made of its allocation."""
    source[_ALLOCATION]["InterruptibleCapacityReservationId"] = record["CapacityReservationId"]


def update(call: Call, source: dict[str, Any], available: int, living: list[str]) -> dict[str, Any]:
    """ec2.UpdateInterruptibleCapacityReservationAllocation: lend more, or take back.

    Args:
        call: The call.
        source: Whose allocation changes.
        available: What the source has not lent and not in use.
        living: Ids of the instances in the interruptible reservation.

    Raises:
        AwsError: There is no active allocation, or the source has not so many.
    """
    allocation = active_allocation(source)
    current = int(allocation["InstanceCount"])
    given = call.parameters.get("TargetInstanceCount")
    target = current if given is None else int(given)
    _refuse_count(target, current + available, least=0)
    allocation["ZeroSizePreference"] = _preference(call, allocation["ZeroSizePreference"])
    allocation["TargetInstanceCount"] = target
    allocation["Status"] = "updating"
    identifier = allocation["InterruptibleCapacityReservationId"]
    if surplus := sorted(living)[: max(len(living) - target, 0)]:
        warn_of_reclaim(call.state, call.moto, call.region, surplus)
    record = call.state.reservations[identifier]
    settle(call.state, record, len(living))
    return {
        "InterruptibleCapacityReservationId": identifier,
        "SourceCapacityReservationId": source["CapacityReservationId"],
        **{
            name: allocation[name]
            for name in ("InstanceCount", "TargetInstanceCount", "Status", "InterruptionType")
        },
    }


def active_allocation(source: Mapping[str, Any]) -> dict[str, Any]:
    """The allocation of a source. Raises AwsError when there is none, or when it changes just now."""
    allocation: dict[str, Any] = source.get(_ALLOCATION) or {}
    if allocation.get("Status") != "active":
        message = (
            f"The Capacity Reservation '{source['CapacityReservationId']}' doesn't have an active "
            "interruptible capacity allocation"
        )
        raise AwsError("InvalidCapacityReservationState", message)
    return allocation


def _is_lent(record: Mapping[str, Any]) -> bool:
    return (record.get(_ALLOCATION) or {}).get("Status") in ("active", "updating")


def _refuse_source(source: Mapping[str, Any]) -> None:
    identifier = source["CapacityReservationId"]
    refusals = (
        (source["State"] != "active", "is not active"),
        (source.get("EndDate") is not None, "has an end date"),
        (source["ReservationType"] != "default", "is a Capacity Block"),
        (bool(source.get("Interruptible")), "is interruptible itself"),
        (_is_lent(source), "has an active interruptible capacity allocation"),
    )
    for applies, text in refusals:
        if applies:
            message = f"The Capacity Reservation '{identifier}' {text}"
            raise AwsError("InvalidCapacityReservationState", message)


def _refuse_count(count: int, most: int, *, least: int) -> None:
    if not least <= count <= _MOST:
        raise AwsError("InvalidParameterValue", f"The instance count must be from {least} to {_MOST}")
    if count > most:
        message = f"The Capacity Reservation can allocate {most} instances; {count} were asked for"
        raise AwsError("InsufficientCapacityReservationCapacity", message)


def _preference(call: Call, otherwise: str) -> str:
    given = call.parameters.get("ZeroSizePreference") or otherwise
    if given not in _PREFERENCES:
        raise AwsError("InvalidParameterValue", f"Invalid value '{given}' for ZeroSizePreference")
    return str(given)
