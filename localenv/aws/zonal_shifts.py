"""arc-zonal-shift: shifts of EKS clusters away from a zone, for a time.

A cluster is a managed resource while zonal shift is enabled on it (`zonalShiftConfig`). A shift is applied as
soon as it is started, and is told until it ends or is cancelled; a cluster has one at a time.
"""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers
from localenv.aws.eks_records import ClusterRecord, not_found

_LASTS = re.compile(r"([1-9]\d*)([mh])")
_UNITS = {"m": "minutes", "h": "hours"}
_LONGEST = timedelta(days=3)


def get_managed_resource(call: Call) -> dict[str, Any]:
    """arc-zonal-shift.GetManagedResource, by the cluster's ARN."""
    record = _managed_cluster(call)
    return {
        "arn": record.cluster["arn"],
        "name": record.cluster["name"],
        "appliedWeights": {},
        "zonalShifts": _active(record),
    }


def start_zonal_shift(call: Call) -> dict[str, Any]:
    """arc-zonal-shift.StartZonalShift."""
    record, parameters = _managed_cluster(call), call.parameters
    lasts = _LASTS.fullmatch(parameters["expiresIn"])
    length = timedelta(**{_UNITS[lasts[2]]: int(lasts[1])}) if lasts else _LONGEST * 2
    if length > _LONGEST:
        raise AwsError("ValidationException", "expiresIn must be of the form 20h or 30m, three days at most")
    with call.state.lock:
        if _active(record):
            raise AwsError("ConflictException", "A zonal shift is already active for the resource", 409)
        now = datetime.now(UTC).replace(microsecond=0)
        shift = {
            "appliedStatus": "APPLIED",
            "zonalShiftId": str(uuid.uuid4()),
            "resourceIdentifier": record.cluster["arn"],
            "awayFrom": parameters["awayFrom"],
            "expiryTime": now + length,
            "startTime": now,
            "comment": parameters["comment"],
        }
        record.zonal_shifts[shift["zonalShiftId"]] = shift
    return _document(shift, "ACTIVE")


def cancel_zonal_shift(call: Call) -> dict[str, Any]:
    """arc-zonal-shift.CancelZonalShift."""
    identifier = call.parameters["zonalShiftId"]
    for record in call.state.clusters.values():
        if shift := record.zonal_shifts.pop(identifier, None):
            return _document(shift, "CANCELED")
    raise not_found(f"Zonal shift {identifier} was not found")


def _managed_cluster(call: Call) -> ClusterRecord:
    """The cluster of which the call speaks. Raises AwsError where zonal shift is not enabled on it."""
    identifier = call.parameters["resourceIdentifier"]
    for record in call.state.clusters.values():
        enabled = (record.cluster.get("zonalShiftConfig") or {}).get("enabled")
        if record.cluster["arn"] == identifier and enabled:
            found: ClusterRecord = record
            return found
    raise not_found(f"Managed resource {identifier} was not found")


def _active(record: ClusterRecord) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    return [shift for shift in record.zonal_shifts.values() if shift["expiryTime"] > now]


def _document(shift: dict[str, Any], status: str) -> dict[str, Any]:
    return {**{name: value for name, value in shift.items() if name != "appliedStatus"}, "status": status}


HANDLERS: Handlers = {
    ("arc-zonal-shift", "CancelZonalShift"): cancel_zonal_shift,
    ("arc-zonal-shift", "GetManagedResource"): get_managed_resource,
    ("arc-zonal-shift", "StartZonalShift"): start_zonal_shift,
}
