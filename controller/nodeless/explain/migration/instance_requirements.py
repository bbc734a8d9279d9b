"""The attributes by which a group chooses its instance types, as requirements of a pool."""

import math
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from typing import Any

from nodeless.explain.migration.ledger import Members
from nodeless.model.labels import (
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_CATEGORY,
    INSTANCE_CPU,
    INSTANCE_CPU_MANUFACTURER,
    INSTANCE_ENCRYPTION_IN_TRANSIT,
    INSTANCE_FAMILY,
    INSTANCE_GENERATION,
    INSTANCE_GPU_COUNT,
    INSTANCE_HYPERVISOR,
    INSTANCE_LOCAL_NVME,
    INSTANCE_MEMORY,
    INSTANCE_TYPE,
)

Term = dict[str, Any]
_NO_LABEL = "instance types have no label for it; hint: name types or families in the pool's requirements"
_NO_SUCH_TYPE = (
    "no known instance type has such a name; hint: name types or families in the pool's requirements"
)
_AS_OF_NOW = "the requirement lists the types that match today; hint: add those that AWS releases later"
#: As EC2 counts them: families of which a newer one is sold.
_OLDEST_CURRENT = 4
#: What bare metal has none of, whatever its sizes are called.
_HYPERVISORS = ["nitro", "xen"]
_ACCELERATOR_KINDS = {"gpu": INSTANCE_GPU_COUNT, "inference": INSTANCE_ACCELERATOR_COUNT}
_ACCELERATORS = f"NodePool requirements {INSTANCE_GPU_COUNT} and {INSTANCE_ACCELERATOR_COUNT}"
_ONE_KIND = (
    "requirements ask for one kind of accelerator, here the first that has a label; hint: a second pool"
)
_MAKERS = {"intel": "intel", "amd": "amd", "amazon-web-services": "aws"}


def requirements_of(members: Members, sold: Collection[str]) -> list[Term]:
    """The requirements; what none can say is left. Raises BadAnswer.

    Args:
        members: Those of InstanceRequirements.
        sold: Names of all instance types.
    """
    terms = [
        *_range(members, "VCpuCount", INSTANCE_CPU),
        *_range(members, "MemoryMiB", INSTANCE_MEMORY),
        *_types(members, sold),
        *_generations(members),
        *_kinds(members),
        *_accelerators(members),
        *_disks(members),
    ]
    makers = members.texts("CpuManufacturers", f"NodePool requirement {INSTANCE_CPU_MANUFACTURER}")
    if makers:
        terms.append(_in(INSTANCE_CPU_MANUFACTURER, [_MAKERS.get(maker, maker) for maker in makers]))
    if members.take("RequireEncryptionInTransit", f"NodePool requirement {INSTANCE_ENCRYPTION_IN_TRANSIT}"):
        terms.append(_in(INSTANCE_ENCRYPTION_IN_TRANSIT, ["true"]))
    price = "nodeless takes the lowest price among all allowed types; no bound is needed"
    members.leave(price, "SpotMaxPricePercentageOverLowestPrice", matters=False)
    members.leave(price, "OnDemandMaxPricePercentageOverLowestPrice", matters=False)
    members.leave(price, "MaxSpotPriceAsPercentageOfOptimalOnDemandPrice", matters=False)
    members.leave("nodes are terminated, never hibernated", "RequireHibernateSupport")
    members.leave(_NO_LABEL, "MemoryGiBPerVCpu", "NetworkInterfaceCount", "BaselineEbsBandwidthMbps")
    members.leave(_NO_LABEL, "NetworkBandwidthGbps", "BaselinePerformanceFactors")
    members.close()
    return terms


def _in(key: str, values: list[str], operator: str = "In") -> Term:
    return {"key": key, "operator": operator, "values": values}


