"""DescribeInstanceStatus: running instances unless asked for all, with its own filters, in pages.

moto filters by instance attributes, and knows neither pages nor impaired instances nor scheduled events.
EC2 has filters of the status itself, refuses unknown ones, and refuses ids together with a page size.

Source: EC2 API reference, DescribeInstanceStatus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from localenv.aws import moto_instances
from localenv.aws.calls import AwsError, Call, Handlers
from localenv.aws.upstream.pages import page

#: What each filter compares.
_STATUS_FILTERS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "availability-zone": lambda status: [status["AvailabilityZone"]],
    "event.code": lambda status: [event["Code"] for event in status["Events"]],
    "instance-state-code": lambda status: [str(status["InstanceState"]["Code"])],
    "instance-state-name": lambda status: [status["InstanceState"]["Name"]],
    "instance-status.status": lambda status: [status["InstanceStatus"]["Status"]],
    "system-status.status": lambda status: [status["SystemStatus"]["Status"]],
}


def describe_instance_status(call: Call) -> dict[str, Any]:
    """ec2.DescribeInstanceStatus: running instances unless asked for all; filters ANDed."""
    parameters = call.parameters
    if parameters.get("InstanceIds") and parameters.get("MaxResults"):
        message = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise AwsError("InvalidParameterCombination", message)
    filters = [(f["Name"], f.get("Values", [])) for f in parameters.get("Filters") or []]
    for name, _ in filters:
        if name not in _STATUS_FILTERS:
            raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    known = moto_instances.records(call.moto, call.region, parameters.get("InstanceIds"))
    statuses = [_status(call, each) for each in known]
    if not parameters.get("IncludeAllInstances"):
        statuses = [s for s in statuses if s["InstanceState"]["Name"] == "running"]
    chosen = [s for s in statuses if all(_has(s, name, values) for name, values in filters)]
    shown, token = page(chosen, parameters, default=100, maximum=1000)
    return {"InstanceStatuses": shown} | ({"NextToken": token} if token else {})


def _status(call: Call, instance: Mapping[str, Any]) -> dict[str, Any]:
    running = instance["State"]["Name"] == "running"
    passed = instance["InstanceId"] not in call.state.faults.impaired
    detail: dict[str, Any] = {"Name": "reachability", "Status": "passed" if passed else "failed"}
    since = call.state.faults.impaired.get(instance["InstanceId"])
    if since is not None:
        detail["ImpairedSince"] = datetime.fromtimestamp(since, UTC)
    summary = {
        "Status": ("ok" if passed else "impaired") if running else "not-applicable",
        "Details": [detail] if running else [],
    }
    code = call.state.faults.scheduled.get(instance["InstanceId"])
    return {
        "InstanceId": instance["InstanceId"],
        "AvailabilityZone": instance["Placement"]["AvailabilityZone"],
        "InstanceState": instance["State"],
        "InstanceStatus": summary,
        "SystemStatus": summary,
        "Events": [{"Code": code, "Description": "scheduled by a fault"}] if code else [],
    }


def _has(status: Mapping[str, Any], name: str, values: list[str]) -> bool:
    return any(fnmatchcase(value, pattern) for value in _STATUS_FILTERS[name](status) for pattern in values)


HANDLERS: Handlers = {("ec2", "DescribeInstanceStatus"): describe_instance_status}
