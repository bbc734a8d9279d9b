"""The pool and the node class that take a group's place."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeless.api.errors import at
from nodeless.api.validation import validate
from nodeless.explain.migration.autoscaler import Autoscaler
from nodeless.explain.migration.ledger import Ledger
from nodeless.explain.migration.node_group import NodeGroup
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_CATEGORY,
    INSTANCE_GENERATION,
    INSTANCE_TYPE,
    RESERVED,
    ZONE,
)

Manifest = dict[str, Any]
_LONGEST_NAME = 52
_CLASS_GROUP, _CLASS_KIND = "karpenter.k8s.aws", "EC2NodeClass"
_LABELS = "spec.template.metadata.labels"
_DURATION = re.compile(r"(\d+(\.\d+)?(h|m|s))+")
#: With any type: general, compute and memory types of current generations, as most examples have it.
_CATEGORIES, _OLDEST = ["c", "m", "r"], "2"


@dataclass(frozen=True, slots=True)
class TypeSize:
    """What an instance type has."""

    cpus: int
    memory_mib: int
    architecture: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A group, and what takes its place."""

    group: NodeGroup
    pool: Manifest
    node_class: str

    @property
    def pool_name(self) -> str:
        return str(self.pool["metadata"]["name"])


@dataclass(slots=True)
class Proposals:
    """All pools and node classes, in the order of their groups.

    Attributes:
        proposals: A pool for each group.
        classes: Node classes; groups whose nodes are made alike share one.
        faults: What is wrong with a group, one line each.
    """

    proposals: list[Proposal] = field(default_factory=list)
    classes: list[Manifest] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def manifests(self) -> list[Manifest]:
        """Node classes, then pools."""
        return [*self.classes, *(proposal.pool for proposal in self.proposals)]


def propose(
    groups: Iterable[NodeGroup],
    autoscaler: Autoscaler,
    sizes: Mapping[str, TypeSize],
    ledger: Ledger,
    *,
    role: str = "",
    any_type: bool = False,
    names: Iterable[str] = (),
) -> Proposals:
    """A pool for each group.

    Args:
        groups: The groups.
        autoscaler: What its flags say.
        sizes: The instance types that are known, by name.
        ledger: The account of what is carried over.
        role: IAM role for groups of which neither role nor instance profile is known.
        any_type: Allow all current types of the group's architecture instead of its own.
        names: Those that pools and node classes have already.
    """
    found = Proposals()
    taken = set(names)
    for group in groups:
        unknown = [name for name in group.types if name not in sizes]
        if group.types and len(unknown) == len(group.types):
            found.faults.append(
                f"{group.place}: {group.subject}: instance type {unknown[0]} is not known; hint: correct "
                f"it, or give "
                "--catalog with the output of `nodeless catalog` in the group's region"
            )
            continue
        for name in unknown:
            ledger.leave(group.subject, "instance types", name, "is not in the catalog, and has no price")
        spec = _class_spec(group, role)
        if spec is None:
            found.faults.append(
                f"{group.place}: {group.subject}: neither a role nor an instance profile of its nodes is "
                f"known; "
                "hint: --role NAME, the IAM role of the nodes"
            )
            continue
        name = _name(group.name, taken)
        class_name = _class_named(spec, name, found.classes)
        pool = _pool(group, name, class_name, autoscaler, sizes, any_type=any_type)
        _drop_refused(group, pool, ledger)
        found.proposals.append(Proposal(group, pool, class_name))
    _check(found)
    return found


def _check(found: Proposals) -> None:
    """What the API server would refuse is a fault of the group that it was made of."""
    places = {proposal.pool_name: proposal.group for proposal in found.proposals}
    places |= {proposal.node_class: proposal.group for proposal in reversed(found.proposals)}
    for manifest in found.manifests:
        name = manifest["metadata"]["name"]
        group = places[name]
        found.faults += [
            f"{group.place}: {group.subject}: the {manifest['kind']} created from it would be invalid: "
            f"{fault}"
            for fault in validate(manifest)
            if not fault.warning
        ]


def _name(text: str, taken: set[str]) -> str:
    """A name that objects may have, which nothing else has."""
    base = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:_LONGEST_NAME].strip("-") or "pool"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


def _class_spec(group: NodeGroup, role: str) -> Manifest | None:
    """The spec of a group's node class; None where no role is known."""
    spec = dict(group.spec)
    if not spec.get("role") and not spec.get("instanceProfile"):
        if not role:
            return None
        spec["role"] = role
    return {name: spec[name] for name in sorted(spec)}


