"""What DescribeInstanceTypes says of a type, the little that we use of it. Pure.

A record has some 3 KiB of JSON, and there are over 1300: only these facts are kept.
Next: `instance_type_math`, `instance_type_labels`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
ENCLAVES = "enclaves"
NESTED_VIRTUALIZATION = "nested-virtualization"
CLUSTER_PLACEMENT = "cluster-placement"
_NAME = re.compile(r"^(?P<category>[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]++)[^.]*\.")


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
    cpu_manufacturer: str = ""
    clock_mhz: int | None = None
    ebs_bandwidth_mbps: int | None = None
    """The most that EBS gives, where an instance is optimized for it without asking."""
    instance_storage_gb: int | None = None
    """All disks inside the host together, NVMe or not."""
    neuron_cores: int = 0
    efa_interfaces: int = 0
    network_cards: int = 1
    attachments: int | None = None
    """EBS volumes that can be attached, the root volume among them; None: not told.

    EC2 has taken off what one network interface, disks inside the host and GPUs take of shared places.
    """
    threads_per_core: int = 1
    cores: tuple[int, ...] = ()
    """Numbers of cores that can be asked for; empty: only its own number."""
    features: tuple[str, ...] = ()
    """`enclaves`, `nested-virtualization`, `cluster-placement`: what it can do that others cannot."""

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
    architecture = next(
        (_ARCHITECTURES[architecture] for architecture in supported if architecture in _ARCHITECTURES), None
    )
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
        cpu_manufacturer=str(record["ProcessorInfo"].get("Manufacturer", "")),
        clock_mhz=_clock(record["ProcessorInfo"]),
        ebs_bandwidth_mbps=_ebs_bandwidth(record.get("EbsInfo", {})),
        instance_storage_gb=_instance_storage(record.get("InstanceStorageInfo")),
        neuron_cores=_neuron_cores(record),
        efa_interfaces=int(network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)),
        network_cards=max(1, len(network.get("NetworkCards", ()))),
        attachments=record.get("EbsInfo", {}).get("MaximumEbsAttachments"),
        threads_per_core=int(record["VCpuInfo"].get("DefaultThreadsPerCore", 1)),
        cores=tuple(sorted(record["VCpuInfo"].get("ValidCores", ()))),
        features=_features(record),
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


def _clock(processor: Mapping[str, Any]) -> int | None:
    gigahertz = processor.get("SustainedClockSpeedInGhz")
    return round(float(gigahertz) * 1000) if gigahertz else None


def _ebs_bandwidth(info: Mapping[str, Any]) -> int | None:
    if info.get("EbsOptimizedSupport") != "default":
        return None
    most = info.get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps")
    return int(most) if most else None


def _instance_storage(storage: Mapping[str, Any] | None) -> int | None:
    return int(storage.get("TotalSizeInGB", 0)) or None if storage else None


def _neuron_cores(record: Mapping[str, Any]) -> int:
    """Cores of the first kind of device: there is never another."""
    for device in record.get("NeuronInfo", {}).get("NeuronDevices", ()):
        return int(device.get("Count", 0)) * int(device.get("CoreInfo", {}).get("Count", 0))
    return 0


def _features(record: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    if record.get("NitroEnclavesSupport") == "supported":
        found.append(ENCLAVES)
    if NESTED_VIRTUALIZATION in record["ProcessorInfo"].get("SupportedFeatures", ()):
        found.append(NESTED_VIRTUALIZATION)
    if "cluster" in record.get("PlacementGroupInfo", {}).get("SupportedStrategies", ()):
        found.append(CLUSTER_PLACEMENT)
    return tuple(found)


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
        Accelerator(
            str(accelerator.get("Name", "")),
            str(accelerator.get("Manufacturer", "")),
            int(accelerator.get("Count", 0)),
        )
        for accelerator in record.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    )
