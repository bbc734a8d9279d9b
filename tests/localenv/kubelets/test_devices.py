"""What drivers of devices publish on an instance, and whether the controller predicts the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from localenv.kubelets.bootstrap import Bootstrap
from localenv.kubelets.devices import (
    EFA,
    NEURON,
    NVIDIA,
    Hardware,
    find_devices,
    resource_slices,
)
from localenv.kubelets.nodes import Instance, registration
from nodeless.cloudprovider.aws.instance_type_labels import type_requirements
from nodeless.cloudprovider.aws.instance_type_math import capacity
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.type_facts import read_type
from nodeless.kube.devices import decode_resource_slice
from nodeless.model.instance_types import InstanceType
from nodeless.scheduling.devices.groups import DevicePlace, Held, pool_place, typical
from nodeless.scheduling.devices.known_devices import known_devices

#: What only a running node knows, or nobody may ask for before there is one.
_OF_A_NODE = {
    *(f"{NVIDIA}/{name}" for name in ("uuid", "brand", "driverVersion", "cudaDriverVersion")),
    "resource.kubernetes.io/pciBusID",
    f"{NEURON}/neuronDriverVersion",
    f"{EFA}/pciAddress",
}


def hardware(name: str, interfaces: int | None = None) -> Hardware:
    record = INSTANCE_TYPES[name]
    most = record["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    return Hardware("ip-10-0-0-1.ec2.internal", name, record, most if interfaces is None else interfaces)


def has_devices(name: str) -> bool:
    """Whether it is known what its drivers publish: of some GPUs nobody has told yet."""
    found = hardware(name)
    if "GpuInfo" in found.record and find_devices(NVIDIA, found) is None:
        return False
    return any(find_devices(driver, found) for driver in (NVIDIA, NEURON, EFA))


WITH_DEVICES = [
    name for name, record in INSTANCE_TYPES.items() if read_type(record) is not None and has_devices(name)
]
#: Its GPUs have more memory than those of the other sizes, which EC2 describes alike: the least is predicted.
MORE_THAN_PREDICTED = "g5g.metal"


def predicted(name: str) -> DevicePlace:
    facts = read_type(INSTANCE_TYPES[name])
    assert facts is not None
    requirements = type_requirements(
        facts, region="us-east-1", zones=["us-east-1a"], capacity_types=["on-demand"], pods=110
    )
    return known_devices(InstanceType(name, requirements, capacity(facts, NodeShape("AL2023")), {}, ()))


def published(name: str) -> DevicePlace:
    """What a node of the type publishes, as it is learned for another one."""
    found = hardware(name)
    place = DevicePlace()
    for driver in (NVIDIA, NEURON, EFA):
        for one in resource_slices(driver, found.node, "uid", find_devices(driver, found) or []):
            read = decode_resource_slice(json.dumps(one).encode())
            place += pool_place([read], {read.name: read.devices}, Held())
    return typical(place)


def described(place: DevicePlace) -> list[Any]:
    """Devices by driver, what is said of each, and who is connected with whom; the order is of no account."""
    connections: dict[tuple[str, str], Counter[str]] = {}
    devices: Counter[Any] = Counter()
    for group in place.groups:
        shared = []
        for attribute in group.device.attributes:
            if "pcieRoot" in attribute.name or "devicegroup" in attribute.name:
                key = (attribute.name, str(attribute))
                connections.setdefault(key, Counter())[group.driver] += group.count
            elif attribute.name not in _OF_A_NODE:
                shared.append(str(attribute))
        devices[group.driver, tuple(sorted(shared)), group.device.capacity] += group.count
    members = Counter((name, tuple(sorted(found.items()))) for (name, _), found in connections.items())
    return [sorted(devices.items()), sorted(members.items())]


@pytest.mark.parametrize("name", sorted({*WITH_DEVICES} - {MORE_THAN_PREDICTED}))
def test_what_is_planned_before_there_is_a_node_is_what_its_drivers_publish(name: str) -> None:
    assert described(predicted(name)) == described(published(name))


def test_of_gpus_that_ec2_describes_alike_the_least_memory_is_predicted() -> None:
    name = MORE_THAN_PREDICTED
    (expected,), (found,) = predicted(name).groups[:1], published(name).groups
    assert (
        dict(expected.device.capacity)[f"{NVIDIA}/memory"] < dict(found.device.capacity)[f"{NVIDIA}/memory"]
    )


def test_gpus_have_the_attributes_that_nvidias_driver_gives_them() -> None:
    devices = find_devices(NVIDIA, hardware("p4d.24xlarge"))

    assert devices is not None
    assert [one["name"] for one in devices] == [f"gpu-{number}" for number in range(8)]
    attributes = devices[3]["attributes"]
    assert attributes["productName"] == {"string": "NVIDIA A100-SXM4-40GB"}
    assert attributes["resource.kubernetes.io/pcieRoot"] == {"string": "pci0000:20"}
    assert attributes["cudaComputeCapability"] == {"version": "8.0.0"}
    assert devices[3]["capacity"] == {"memory": {"value": "40320Mi"}}
    assert len({one["attributes"]["uuid"]["string"] for one in devices}) == 8


def test_connected_devices_have_the_names_that_awss_lookup_gives_them() -> None:
    """The interface 0000:10:19.0 of a trn1.32xlarge, as DRANET's demonstration shows it."""
    devices = find_devices(EFA, hardware("trn1.32xlarge")) or []

    (shown,) = [one for one in devices if one["name"] == "pci-0000-10-19-0"]
    assert shown["attributes"]["resource.aws.com/devicegroup1_id"] == {"string": "0000:10:19.0"}
    assert shown["attributes"]["resource.aws.com/devicegroup4_id"] == {"string": "178a9e264a26793e"}
    assert shown["attributes"]["resource.aws.com/devicegroup8_id"] == {"string": "aa86c05423d6e8cd"}
    assert shown["attributes"]["resource.aws.com/devicegroup16_id"] == {"string": "fb838249c99a6341"}
    chips = find_devices(NEURON, hardware("trn1.32xlarge")) or []
    grouped = Counter(one["attributes"]["resource.aws.com/devicegroup4_id"]["string"] for one in chips)
    assert sorted(grouped.values()) == [4, 4, 4, 4]
    assert "178a9e264a26793e" in grouped


