"""What kubelets and EKS ask of the local AWS, as awaitable calls.

boto3 in worker threads; answers are plain data. No decision is taken here.
"""

import asyncio
import base64
import json
from collections.abc import Callable, Coroutine, Mapping
from decimal import Decimal
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from urllib.request import ProxyHandler, build_opener

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from localenv.kubelets.capacity import GIB
from localenv.kubelets.nodes import Instance, read_instance

P = ParamSpec("P")
T = TypeVar("T")

#: States of an instance that still exists; a terminated one is gone.
_ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]


def _in_thread(ask: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Make a call that waits one that is awaited."""

    @wraps(ask)
    async def asked(*arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(ask, *arguments, **options)

    return asked


def _none_for(error: ClientError, code: str) -> None:
    """Let an error pass that says that there is no such thing."""
    if error.response["Error"]["Code"] != code:
        raise error


class Cloud:
    """The local AWS as seen from inside the cluster.

    Args:
        endpoint: URL of all its services.
        region: where the cluster is.
    """

    def __init__(self, endpoint: str, region: str) -> None:
        self.region = region
        self._endpoint = endpoint
        # urllib honors http_proxy; loopback must not go through one.
        self._opener = build_opener(ProxyHandler({}))
        config = Config(retries={"total_max_attempts": 2}, connect_timeout=5, read_timeout=30, proxies={})
        session = boto3.Session(region_name=region)
        clients: dict[str, Any] = {
            name: session.client(name, endpoint_url=endpoint, config=config)
            for name in ("ec2", "eks", "eks-auth", "iam")
        }
        self._ec2 = clients["ec2"]
        self._eks = clients["eks"]
        self._eks_auth = clients["eks-auth"]
        self._iam = clients["iam"]
        self._types: dict[str, Mapping[str, Any]] = {}
        self._subnets: dict[str, tuple[str, str]] = {}

    @_in_thread
    def instances(self) -> list[Instance]:
        """Return all instances that are not terminated."""
        pages = self._ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "instance-state-name", "Values": _ALIVE}]
        )
        return [
            read_instance(document)
            for page in pages
            for reservation in page["Reservations"]
            for document in reservation["Instances"]
        ]

    async def boot(self, instance: Instance) -> tuple[float, bool]:
        """Seconds that an instance takes longer than usual to come up, and whether it joins at all."""
        fault = await self._boot_fault(instance)
        return (0.0, True) if fault is None else (float(fault["seconds"]), fault["outcome"] != "never")

    async def lost_devices(self, instance: Instance) -> int:
        """Devices of each driver that are not on an instance though its type has them."""
        fault = await self._boot_fault(instance)
        return 0 if fault is None else int(fault["lostDevices"])

    async def _boot_fault(self, instance: Instance) -> Mapping[str, Any] | None:
        for fault in (await self._control("faults")).get("boot", ()):
            if fault["instanceType"] in (None, instance.type) and fault["zone"] in (None, instance.zone):
                found: Mapping[str, Any] = fault
                return found
        return None

    async def reboots(self) -> Mapping[str, int]:
        """Return how often each instance was rebooted, by id."""
        found: dict[str, int] = (await self._control("reboots")).get("reboots", {})
        return found

    @_in_thread
    def _control(self, name: str) -> dict[str, Any]:
        try:
            with self._opener.open(f"{self._endpoint}/nodeless/{name}", timeout=30) as answer:
                found: dict[str, Any] = json.load(answer)
        except OSError:
            return {}  # an AWS that is gone has no faults and reboots nothing
        return found

    def _found(self, instance_id: str) -> list[Mapping[str, Any]]:
        try:
            answer = self._ec2.describe_instances(InstanceIds=[instance_id])
        except ClientError as error:
            _none_for(error, "InvalidInstanceID.NotFound")
            return []
        return [each for group in answer["Reservations"] for each in group["Instances"]]

    @_in_thread
    def is_terminated(self, instance_id: str) -> bool:
        """Ask about one instance by name: whether it is gone for good."""
        return all(each["State"]["Name"] == "terminated" for each in self._found(instance_id))

    @_in_thread
    def instance(self, instance_id: str) -> Instance | None:
        """Ask about one instance by name; None: EC2 does not know it."""
        found = self._found(instance_id)
        return read_instance(found[0]) if found else None

    @_in_thread
    def user_data(self, instance_id: str) -> str:
        """Return an instance's user data as its first boot reads it.

        Raises:
            ValueError: if it is not what EC2 stores: base64 of a text.
        """
        answer = self._ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
        return base64.b64decode(answer.get("UserData", {}).get("Value", "")).decode()

    async def instance_type(self, name: str) -> Mapping[str, Any]:
        """Return the record of an instance type."""
        if name not in self._types:
            self._types[name] = await self._described_type(name)
        return self._types[name]

    @_in_thread
    def _described_type(self, name: str) -> Mapping[str, Any]:
        return dict(self._ec2.describe_instance_types(InstanceTypes=[name])["InstanceTypes"][0])

    async def subnet(self, subnet_id: str) -> tuple[str, str]:
        """Return CIDR block and zone of a subnet."""
        if subnet_id not in self._subnets:
            self._subnets[subnet_id] = await self._described_subnet(subnet_id)
        return self._subnets[subnet_id]

    @_in_thread
    def _described_subnet(self, subnet_id: str) -> tuple[str, str]:
        subnet = self._ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"][0]
        return subnet["CidrBlock"], subnet["AvailabilityZone"]

    @_in_thread
    def disk(self, volume_id: str) -> Decimal:
        """Return the bytes of a volume."""
        return Decimal(self._ec2.describe_volumes(VolumeIds=[volume_id])["Volumes"][0]["Size"] * GIB)

    @_in_thread
    def make_volume(self, zone: str, gibibytes: int, kind: str, tags: Mapping[str, str]) -> str:
        """Make a volume, unless there is one with these tags; return its id."""
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
        if found := self._ec2.describe_volumes(Filters=filters)["Volumes"]:
            return str(found[0]["VolumeId"])
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        made = self._ec2.create_volume(
            AvailabilityZone=zone,
            Size=gibibytes,
            VolumeType=kind,
            TagSpecifications=[{"ResourceType": "volume", "Tags": listed}],
        )
        return str(made["VolumeId"])

    @_in_thread
    def delete_volume(self, volume_id: str) -> None:
        """Delete a volume; one that is gone is no fault."""
        try:
            self._ec2.delete_volume(VolumeId=volume_id)
        except ClientError as error:
            _none_for(error, "InvalidVolume.NotFound")

    @_in_thread
    def role_of(self, instance_profile: str) -> str:
        """Return the ARN of the role in an instance profile, "" if there is none."""
        name = instance_profile.rpartition("/")[2]
        try:
            profile = self._iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        except ClientError as error:
            _none_for(error, "NoSuchEntity")
            return ""
        return str(profile["Roles"][0]["Arn"]) if profile["Roles"] else ""

    @_in_thread
    def clusters(self) -> list[Mapping[str, Any]]:
        """Return the records of all EKS clusters."""
        names = self._eks.list_clusters()["clusters"]
        return [self._eks.describe_cluster(name=name)["cluster"] for name in names]

    @_in_thread
    def fargate_profiles(self, cluster: str) -> list[str]:
        """Return the names of a cluster's Fargate profiles."""
        return list(self._eks.list_fargate_profiles(clusterName=cluster)["fargateProfileNames"])

    @_in_thread
    def addons(self, cluster: str) -> list[str]:
        """Return the names of a cluster's add-ons."""
        return list(self._eks.list_addons(clusterName=cluster)["addons"])

    @_in_thread
    def pod_identities(self, cluster: str) -> frozenset[tuple[str, str]]:
        """Return namespace and name of each service account that has a role by Pod Identity."""
        pages = self._eks.get_paginator("list_pod_identity_associations").paginate(clusterName=cluster)
        return frozenset(
            (each["namespace"], each["serviceAccount"]) for page in pages for each in page["associations"]
        )

    @_in_thread
    def pod_credentials(self, cluster: str, token: str) -> dict[str, Any]:
        """Return EKS' answer to a pod's token: its role's credentials."""
        return dict(self._eks_auth.assume_role_for_pod_identity(clusterName=cluster, token=token))

    @_in_thread
    def fargate_profile(self, cluster: str, name: str) -> Mapping[str, Any]:
        """Return the record of a Fargate profile."""
        answer = self._eks.describe_fargate_profile(clusterName=cluster, fargateProfileName=name)
        return dict(answer["fargateProfile"])

    @_in_thread
    def access_entry_type(self, cluster: str, principal: str) -> str | None:
        """Return the type of a principal's access entry (EC2_LINUX, STANDARD ...), None if it has none."""
        try:
            answer = self._eks.describe_access_entry(clusterName=cluster, principalArn=principal)
        except ClientError as error:
            _none_for(error, "ResourceNotFoundException")
            return None
        return str(answer["accessEntry"]["type"])
