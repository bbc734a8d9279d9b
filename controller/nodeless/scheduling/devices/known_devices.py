"""Devices that a node of an EC2 type publishes before any node has: by driver, with the sources.

`gpu.nvidia.com`: NVIDIA's driver (https://github.com/NVIDIA/k8s-dra-driver-gpu), one device for each GPU with
the attributes `type`, `productName`, `architecture`, `cudaComputeCapability` and the capacity `memory`.
Product names and memory are what the driver has published on these types as Karpenter has recorded it
(https://github.com/aws/karpenter-provider-aws v1.15.0, pkg/providers/drametadata), which is less than cards
are sold with; where records differ, the smaller figure. What is not recorded there is what `nvidia-smi` shows
(November 2026). Compute capabilities are NVIDIA's (https://developer.nvidia.com/cuda-gpus).

`neuron.aws.com`: AWS' driver
(https://docs.aws.amazon.com/eks/latest/userguide/device-management-neuron.html), one device for each chip
of Inferentia2 and Trainium, with the attribute `instanceType`. On types with EFA it says which chips are
connected, in groups of 4, 8 and 16 by their numbers, and which interface is next to each
(`resource.aws.com/devicegroupN_id`; https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/neuron-dra.html
and https://github.com/aws-neuron/connected-device-maps-over-efa-for-neuron, which both drivers read): 16
chips with 8 interfaces on trn1.32xlarge, and with 16 on trn1n.32xlarge, trn2.48xlarge and trn2u.48xlarge. On
other types it says nothing of the kind, and nowhere which PCIe root a chip is on.

`dra.net`: AWS' driver for EFA
(https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html; DRANET,
https://github.com/kubernetes-sigs/dranet/tree/main/examples/aws_eks_examples), one device for each EFA
interface that the node is launched with, with `pciDevice`, `pciVendor` and `rdma`. Which GPUs an interface
shares a PCIe root with is from Karpenter's record (above), and of trn1.32xlarge and trn1n.32xlarge, where
each bus is a root, from the interfaces' addresses in AWS' lookup.

Attributes that only a running node knows (driver versions, identifiers, buses) are not here; those that say
what devices are connected by have numbers in place of their values. As soon as a node of a type publishes
devices of a driver, these count for the type instead.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from nodeless.model.devices import (
    EFA_DRIVER,
    Amounts,
    Device,
    DeviceAttribute,
    DeviceClass,
    DriverDevices,
    ResourceSlice,
)
from nodeless.model.efa import EFA
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import (
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_MEMORY,
    INSTANCE_GPU_NAME,
)
from nodeless.scheduling.devices.groups import (
    DEVICE_GROUPS,
    PCIE_ROOT,
    DeviceGroup,
    DevicePlace,
    Held,
    connection,
    pool_place,
)

NVIDIA, NEURON = "gpu.nvidia.com", "neuron.aws.com"
_EFA_DEVICE = "Elastic Fabric Adapter (EFA)"
#: The resource that a device plugin of the same devices announces: it and the driver exclude each other.
PLUGIN_RESOURCES: Mapping[str, str] = MappingProxyType(
    {NVIDIA: "nvidia.com/gpu", NEURON: "aws.amazon.com/neuron", EFA_DRIVER: EFA}
)
#: Classes that the drivers' charts install.
KNOWN_CLASSES = (
    DeviceClass(
        NVIDIA,
        (f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type == 'gpu'",),
        PLUGIN_RESOURCES[NVIDIA],
    ),
    DeviceClass(NEURON, (f"device.driver == '{NEURON}'",)),
    DeviceClass(
        "efa.networking.k8s.aws",
        (
            f"device.driver == '{EFA_DRIVER}' && "
            f"device.attributes['{EFA_DRIVER}'].pciDevice == '{_EFA_DEVICE}'",
        ),
    ),
)
_SIZES = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge")


class _Roots(NamedTuple):
    """Of each device of a type one digit for its PCIe root; more than there are where sizes are alike."""

    gpus: str
    interfaces: str


_ONE_ROOT, _INTERFACES_APART = _Roots("00000000", "0"), _Roots("01234567", "8")
_PCIE_ROOTS: Mapping[str, _Roots] = MappingProxyType(
    {
        **{f"{family}.{size}": _ONE_ROOT for family in ("g4dn", "g5") for size in _SIZES},
        **{
            f"g5g.{size}": _ONE_ROOT
            for size in ("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge", "metal")
        },
        **dict.fromkeys(("g5.24xlarge", "g5.48xlarge", "p3dn.24xlarge", "p5.4xlarge"), _ONE_ROOT),
        **{f"{family}.{size}": _INTERFACES_APART for family in ("g6", "g6e") for size in _SIZES},
        **{f"g6f.{size}": _INTERFACES_APART for size in ("large", "xlarge", "2xlarge", "4xlarge")},
        **dict.fromkeys(("g6.24xlarge", "g6.48xlarge"), _INTERFACES_APART),
        **dict.fromkeys(("gr6.4xlarge", "gr6.8xlarge", "gr6f.4xlarge"), _INTERFACES_APART),
        "g4dn.metal": _Roots("00112233", "4"),
        "g6e.24xlarge": _Roots("0123", "44"),
        "g6e.48xlarge": _Roots("01234567", "8899"),
        "p4d.24xlarge": _Roots("00112233", "0123"),
        "p4de.24xlarge": _Roots("00112233", "0123"),
        "p5.48xlarge": _Roots("01234567", "00001111222233334444555566667777"),
        "p5e.48xlarge": _Roots("01234567", "22223333000011116666777744445555"),
        "p5en.48xlarge": _Roots("00112233", "0000111122223333"),
        "p6-b200.48xlarge": _Roots("00112233", "00112233"),
        "p6-b300.48xlarge": _Roots("01234567", "0011223344556677"),
        "trn1.32xlarge": _Roots("", "01232301"),
        "trn1n.32xlarge": _Roots("", "0011223322330011"),
    }
)
_UNKNOWN_ROOTS = _Roots("", "")
#: Chips next to one EFA interface, of types whose connected groups are known.
_CHIPS_OF_INTERFACE = MappingProxyType(
    {"trn1.32xlarge": 2, "trn1n.32xlarge": 1, "trn2.48xlarge": 1, "trn2u.48xlarge": 1}
)
#: EC2's names of the chips that AWS' driver serves.
_NEURON_CHIPS = frozenset(("inferentia2", "trainium", "trainium2"))
_MI = 2**20
#: By EC2's name and MiB of a GPU: product, architecture, compute capability, MiB that the driver finds.
_GPUS: Mapping[tuple[str, str], tuple[str, str, str, int]] = MappingProxyType(
    {
        ("v100", "32768"): ("Tesla V100-SXM2-32GB", "Volta", "7.0.0", 32768),
        ("t4", "16384"): ("Tesla T4", "Turing", "7.5.0", 15360),
        ("t4g", "16384"): ("NVIDIA T4G", "Turing", "7.5.0", 15360),
        ("a10g", "22888"): ("NVIDIA A10G", "Ampere", "8.6.0", 23028),
        ("a100", "40960"): ("NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", 40320),
        ("a100", "81920"): ("NVIDIA A100-SXM4-80GB", "Ampere", "8.0.0", 81920),
        ("l4", "2861"): ("NVIDIA L4-3Q", "Ada Lovelace", "8.9.0", 3072),
        ("l4", "5722"): ("NVIDIA L4-6Q", "Ada Lovelace", "8.9.0", 6144),
        ("l4", "11444"): ("NVIDIA L4-12Q", "Ada Lovelace", "8.9.0", 12288),
        ("l4", "22888"): ("NVIDIA L4", "Ada Lovelace", "8.9.0", 23034),
        ("l40s", "45776"): ("NVIDIA L40S", "Ada Lovelace", "8.9.0", 46068),
        ("h100", "81920"): ("NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", 81152),
        ("h200", "144384"): ("NVIDIA H200", "Hopper", "9.0.0", 143360),
        ("b200", "183359"): ("NVIDIA B200", "Blackwell", "10.0.0", 182784),
        ("b300", "275040"): ("NVIDIA B300 SXM6 AC", "Blackwell", "10.3.0", 274432),
        ("rtx-pro-server-6000", "98304"): (
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "Blackwell",
            "12.0.0",
            97887,
        ),
    }
)


def with_said_devices(place: DevicePlace, said: Iterable[DriverDevices]) -> DevicePlace:
    """A place with the devices that NodeOverlays say of some drivers, instead of those of these drivers."""
    said = list(said)
    place = place.of(set(place.drivers) - {one.driver for one in said})
    for one in said:
        made = ResourceSlice("", one.driver, "", devices=one.devices, counter_sets=one.counter_sets)
        place += pool_place([made], {"": one.devices}, Held())
    return place


@dataclass(frozen=True, slots=True)
class _Hardware:
    """What a type has by EC2: all that is known of its devices follows from that."""

    name: str
    """Empty where it tells nothing."""
    gpu: str
    gpu_memory: str
    gpus: int
    accelerator: str
    chips: int
    interfaces: int


def known_devices(instance_type: InstanceType) -> DevicePlace:
    """What a node of the type will publish as far as it is known; nothing for types of other devices."""

    def label(key: str) -> str:
        requirement = instance_type.requirements.get(key)
        return "" if requirement is None or requirement.complement else next(iter(requirement.values), "")

    accelerator = label(INSTANCE_ACCELERATOR_NAME)
    told = instance_type.name in {*_PCIE_ROOTS, *_CHIPS_OF_INTERFACE} or accelerator in _NEURON_CHIPS
    return _devices_of(
        _Hardware(
            instance_type.name if told else "",
            label(INSTANCE_GPU_NAME),
            label(INSTANCE_GPU_MEMORY),
            int(label(INSTANCE_GPU_COUNT) or 0),
            accelerator,
            int(label(INSTANCE_ACCELERATOR_COUNT) or 0),
            instance_type.capacity.get(EFA, 0),
        )
    )


@lru_cache(maxsize=2_000)
def _devices_of(hardware: _Hardware) -> DevicePlace:
    return DevicePlace(
        tuple(
            DeviceGroup(driver, Device("", tuple(sorted(attributes, key=_name)), capacity), 1, 1)
            for driver, attributes, capacity in (
                *_gpus(hardware),
                *_chips(hardware),
                *_interfaces(hardware),
            )
        )
    )


_Known = Iterator[tuple[str, list[DeviceAttribute], Amounts]]
"""(driver, attributes, capacity) of each device."""


def _name(attribute: DeviceAttribute) -> str:
    return attribute.name


def _gpus(hardware: _Hardware) -> _Known:
    gpu = _GPUS.get((hardware.gpu, hardware.gpu_memory))
    if gpu is None:
        return
    product, architecture, capability, memory = gpu
    attributes = [
        DeviceAttribute(f"{NVIDIA}/architecture", string=architecture),
        DeviceAttribute(f"{NVIDIA}/cudaComputeCapability", version=capability),
        DeviceAttribute(f"{NVIDIA}/productName", string=product),
        DeviceAttribute(f"{NVIDIA}/type", string="gpu"),
    ]
    # Of a part of a GPU EC2 says that there are none; its driver finds one.
    for number in range(max(hardware.gpus, 1)):
        root = _root(_roots_of(hardware.name).gpus, number)
        yield NVIDIA, [*attributes, *root], ((f"{NVIDIA}/memory", memory * _MI * 1000),)


def _chips(hardware: _Hardware) -> _Known:
    if hardware.accelerator not in _NEURON_CHIPS:
        return
    own = DeviceAttribute(f"{NEURON}/instanceType", string=hardware.name)
    for number in range(hardware.chips):
        yield NEURON, [own, *_connected(hardware.name, number)], ()


def _interfaces(hardware: _Hardware) -> _Known:
    attributes = [
        DeviceAttribute(f"{EFA_DRIVER}/pciDevice", string=_EFA_DEVICE),
        DeviceAttribute(f"{EFA_DRIVER}/pciVendor", string="Amazon.com, Inc."),
        DeviceAttribute(f"{EFA_DRIVER}/rdma", boolean=True),
    ]
    for number in range(hardware.interfaces):
        chip = number * _CHIPS_OF_INTERFACE.get(hardware.name, 1)
        root = _root(_roots_of(hardware.name).interfaces, number)
        yield EFA_DRIVER, [*attributes, *root, *_connected(hardware.name, chip)], ()


def _roots_of(name: str) -> _Roots:
    return _PCIE_ROOTS.get(name, _UNKNOWN_ROOTS)


def _root(roots: str, number: int) -> list[DeviceAttribute]:
    """The PCIe root of one device of those of a type, where it is known."""
    return [connection(PCIE_ROOT, int(roots[number]))] if number < len(roots) else []


def _connected(name: str, chip: int) -> list[DeviceAttribute]:
    """The groups of connected devices to which a chip, or the interface next to it, belongs."""
    chips = _CHIPS_OF_INTERFACE.get(name)
    if chips is None:
        return []
    sizes = (chips, 4, 8, 16)
    return [connection(group, chip // size) for group, size in zip(DEVICE_GROUPS, sizes, strict=True)]