def test_an_instance_has_as_many_efa_devices_as_it_was_launched_with() -> None:
    assert len(find_devices(EFA, hardware("p5.48xlarge", 4)) or []) == 4
    assert find_devices(EFA, hardware("p5.48xlarge", 0)) == []


@pytest.mark.parametrize("name", ["p4d.24xlarge", "trn1.32xlarge"])
def test_a_device_plugin_tells_of_devices_unless_a_driver_does(name: str) -> None:
    instance = Instance("i-1", name, "us-east-1a", "running", "n", "10.0.0.1", "", 0.0, "", efa_interfaces=2)
    accelerator = "nvidia.com/gpu" if name == "p4d.24xlarge" else "aws.amazon.com/neuron"

    def allocatable(drivers: tuple[str, ...]) -> dict[str, str]:
        node = registration(instance, INSTANCE_TYPES[name], Bootstrap("AL2023", "lab"), drivers=drivers)
        found: dict[str, str] = node["status"]["allocatable"]
        return found

    announced = allocatable(())
    assert announced["vpc.amazonaws.com/efa"] == "2"
    assert announced[accelerator] in ("8", "16")
    served = allocatable((NVIDIA, NEURON, EFA))
    assert set(announced) - set(served) == {accelerator, "vpc.amazonaws.com/efa"}


@pytest.mark.parametrize("driver", [NVIDIA, NEURON])
def test_a_driver_without_its_hardware_publishes_nothing(driver: str) -> None:
    assert find_devices(driver, hardware("m5.large")) is None


def test_slices_are_of_the_node_and_no_longer_than_the_api_takes() -> None:
    devices = [{"name": f"d-{number}"} for number in range(130)]

    slices = resource_slices(EFA, "n", "uid-of-n", devices)

    assert [len(one["spec"]["devices"]) for one in slices] == [128, 2]
    assert len({one["metadata"]["name"] for one in slices}) == 2
    for one in slices:
        assert one["spec"]["pool"] == {"name": "n", "generation": 1, "resourceSliceCount": 2}
        assert one["spec"]["nodeName"] == "n"
        (owner,) = one["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", "n", "uid-of-n")
