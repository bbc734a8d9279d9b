"""Instances, their interfaces and spot requests as EC2 shows them, with what a launch noted beside moto."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from localenv.aws import moto_instances
from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.moto_internals import WireResponse
from localenv.aws.upstream.capacity_reservations import current


def describe_instances(call: Call) -> Mapping[str, Any] | WireResponse:
    """ec2.DescribeInstances with reservation and placement, and without what reads that lag do not see."""
    wanted, lag = call.parameters.get("InstanceIds") or [], call.state.faults.consistency
    since = datetime.now(UTC) - timedelta(seconds=lag)
    known = moto_instances.records(call.moto, call.region) if lag else []
    hidden = [each["InstanceId"] for each in known if each["LaunchTime"] > since]
    missing = sorted(set(wanted) & set(hidden))
    if missing:
        message = f"The instance ID '{missing[0]}' does not exist"
        raise AwsError("InvalidInstanceID.NotFound", message)
    reservations, token = moto_instances.choose_page(call)
    for reservation in reservations:
        reservation["Instances"] = [
            _add_details(call, i) for i in reservation["Instances"] if i["InstanceId"] not in hidden
        ]
    return moto_instances.render_answer(
        (reservation for reservation in reservations if reservation["Instances"]), token
    )


def _add_details(call: Call, instance: dict[str, Any]) -> dict[str, Any]:
    details = current(call.state, call.state.instance_details.get(instance["InstanceId"], {}))
    placement = {**instance["Placement"], **details.pop("Placement", {})}
    told: list[dict[str, Any]] = details.pop("NetworkInterfaces", [])
    # moto gives an instance one interface, whatever its launch template lists: the others have no more
    # than what the template says of them.
    interfaces = [
        {**interface, **(told[place] if place < len(told) else {})}
        for place, interface in enumerate(instance.get("NetworkInterfaces", []))
    ]
    interfaces += [
        {"NetworkInterfaceId": f"eni-{digest([instance['InstanceId'], place], 17)}", **told[place]}
        for place in range(len(interfaces), len(told))
    ]
    return {**instance, **details, "Placement": placement, "NetworkInterfaces": interfaces}


def describe_network_interfaces(call: Call) -> dict[str, Any]:
    """ec2.DescribeNetworkInterfaces, with what the launch template asked of an instance's interfaces."""
    answer = call.forward()
    answer["NetworkInterfaces"] = [
        _shape_interface(call, network_interface) for network_interface in answer["NetworkInterfaces"]
    ]
    return answer


def _shape_interface(call: Call, interface: dict[str, Any]) -> dict[str, Any]:
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


HANDLERS: Handlers = {
    ("ec2", "DescribeInstances"): describe_instances,
    ("ec2", "DescribeNetworkInterfaces"): describe_network_interfaces,
    ("ec2", "DescribeSpotInstanceRequests"): describe_spot_instance_requests,
}
