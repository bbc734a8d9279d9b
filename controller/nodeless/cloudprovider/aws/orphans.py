"""What a controller that is gone left in AWS: instances, network interfaces, launch templates and profiles.

Found by tags and paths that the controller and the VPC CNI write, so nothing of another cluster or of anybody
else is touched. This is the escape when the controller cannot give its nodes back itself.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodeless.cloudprovider.aws.caching import Clock
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.instances import Instances
from nodeless.cloudprovider.aws.launch_templates import LaunchTemplates
from nodeless.cloudprovider.aws.made_profiles import MadeProfiles
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.launch.instance_profiles import cluster_path

#: Tag of the interfaces that the VPC CNI adds to nodes; they outlive an instance that dies early.
_CNI_CLUSTER_TAG = "cluster.k8s.amazonaws.com/name"
_MISSING_INTERFACE = frozenset({"InvalidNetworkInterfaceID.NotFound"})


@dataclass(frozen=True, slots=True)
class Orphans:
    """What is there, by id or name."""

    instances: Mapping[str, str]
    """Instance id to what it is: its type, its zone and the claim it was launched for."""
    interfaces: tuple[str, ...]
    """Ids of network interfaces that no instance holds any more."""
    templates: tuple[str, ...]
    """Names of launch templates."""
    profiles: tuple[str, ...] = ()
    """Names of instance profiles."""

    def __bool__(self) -> bool:
        return bool(self.instances or self.interfaces or self.templates or self.profiles)


class Sweeper:
    """Finds and removes the leftovers of one cluster."""

    def __init__(self, session: AwsSession, clock: Clock, cluster: str) -> None:
        self._session = session
        self._cluster = cluster
        self._instances = Instances(session, cluster)
        self._templates = LaunchTemplates(session, clock, cluster)
        self._profiles = MadeProfiles(session)

    async def find(self) -> Orphans:
        """What is there now. Raises CloudError."""
        records, interfaces, templates, profiles = await asyncio.gather(
            self._instances.list_owned(),
            self._interfaces(),
            self._templates.names(),
            self._profiles.under(cluster_path(self._session.region, self._cluster)),
        )
        return Orphans(
            {record["InstanceId"]: _describe(record) for record in records},
            interfaces,
            tuple(templates),
            tuple(sorted(profiles)),
        )

    async def remove(self, found: Orphans) -> None:
        """End instances without draining them; delete the rest. Raises CloudError.

        Instances take minutes to go, and their interfaces after them: call again until `find` is empty.
        """
        await asyncio.gather(*(self._instances.terminate(instance) for instance in found.instances))
        for interface in found.interfaces:
            await self._delete_interface(interface)
        if not found.instances:
            await self._templates.delete_all()
            for profile in found.profiles:
                await self._profiles.delete(profile)

    async def _interfaces(self) -> tuple[str, ...]:
        filters = [
            {"Name": f"tag:{_CNI_CLUSTER_TAG}", "Values": [self._cluster]},
            {"Name": "status", "Values": ["available"]},
        ]
        found: Sequence[Mapping[str, Any]] = await self._session.pages(
            "ec2", "describe_network_interfaces", {"Filters": filters}, "NetworkInterfaces"
        )
        return tuple(sorted(str(record["NetworkInterfaceId"]) for record in found))

    async def _delete_interface(self, interface: str) -> None:
        try:
            await self._session.call("ec2", "delete_network_interface", {"NetworkInterfaceId": interface})
        except AwsCallRefused as error:
            if error.code not in _MISSING_INTERFACE:
                raise


def _describe(record: Mapping[str, Any]) -> str:
    tags = {tag["Key"]: tag["Value"] for tag in record.get("Tags", ())}
    zone = record.get("Placement", {}).get("AvailabilityZone", "")
    return ", ".join(part for part in (record.get("InstanceType", ""), zone, tags.get("Name", "")) if part)
