"""What DescribeInstanceTypes says of a type, the little that we use of it. Pure.

A record has some 3 KiB of JSON, and there are over 1300: only these facts are kept.
Next: `instance_type_math`, `instance_type_labels`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_NAME = re.compile(r"^(?P<category>[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]+).*\.")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """GPUs or accelerators of one kind; `memory_mib` of each one, 0 when not known."""

    name: str
    manufacturer: str
    count: int
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """One instance type. `interfaces` counts those of the default network card, which is all the CNI uses."""

    name: str
    architecture: str
    cpus: int
    memory_mib: int
    interfaces: int
    addresses_per_interface: int
    bandwidth_mbps: int | None
    hypervisor: str
    encryption_in_transit: bool
    local_nvme_gb: int | None
    gpus: tuple[Accelerator, ...]
    accelerators: tuple[Accelerator, ...]
    usage_classes: tuple[str, ...]

    @property
    def category(self) -> str | None:
        """`m` of `m5.large`, `u` of `u-6tb1.112xlarge`."""
        match = _NAME.match(self.name)
        return match["category"] if match else None

    @property
    def generation(self) -> str | None:
        """`5` of `m5.large`."""
        match = _NAME.match(self.name)
        return match["generation"] if match else None


def read_type(record: Mapping[str, Any]) -> TypeFacts | None:
    """The facts of a record; None for an architecture that Kubernetes' images do not run on."""
    supported = record.get("ProcessorInfo", {}).get("SupportedArchitectures", ())
    architecture = next((_ARCHITECTURES[each] for each in supported if each in _ARCHITECTURES), None)
    if architecture is None:
        return None
    network = record.get("NetworkInfo", {})
    return TypeFacts(
        name=record["InstanceType"],
        architecture=architecture,
        cpus=int(record["VCpuInfo"]["DefaultVCpus"]),
        memory_mib=int(record["MemoryInfo"]["SizeInMiB"]),
        interfaces=_interfaces(network),
        addresses_per_interface=int(network.get("Ipv4AddressesPerInterface", 0)),
        bandwidth_mbps=_bandwidth(network),
        hypervisor=str(record.get("Hypervisor", "")),
        encryption_in_transit=bool(network.get("EncryptionInTransitSupported", False)),
        local_nvme_gb=_local_nvme(record.get("InstanceStorageInfo")),
        gpus=_gpus(record),
        accelerators=_accelerators(record),
        usage_classes=tuple(sorted(set(record.get("SupportedUsageClasses", ())))),
    )


def _interfaces(network: Mapping[str, Any]) -> int:
    index = network.get("DefaultNetworkCardIndex", 0)
    for card in network.get("NetworkCards", ()):
        if card.get("NetworkCardIndex") == index:
            return int(card.get("MaximumNetworkInterfaces", 0))
    return int(network.get("MaximumNetworkInterfaces", 0))


def _bandwidth(network: Mapping[str, Any]) -> int | None:
    known = [
        float(card["BaselineBandwidthInGbps"])
        for card in network.get("NetworkCards", ())
        if card.get("BaselineBandwidthInGbps")
    ]
    return round(sum(known) * 1000) if known else None


def _local_nvme(storage: Mapping[str, Any] | None) -> int | None:
    if not storage or storage.get("NvmeSupport", "unsupported") == "unsupported":
        return None
    return int(storage.get("TotalSizeInGB", 0))


def _gpus(record: Mapping[str, Any]) -> tuple[Accelerator, ...]:
    return tuple(
        Accelerator(
            str(gpu.get("Name", "")),
            str(gpu.get("Manufacturer", "")),
            int(gpu.get("Count", 0)),
            int(gpu.get("MemoryInfo", {}).get("SizeInMiB", 0)),
        )
        for gpu in record.get("GpuInfo", {}).get("Gpus", ())
    )


def _accelerators(record: Mapping[str, Any]) -> tuple[Accelerator, ...]:
    """Neuron devices; the older member of the record is read where the newer one is missing."""
    devices = record.get("NeuronInfo", {}).get("NeuronDevices", ())
    if devices:
        return tuple(
            Accelerator(str(device.get("Name", "")), "AWS", int(device.get("Count", 0))) for device in devices
        )
    return tuple(
        Accelerator(str(each.get("Name", "")), str(each.get("Manufacturer", "")), int(each.get("Count", 0)))
        for each in record.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    )
