"""EC2 calls whose answers moto gives unfiltered, unpaged or too kindly.

DescribeInstanceStatus with its filters; CreateTags on instances that do not exist; pages of subnets and
security groups when the caller asks for pages (moto gives all in one, so forgotten paging would
go unnoticed).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from localenv.aws import moto_instances
from localenv.aws.calls import AwsError, Call, Handlers
from localenv.aws.capacity_reservations import current
from localenv.aws.moto_internals import WireResponse
from localenv.aws.paging import page

_STATUS_FILTERS = frozenset(
    {
        "availability-zone",
        "event.code",
        "instance-state-code",
        "instance-state-name",
        "instance-status.status",
        "system-status.status",
    }
)


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
    statuses = [_status(call, i) for i in moto_instances.records(call, parameters.get("InstanceIds"))]
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
    actual = {
        "availability-zone": [status["AvailabilityZone"]],
        "event.code": [event["Code"] for event in status["Events"]],
        "instance-state-code": [str(status["InstanceState"]["Code"])],
        "instance-state-name": [status["InstanceState"]["Name"]],
        "instance-status.status": [status["InstanceStatus"]["Status"]],
        "system-status.status": [status["SystemStatus"]["Status"]],
    }[name]
    return any(fnmatchcase(value, pattern) for value in actual for pattern in values)


def describe_instances(call: Call) -> Mapping[str, Any] | WireResponse:
    """ec2.DescribeInstances with reservation and placement, and without what reads that lag do not see."""
    wanted, lag = call.parameters.get("InstanceIds") or [], call.state.faults.consistency
    since = datetime.now(UTC) - timedelta(seconds=lag)
    hidden = [i["InstanceId"] for i in moto_instances.records(call) if i["LaunchTime"] > since] if lag else []
    missing = sorted(set(wanted) & set(hidden))
    if missing:
        message = f"The instance ID '{missing[0]}' does not exist"
        raise AwsError("InvalidInstanceID.NotFound", message)
    reservations, token = moto_instances.chosen(call)
    for reservation in reservations:
        reservation["Instances"] = [
            _detailed(call, i) for i in reservation["Instances"] if i["InstanceId"] not in hidden
        ]
    return moto_instances.rendered((each for each in reservations if each["Instances"]), token)


def _detailed(call: Call, instance: dict[str, Any]) -> dict[str, Any]:
    details = current(call.state, call.state.instance_details.get(instance["InstanceId"], {}))
    placement = {**instance["Placement"], **details.pop("Placement", {})}
    told: list[dict[str, Any]] = details.pop("NetworkInterfaces", [])
    # moto gives an instance one interface, whatever its launch template lists.
    interfaces = [
        {**interface, **(told[place] if place < len(told) else {})}
        for place, interface in enumerate(instance.get("NetworkInterfaces", []))
    ]
    return {**instance, **details, "Placement": placement, "NetworkInterfaces": interfaces}


def describe_network_interfaces(call: Call) -> dict[str, Any]:
    """ec2.DescribeNetworkInterfaces, with what the launch template asked of an instance's interfaces."""
    answer = call.forward()
    answer["NetworkInterfaces"] = [_shaped(call, each) for each in answer["NetworkInterfaces"]]
    return answer


def _shaped(call: Call, interface: dict[str, Any]) -> dict[str, Any]:
    attachment = interface.get("Attachment") or {}
    details = call.state.instance_details.get(attachment.get("InstanceId", ""), {})
    told: list[dict[str, Any]] = details.get("NetworkInterfaces", [])
    place = attachment.get("DeviceIndex", 0)
    return {**interface, **(told[place] if place < len(told) else {})}


def describe_spot_instance_requests(call: Call) -> dict[str, Any]:
    """ec2.DescribeSpotInstanceRequests, by id or all."""
    known = call.state.spot_requests
    wanted = call.parameters.get("SpotInstanceRequestIds") or list(known)
    for request_id in wanted:
        if request_id not in known:
            message = f"The spot instance request ID '{request_id}' does not exist"
            raise AwsError("InvalidSpotInstanceRequestID.NotFound", message)
    return {"SpotInstanceRequests": [known[request_id] for request_id in wanted]}


def create_tags(call: Call) -> dict[str, Any]:
    """ec2.CreateTags: every instance and launch template named must exist."""
    resources = call.parameters.get("Resources") or []
    instances = [r for r in resources if r.startswith("i-")]
    if instances:
        call.client().describe_instances(InstanceIds=instances)
    templates = [r for r in resources if r.startswith("lt-")]
    for template in templates:
        call.client().describe_launch_template_versions(LaunchTemplateId=template, Versions=["$Default"])
    return call.forward()


def _paged(key: str, maximum: int) -> Callable[[Call], dict[str, Any]]:
    def describe(call: Call) -> dict[str, Any]:
        answer = call.forward(MaxResults=None, NextToken=None)
        answer[key], token = page(answer[key], call.parameters, default=None, maximum=maximum)
        answer.pop("NextToken", None)
        return answer | ({"NextToken": token} if token else {})

    return describe


HANDLERS: Handlers = {
    ("ec2", "CreateTags"): create_tags,
    ("ec2", "DescribeInstances"): describe_instances,
    ("ec2", "DescribeInstanceStatus"): describe_instance_status,
    ("ec2", "DescribeNetworkInterfaces"): describe_network_interfaces,
    ("ec2", "DescribeSecurityGroups"): _paged("SecurityGroups", 1000),
    ("ec2", "DescribeSpotInstanceRequests"): describe_spot_instance_requests,
    ("ec2", "DescribeSubnets"): _paged("Subnets", 1000),
}
