"""Launches instances in moto with everything that a launch template says, which moto itself drops for fleets.

Also `RunInstances` as a call: moto's, with interfaces that end with their instance and the root device of
its image; and `RebootInstances`, which leaves a trace. EC2 gives every instance of a request its profile, its
volumes the type and performance that are asked for, and refuses performance that a type does not have, and
cores without threads.

Source: EC2 API reference, RunInstances, CreateLaunchTemplate; user guide, "Amazon EBS volume types", "Rules
for specifying CPU options".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.instance_types import instance_types
from localenv.aws.interruptions import tell_stopped
from localenv.aws.moto_instances import forget
from localenv.aws.moto_internals import (
    annotate_instance,
    give_profile,
    give_public_address,
    instance_ids,
    set_volume_performance,
    set_volume_sizes,
)
from localenv.aws.upstream.instance_profiles import unknown_profile

#: Size of a root volume that no block device mapping describes, GiB: that of the EKS-optimized images.
ROOT_VOLUME_SIZE = 20
_PROVISIONED = ("io1", "io2")


@dataclass(frozen=True, slots=True)
class Launch:
    """What to launch: the launch template's data with the fleet's choices over it."""

    data: Mapping[str, Any]
    instance_type: str
    subnet_id: str
    image_id: str
    capacity_type: str
    #: TagSpecifications of the request; they win over the template's.
    tag_specifications: tuple[Mapping[str, Any], ...] = ()
    #: Tags that only AWS may set.
    reserved_tags: Mapping[str, str] = field(default_factory=dict)
    client_token: str = ""

    def tags(self, resource_type: str) -> list[dict[str, str]]:
        """The tags of one kind of resource."""
        tags: dict[str, str] = {}
        for specification in (*(self.data.get("TagSpecifications") or ()), *self.tag_specifications):
            if specification.get("ResourceType") == resource_type:
                tags.update({t["Key"]: t["Value"] for t in specification.get("Tags", [])})
        return [{"Key": key, "Value": value} for key, value in tags.items()]


def launch(call: Call, wanted: Launch, count: int) -> list[str]:
    """Launch so many equal instances; their ids."""
    client = call.client("ec2")
    image = client.describe_images(ImageIds=[wanted.image_id])["Images"][0]
    devices = _block_devices(wanted.data, image["RootDeviceName"])
    _check_processor(wanted.data.get("CpuOptions") or {})
    request = _run_instances(wanted, devices)
    with call.moto.alone():
        before = instance_ids(call.region)
        try:
            instances = client.run_instances(**request, MinCount=count, MaxCount=count)["Instances"]
            _complete(call, wanted, devices, instances)
        except Exception:
            # A launch that fails leaves nothing behind; moto's leaves what it had made until then.
            if made := sorted(instance_ids(call.region) - before):
                client.terminate_instances(InstanceIds=made)
            raise
    return [str(instance["InstanceId"]) for instance in instances]


def _complete(
    call: Call, wanted: Launch, devices: Sequence[Mapping[str, Any]], instances: Sequence[Mapping[str, Any]]
) -> None:
    """Give new instances what moto leaves out."""
    identifiers = [str(instance["InstanceId"]) for instance in instances]
    client = call.client("ec2")
    profile = wanted.data.get("IamInstanceProfile")
    if profile:
        with call.moto.alone():
            give_profile(call.region, identifiers[1:], profile)
            forget(identifiers[1:])
    for identifier in identifiers:
        _annotate(call, wanted, identifier)
        for device in devices:
            with call.moto.alone():
                set_volume_performance(call.region, identifier, device["DeviceName"], device["Ebs"])
    _end_what_does_not_boot(call, wanted.instance_type, instances)
    interface_tags = wanted.tags("network-interface")
    if interface_tags:
        interfaces = [n["NetworkInterfaceId"] for i in instances for n in i.get("NetworkInterfaces", [])]
        client.create_tags(Resources=interfaces, Tags=interface_tags)


def _end_what_does_not_boot(call: Call, instance_type: str, instances: Sequence[Mapping[str, Any]]) -> None:
    zone = str(instances[0]["Placement"]["AvailabilityZone"])
    fault = next((f for f in call.state.faults.boot if f.matches(instance_type, zone)), None)
    if fault is not None and fault.outcome == "terminated":
        ended = [str(instance["InstanceId"]) for instance in instances]
        client = call.client("ec2")
        call.state.later(fault.seconds, lambda: client.terminate_instances(InstanceIds=ended))


def _run_instances(wanted: Launch, devices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    data = wanted.data
    interface = (data.get("NetworkInterfaces") or [{}])[0]
    request: dict[str, Any] = {
        "ImageId": wanted.image_id,
        "InstanceType": wanted.instance_type,
        "SubnetId": wanted.subnet_id,
        "SecurityGroupIds": interface.get("Groups") or data.get("SecurityGroupIds") or [],
        "BlockDeviceMappings": [_as_moto_takes_it(device) for device in devices],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags}
            for kind in ("instance", "volume")
            if (tags := wanted.tags(kind))
        ],
    }
    for name in ("KeyName", "IamInstanceProfile", "MetadataOptions", "Monitoring", "EbsOptimized"):
        if data.get(name):
            request[name] = data[name]
    if data.get("UserData"):
        request["UserData"] = base64.b64decode(data["UserData"])
    if wanted.capacity_type == "spot":
        request["InstanceMarketOptions"] = {"MarketType": "spot"}
    if wanted.client_token:
        request["ClientToken"] = wanted.client_token
    return request


def _block_devices(data: Mapping[str, Any], root_device: str) -> list[dict[str, Any]]:
    """The template's volumes, and the image's root volume unless they replace it."""
    mappings = [dict(m) for m in data.get("BlockDeviceMappings") or [] if m.get("Ebs")]
    for mapping in mappings:
        ebs = mapping["Ebs"]
        if not ebs.get("VolumeSize") and not ebs.get("SnapshotId"):
            mapping["Ebs"] = {**ebs, "VolumeSize": ROOT_VOLUME_SIZE}
    if not any(m["DeviceName"] == root_device for m in mappings):
        root = {"VolumeSize": ROOT_VOLUME_SIZE, "VolumeType": "gp2", "DeleteOnTermination": True}
        mappings.append({"DeviceName": root_device, "Ebs": root})
    for mapping in mappings:
        mapping["Ebs"] = {"DeleteOnTermination": True, **mapping["Ebs"]}
        _check_performance(mapping["Ebs"])
    return mappings


def _check_performance(ebs: Mapping[str, Any]) -> None:
    """Refuse what EC2 refuses: IOPS and throughput where a type has none, and io1 and io2 without IOPS."""
    kind = ebs.get("VolumeType") or "gp2"
    if kind in _PROVISIONED and not ebs.get("Iops"):
        message = "The parameter iops must be specified for io1 and io2 volumes."
        raise AwsError("MissingParameter", message)
    for name, kinds in (("Iops", (*_PROVISIONED, "gp3")), ("Throughput", ("gp3",))):
        if ebs.get(name) and kind not in kinds:
            message = f"The parameter {name.lower()} is not supported for {kind} volumes."
            raise AwsError("InvalidParameterCombination", message)


def _check_processor(options: Mapping[str, Any]) -> None:
    """Refuse cores without threads, and threads without cores."""
    if ("CoreCount" in options) != ("ThreadsPerCore" in options):
        message = "When specifying CpuOptions you must specify both CoreCount and ThreadsPerCore"
        raise AwsError("MissingParameter", message)


def _as_moto_takes_it(device: Mapping[str, Any]) -> dict[str, Any]:
    """Moto makes volumes of a launch without their IOPS, and refuses io1 and io2 for want of them."""
    plain = {name: value for name, value in device["Ebs"].items() if name not in ("Iops", "Throughput")}
    if plain.get("VolumeType") in _PROVISIONED:
        plain["VolumeType"] = "gp2"
    return {**device, "Ebs": plain}


def _annotate(call: Call, wanted: Launch, instance_id: str) -> None:
    record = instance_types(call)[wanted.instance_type]
    attributes: dict[str, object] = {"hypervisor": record.get("Hypervisor", "")}
    interface = (wanted.data.get("NetworkInterfaces") or [{}])[0]
    public = interface.get("AssociatePublicIpAddress")
    if wanted.capacity_type == "spot":
        request_id = f"sir-{digest(instance_id, 8)}"
        attributes["spot_instance_request_id"] = request_id
        call.state.spot_requests[request_id] = _fulfilled_request(wanted, request_id, instance_id)
    if details := _details(wanted.data):
        call.state.instance_details.setdefault(instance_id, {}).update(details)
    with call.moto.alone():
        annotate_instance(call.region, instance_id, attributes=attributes, tags=wanted.reserved_tags)
        if public is not None:
            give_public_address(call.region, instance_id, given=public)
        forget([instance_id])


def _fulfilled_request(wanted: Launch, request_id: str, instance_id: str) -> dict[str, Any]:
    """The request for a spot instance, which has it."""
    return {
        "SpotInstanceRequestId": request_id,
        "InstanceId": instance_id,
        "State": "active",
        "Status": {"Code": "fulfilled", "Message": "Your Spot request is fulfilled."},
        "Type": "one-time",
        "CreateTime": datetime.now(UTC),
        "Tags": wanted.tags("spot-instances-request"),
    }


def _details(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a launch template asks of cores, enclaves and interfaces, as DescribeInstances tells it."""
    interfaces = [
        {
            key: value
            for key, value in (
                ("ConnectionTrackingConfiguration", network_interface.get("ConnectionTrackingSpecification")),
                ("InterfaceType", network_interface.get("InterfaceType")),
                ("Attachment", _attachment(network_interface) if place else None),
            )
            if value
        }
        for place, network_interface in enumerate(data.get("NetworkInterfaces") or ())
    ]
    details = {
        "CpuOptions": data.get("CpuOptions"),
        "EnclaveOptions": data.get("EnclaveOptions"),
        "NetworkInterfaces": interfaces if any(interfaces) else None,
    }
    return {key: value for key, value in details.items() if value}


