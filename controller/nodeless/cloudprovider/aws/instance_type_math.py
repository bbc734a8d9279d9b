"""How much of a type's hardware pods get: capacity, overhead, number of pods. Pure.

The formulas are Karpenter's v0.27 (its published table of instance types follows from
them) and mirror what EKS's images compute at boot. Amounts are those of `model.resources`:
millicores, bytes, pieces.
"""

import math
from collections.abc import Iterable

from nodeless.cloudprovider.aws.branch_interfaces import POD_ENI, branch_interfaces
from nodeless.cloudprovider.aws.instance_type_compatibility import vcpus
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.type_facts import TypeFacts
from nodeless.launch.families import GIB
from nodeless.model.efa import EFA
from nodeless.model.quantity import parse_decimal, parse_units
from nodeless.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, maximum, parse_resources, total

MIB = 2**20
_DEFAULT_EPHEMERAL_STORAGE = 20 * GIB
_PODS_WITHOUT_ENI_LIMIT = 110
_GPU_RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"
#: Windows only: its CNI gives addresses as a resource.
PRIVATE_IPV4 = "vpc.amazonaws.com/PrivateIPv4Address"
#: Addresses of a /28 prefix, and the pods that EKS recommends at most with prefixes.
_PREFIX = 16
_SMALL_CPUS, _PODS_OF_SMALL, _PODS_OF_LARGE = 30, 110, 250
#: The driver of EBS volumes.
EBS_DRIVER = "ebs.csi.aws.com"
_SIGNALS = {"memory.available": MEMORY, "nodefs.available": EPHEMERAL_STORAGE}


def eni_limited_pods(facts: TypeFacts, shape: NodeShape | None = None) -> int:
    """Pods with an address of their own: the VPC CNI keeps one address of each interface, and adds two pods.

    The two are those on the host's network that every node runs (aws-node, kube-proxy). With a shape,
    interfaces that it keeps from the CNI are left out; a type that has none left runs no pods.
    """
    interfaces = facts.interfaces
    if shape is not None:
        efa_only = sum(
            network_interface.efa_only and network_interface.card == 0
            for network_interface in shape.network_interfaces
        )
        interfaces = max(interfaces - shape.reserved_interfaces - efa_only, 0)
        if interfaces == 0:
            return 0
    return interfaces * (facts.addresses_per_interface - 1) + 2


def prefix_limited_pods(facts: TypeFacts, shape: NodeShape) -> int:
    """Pods where the VPC CNI takes prefixes of 16 addresses, at most what EKS recommends; Nitro only."""
    count = eni_limited_pods(facts, shape)
    if count == 0 or facts.hypervisor not in ("nitro", ""):
        return count
    most = _PODS_OF_SMALL if facts.cpus <= _SMALL_CPUS else _PODS_OF_LARGE
    return min((count - 2) * _PREFIX + 2, most)


def pods(facts: TypeFacts, shape: NodeShape) -> int:
    """The number of pods that the kubelet will take."""
    if shape.kubelet.max_pods is not None:
        count = shape.kubelet.max_pods
    elif not (shape.eni_limited_pod_density and shape.family.eni_limited_density):
        count = _PODS_WITHOUT_ENI_LIMIT
    elif shape.prefix_delegation:
        count = prefix_limited_pods(facts, shape)
    else:
        count = eni_limited_pods(facts, shape)
    per_core = shape.kubelet.pods_per_core or 0
    if per_core > 0 and shape.family.pods_per_core:
        count = min(per_core * vcpus(facts, shape.cpu_options), count)
    return count


def capacity(
    facts: TypeFacts, shape: NodeShape, measured: int | None = None, disk: int | None = None
) -> dict[str, int]:
    """What the node reports as its capacity; resources that it lacks are left out.

    Args:
        facts: The type.
        shape: What else decides.
        measured: Bytes of memory that a node of this type and image had; None: not known.
        disk: Bytes that a node of this image had where this was planned; None: not known.
    """
    amounts = {
        CPU: vcpus(facts, shape.cpu_options) * 1000,
        MEMORY: memory_of(facts, shape, measured),
        EPHEMERAL_STORAGE: disk or ephemeral_storage(facts, shape),
        PODS: pods(facts, shape),
        POD_ENI: branch_interfaces(facts.name) if shape.pod_eni else 0,
        NEURON: sum(
            accelerator.count for accelerator in facts.accelerators if accelerator.manufacturer == "AWS"
        ),
        NEURON_CORE: facts.neuron_cores,
        EFA: efa_interfaces(facts, shape),
        PRIVATE_IPV4: facts.addresses_per_interface - 1 if shape.family.windows_build else 0,
    }
    for gpu in facts.gpus:
        resource = _GPU_RESOURCES.get(gpu.manufacturer)
        if resource is not None:
            amounts[resource] = amounts.get(resource, 0) + gpu.count
    return {name: amount for name, amount in amounts.items() if amount}


