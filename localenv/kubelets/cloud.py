"""What kubelets and EKS ask of the local AWS, as awaitable calls.

boto3 in worker threads; answers are plain data. No decision is taken here.
"""

import asyncio
import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.request import ProxyHandler, build_opener

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from localenv.kubelets.capacity import GIB
from localenv.kubelets.nodes import Instance, read_instance

#: States of an instance that still exists; a terminated one is gone.
_ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]


class Cloud:
    """The local AWS as seen from inside the cluster.

    Args:
        endpoint: URL of all its services.
        region: where the cluster is.
    """

    def __init__(self, endpoint: str, region: str) -> None:
        self.region = region
        self._endpoint = endpoint
        # urllib honours http_proxy; loopback must not go through one.
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

    async def instances(self) -> list[Instance]:
        """Return all instances that are not terminated."""
        return await asyncio.to_thread(self._instances)

    def _instances(self) -> list[Instance]:
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
        faults = await asyncio.to_thread(self._boot_faults)
        for fault in faults:
            if fault["instanceType"] in (None, instance.type) and fault["zone"] in (None, instance.zone):
                return float(fault["seconds"]), fault["outcome"] != "never"
        return 0.0, True

    def _boot_faults(self) -> list[dict[str, Any]]:
        try:
            with self._opener.open(f"{self._endpoint}/nodeless/faults", timeout=30) as answer:
                found: list[dict[str, Any]] = json.load(answer)["boot"]
        except OSError:
            return []  # an AWS that is gone has no faults
        return found

    async def reboots(self) -> Mapping[str, int]:
        """Return how often each instance was rebooted, by id."""
        return await asyncio.to_thread(self._reboots)

    def _reboots(self) -> Mapping[str, int]:
        try:
            with self._opener.open(f"{self._endpoint}/nodeless/reboots", timeout=30) as answer:
                found: dict[str, int] = json.load(answer)["reboots"]
        except OSError:
            return {}  # an AWS that is gone reboots nothing
        return found

    async def terminated(self, instance_id: str) -> bool:
        """Ask about one instance by name: whether it is gone for good."""

        def ask() -> bool:
            try:
                answer = self._ec2.describe_instances(InstanceIds=[instance_id])
            except ClientError as error:
                if error.response["Error"]["Code"] == "InvalidInstanceID.NotFound":
                    return True
                raise
            states = [
                each["State"]["Name"] for group in answer["Reservations"] for each in group["Instances"]
            ]
            return all(state == "terminated" for state in states)

        return await asyncio.to_thread(ask)

    async def user_data(self, instance_id: str) -> str:
        """Return an instance's user data as its first boot reads it.

        Raises:
            ValueError: if it is not what EC2 stores: base64 of a text.
        """

        def ask() -> str:
            answer = self._ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
            return base64.b64decode(answer.get("UserData", {}).get("Value", "")).decode()

        return await asyncio.to_thread(ask)

    async def instance_type(self, name: str) -> Mapping[str, Any]:
        """Return the record of an instance type."""
        if name not in self._types:

            def ask() -> Mapping[str, Any]:
                record: Mapping[str, Any] = self._ec2.describe_instance_types(InstanceTypes=[name])[
                    "InstanceTypes"
                ][0]
                return record

            self._types[name] = await asyncio.to_thread(ask)
        return self._types[name]

    async def subnet(self, subnet_id: str) -> tuple[str, str]:
        """Return CIDR block and zone of a subnet."""
        if subnet_id not in self._subnets:

            def ask() -> tuple[str, str]:
                subnet = self._ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"][0]
                return subnet["CidrBlock"], subnet["AvailabilityZone"]

            self._subnets[subnet_id] = await asyncio.to_thread(ask)
        return self._subnets[subnet_id]

    async def disk(self, volume_id: str) -> Decimal:
        """Return the bytes of a volume."""

        def ask() -> Decimal:
            return Decimal(self._ec2.describe_volumes(VolumeIds=[volume_id])["Volumes"][0]["Size"] * GIB)

        return await asyncio.to_thread(ask)

    async def make_volume(self, zone: str, gibibytes: int, kind: str, tags: Mapping[str, str]) -> str:
        """Make a volume, unless there is one with these tags; return its id."""
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]

        def ask() -> str:
            filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
            found = self._ec2.describe_volumes(Filters=filters)["Volumes"]
            made = (
                found[0]
                if found
                else self._ec2.create_volume(
                    AvailabilityZone=zone,
                    Size=gibibytes,
                    VolumeType=kind,
                    TagSpecifications=[{"ResourceType": "volume", "Tags": listed}],
                )
            )
            return str(made["VolumeId"])

        return await asyncio.to_thread(ask)

    async def delete_volume(self, volume_id: str) -> None:
        """Delete a volume; one that is gone is no fault."""

        def ask() -> None:
            try:
                self._ec2.delete_volume(VolumeId=volume_id)
            except ClientError as error:
                if error.response["Error"]["Code"] != "InvalidVolume.NotFound":
                    raise

        await asyncio.to_thread(ask)

    async def role_of(self, instance_profile: str) -> str:
        """Return the ARN of the role in an instance profile, "" if there is none."""

        def ask() -> str:
            name = instance_profile.rpartition("/")[2]
            try:
                profile = self._iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
            except ClientError as error:
                if error.response["Error"]["Code"] == "NoSuchEntity":
                    return ""
                raise
            return str(profile["Roles"][0]["Arn"]) if profile["Roles"] else ""

        return await asyncio.to_thread(ask)

    async def clusters(self) -> list[Mapping[str, Any]]:
        """Return the records of all EKS clusters."""

        def ask() -> list[Mapping[str, Any]]:
            names = self._eks.list_clusters()["clusters"]
            return [self._eks.describe_cluster(name=name)["cluster"] for name in names]

        return await asyncio.to_thread(ask)

    async def fargate_profiles(self, cluster: str) -> list[str]:
        """Return the names of a cluster's Fargate profiles."""

        def ask() -> list[str]:
            names: list[str] = self._eks.list_fargate_profiles(clusterName=cluster)["fargateProfileNames"]
            return names

        return await asyncio.to_thread(ask)

    async def addons(self, cluster: str) -> list[str]:
        """Return the names of a cluster's add-ons."""

        def ask() -> list[str]:
            names: list[str] = self._eks.list_addons(clusterName=cluster)["addons"]
            return names

        return await asyncio.to_thread(ask)

    async def pod_identities(self, cluster: str) -> frozenset[tuple[str, str]]:
        """Return namespace and name of each service account that has a role by Pod Identity."""

        def ask() -> frozenset[tuple[str, str]]:
            pages = self._eks.get_paginator("list_pod_identity_associations").paginate(clusterName=cluster)
            return frozenset(
                (each["namespace"], each["serviceAccount"]) for page in pages for each in page["associations"]
            )

        return await asyncio.to_thread(ask)

    async def pod_credentials(self, cluster: str, token: str) -> dict[str, Any]:
        """Return EKS' answer to a pod's token: its role's credentials."""

        def ask() -> dict[str, Any]:
            answer: dict[str, Any] = self._eks_auth.assume_role_for_pod_identity(
                clusterName=cluster, token=token
            )
            return answer

        return await asyncio.to_thread(ask)

    async def fargate_profile(self, cluster: str, name: str) -> Mapping[str, Any]:
        """Return the record of a Fargate profile."""

        def ask() -> Mapping[str, Any]:
            answer = self._eks.describe_fargate_profile(clusterName=cluster, fargateProfileName=name)
            record: Mapping[str, Any] = answer["fargateProfile"]
            return record

        return await asyncio.to_thread(ask)

    async def access_entry_type(self, cluster: str, principal: str) -> str | None:
        """Return the type of a principal's access entry (EC2_LINUX, STANDARD ...), None if it has none."""

        def ask() -> str | None:
            try:
                answer = self._eks.describe_access_entry(clusterName=cluster, principalArn=principal)
            except ClientError as error:
                if error.response["Error"]["Code"] == "ResourceNotFoundException":
                    return None
                raise
            return str(answer["accessEntry"]["type"])

        return await asyncio.to_thread(ask)