def _range(members: Members, name: str, key: str) -> Iterator[Term]:
    bounds = members.below(name)
    if bounds is None:
        return
    least, most = (bounds.take(end, f"NodePool requirement {key}") for end in ("Min", "Max"))
    for end, value in (("Min", least), ("Max", most)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise bounds.bad(end, value, "number")
    if least:
        yield _in(key, [str(math.ceil(least) - 1)], "Gt")
    if most:
        yield _in(key, [str(math.floor(most) + 1)], "Lt")
    bounds.close()


def _types(members: Members, sold: Collection[str]) -> Iterator[Term]:
    """Names, families, and whatever else `*` stands for, by the names of the types that there are."""
    for name, operator in (("AllowedInstanceTypes", "In"), ("ExcludedInstanceTypes", "NotIn")):
        patterns = members.texts(name)
        families = [pattern.removesuffix(".*") for pattern in patterns if pattern.endswith(".*")]
        families = [family for family in families if "*" not in family]
        others = [pattern for pattern in patterns if pattern.removesuffix(".*") not in families]
        # What is allowed by family or by name cannot be one requirement: both would have to hold.
        if operator == "In" and families and others:
            families, others = [], patterns
        matching = {pattern: _matching(pattern, sold) for pattern in others}
        names = list(dict.fromkeys(kind for kinds in matching.values() for kind in kinds))
        unsaid = [pattern for pattern, kinds in matching.items() if not kinds]
        for listed, key in ((families, INSTANCE_FAMILY), (names, INSTANCE_TYPE)):
            if listed:
                members.ledger.carry(members.source, members.path(name), f"NodePool requirement {key}")
                yield _in(key, listed, operator)
        if any("*" in pattern for pattern, kinds in matching.items() if kinds):
            members.ledger.leave(members.source, members.path(name), patterns, _AS_OF_NOW, matters=False)
        if unsaid:
            members.ledger.leave(members.source, members.path(name), unsaid, _NO_SUCH_TYPE)


def _matching(pattern: str, sold: Collection[str]) -> list[str]:
    """The types that a pattern of EC2 means; a name is its own."""
    if "*" not in pattern:
        return [pattern]
    return [kind for kind in sold if fnmatchcase(kind, pattern)]


def _generations(members: Members) -> Iterator[Term]:
    generations = members.texts("InstanceGenerations")
    if generations == ["current"]:
        members.ledger.carry(
            members.source, members.path("InstanceGenerations"), f"NodePool requirement {INSTANCE_GENERATION}"
        )
        yield _in(INSTANCE_GENERATION, [str(_OLDEST_CURRENT)], "Gt")
    elif generations:
        members.ledger.leave(
            members.source, members.path("InstanceGenerations"), generations, _NO_LABEL, matters=False
        )


def _kinds(members: Members) -> Iterator[Term]:
    """Bare metal and burstable types, which EC2 leaves out unless they are allowed."""
    metal = members.text("BareMetal") or "excluded"
    if metal == "excluded":
        yield _in(INSTANCE_HYPERVISOR, _HYPERVISORS)
    elif metal == "required":
        yield _in(INSTANCE_HYPERVISOR, _HYPERVISORS, "NotIn")
    burstable = members.text("BurstablePerformance") or "excluded"
    if burstable == "excluded":
        yield _in(INSTANCE_CATEGORY, ["t"], "NotIn")
    elif burstable == "required":
        yield _in(INSTANCE_CATEGORY, ["t"])
    for name, key in (("BareMetal", INSTANCE_HYPERVISOR), ("BurstablePerformance", INSTANCE_CATEGORY)):
        if name in members:
            members.ledger.carry(members.source, members.path(name), f"NodePool requirement {key}")


def _accelerators(members: Members) -> Iterator[Term]:
    """How many GPUs or accelerators; none unless they are asked for."""
    counts = members.below("AcceleratorCount")
    kinds = members.texts("AcceleratorTypes")
    least = None if counts is None else counts.number("Min")
    most = None if counts is None else counts.number("Max")
    if most == 0:
        for name in ("AcceleratorCount", "AcceleratorTypes"):
            if name in members:
                members.ledger.carry(members.source, members.path(name), _ACCELERATORS)
        yield {"key": INSTANCE_GPU_COUNT, "operator": "DoesNotExist"}
        yield {"key": INSTANCE_ACCELERATOR_COUNT, "operator": "DoesNotExist"}
    elif least or kinds:
        yield from _some_accelerators(members, kinds or ["gpu"], least or 1, most)
    else:
        members.leave(_NO_LABEL, "AcceleratorCount")
    members.leave(
        "name the accelerator by its label, for example karpenter.k8s.aws/instance-gpu-name",
        "AcceleratorManufacturers",
        "AcceleratorNames",
        "AcceleratorTotalMemoryMiB",
    )


def _some_accelerators(members: Members, kinds: list[str], least: int, most: int | None) -> Iterator[Term]:
    """At least one of the first kind that has a label; requirements cannot ask for one kind or another."""
    key = next((_ACCELERATOR_KINDS[kind] for kind in kinds if kind in _ACCELERATOR_KINDS), None)
    if key is None or len(kinds) > 1:
        members.leave(_ONE_KIND if key else _NO_LABEL, "AcceleratorTypes")
    if key is None:
        members.leave(_NO_LABEL, "AcceleratorCount")
        return
    for name in ("AcceleratorCount", "AcceleratorTypes"):
        if name in members:
            members.ledger.carry(members.source, members.path(name), f"NodePool requirement {key}")
    yield _in(key, [str(least - 1)], "Gt")
    if most:
        yield _in(key, [str(most + 1)], "Lt")


def _disks(members: Members) -> Iterator[Term]:
    local = members.text("LocalStorage")
    if local == "required":
        yield _in(INSTANCE_LOCAL_NVME, ["0"], "Gt")
    elif local == "excluded":
        yield {"key": INSTANCE_LOCAL_NVME, "operator": "DoesNotExist"}
    if local:
        to = f"NodePool requirement {INSTANCE_LOCAL_NVME}"
        members.ledger.carry(members.source, members.path("LocalStorage"), to)
    members.leave(_NO_LABEL, "LocalStorageTypes")
    yield from _range(members, "TotalLocalStorageGB", INSTANCE_LOCAL_NVME)
