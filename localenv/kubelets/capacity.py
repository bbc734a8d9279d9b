"""Capacity and allocatable of a node, from the record of its instance type.

Pure. Sources: amazon-eks-ami's bootstrap (kube-reserved: 11 MiB a pod + 255 MiB; CPU in steps), the VPC CNI's
ENI formula, the kubelet's default hard eviction (100 MiB of memory, 10 % of the disk). Fargate sizes are
EKS's table.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from localenv.kubelets.bootstrap import Bootstrap
from localenv.kubelets.quantities import Resources, parse_quantity, parse_resources

MIB = 2**20
GIB = 2**30
#: Share of an instance's memory that its guest never sees: hypervisor, firmware, kernel.
VM_MEMORY_OVERHEAD = Decimal("0.0725")
#: Root volume of the EKS images when nothing else is asked.
DEFAULT_DISK = Decimal(20 * GIB)
_GPU_RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}


def instance_store(record: Mapping[str, Any]) -> Decimal | None:
    """Return the bytes of the disks inside the host; None where it has none."""
    size = (record.get("InstanceStorageInfo") or {}).get("TotalSizeInGB")
    return Decimal(size) * 10**9 if size else None


def eni_limited_pods(record: Mapping[str, Any]) -> int:
    """Return E x (A - 1) + 2: addresses of the default card's interfaces, and two host-network pods."""
    network = record["NetworkInfo"]
    cards = {card["NetworkCardIndex"]: card for card in network.get("NetworkCards", [])}
    card = cards.get(network.get("DefaultNetworkCardIndex", 0))
    interfaces = card["MaximumNetworkInterfaces"] if card else network["MaximumNetworkInterfaces"]
    return int(interfaces * (network["Ipv4AddressesPerInterface"] - 1) + 2)


def capacity(record: Mapping[str, Any], bootstrap: Bootstrap, disk: Decimal = DEFAULT_DISK) -> Resources:
    """Return `status.capacity` of a node on this instance type.

    Args:
        record: one entry of DescribeInstanceTypes.
        bootstrap: how its kubelet was started.
        disk: bytes of the root volume.
    """
    size = Decimal(record["MemoryInfo"]["SizeInMiB"])
    cpus = int(record["VCpuInfo"]["DefaultVCpus"])
    pods = bootstrap.max_pods or eni_limited_pods(record)
    if bootstrap.pods_per_core:
        pods = min(pods, bootstrap.pods_per_core * cpus)
    result: Resources = {
        "cpu": Decimal(cpus),
        "memory": (size - math.ceil(size * VM_MEMORY_OVERHEAD)) * MIB,
        "ephemeral-storage": disk,
        "pods": Decimal(pods),
        "hugepages-1Gi": Decimal(0),
        "hugepages-2Mi": Decimal(bootstrap.huge_pages * 2 * MIB),
    }
    for gpu in record.get("GpuInfo", {}).get("Gpus", []):
        resource = _GPU_RESOURCES.get(gpu.get("Manufacturer", ""))
        if resource:
            result[resource] = result.get(resource, Decimal(0)) + gpu["Count"]
    neurons = record.get("NeuronInfo", {}).get("NeuronDevices") or record.get(
        "InferenceAcceleratorInfo", {}
    ).get("Accelerators", [])
    if neurons:
        result["aws.amazon.com/neuron"] = Decimal(sum(device.get("Count", 0) for device in neurons))
    return result


def reserved_cpu(cpus: int) -> Decimal:
    """Return the CPU kept for kubelet and container runtime: 6, 1, 0.5 and 0.25 % of ever more cores."""
    milli = cpus * 1000
    steps = (
        int(min(milli, 1000) * 0.06),
        int(max(0, min(milli - 1000, 1000)) * 0.01),
        int(max(0, min(milli - 2000, 2000)) * 0.005),
        int(max(0, milli - 4000) * 0.0025),
    )
    return Decimal(sum(steps)) / 1000


def allocatable(record: Mapping[str, Any], bootstrap: Bootstrap, whole: Resources) -> Resources:
    """Return `status.allocatable`: capacity less what is reserved or evicted for, and huge pages."""
    cpus = int(whole["cpu"])
    pods = eni_limited_pods(record) if bootstrap.family in ("AL2", "AL2023") else int(whole["pods"])
    kube_reserved: Resources = {
        "cpu": reserved_cpu(cpus),
        "memory": Decimal((11 * pods + 255) * MIB),
        "ephemeral-storage": Decimal(GIB),
    }
    kube_reserved.update(parse_resources(bootstrap.kube_reserved))
    system_reserved = parse_resources(bootstrap.system_reserved)
    eviction = {"memory.available": "100Mi", "nodefs.available": "10%", **bootstrap.eviction_hard}
    thresholds = {
        "memory": _threshold(eviction["memory.available"], whole["memory"]),
        "ephemeral-storage": _threshold(eviction["nodefs.available"], whole["ephemeral-storage"]),
    }
    result = dict(whole)
    huge: Resources = {"memory": Decimal(bootstrap.huge_pages * 2 * MIB)}
    for overhead in (kube_reserved, system_reserved, thresholds, huge):
        for resource, amount in overhead.items():
            if resource in result:
                result[resource] = max(Decimal(0), result[resource] - amount)
    return result


def _threshold(text: str, whole: Decimal) -> Decimal:
    if text.endswith("%"):
        share = Decimal(text[:-1])
        return Decimal(0) if share >= 100 else Decimal(math.ceil(whole / 100 * share))
    return parse_quantity(text)


#: vCPU -> memory sizes in GiB that Fargate sells with it.
_FARGATE_SIZES: tuple[tuple[Decimal, tuple[Decimal, ...]], ...] = (
    (Decimal("0.25"), (Decimal("0.5"), Decimal(1), Decimal(2))),
    (Decimal("0.5"), tuple(Decimal(size) for size in range(1, 5))),
    (Decimal(1), tuple(Decimal(size) for size in range(2, 9))),
    (Decimal(2), tuple(Decimal(size) for size in range(4, 17))),
    (Decimal(4), tuple(Decimal(size) for size in range(8, 31))),
    (Decimal(8), tuple(Decimal(size) for size in range(16, 61, 4))),
    (Decimal(16), tuple(Decimal(size) for size in range(32, 121, 8))),
)


def fargate_size(requests: Resources) -> tuple[Decimal, Decimal]:
    """Return vCPU and bytes of the smallest Fargate size that holds a pod and the 256 MB that EKS adds.

    Raises:
        ValueError: if no size is large enough.
    """
    cpu = requests.get("cpu", Decimal(0))
    memory = requests.get("memory", Decimal(0)) + 256 * MIB
    for vcpu, sizes in _FARGATE_SIZES:
        if cpu > vcpu:
            continue
        for size in sizes:
            if memory <= size * GIB:
                return vcpu, size * GIB
    raise ValueError(
        f"no Fargate size holds cpu {cpu} and memory {int(memory)} bytes; hint: at most 16 vCPU, 120 GiB"
    )
