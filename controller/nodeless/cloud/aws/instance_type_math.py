"""How much of a type's hardware pods get: capacity, overhead, number of pods. Pure.

The formulas are Karpenter's v0.27 (its published table of instance types follows from
them) and mirror what EKS's images compute at boot. Amounts are those of `model.resources`:
millicores, bytes, pieces.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nodeless.cloud.aws.branch_interfaces import POD_ENI, branch_interfaces
from nodeless.cloud.aws.type_facts import TypeFacts
from nodeless.launch.templates import EPHEMERAL_DEVICE
from nodeless.model.pools import BlockDevice, Kubelet
from nodeless.model.quantity import parse_decimal, parse_units
from nodeless.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, maximum, parse_resources, total

MIB = 2**20
GIB = 2**30
_DEFAULT_EPHEMERAL_STORAGE = 20 * GIB
_PODS_WITHOUT_ENI_LIMIT = 110
_GPU_RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}
NEURON = "aws.amazon.com/neuron"
_SIGNALS = {"memory.available": MEMORY, "nodefs.available": EPHEMERAL_STORAGE}


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What, besides the type, decides a node's resources."""

    ami_family: str
    kubelet: Kubelet = Kubelet()
    block_devices: tuple[BlockDevice, ...] = ()
    vm_memory_overhead_percent: float = 0.075
    eni_limited_pod_density: bool = True
    pod_eni: bool = False
    """Whether pods may have network interfaces, and so security groups, of their own."""

    @property
    def bottlerocket(self) -> bool:
        """Bottlerocket reserves memory by its real number of pods, and ignores podsPerCore, evictionSoft."""
        return self.ami_family == "Bottlerocket"


def eni_limited_pods(facts: TypeFacts) -> int:
    """Pods with an address of their own: the VPC CNI keeps one address of each interface, and adds two pods.

    The two are those on the host's network that every node runs (aws-node, kube-proxy).
    """
    return facts.interfaces * (facts.addresses_per_interface - 1) + 2


def pods(facts: TypeFacts, shape: NodeShape) -> int:
    """The number of pods that the kubelet will take."""
    if shape.kubelet.max_pods is not None:
        count = shape.kubelet.max_pods
    elif not shape.eni_limited_pod_density:
        count = _PODS_WITHOUT_ENI_LIMIT
    else:
        count = eni_limited_pods(facts)
    per_core = shape.kubelet.pods_per_core or 0
    if per_core > 0 and not shape.bottlerocket:
        count = min(per_core * facts.cpus, count)
    return count


def capacity(facts: TypeFacts, shape: NodeShape) -> dict[str, int]:
    """What the node reports as its capacity; resources that it lacks are left out."""
    amounts = {
        CPU: facts.cpus * 1000,
        MEMORY: memory(facts.memory_mib, shape.vm_memory_overhead_percent),
        EPHEMERAL_STORAGE: ephemeral_storage(shape),
        PODS: pods(facts, shape),
        POD_ENI: branch_interfaces(facts.name) if shape.pod_eni else 0,
        NEURON: sum(each.count for each in facts.accelerators if each.manufacturer == "AWS"),
    }
    for gpu in facts.gpus:
        resource = _GPU_RESOURCES.get(gpu.manufacturer)
        if resource is not None:
            amounts[resource] = amounts.get(resource, 0) + gpu.count
    return {name: amount for name, amount in amounts.items() if amount}


def memory(size_mib: int, overhead_percent: float) -> int:
    """Bytes that the operating system sees: the hypervisor keeps a share, in whole MiB.

    In floating point on bytes, as the published values were computed.
    """
    kept = math.ceil(size_mib * MIB * overhead_percent / 1024 / 1024)
    return (size_mib - kept) * MIB


def ephemeral_storage(shape: NodeShape) -> int:
    """Size in bytes of the disk that holds pods' files."""
    devices = shape.block_devices
    if shape.ami_family == "Custom":
        chosen = devices[-1:] if devices else ()
    else:
        device = EPHEMERAL_DEVICE.get(shape.ami_family)
        chosen = tuple(each for each in devices if each.device_name == device)
    size = chosen[0].volume_size if chosen else None
    return size or _DEFAULT_EPHEMERAL_STORAGE


def overhead(facts: TypeFacts, shape: NodeShape) -> dict[str, int]:
    """What kubelet, system and eviction threshold keep of the capacity."""
    return total(
        (
            kube_reserved(facts, shape),
            parse_resources(dict(shape.kubelet.system_reserved)),
            eviction_threshold(facts, shape),
        )
    )


def kube_reserved(facts: TypeFacts, shape: NodeShape) -> dict[str, int]:
    """The reservation that EKS's images compute, each resource replaced where the pool gives one."""
    counted = pods(facts, shape) if shape.bottlerocket else eni_limited_pods(facts)
    defaults = {
        CPU: reserved_millicores(facts.cpus * 1000),
        MEMORY: (11 * counted + 255) * MIB,
        EPHEMERAL_STORAGE: GIB,
    }
    return defaults | parse_resources(dict(shape.kubelet.kube_reserved))


def reserved_millicores(millicores: int) -> int:
    """6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest, each cut off."""
    steps = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, None, 25))
    reserved = 0
    for start, end, per_myriad in steps:
        width = max(0, (millicores if end is None else min(millicores, end)) - start)
        reserved += width * per_myriad // 10_000
    return reserved


def eviction_threshold(facts: TypeFacts, shape: NodeShape) -> dict[str, int]:
    """What must stay free: 100 MiB of memory and a tenth of the disk, or what the pool says."""
    sizes = {
        MEMORY: memory(facts.memory_mib, shape.vm_memory_overhead_percent),
        EPHEMERAL_STORAGE: ephemeral_storage(shape),
    }
    defaults = {MEMORY: 100 * MIB, EPHEMERAL_STORAGE: math.ceil(sizes[EPHEMERAL_STORAGE] / 100 * 10)}
    given = _thresholds(shape.kubelet.eviction_hard, sizes)
    if not shape.bottlerocket:
        given = maximum(given, _thresholds(shape.kubelet.eviction_soft, sizes))
    return defaults | given


def _thresholds(signals: Iterable[tuple[str, str]], sizes: dict[str, int]) -> dict[str, int]:
    return {
        _SIGNALS[signal]: _threshold(text, sizes[_SIGNALS[signal]])
        for signal, text in signals
        if signal in _SIGNALS
    }


def _threshold(text: str, size: int) -> int:
    if not text.endswith("%"):
        return parse_units(text)
    percent = float(parse_decimal(text.removesuffix("%")))
    # kubelet takes 100 % as "no threshold"
    return 0 if percent == 100 else math.ceil(size / 100 * percent)
