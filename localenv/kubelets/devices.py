"""The devices that DRA drivers find on an instance, as the ResourceSlices that they publish. Pure.

What is on an instance is EC2's word (DescribeInstanceTypes, the interfaces of the instance) and
`devices.json`: what the drivers themselves have published on each type.

* `gpus` and `interfaces`: product, memory and PCIe root of each device, measured with both drivers
  on running instances (github.com/aws/karpenter-provider-aws v1.15.0, `pkg/providers/drametadata`).
* `connectedChips`: of each Neuron chip, by its number, the PCI address of the EFA interface that belongs
  to it (github.com/aws-neuron/connected-device-maps-over-efa-for-neuron, which both of AWS' drivers read).
  The groups' names are made as there: the start of a digest of the interfaces' addresses.

Nothing of it is read from the controller, which predicts the same from other sources: where it is wrong,
kube-scheduler refuses what it planned. Identifiers, bus addresses and versions of drivers are made up. Of a
type that is not measured, GPUs are not published: nobody knows as what.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

NVIDIA, NEURON, EFA = "gpu.nvidia.com", "neuron.aws.com", "dra.net"
#: What a device plugin announces of the devices that a driver serves: never both on one node.
PLUGIN_RESOURCES = {
    NVIDIA: "nvidia.com/gpu",
    NEURON: "aws.amazon.com/neuron",
    EFA: "vpc.amazonaws.com/efa",
}
#: DeviceClasses that the drivers' charts bring.
CLASSES = {NVIDIA: "gpu.nvidia.com", NEURON: "neuron.aws.com", EFA: "efa.networking.k8s.aws"}

_FACTS = json.loads(files("localenv.kubelets").joinpath("devices.json").read_text())
_INTERFACES: Mapping[str, Sequence[str]] = _FACTS["interfaces"]
_CONNECTED: Mapping[str, Sequence[str]] = _FACTS["connectedChips"]
#: Chips that AWS' driver serves, by EC2's names.
_CHIPS = frozenset(("Inferentia2", "Trainium", "Trainium2"))
_CONNECTED_SIZES = (4, 8, 16)
#: Types on which a PCI bus is a root of its own (DRANET's demonstration on trn1.32xlarge).
_BUS_IS_ROOT = frozenset(("trn1.32xlarge", "trn1n.32xlarge"))
#: The most devices of one slice (the API's `ResourceSliceMaxDevices`).
_MOST_DEVICES = 128

Device = dict[str, Any]
"""One entry of a slice's `devices`."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What drivers find on one instance.

    Attributes:
        node: name of its node; identifiers are made of it.
        instance_type: EC2's name.
        record: its entry of DescribeInstanceTypes.
        interfaces: EFA interfaces with which it was launched.
    """

    node: str
    instance_type: str
    record: Mapping[str, Any]
    interfaces: int = 0


def find_devices(driver: str, hardware: Hardware) -> list[Device] | None:
    """What a driver publishes there; None: it finds nothing that it serves, and publishes no slice.

    DRANET publishes a slice without devices where there is no interface of its kind; the others do not
    come up without theirs.
    """
    if driver == NVIDIA:
        return _gpus(hardware) or None
    if driver == NEURON:
        return _chips(hardware) or None
    return _efa_interfaces(hardware)


def resource_slices(driver: str, node: str, uid: str, devices: Sequence[Device]) -> list[dict[str, Any]]:
    """The slices of a node's pool, which is named as the node and goes with it."""
    parts = [devices[at : at + _MOST_DEVICES] for at in range(0, len(devices), _MOST_DEVICES)] or [[]]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{driver}-{number}", "ownerReferences": [owner]},
            "spec": {
                "driver": driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": len(parts)},
                "devices": list(part),
            },
        }
        for number, part in enumerate(parts)
    ]


def _gpus(hardware: Hardware) -> list[Device]:
    for product in _FACTS["gpus"]:
        roots = product["rootsByType"].get(hardware.instance_type)
        if roots is not None:
            return [_gpu(hardware, product, number, root) for number, root in enumerate(roots)]
    return []


def _gpu(hardware: Hardware, product: Mapping[str, Any], number: int, root: str) -> Device:
    return {
        "name": f"gpu-{number}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{uuid5(NAMESPACE_DNS, f'{hardware.node}/{number}')}"},
            "productName": {"string": product["productName"]},
            "brand": {"string": product["brand"]},
            "architecture": {"string": product["architecture"]},
            "cudaComputeCapability": {"version": product["cudaComputeCapability"]},
            "driverVersion": {"version": "580.126.9"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "resource.kubernetes.io/pciBusID": {"string": f"{root}:{16 + number:02x}.0"},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci{root}"},
        },
        "capacity": {"memory": {"value": product["memory"]}},
    }


def _chips(hardware: Hardware) -> list[Device]:
    chips = (hardware.record.get("NeuronInfo") or {}).get("NeuronDevices") or ()
    count = sum(chip["Count"] for chip in chips if chip.get("Name") in _CHIPS)
    own = {
        "instanceType": {"string": hardware.instance_type},
        "neuronDriverVersion": {"string": "2.25.4.0"},
    }
    return [
        {
            "name": f"neurondevice{number}",
            "attributes": {**own, **_groups(hardware.instance_type, number)},
        }
        for number in range(count)
    ]


def _efa_interfaces(hardware: Hardware) -> list[Device]:
    chips = _CONNECTED.get(hardware.instance_type)
    if chips is not None:
        addresses = sorted(set(chips))[: hardware.interfaces]
        return [
            _efa_interface(
                address,
                address[:7] if hardware.instance_type in _BUS_IS_ROOT else None,
                _groups(hardware.instance_type, chips.index(address)),
            )
            for address in addresses
        ]
    roots = _INTERFACES.get(hardware.instance_type, ())
    return [
        _efa_interface(f"{roots[at]}:{at:02x}.0", roots[at])
        if at < len(roots)
        else _efa_interface(f"0000:00:{at:02x}.0", None)
        for at in range(hardware.interfaces)
    ]


def _efa_interface(address: str, root: str | None, groups: Mapping[str, Any] | None = None) -> Device:
    rooted = {} if root is None else {"resource.kubernetes.io/pcieRoot": {"string": f"pci{root}"}}
    return {
        "name": f"pci-{address.replace(':', '-').replace('.', '-')}",
        "attributes": {
            "dra.net/pciAddress": {"string": address},
            "dra.net/pciDevice": {"string": "Elastic Fabric Adapter (EFA)"},
            "dra.net/pciVendor": {"string": "Amazon.com, Inc."},
            "dra.net/rdma": {"bool": True},
            **rooted,
            **(groups or {}),
        },
    }


def _groups(instance_type: str, chip: int) -> dict[str, Any]:
    """The groups of connected devices to which a chip, and the interface that belongs to it, are part."""
    addresses = _CONNECTED.get(instance_type)
    if addresses is None:
        return {}
    named = {"resource.aws.com/devicegroup1_id": addresses[chip]}
    for size in _CONNECTED_SIZES:
        first = chip // size * size
        members = ",".join(sorted(set(addresses[first : first + size])))
        named[f"resource.aws.com/devicegroup{size}_id"] = sha256(members.encode()).hexdigest()[:16]
    return {name: {"string": value} for name, value in named.items()}
