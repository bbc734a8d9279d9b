"""A simulated node has the ephemeral storage of the volume that its instance keeps it on."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from localenv.kubelets.bootstrap import Bootstrap, from_flags
from localenv.kubelets.capacity import GIB
from localenv.kubelets.instances import Instances
from localenv.kubelets.nodes import read_instance, registration
from localenv.kubelets.user_data import parse_user_data
from nodeless.launch.kubelet_arguments import Bootstrap as Told
from nodeless.launch.kubelet_arguments import Cluster
from nodeless.launch.user_data import user_data
from tests.localenv.kubelets.test_capacity import _record

SIZES = {"vol-root": 100, "vol-data": 300}


class Disks:
    async def disk(self, volume_id: str) -> Decimal:
        return Decimal(SIZES[volume_id] * GIB)


def bootstrap(family: str) -> Bootstrap:
    return from_flags(family, "lab", {}, endpoint="https://x", certificate_authority="YQ==")


def joined(family: str, volumes: dict[str, str], inside: int = 0, *, raid: bool = False) -> dict[str, Any]:
    """The Node of an instance with these volumes, by device, and so many GB of disks inside its host."""
    document = {
        "InstanceId": "i-1",
        "InstanceType": "t3a.large",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "State": {"Name": "running"},
        "LaunchTime": SimpleNamespace(timestamp=lambda: 0.0),
        "RootDeviceName": "/dev/xvda",
        "BlockDeviceMappings": [
            {"DeviceName": device, "Ebs": {"VolumeId": volume}} for device, volume in volumes.items()
        ],
    }
    nothing: Any = SimpleNamespace()
    cloud: Any = Disks()
    parts = {"nodes": nothing, "pods": nothing, "drivers": nothing}
    kubelets = Instances(nothing, cloud, nothing, nothing, **parts, boot_seconds=0.0)
    instance, started = read_instance(document), replace(bootstrap(family), instance_store_raid=raid)
    record = {**_record(2, 8192, 3, 12), "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}}
    if inside:
        record["InstanceStorageInfo"] = {"TotalSizeInGB": inside}
    disk = asyncio.run(kubelets._disk(instance, started, record))
    return registration(instance, record, started, disk=disk)


@pytest.mark.parametrize(
    ("family", "volumes", "size"),
    [
        ("AL2023", {"/dev/xvda": "vol-root", "/dev/xvdb": "vol-data"}, 100),
        ("Bottlerocket", {"/dev/xvda": "vol-root", "/dev/xvdb": "vol-data"}, 300),
        ("Bottlerocket", {"/dev/xvda": "vol-root"}, 100),
        ("AL2", {}, 20),
    ],
)
def test_a_node_has_the_storage_of_its_volume(family: str, volumes: dict[str, str], size: int) -> None:
    assert joined(family, volumes)["status"]["capacity"]["ephemeral-storage"] == str(size * GIB)


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket"])
@pytest.mark.parametrize(
    ("raid", "inside", "size"), [(True, 75, 75 * 10**9), (False, 75, 100 * GIB), (True, 0, 100 * GIB)]
)
def test_disks_inside_the_host_count_where_they_are_made_one_volume(
    family: str, raid: bool, inside: int, size: int
) -> None:
    node = joined(family, {"/dev/xvda": "vol-root"}, inside, raid=raid)
    assert node["status"]["capacity"]["ephemeral-storage"] == str(size)


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket"])
@pytest.mark.parametrize("raid", [True, False])
def test_user_data_of_the_controller_says_whether_they_are(family: str, raid: bool) -> None:
    cluster = Cluster("lab", "https://x", "YQ==", service_cidr="10.100.0.0/16")
    told = Told(cluster, {}, (), instance_store_raid=raid, of_v1=True)
    assert parse_user_data(user_data(family, told)).instance_store_raid == raid
