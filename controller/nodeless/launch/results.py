"""What the answer to a CreateFleet request means: an instance, or why there is none.

An answer may hold both: instances, and the offerings that were tried and found sold
out; those are remembered in either case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeless.launch.call_details import split_call_details
from nodeless.launch.unavailable import OfferingKey, all_of_zone
from nodeless.model.instance_types import Offering
from nodeless.model.labels import RESERVED

#: Error codes of single offerings that mean "not now": another offering, or the same one later, may do.
INSUFFICIENT_CAPACITY_CODES = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientFreeAddressesInSubnet",
        "MaxSpotInstanceCountExceeded",
        "MaxFleetCountExceeded",
        "SpotMaxPriceTooLow",
        "ReservationCapacityExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
    }
)
#: Code of an answer with fewer instances than were asked for that gives no reason.
NO_REASON = "NoInstance"
#: Errors of one answer that are told, each once: a fleet may meet another one in each offering.
_MOST_TOLD = 5
#: Characters of one error's message that are told.
_LONGEST_TOLD = 500
Reservations = Mapping[tuple[str, str], Offering]
_NO_RESERVATIONS: Reservations = {}
#: The subnet has no address left: another one of the zone may have.
_NO_ADDRESSES = "InsufficientFreeAddressesInSubnet"
#: What EC2 says when a spread placement group has its seven instances in a zone, of whatever type.
_SPREAD_FULL = "limit of instances in this spread placement group"
#: Nothing may be launched as spot: the account lacks EC2's role for it, and we may not create it.
NO_SPOT = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"


@dataclass(frozen=True, slots=True)
class FleetInstance:
    """An instance that a fleet made, as far as the answer tells."""

    id: str
    instance_type: str
    zone: str
    subnet_id: str
    capacity_type: str
    template_name: str
    reservation: Offering | None = None


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """`surplus` are instances that nobody asked for and that must be ended.

    `full_subnets` had no address left. With fewer instances than were asked for, `insufficient` says that
    every error meant a lack of capacity; `code` is one of them and `message` has each once.
    """

    instances: tuple[FleetInstance, ...]
    surplus: tuple[str, ...] = ()
    unavailable: tuple[OfferingKey, ...] = ()
    insufficient: bool = False
    code: str = ""
    message: str = ""
    full_subnets: tuple[str, ...] = ()
    no_spot: bool = False
    """No spot instance can be had at all, of whatever type."""
    exhausted: tuple[str, ...] = ()
    """Reservations of which nothing is left."""
    evidence: str = ""
    """What EC2 said of this call alone, for the log."""


def read_answer(
    answer: Mapping[str, Any],
    capacity_type: str,
    wanted: int = 1,
    reservations: Reservations = _NO_RESERVATIONS,
) -> FleetAnswer:
    """Read CreateFleet's answer to a request for so many instances.

    Args:
        answer: What EC2 said.
        capacity_type: What was asked for.
        wanted: How many instances.
        reservations: What was to be bought from reservations, by instance type and zone.
    """
    # By id: one that is told of twice must not be ended as one too many.
    made = list(
        {
            instance_id: _instance(entry, instance_id, capacity_type, reservations)
            for entry in answer.get("Instances") or ()
            for instance_id in entry.get("InstanceIds") or ()
        }.values()
    )
    errors: list[Mapping[str, Any]] = list(answer.get("Errors") or ())
    sold_out = [key for error in errors if (key := _sold_out(error, capacity_type))]
    unavailable = tuple(dict.fromkeys(key for key in sold_out if key[:2] not in reservations))
    exhausted = tuple(
        dict.fromkeys(reservations[key[:2]].reservation for key in sold_out if key[:2] in reservations)
    )
    full = tuple(
        dict.fromkeys(
            str(_overrides(error)["SubnetId"])
            for error in errors
            if error.get("ErrorCode") == _NO_ADDRESSES and "SubnetId" in _overrides(error)
        )
    )
    no_spot = any(error.get("ErrorCode") == NO_SPOT for error in errors)
    surplus = tuple(instance.id for instance in made[wanted:])
    if len(made) >= wanted:
        return FleetAnswer(
            tuple(made[:wanted]),
            surplus,
            unavailable,
            full_subnets=full,
            no_spot=no_spot,
            exhausted=exhausted,
        )
    codes = [str(error.get("ErrorCode", "")) for error in errors]
    messages = [
        (str(error.get("ErrorCode", "")), *split_call_details(str(error.get("ErrorMessage", "")).rstrip(".")))
        for error in errors
    ]
    # Sorted: the same fault is told in the same words, in whatever order the offerings were tried.
    texts = sorted({f"{code}: {' '.join(message.split())}"[:_LONGEST_TOLD] for code, message, _ in messages})
    if len(texts) > _MOST_TOLD:
        texts = [*texts[:_MOST_TOLD], f"and {len(texts) - _MOST_TOLD} more"]
    return FleetAnswer(
        tuple(made),
        unavailable=unavailable,
        insufficient=bool(codes) and all(code in INSUFFICIENT_CAPACITY_CODES for code in codes),
        code=min((code for code in codes if code not in INSUFFICIENT_CAPACITY_CODES), default="")
        or min(codes, default=NO_REASON),
        message="; ".join(texts) or f"EC2 made {len(made)} of {wanted} instances and gave no reason",
        full_subnets=full,
        no_spot=no_spot,
        exhausted=exhausted,
        evidence=", ".join(dict.fromkeys(evidence for _, _, evidence in messages if evidence)),
    )


def _overrides(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    overrides: Mapping[str, Any] = (entry.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}
    return overrides


def _sold_out(error: Mapping[str, Any], capacity_type: str) -> OfferingKey | None:
    overrides = _overrides(error)
    code = error.get("ErrorCode")
    if code not in INSUFFICIENT_CAPACITY_CODES or code in (_NO_ADDRESSES, NO_SPOT):
        return None
    if "InstanceType" not in overrides or "AvailabilityZone" not in overrides:
        return None
    if _SPREAD_FULL in str(error.get("ErrorMessage", "")):
        return all_of_zone(str(overrides["AvailabilityZone"]))
    return (
        str(overrides["InstanceType"]),
        str(overrides["AvailabilityZone"]),
        str(error.get("Lifecycle") or capacity_type),
    )


def _instance(
    entry: Mapping[str, Any], instance_id: str, capacity_type: str, reservations: Reservations
) -> FleetInstance:
    overrides = _overrides(entry)
    name = str(entry.get("InstanceType") or overrides.get("InstanceType", ""))
    zone = str(overrides.get("AvailabilityZone", ""))
    reservation = reservations.get((name, zone))
    specification = (entry.get("LaunchTemplateAndOverrides") or {}).get("LaunchTemplateSpecification") or {}
    return FleetInstance(
        id=instance_id,
        instance_type=name,
        zone=zone,
        subnet_id=str(overrides.get("SubnetId", "")),
        # EC2 calls it on-demand.
        capacity_type=RESERVED if reservation else str(entry.get("Lifecycle") or capacity_type),
        reservation=reservation,
        template_name=str(specification.get("LaunchTemplateName", "")),
    )