def _attachment(interface: Mapping[str, Any]) -> dict[str, Any]:
    card = interface.get("NetworkCardIndex", 0)
    return {"DeviceIndex": interface.get("DeviceIndex", 0), "NetworkCardIndex": card, "Status": "attached"}


def run_instances(call: Call) -> dict[str, Any]:
    """ec2.RunInstances: moto's, with a profile that EC2 knows and interfaces that end with their instance."""
    profile = call.parameters.get("IamInstanceProfile") or {}
    if unknown := unknown_profile(call, profile):
        raise AwsError("InvalidParameterValue", unknown)
    answer = call.forward(UserData=_decode(call.parameters.get("UserData")))
    if profile:
        with call.moto.alone():
            give_profile(
                call.region, [instance["InstanceId"] for instance in answer["Instances"][1:]], profile
            )
    for instance in answer["Instances"]:
        with call.moto.alone():
            annotate_instance(call.region, instance["InstanceId"], attributes={}, tags={})
            if not call.parameters.get("BlockDeviceMappings"):
                set_volume_sizes(call.region, instance["InstanceId"], ROOT_VOLUME_SIZE)
            forget([instance["InstanceId"]])
        if details := _details(call.parameters):
            call.state.instance_details.setdefault(instance["InstanceId"], {}).update(details)
    return answer


def reboot_instances(call: Call) -> dict[str, Any]:
    """ec2.RebootInstances: moto's, counted, so that kubelets learn of it."""
    answer = call.forward()
    with call.state.lock:
        for instance_id in call.parameters["InstanceIds"]:
            call.state.reboots[instance_id] = call.state.reboots.get(instance_id, 0) + 1
    return answer


def stop_instances(call: Call) -> dict[str, Any]:
    """ec2.StopInstances: moto's, told to EventBridge."""
    answer = call.forward()
    tell_stopped(call.moto, call.region, answer["StoppingInstances"])
    return answer


def _decode(user_data: object) -> bytes | None:
    """boto3 encodes user data once more, so what came encoded is decoded first."""
    return base64.b64decode(str(user_data)) if user_data else None


HANDLERS: Handlers = {
    ("ec2", "RunInstances"): run_instances,
    ("ec2", "RebootInstances"): reboot_instances,
    ("ec2", "StopInstances"): stop_instances,
}