def _class_named(spec: Manifest, name: str, classes: list[Manifest]) -> str:
    """The name of the class of this spec, which is made where there is none yet."""
    for made in classes:
        if made["spec"] == spec:
            return str(made["metadata"]["name"])
    classes.append(
        {
            "apiVersion": f"{_CLASS_GROUP}/v1",
            "kind": _CLASS_KIND,
            "metadata": {"name": name},
            "spec": spec,
        }
    )
    return name


def _pool(
    group: NodeGroup,
    name: str,
    class_name: str,
    autoscaler: Autoscaler,
    sizes: Mapping[str, TypeSize],
    *,
    any_type: bool,
) -> Manifest:
    template: Manifest = {
        "nodeClassRef": {"group": _CLASS_GROUP, "kind": _CLASS_KIND, "name": class_name},
        "requirements": _requirements(group, sizes, any_type=any_type),
        "expireAfter": f"{group.lifetime}s" if group.lifetime else "Never",
    }
    startup = [taint for taint in group.taints if autoscaler.is_startup_taint(taint["key"])]
    taints = [taint for taint in group.taints if taint not in startup]
    if taints:
        template["taints"] = _distinct(taints)
    if startup:
        template["startupTaints"] = _distinct(startup)
    spec: Manifest = {
        "template": {
            **({"metadata": {"labels": dict(group.labels)}} if group.labels else {}),
            "spec": template,
        },
        "disruption": _disruption(group, autoscaler),
    }
    limits = _limits(group, sizes)
    if limits:
        spec["limits"] = limits
    weight = autoscaler.weight(group.names)
    if weight:
        spec["weight"] = weight
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _distinct(taints: list[dict[str, str]]) -> list[dict[str, str]]:
    """One taint for each key and effect: the last one said is the one that nodes have."""
    return list({(taint["key"], taint["effect"]): taint for taint in taints}.values())


def _requirements(group: NodeGroup, sizes: Mapping[str, TypeSize], *, any_type: bool) -> list[Manifest]:
    terms: list[Manifest] = [{"key": CAPACITY_TYPE, "operator": "In", "values": list(group.capacity_types)}]
    if group.zones:
        terms.append({"key": ZONE, "operator": "In", "values": list(group.zones)})
    if not any_type or not group.types:
        types = [{"key": INSTANCE_TYPE, "operator": "In", "values": list(group.types)}] if group.types else []
        return [*terms, *types, *group.requirements]
    architectures = sorted({sizes[name].architecture for name in group.types if name in sizes})
    return [
        *terms,
        {"key": ARCH, "operator": "In", "values": architectures},
        {"key": INSTANCE_CATEGORY, "operator": "In", "values": _CATEGORIES},
        {"key": INSTANCE_GENERATION, "operator": "Gt", "values": [_OLDEST]},
    ]


def _limits(group: NodeGroup, sizes: Mapping[str, TypeSize]) -> Manifest:
    """What as many nodes of the largest type as the group may have add up to."""
    known = [sizes[name] for name in group.types if name in sizes]
    most = group.most_nodes
    if most is None or group.capacity_types == (RESERVED,):
        return {}
    if not known:
        return {"nodes": str(most)}
    cpus, memory = max(size.cpus for size in known), max(size.memory_mib for size in known)
    return {"cpu": str(most * cpus), "memory": f"{most * memory}Mi"}


def _disruption(group: NodeGroup, autoscaler: Autoscaler) -> Manifest:
    unneeded = group.unneeded_time or autoscaler.unneeded_time
    budgets: list[Manifest] = []
    if group.update_nodes:
        budgets.append({"nodes": group.update_nodes, "reasons": ["Drifted"]})
    if not autoscaler.scale_down:
        budgets.append({"nodes": "0", "reasons": ["Empty", "Underutilized"]})
    elif budgets:
        budgets.append({"nodes": "10%", "reasons": ["Empty", "Underutilized"]})
    return {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": unneeded if _DURATION.fullmatch(unneeded) else "10m",
        **({"budgets": budgets} if budgets else {}),
    }


def _drop_refused(group: NodeGroup, pool: Manifest, ledger: Ledger) -> None:
    """Labels that a pool may not have are left out, with what the API server would say."""
    labels = pool["spec"]["template"].get("metadata", {}).get("labels", {})
    faults = {fault.path: fault for fault in validate(pool) if not fault.warning}
    for key in list(labels):
        fault = faults.get(at(_LABELS, key))
        if fault is not None:
            value = labels.pop(key)
            ledger.leave(group.subject, f"label {key}", value, f"{fault.message}; hint: pods that select it")
    if not labels:
        pool["spec"]["template"].pop("metadata", None)
