"""What a claim may still become: the types, labels and room of a node that nobody has seen yet."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nodeless.model.efa import EFA, launched_with_efa
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.pods import HostPort
from nodeless.model.pools import NodeClass
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import Resources, maximum
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.pods.classes import UNBOUNDED, Amounts, Axis
from nodeless.scheduling.pods.volumes import attachable


@dataclass(frozen=True, slots=True, eq=False)
class InFlightNode:
    """`possible`: the labels of each type that the claim may become; `free`: the least room of any."""

    possible: tuple[Requirements, ...]
    free: Amounts
    ports: tuple[HostPort, ...] = ()
    """Host ports that daemons hold on some of the types."""


def expected_node(
    claim: NodeClaim, table: PoolTable | None, axis: Axis, node_classes: Mapping[str, NodeClass]
) -> InFlightNode | None:
    """What pods may count on, daemons taken off; None when neither claim nor catalog tell."""
    expected = _expected_node(claim, table, axis)
    if expected is None or EFA not in axis.names or launched_with_efa(claim, node_classes):
        return expected
    return replace(expected, free=np.where([name == EFA for name in axis.names], 0, expected.free))


def what_decides(claim: NodeClaim, node_classes: Mapping[str, NodeClass]) -> object:
    """All that `expected_node` asks of a claim: for claims that share it, it says the same."""
    launched = claim.instance_type if claim.provider_id else ""
    allocatable = frozenset(claim.allocatable.items())
    return claim.pool, claim.requirements, launched, allocatable, launched_with_efa(claim, node_classes)


def _expected_node(claim: NodeClaim, table: PoolTable | None, axis: Axis) -> InFlightNode | None:
    rows = _rows(claim, table)
    if table is None or not rows:
        return InFlightNode((), _allocatable(claim, {}, axis)) if claim.allocatable else None
    possible = tuple(_labels(claim, table.table.types[row]) for row in rows)
    ports = table.daemon_ports(rows)
    if claim.allocatable and len(rows) == 1:
        limits = table.table.types[rows[0]].volume_limits
        return InFlightNode(possible, _allocatable(claim, limits, axis) - table.daemons[rows[0]], ports)
    free: Amounts = table.room[rows].min(axis=0)
    return InFlightNode(possible, free, ports)


def expected_allocatable(
    node: Node, claim: NodeClaim | None, table: PoolTable | None, node_classes: Mapping[str, NodeClass]
) -> Resources:
    """What a node that still boots will allocate: its claim knows, or its type does."""
    if claim is not None and claim.allocatable:
        allocatable = claim.allocatable
    else:
        instance_type = type_named(node.instance_type, table)
        allocatable = instance_type.allocatable if instance_type is not None else {}
    if claim is None or EFA not in allocatable or launched_with_efa(claim, node_classes):
        return allocatable
    return {name: amount for name, amount in allocatable.items() if name != EFA}


def charged_capacity(claim: NodeClaim, table: PoolTable | None) -> Resources:
    """What a claim without a node counts against its pool's limits: the most that it may become."""
    if claim.capacity or table is None:
        return claim.capacity
    most: Resources = {}
    for row in _rows(claim, table):
        most = maximum(most, table.table.types[row].capacity)
    return most


def always_satisfies(expression: Requirement, label: Requirement | None) -> bool:
    """Whether every value that a label may take satisfies an expression."""
    if label is None or label.is_empty():
        return expression.allows_absence()
    if not label.complement:
        return all(expression.allows(value) for value in label.values)
    if label.allows_absence() and not expression.allows_absence():
        return False
    plain = replace(label, min_values=None)
    return plain.intersect(replace(expression, min_values=None)) == plain


def may_satisfy(expression: Requirement, label: Requirement | None) -> bool | None:
    """Whether a label satisfies an expression; None where that depends on the value that it takes."""
    if always_satisfies(expression, label):
        return True
    return None if label is not None and label.overlaps(expression) else False


def may_satisfy_as_any(expression: Requirement, possible: Iterable[Requirements]) -> bool | None:
    """The same for a claim, given its labels for each type that it may become."""
    verdicts = {may_satisfy(expression, labels.get(expression.key)) for labels in possible}
    return verdicts.pop() if len(verdicts) == 1 else None


def _allocatable(claim: NodeClaim, volume_limits: Mapping[str, int], axis: Axis) -> Amounts:
    return axis.row({**claim.allocatable, **attachable(volume_limits, axis.names, int(UNBOUNDED))})


def _rows(claim: NodeClaim, table: PoolTable | None) -> list[int]:
    if table is None:
        return []
    launched = claim.instance_type if claim.provider_id else ""
    wanted = claim.requirements.get(INSTANCE_TYPE)
    return [
        row
        for row, instance_type in enumerate(table.table.types)
        if (
            instance_type.name == launched
            if launched
            else wanted is None or wanted.allows(instance_type.name)
        )
    ]


def _labels(claim: NodeClaim, instance_type: InstanceType) -> Requirements:
    """What the labels may be if the claim becomes this type, in any offering that it may take."""
    allowed = [offering for offering in instance_type.offerings if offering.allowed_by(claim.requirements)]
    offered = (
        Requirement(ZONE, False, frozenset(offering.zone for offering in allowed)),
        Requirement(CAPACITY_TYPE, False, frozenset(offering.capacity_type for offering in allowed)),
    )
    others: Mapping[str, Requirement] = {
        requirement.key: requirement
        for requirement in (*claim.requirements.values(), *instance_type.requirements.values())
        if requirement.key not in (ZONE, CAPACITY_TYPE)
    }
    return Requirements([*others.values(), *offered])


def type_named(name: str, table: PoolTable | None) -> InstanceType | None:
    """The type of a pool's catalog that a node says it is."""
    if table is None:
        return None
    return next((instance_type for instance_type in table.table.types if instance_type.name == name), None)