def efa_interfaces(facts: TypeFacts, shape: NodeShape) -> int:
    """Those that the node class lists, or all that the type can have."""
    if shape.network_interfaces:
        return sum(network_interface.efa_only for network_interface in shape.network_interfaces)
    return facts.efa_interfaces


def memory_of(facts: TypeFacts, shape: NodeShape, measured: int | None = None) -> int:
    """What was measured, else what is computed."""
    return measured or memory(facts.memory_mib, shape.vm_memory_overhead_percent)


def memory(size_mib: int, overhead_percent: float) -> int:
    """Bytes that the operating system sees: the hypervisor keeps a share, in whole MiB.

    In floating point on bytes, as the published values were computed.
    """
    kept = math.ceil(size_mib * MIB * overhead_percent / 1024 / 1024)
    return (size_mib - kept) * MIB


def ephemeral_storage(facts: TypeFacts, shape: NodeShape) -> int:
    """Size in bytes of the disk that holds pods' files.

    That of the root volume, else of the family's device, as the node class lists it, else as the family has
    it; one without a size is as large as its snapshot, which is not known.
    """
    if shape.instance_store_raid and shape.family.instance_store and facts.instance_storage_gb:
        return facts.instance_storage_gb * 10**9
    named = shape.family.ephemeral_device
    chosen = [device for device in shape.block_devices if device.root][:1]
    for devices in (shape.block_devices, shape.family.block_devices):
        chosen += [device for device in devices if device.device_name == named or not named][-1:]
    return next((device.volume_size for device in chosen if device.volume_size), _DEFAULT_EPHEMERAL_STORAGE)


def overhead(
    facts: TypeFacts, shape: NodeShape, measured: int | None = None, disk: int | None = None
) -> dict[str, int]:
    """What kubelet, system and eviction threshold keep of the capacity; arguments as of `capacity`."""
    return total(
        (
            kube_reserved(facts, shape),
            parse_resources(dict(shape.kubelet.system_reserved)),
            eviction_threshold(facts, shape, measured, disk),
        )
    )


def kube_reserved(facts: TypeFacts, shape: NodeShape) -> dict[str, int]:
    """The reservation that EKS's images compute, each resource replaced where the pool gives one."""
    counted = eni_limited_pods(facts) if shape.family.eni_limited_overhead else pods(facts, shape)
    defaults = {
        CPU: reserved_millicores(vcpus(facts, shape.cpu_options) * 1000),
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


def eviction_threshold(
    facts: TypeFacts, shape: NodeShape, measured: int | None = None, disk: int | None = None
) -> dict[str, int]:
    """What must stay free: 100 MiB of memory and a tenth of the disk, or what the pool says."""
    sizes = {
        MEMORY: memory_of(facts, shape, measured),
        EPHEMERAL_STORAGE: disk or ephemeral_storage(facts, shape),
    }
    defaults = {MEMORY: 100 * MIB, EPHEMERAL_STORAGE: math.ceil(sizes[EPHEMERAL_STORAGE] / 100 * 10)}
    given = _thresholds(shape.kubelet.eviction_hard, sizes)
    if shape.family.eviction_soft:
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


def volume_limits(facts: TypeFacts, shape: NodeShape) -> dict[str, int]:
    """Volumes that can be attached beside the instance's own disks, by CSI driver.

    For nodes that are yet to be; those that run tell the true number by their CSINode.
    """
    if facts.attachments is None:
        return {}
    own = len(shape.block_devices or shape.family.block_devices) or 1
    return {EBS_DRIVER: max(facts.attachments - own, 0)}
