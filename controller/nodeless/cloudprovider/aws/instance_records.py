"""EC2's record of an instance as a model `Instance`. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nodeless.cloudprovider.aws.type_facts import TypeFacts
from nodeless.launch.results import FleetInstance
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import (
    ARCH,
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_TYPE,
    INSTANCE_AMI_ID,
    INSTANCE_TENANCY,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    RESERVED,
    SPOT,
    ZONE,
    ZONE_ID,
)
from nodeless.model.nodes import Instance

_NOTHING: Mapping[str, str] = {}
#: What EC2 calls the life of instances that are bought from a reservation for a time.
_BLOCK, _INTERRUPTIBLE = "capacity-block", "interruptible-capacity-reservation"


def provider_id(zone: str, instance_id: str) -> str:
    """As the kubelet of an EC2 instance writes it into its node's `spec.providerID`."""
    return f"aws:///{zone}/{instance_id}"


def zone_label(zone: str, zone_ids: Mapping[str, str]) -> dict[str, str]:
    """The label with the zone's id, the same in every account; nothing where the id is not known."""
    return {ZONE_ID: zone_ids[zone]} if zone in zone_ids else {}


def read_instance(
    record: Mapping[str, Any], instance_type: InstanceType | None = None, facts: TypeFacts | None = None
) -> Instance:
    """An instance as DescribeInstances tells of it.

    With its `instance_type` (as its pool makes it) it has all labels, capacity and allocatable; without,
    those labels only that the record and the facts give.
    """
    zone = record["Placement"]["AvailabilityZone"]
    spot = bool(record.get("SpotInstanceRequestId")) or record.get("InstanceLifecycle") == SPOT
    launched: datetime | None = record.get("LaunchTime")
    name, image = record["InstanceType"], record.get("ImageId", "")
    reserved = _is_reserved(record)
    capacity_type = SPOT if spot else RESERVED if reserved else ON_DEMAND
    basic = {INSTANCE_TYPE: name, OS: "linux", **({ARCH: facts.architecture} if facts else {})}
    return Instance(
        id=record["InstanceId"],
        provider_id=provider_id(zone, record["InstanceId"]),
        instance_type=name,
        zone=zone,
        capacity_type=capacity_type,
        state=record.get("State", {}).get("Name", "pending"),
        launched_at=launched.timestamp() if launched else 0.0,
        image_id=image,
        private_dns_name=record.get("PrivateDnsName", "").lower(),
        subnet_id=record.get("SubnetId", ""),
        security_groups=tuple(sorted(group["GroupId"] for group in record.get("SecurityGroups", ()))),
        tags={str(tag["Key"]): str(tag["Value"]) for tag in record.get("Tags", ())},
        labels={**_labels(instance_type, basic, zone, capacity_type, image), **_placement_labels(record)},
        capacity=_present(instance_type.capacity) if instance_type else {},
        allocatable=_present(instance_type.allocatable) if instance_type else {},
        instance_profile=record.get("IamInstanceProfile", {}).get("Arn", "").rpartition("/")[2],
    )


def launched_instance(
    made: FleetInstance,
    instance_type: InstanceType,
    image_id: str,
    tags: Mapping[str, str],
    now: float,
    *,
    labels: Mapping[str, str] = _NOTHING,
) -> Instance:
    """An instance as CreateFleet's answer tells of it, without asking EC2 again.

    `labels` are those that the request determines.
    """
    reserved = made.reservation.reservation_labels if made.reservation is not None else {}
    return Instance(
        id=made.id,
        provider_id=provider_id(made.zone, made.id),
        instance_type=made.instance_type,
        zone=made.zone,
        capacity_type=made.capacity_type,
        state="pending",
        launched_at=now,
        image_id=image_id,
        subnet_id=made.subnet_id,
        tags=dict(tags),
        labels={
            **_labels(instance_type, {}, made.zone, made.capacity_type, image_id),
            **labels,
            **reserved,
        },
        capacity=_present(instance_type.capacity),
        allocatable=_present(instance_type.allocatable),
    )


def _labels(
    instance_type: InstanceType | None, basic: Mapping[str, str], zone: str, capacity_type: str, image: str
) -> dict[str, str]:
    implied = instance_type.requirements.single_values() if instance_type else {}
    return {
        **basic,
        **implied,
        ZONE: zone,
        CAPACITY_TYPE: capacity_type,
        **({INSTANCE_AMI_ID: image} if image else {}),
    }


def _is_reserved(record: Mapping[str, Any]) -> bool:
    """Whether it is in the reservation that it was launched into: by chance, any may be in an open one."""
    specification = record.get("CapacityReservationSpecification") or {}
    return bool(record.get("CapacityReservationId") and specification.get("CapacityReservationTarget"))


def partition_label(record: Mapping[str, Any]) -> dict[str, str]:
    """The label of the partition that an instance is in; empty where it is in none, or EC2 tells none."""
    number = record["Placement"].get("PartitionNumber")
    return {PLACEMENT_GROUP_PARTITION: str(number)} if number else {}


def _placement_labels(record: Mapping[str, Any]) -> dict[str, str]:
    """Labels by which host and reservation it has."""
    placement = record["Placement"]
    labels = {
        INSTANCE_TENANCY: placement.get("Tenancy") or "default",
        PLACEMENT_GROUP_ID: placement.get("GroupId"),
        **partition_label(record),
    }
    if _is_reserved(record):
        life = record.get("InstanceLifecycle")
        labels |= {
            CAPACITY_RESERVATION_ID: record["CapacityReservationId"],
            CAPACITY_RESERVATION_TYPE: _BLOCK if life == _BLOCK else "default",
            CAPACITY_RESERVATION_INTERRUPTIBLE: str(life == _INTERRUPTIBLE).lower(),
        }
    return {key: str(value) for key, value in labels.items() if value}


def _present(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount > 0}
