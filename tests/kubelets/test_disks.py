"""A simulated node has the ephemeral storage of the volume that its instance keeps it on."""

import asyncio
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from infra.local.kubelets.bootstrap import Bootstrap, from_flags
from infra.local.kubelets.capacity import GIB
from infra.local.kubelets.instances import Instances
from infra.local.kubelets.nodes import read_instance, registration
from tests.kubelets.test_capacity import _record

SIZES = {"vol-root": 100, "vol-data": 300}


class Disks:
    async def disk(self, volume_id: str) -> Decimal:
        return Decimal(SIZES[volume_id] * GIB)


def bootstrap(family: str) -> Bootstrap:
    return from_flags(family, "lab", {}, endpoint="https://x", certificate_authority="YQ==")


def joined(family: str, volumes: dict[str, str]) -> dict[str, Any]:
    """The Node of an instance with these volumes, by device."""
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
    kubelets = Instances(nothing, cloud, nothing, nothing, nodes=nothing, pods=nothing, boot_seconds=0.0)
    instance, started = read_instance(document), bootstrap(family)
    disk = asyncio.run(kubelets._disk(instance, started))
    record = {**_record(2, 8192, 3, 12), "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}}
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
