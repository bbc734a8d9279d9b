"""Instance types and where they are offered: moto's records, in pages of EC2's sizes.

The records never change, so what moto says is asked once per set of filters and kept.
"""

from __future__ import annotations

from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.moto_internals import instance_type_offerings, instance_type_records
from localenv.aws.upstream.pages import page


def instance_types(call: Call) -> dict[str, dict[str, Any]]:
    """Every instance type by its name, as EC2 describes it."""
    kept: dict[str, dict[str, Any]] = _compute_once(
        call,
        "all types",
        lambda: {r["InstanceType"]: r for r in instance_type_records(call.region, [], [])},
    )
    return kept


def zones_of(call: Call, instance_type: str) -> tuple[str, ...]:
    """The zones of the call's region that offer a type, in order of their names."""
    offered = _compute_once(call, "zones by type", lambda: _zones_by_type(call))
    return tuple(offered.get(instance_type, ()))


def describe_instance_types(call: Call) -> dict[str, Any]:
    """ec2.DescribeInstanceTypes: pages of 100 unless asked for less."""
    parameters = call.parameters
    names = parameters.get("InstanceTypes")
    if names and parameters.get("MaxResults"):
        raise AwsError(
            "InvalidParameterCombination", "The parameter instanceTypes cannot be used with maxResults"
        )
    filters = parameters.get("Filters") or []
    records = _compute_once(
        call,
        digest(["types", names, filters]),
        lambda: instance_type_records(call.region, names or [], filters),
    )
    chosen, token = page(records, parameters, default=100, maximum=100)
    return {"InstanceTypes": chosen} | ({"NextToken": token} if token else {})


def describe_instance_type_offerings(call: Call) -> dict[str, Any]:
    """ec2.DescribeInstanceTypeOfferings: pages of 1000 unless asked for less."""
    parameters = call.parameters
    location_type, filters = parameters.get("LocationType"), parameters.get("Filters") or []
    rows = _compute_once(
        call,
        digest(["offerings", location_type, filters]),
        lambda: instance_type_offerings(call.region, location_type, filters),
    )
    chosen, token = page(rows, parameters, default=1000, maximum=1000)
    return {"InstanceTypeOfferings": chosen} | ({"NextToken": token} if token else {})


def _zones_by_type(call: Call) -> dict[str, list[str]]:
    zones: dict[str, list[str]] = {}
    for row in instance_type_offerings(call.region, "availability-zone", []):
        zones.setdefault(row["InstanceType"], []).append(row["Location"])
    return {name: sorted(where) for name, where in zones.items()}


def _compute_once(call: Call, key: str, compute: Any) -> Any:
    """What was computed once for this region under this key."""
    with call.state.lock:
        kept = call.state.rendered
        full_key = f"{call.region} {key}"
        if full_key not in kept:
            kept[full_key] = compute()
        return kept[full_key]


HANDLERS: Handlers = {
    ("ec2", "DescribeInstanceTypes"): describe_instance_types,
    ("ec2", "DescribeInstanceTypeOfferings"): describe_instance_type_offerings,
}
