"""The labels that nodes of a type bear, as requirements. Pure.

Every well-known key stands there; one that the type never bears is `DoesNotExist`, so
that a pod that asks for it does not fit. Equal requirements of different types are one
object: some 1300 types share a few hundred.
"""

from collections.abc import Iterable
from functools import lru_cache

from nodeless.cloudprovider.aws.type_facts import Accelerator, TypeFacts
from nodeless.launch.families import Family
from nodeless.model import labels
from nodeless.model.placement import PlacementGroup
from nodeless.model.requirements import Requirement, Requirements

_LINUX = Family()


@lru_cache(maxsize=20_000)
def _requirement(key: str, values: frozenset[str]) -> Requirement:
    return Requirement(key, False, values)


def _one(key: str, value: object | None) -> Requirement:
    return _requirement(key, frozenset() if value is None else frozenset((str(value),)))


def type_requirements(
    facts: TypeFacts,
    *,
    region: str,
    zones: Iterable[str],
    capacity_types: Iterable[str],
    pods: int,
    family: Family = _LINUX,
    placement_group: PlacementGroup | None = None,
    gpus_are_accelerators: bool = True,
) -> Requirements:
    """All well-known labels of a type; zones and capacity types are those in which it is sold.

    `gpus_are_accelerators`: a GPU fills the labels of an accelerator, too. Karpenter v1 does without, but for
    the memory, whose label it does not have.
    """
    generation, dot, size = facts.name.partition(".")
    two_parts = bool(dot) and "." not in size
    # Windows runs on x86 alone: what is left has no system, so that no pod fits.
    runs = not family.windows_build or facts.architecture == "amd64"
    gpu = facts.gpus[0] if len(facts.gpus) == 1 else None
    accelerator = facts.accelerators[0] if len(facts.accelerators) == 1 else None
    return Requirements(
        [
            _one(labels.INSTANCE_TYPE, facts.name),
            _one(labels.ARCH, facts.architecture),
            _one(labels.OS, family.os if runs else None),
            _one(labels.WINDOWS_BUILD, family.windows_build or None),
            _one(labels.REGION, region),
            _requirement(labels.ZONE, frozenset(zones)),
            _requirement(labels.CAPACITY_TYPE, frozenset(capacity_types)),
            _one(labels.INSTANCE_CATEGORY, facts.category),
            _one(labels.INSTANCE_GENERATION, facts.generation),
            _one(labels.INSTANCE_FAMILY, generation if two_parts else None),
            _one(labels.INSTANCE_SIZE, size if two_parts else None),
            _one(labels.INSTANCE_CPU, facts.cpus),
            _one(labels.INSTANCE_MEMORY, facts.memory_mib),
            _one(labels.INSTANCE_NETWORK_BANDWIDTH, facts.bandwidth_mbps),
            _one(labels.INSTANCE_PODS, pods),
            _one(labels.INSTANCE_HYPERVISOR, facts.hypervisor),
            _one(labels.INSTANCE_ENCRYPTION_IN_TRANSIT, str(facts.encryption_in_transit).lower()),
            _one(labels.INSTANCE_LOCAL_NVME, facts.local_nvme_gb),
            _one(labels.INSTANCE_CPU_MANUFACTURER, facts.cpu_manufacturer.lower() or None),
            _one(labels.INSTANCE_CPU_CLOCK, facts.clock_mhz),
            _one(labels.INSTANCE_EBS_BANDWIDTH, facts.ebs_bandwidth_mbps),
            _one(labels.INSTANCE_FLEX, str("-flex" in generation).lower()),
            _requirement(labels.INSTANCE_TENANCY, frozenset(labels.TENANCIES)),
            *_placement_requirements(placement_group),
            *_gpu_requirements(gpu),
            *_accelerator_requirements(accelerator or (gpu if gpus_are_accelerators else None)),
            _one(labels.INSTANCE_ACCELERATOR_MEMORY, _memory(accelerator or gpu)),
        ]
    )


def _placement_requirements(group: PlacementGroup | None) -> list[Requirement]:
    partitions = range(1, group.partitions + 1) if group else ()
    return [
        _one(labels.PLACEMENT_GROUP_ID, group and group.id),
        _requirement(labels.PLACEMENT_GROUP_PARTITION, frozenset(map(str, partitions))),
    ]


def _gpu_requirements(gpu: Accelerator | None) -> list[Requirement]:
    return [
        _one(labels.INSTANCE_GPU_NAME, gpu and _label_value(gpu.name)),
        _one(labels.INSTANCE_GPU_MANUFACTURER, gpu and _label_value(gpu.manufacturer)),
        _one(labels.INSTANCE_GPU_COUNT, gpu and gpu.count),
        _one(labels.INSTANCE_GPU_MEMORY, gpu and gpu.memory_mib),
    ]


def _accelerator_requirements(accelerator: Accelerator | None) -> list[Requirement]:
    return [
        _one(labels.INSTANCE_ACCELERATOR_NAME, accelerator and _label_value(accelerator.name)),
        _one(
            labels.INSTANCE_ACCELERATOR_MANUFACTURER, accelerator and _label_value(accelerator.manufacturer)
        ),
        _one(labels.INSTANCE_ACCELERATOR_COUNT, accelerator and accelerator.count),
    ]


def _memory(accelerator: Accelerator | None) -> int | None:
    return (accelerator and accelerator.memory_mib) or None


def _label_value(text: str) -> str:
    return text.lower().replace(" ", "-")
