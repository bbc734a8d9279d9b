"""Placement groups, and where a launch template puts its instances.

moto knows no placement groups. EC2 spreads instances over the partitions of a group, takes seven
instances of a spread group in a zone, and refuses a launch into a group that does not exist.

Source: EC2 user guide, "Placement groups"; API reference, CreatePlacementGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers, digest

#: Instances of a spread group in a zone.
SPREAD_LIMIT = 7
_STRATEGIES = ("cluster", "partition", "spread")
#: Partitions of a group when none are asked for, and at most, in each zone.
_PARTITIONS = 2
_MOST_PARTITIONS = 7


def create(call: Call) -> dict[str, Any]:
    """ec2.CreatePlacementGroup."""
    name, strategy = call.parameters["GroupName"], call.parameters.get("Strategy") or "cluster"
    if name in call.state.placement_groups:
        raise AwsError("InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists.")
    if strategy not in _STRATEGIES:
        raise AwsError("InvalidParameterValue", f"Invalid value '{strategy}' for strategy")
    record = {"GroupName": name, "GroupId": f"pg-{digest(name)}", "State": "available", "Strategy": strategy}
    if strategy == "partition":
        count = int(call.parameters.get("PartitionCount") or _PARTITIONS)
        if not 1 <= count <= _MOST_PARTITIONS:
            raise AwsError("InvalidParameterValue", f"Invalid value '{count}' for partitionCount")
        record["PartitionCount"] = count
    call.state.placement_groups[name] = record
    return {"PlacementGroup": record}


def delete(call: Call) -> dict[str, Any]:
    """ec2.DeletePlacementGroup."""
    name = call.parameters["GroupName"]
    if call.state.placement_groups.pop(name, None) is None:
        raise _unknown(name)
    return {}


def describe(call: Call) -> dict[str, Any]:
    """ec2.DescribePlacementGroups: by name, id, or all."""
    names, ids = call.parameters.get("GroupNames") or [], call.parameters.get("GroupIds") or []
    for name in (*names, *ids):
        if _find(call, name) is None:
            raise _unknown(name)
    records = list(call.state.placement_groups.values())
    if names or ids:
        records = [record for record in records if record["GroupName"] in names or record["GroupId"] in ids]
    return {"PlacementGroups": records}


def wrong(call: Call, data: Mapping[str, Any]) -> tuple[str, str] | None:
    """What is wrong with where a launch template puts its instances, in EC2's words."""
    named = _group_name(data)
    if not named:
        return None
    group = _find(call, named)
    if group is None:
        return "InvalidPlacementGroup.Unknown", f"The Placement Group '{named}' is unknown."
    partition = int((data.get("Placement") or {}).get("PartitionNumber") or 0)
    if partition > group.get("PartitionCount", 0):
        return "InvalidParameterCombination", f"The placement group has no partition {partition}."
    return None


def room(call: Call, data: Mapping[str, Any], zone: str) -> list[tuple[int, tuple[str, str]]]:
    """How many instances a spread group still takes in a zone, and EC2's words when it takes no more."""
    group = _find(call, _group_name(data)) if _group_name(data) else None
    if group is None or group["Strategy"] != "spread":
        return []
    members = [
        instance_id
        for instance_id, details in call.state.instance_details.items()
        if details.get("Placement", {}).get("GroupId") == group["GroupId"]
    ]
    alive = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
    where = {"Name": "availability-zone", "Values": [zone]}
    known = {"Name": "instance-id", "Values": members or ["none"]}
    pages = call.client("ec2").get_paginator("describe_instances").paginate(Filters=[alive, where, known])
    used = sum(len(reservation["Instances"]) for page in pages for reservation in page["Reservations"])
    message = (
        "You've reached the limit of instances in this spread placement group. A spread placement group can "
        "have up to seven instances per Availability Zone."
    )
    return [(max(0, SPREAD_LIMIT - used), ("InsufficientInstanceCapacity", message))]


def place(call: Call, data: Mapping[str, Any], ids: Sequence[str]) -> None:
    """Put instances where their launch template says; EC2 spreads them over the partitions of a group."""
    given = data.get("Placement") or {}
    group = _find(call, _group_name(data)) if _group_name(data) else None
    for instance_id in ids:
        placement: dict[str, Any] = {"Tenancy": given["Tenancy"]} if given.get("Tenancy") else {}
        if group is not None:
            placement |= {"GroupName": group["GroupName"], "GroupId": group["GroupId"]}
            if group["Strategy"] == "partition":
                number = given.get("PartitionNumber") or _emptiest(call, group)
                placement["PartitionNumber"] = int(number)
        if placement:
            call.state.instance_details.setdefault(instance_id, {})["Placement"] = placement


def _group_name(data: Mapping[str, Any]) -> str:
    placement = data.get("Placement") or {}
    return str(placement.get("GroupId") or placement.get("GroupName") or "")


def _find(call: Call, named: str) -> dict[str, Any] | None:
    groups = call.state.placement_groups.values()
    return next((group for group in groups if named in (group["GroupName"], group["GroupId"])), None)


def _emptiest(call: Call, group: Mapping[str, Any]) -> int:
    used = Counter(
        details["Placement"].get("PartitionNumber")
        for details in call.state.instance_details.values()
        if details.get("Placement", {}).get("GroupId") == group["GroupId"]
    )
    return min(range(1, group["PartitionCount"] + 1), key=lambda number: (used[number], number))


def _unknown(name: str) -> AwsError:
    return AwsError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")


HANDLERS: Handlers = {
    ("ec2", "CreatePlacementGroup"): create,
    ("ec2", "DeletePlacementGroup"): delete,
    ("ec2", "DescribePlacementGroups"): describe,
}
