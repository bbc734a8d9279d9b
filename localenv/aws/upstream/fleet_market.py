"""The pools of a fleet request, resolved against what exists, and how much each can give.

What EC2 finds wrong with one override it reports in the fleet's `Errors` and goes on with the others;
what is wrong with the request as a whole (a launch template that does not exist) is an error of the call.
moto checks neither subnets nor images nor groups of a fleet.

Source: EC2 API reference, CreateFleet (`Errors`) and the error codes of the EC2 API.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from localenv.aws.calls import AwsError, Call
from localenv.aws.instance_types import instance_types, zones_of
from localenv.aws.pricing import BOOK
from localenv.aws.upstream import placement_groups
from localenv.aws.upstream.capacity_reservations import market_type, room, target_of
from localenv.aws.upstream.fleet_choice import Pool
from localenv.aws.upstream.instance_profiles import unknown_profile

#: More instances than any request asks for: a pool without a limit.
UNLIMITED = 1_000_000
#: EC2's limit of decoded user data, in bytes.
USER_DATA_LIMIT = 16_384


@dataclass(frozen=True, slots=True)
class Template:
    """One version of a launch template."""

    identifier: str
    name: str
    version: str
    data: dict[str, Any]

    @classmethod
    def fetch(cls, call: Call, specification: Mapping[str, Any]) -> Template:
        """The version that a LaunchTemplateSpecification means.

        Raises:
            AwsError: Neither or both of id and name are given.
            botocore.exceptions.ClientError: It does not exist, in EC2's words.
        """
        keys = [k for k in ("LaunchTemplateId", "LaunchTemplateName") if specification.get(k)]
        if len(keys) != 1:
            message = "Either a launch template ID or a launch template name must be specified in the request"
            raise AwsError("InvalidLaunchTemplateSpecification", message)
        answer = call.client("ec2").describe_launch_template_versions(
            **{keys[0]: specification[keys[0]]}, Versions=[specification.get("Version") or "$Default"]
        )
        found = answer["LaunchTemplateVersions"][0]
        return cls(
            found["LaunchTemplateId"],
            found["LaunchTemplateName"],
            str(found["VersionNumber"]),
            found["LaunchTemplateData"],
        )

    @property
    def security_groups(self) -> tuple[str, ...]:
        """Groups of the primary interface."""
        interfaces = self.data.get("NetworkInterfaces") or [{}]
        return tuple(interfaces[0].get("Groups") or self.data.get("SecurityGroupIds") or ())


class Market:
    """The pools of one request in one capacity type."""

    def __init__(self, call: Call, capacity_type: str, templates: Sequence[Template]) -> None:
        self._call = call
        self._capacity_type = capacity_type
        self._templates = templates
        self._types = instance_types(call)
        self._subnets = {s["SubnetId"]: s for s in call.client("ec2").describe_subnets()["Subnets"]}
        self._free = {name: s["AvailableIpAddressCount"] for name, s in self._subnets.items()}
        self._offered = 0
        self._images: dict[str, dict[str, Any] | None] = {}
        self._groups: dict[str, str | None] = {}

    def pools(self, configs: Sequence[Mapping[str, Any]]) -> list[Pool]:
        """Every override of every config; a config without overrides is one pool of its template."""
        found: list[Pool] = []
        for index, config in enumerate(configs):
            for override in config.get("Overrides") or [{}]:
                found.append(self._pool(len(found), index, override))
        return found

    def probe(self, pool: Pool) -> tuple[int, tuple[str, str] | None]:
        """How many instances the pool can give, and the reason why no more."""
        wrong = self._wrong(pool)
        if wrong is not None:
            return 0, wrong
        limits: list[tuple[int, tuple[str, str] | None]] = [
            (f.remaining, _refusal(pool, self._capacity_type, f.code))
            for f in self._call.state.faults.capacity
            if f.matches(pool.instance_type, pool.zone, self._kind(pool))
        ]
        if target := self._target(pool):
            market = market_type(self._templates[pool.config].data)
            limits.append(room(self._call, target, pool.instance_type, pool.zone, market))
        limits += self._quota(pool)
        limits += placement_groups.room(self._call, self._templates[pool.config].data, pool.zone)
        capacity, reason = min(limits, default=(UNLIMITED, None), key=lambda limit: limit[0])
        if capacity <= 0:
            return 0, reason
        free = self._free.get(pool.subnet_id, UNLIMITED)
        if free < capacity:
            message = f"There are not enough free addresses in subnet '{pool.subnet_id}'."
            return free, ("InsufficientFreeAddressesInSubnet", message)
        return capacity, reason

    def _target(self, pool: Pool) -> str:
        return target_of(self._templates[pool.config].data)

    def _kind(self, pool: Pool) -> str:
        """What faults call the capacity: that of a reservation is none of the on-demand pool's."""
        return "reserved" if self._target(pool) else self._capacity_type

    def _quota(self, pool: Pool) -> list[tuple[int, tuple[str, str] | None]]:
        """How many instances the account's quota of vCPUs still allows; nothing without a quota."""
        quota = self._call.state.faults.quotas.get(self._capacity_type)
        if quota is None:
            return []
        pages = (
            self._call.client("ec2")
            .get_paginator("describe_instances")
            .paginate(Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}])
        )
        running = [i for page in pages for r in page["Reservations"] for i in r["Instances"]]
        spot = self._capacity_type == "spot"
        used = sum(
            self._cpus(str(i["InstanceType"]))
            for i in running
            if (i.get("InstanceLifecycle") == "spot") == spot
        )
        code = "MaxSpotInstanceCountExceeded" if spot else "VcpuLimitExceeded"
        message = f"You have requested more vCPU capacity than your current vCPU limit of {quota} allows"
        cpus = self._cpus(pool.instance_type)
        room = max(0, quota - used - self._offered) // cpus
        # The pools of a request share the quota; the first that is asked takes all it can.
        self._offered += room * cpus
        return [(room, (code, message))]

    def _cpus(self, instance_type: str) -> int:
        return int(self._types[instance_type]["VCpuInfo"]["DefaultVCpus"])

    def take(self, pool: Pool, count: int) -> None:
        """Account for instances launched from a pool that a fault limits."""
        for fault in self._call.state.faults.capacity:
            if fault.matches(pool.instance_type, pool.zone, self._kind(pool)):
                fault.remaining = max(0, fault.remaining - count)

    def _pool(self, position: int, config: int, override: Mapping[str, Any]) -> Pool:
        data = self._templates[config].data
        instance_type = str(override.get("InstanceType") or data.get("InstanceType") or "")
        interface = (data.get("NetworkInterfaces") or [{}])[0]
        subnet_id = str(override.get("SubnetId") or interface.get("SubnetId") or "")
        zone = str(override.get("AvailabilityZone") or "")
        if not subnet_id:
            subnet_id = self._default_subnet(zone)
        zone = str(self._subnets.get(subnet_id, {}).get("AvailabilityZone") or zone)
        spot = self._capacity_type == "spot"
        price = BOOK.spot(instance_type, zone) if spot else BOOK.on_demand(instance_type, self._call.region)
        priority = override.get("Priority")
        return Pool(
            position=position,
            config=config,
            override=override,
            instance_type=instance_type,
            zone=zone,
            subnet_id=subnet_id,
            image_id=str(override.get("ImageId") or data.get("ImageId") or ""),
            price=math.inf if price is None else price,
            priority=math.inf if priority is None else float(priority),
            weight=float(override.get("WeightedCapacity") or 1),
        )

    def _default_subnet(self, zone: str) -> str:
        """The default subnet of the zone (of any zone when none is named), as EC2 falls back to."""
        for subnet in sorted(self._subnets.values(), key=lambda s: str(s["AvailabilityZone"])):
            if subnet.get("DefaultForAz") and zone in {"", subnet["AvailabilityZone"]}:
                return str(subnet["SubnetId"])
        return ""

    def _wrong(self, pool: Pool) -> tuple[str, str] | None:
        """What is wrong with a pool, in EC2's words; `None` when it can be launched."""
        template = self._templates[pool.config]
        record = self._types.get(pool.instance_type)
        if record is None:
            return "InvalidParameterValue", f"Invalid value '{pool.instance_type}' for InstanceType."
        subnet = self._subnets.get(pool.subnet_id)
        if subnet is None:
            return "InvalidSubnetID.NotFound", f"The subnet ID '{pool.subnet_id}' does not exist"
        wanted_zone = pool.override.get("AvailabilityZone")
        if wanted_zone and wanted_zone != subnet["AvailabilityZone"]:
            message = f"The subnet '{pool.subnet_id}' is not in the Availability Zone '{wanted_zone}'"
            return "InvalidParameterValue", message
        if pool.zone not in zones_of(self._call, pool.instance_type):
            message = (
                f"Your requested instance type ({pool.instance_type}) is not supported in your requested "
                f"Availability Zone ({pool.zone})."
            )
            return "Unsupported", message
        bought = "on-demand" if self._capacity_type == "reserved-capacity" else self._capacity_type
        if bought not in record.get("SupportedUsageClasses", []):
            message = f"The instance type {pool.instance_type} is not supported as {self._capacity_type}."
            return "Unsupported", message
        return (
            self._wrong_image(pool, record)
            or self._wrong_groups(template, subnet)
            or self._wrong_data(template)
            or placement_groups.wrong(self._call, template.data)
        )

    def _wrong_image(self, pool: Pool, record: Mapping[str, Any]) -> tuple[str, str] | None:
        image = self._image(pool.image_id)
        if image is None:
            return "InvalidAMIID.NotFound", f"The image id '[{pool.image_id}]' does not exist"
        supported = record["ProcessorInfo"]["SupportedArchitectures"]
        architecture = image.get("Architecture", "x86_64")
        if architecture not in supported:
            message = (
                f"The architecture '{','.join(supported)}' of the specified instance type does not match the "
                f"architecture '{architecture}' of the specified AMI."
            )
            return "InvalidParameterValue", message
        return None

    def _wrong_groups(self, template: Template, subnet: Mapping[str, Any]) -> tuple[str, str] | None:
        for group_id in template.security_groups:
            vpc = self._vpc_of_group(group_id)
            if vpc is None:
                return "InvalidGroup.NotFound", f"The security group '{group_id}' does not exist"
            if vpc != subnet["VpcId"]:
                message = (
                    f"Security group {group_id} and subnet {subnet['SubnetId']} belong to different networks."
                )
                return "InvalidParameter", message
        return None

    def _wrong_data(self, template: Template) -> tuple[str, str] | None:
        if unknown := unknown_profile(self._call, template.data.get("IamInstanceProfile") or {}):
            return "InvalidParameterValue", unknown
        if len(template.data.get("UserData") or "") * 3 // 4 > USER_DATA_LIMIT:
            return "InvalidUserData.Malformed", "User data is limited to 16384 bytes"
        return None

    def _image(self, image_id: str) -> dict[str, Any] | None:
        if image_id not in self._images:
            try:
                images = self._call.client("ec2").describe_images(ImageIds=[image_id])["Images"]
            except ClientError:
                images = []
            self._images[image_id] = images[0] if images else None
        return self._images[image_id]

    def _vpc_of_group(self, group_id: str) -> str | None:
        if group_id not in self._groups:
            try:
                groups = self._call.client("ec2").describe_security_groups(GroupIds=[group_id])
                self._groups[group_id] = groups["SecurityGroups"][0]["VpcId"]
            except ClientError:
                self._groups[group_id] = None
        return self._groups[group_id]


def _refusal(pool: Pool, capacity_type: str, code: str) -> tuple[str, str]:
    """What EC2 says of a pool that gives no more."""
    return (code, f"fault: {code} in {pool.zone}") if code else _insufficient(pool, capacity_type)


def _insufficient(pool: Pool, capacity_type: str) -> tuple[str, str]:
    kind = "spot " if capacity_type == "spot" else ""
    message = (
        f"We currently do not have sufficient {kind}{pool.instance_type} capacity in the Availability Zone "
        f"you requested ({pool.zone})."
    )
    return "InsufficientInstanceCapacity", message
