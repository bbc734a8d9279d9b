"""Which preferences were relaxed so that pods have a place, and why each could not be met.

On a new node the parts of the first-fit plan tell: a preference that a class has and its part does not ask
for was given up (`placing.relaxing` says in which order). Room on nodes that exist is used before
any preference; which of a pod's preferred terms and PreferNoSchedule taints lose by that is told too.
Whether rules between pods that are only preferred hold on such a node is for kube-scheduler's score.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from nodeless.model.plan import PlannedNode, Relaxation, RelaxationCode
from nodeless.model.requirements import Requirement
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim, Part
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.spot_premium import OFF_SPOT
from nodeless.scheduling.first_fit.filling import Existing
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements, node_requirements_of

#: Seconds for a term that a pod prefers on a node that exists.
_LOOK = 0.5e-6
_Told = tuple[RelaxationCode, str]
"""Code and message."""


def relaxations(
    nodes: Sequence[tuple[InFlightNodeClaim, PlannedNode]],
    placements: Mapping[str, str],
    classes: Iterable[PodClass],
    existing: Existing,
    tables: Sequence[PoolTable],
    meter: Meter,
) -> tuple[Relaxation, ...]:
    """What was given up, pods with the same loss together; by code and message.

    Args:
        nodes: The new nodes, as they were filled and as they will be launched.
        placements: Pods on nodes that exist.
        classes: All classes of the solve.
        existing: The nodes that exist.
        tables: The pools that could be used.
        meter: When it is over, what other pods lost is left untold.
    """
    lost: dict[_Told, list[str]] = {}
    memo: dict[tuple[Part, PoolTable], tuple[_Told, ...]] = {}
    for node, made in nodes:
        start = 0
        for part in node.parts:
            first, start = start, start + part.count
            asked = part, node.table
            if asked not in memo:
                if meter.over:
                    continue
                memo[asked] = tuple(_of_part(part, node.table, tables))
            for told in memo[asked]:
                lost.setdefault(told, []).extend(node.pods[first:start])
        if made.min_values_relaxed:
            for told in _lowered(node.table, made):
                lost.setdefault(told, []).extend(node.pods)
    for pods in classes if placements else ():
        if meter.over:
            break
        meter.spend(_LOOK * len(pods.demand.preferred) * (1 + len(existing.names)))
        for told, keys in _of_standing(pods, placements, existing):
            lost.setdefault(told, []).extend(keys)
    return tuple(
        Relaxation(code, message, tuple(sorted(keys))) for (code, message), keys in sorted(lost.items())
    )


def _of_part(part: Part, table: PoolTable, tables: Sequence[PoolTable]) -> Iterator[_Told]:
    pods = part.pods
    for weight, expressions in pods.demand.preferred:
        if not set(expressions) <= set(part.node_requirements.expressions):
            yield _preferred(weight, expressions, _obstacle(part, expressions, tables))
    beyond = "no node where it holds has room or can be made"
    for affinity in pods.rules.affinity:
        if affinity.weight is not None and affinity not in part.rules.affinity:
            keys = ", ".join(topology_group.key for topology_group in affinity.topology_groups)
            yield (
                RelaxationCode.PREFERRED_POD_AFFINITY,
                f"preferred podAffinity on {keys} (weight {affinity.weight}): {beyond}",
            )
    for anti in pods.rules.anti_affinity:
        if anti.weight is not None and anti not in part.rules.anti_affinity:
            key = anti.topology_group.key
            yield (
                RelaxationCode.PREFERRED_POD_ANTI_AFFINITY,
                f"preferred podAntiAffinity on {key} (weight {anti.weight}): {beyond}",
            )
    for spread in pods.rules.spread:
        if spread.soft and spread not in part.rules.spread:
            yield (
                RelaxationCode.SCHEDULE_ANYWAY,
                f"topologySpreadConstraints on {spread.topology_group.key} (ScheduleAnyway, maxSkew "
                f"{spread.max_skew}): the pods cannot be spread so evenly",
            )
    taint = table.refuses(pods.shape.tolerations, soft=False)
    if taint is not None:
        yield (
            RelaxationCode.PREFER_NO_SCHEDULE,
            f"taint {taint} is not tolerated: no other pool takes the pod",
        )


def _of_standing(
    pods: PodClass, placements: Mapping[str, str], existing: Existing
) -> Iterator[tuple[_Told, list[str]]]:
    """What pods on nodes that exist do not have there."""
    unwelcome = existing.unwelcome(pods.shape.tolerations)
    if not pods.demand.preferred and not unwelcome:
        return
    keys = [key for key in pods.pods if key in placements]
    first = "existing nodes are used first"
    for weight, expressions in pods.demand.preferred:
        without = existing.without(expressions)
        losing = [key for key in keys if placements[key] in without]
        if losing:
            yield _preferred(weight, expressions, first), losing
    for taint, names in unwelcome.items():
        losing = [key for key in keys if placements[key] in names]
        if losing:
            yield (RelaxationCode.PREFER_NO_SCHEDULE, f"taint {taint} is not tolerated: {first}"), losing


def _preferred(weight: int, expressions: tuple[Requirement, ...], why: str) -> _Told:
    if expressions == OFF_SPOT:
        message = f"on-demand, which is no dearer than spot with the work that interruptions lose: {why}"
        return RelaxationCode.ON_DEMAND_FOR_LOST_WORK, message
    wanted = " and ".join(map(str, expressions))
    return (
        RelaxationCode.PREFERRED_NODE_AFFINITY,
        f"preferred node affinity {wanted} (weight {weight}): {why}",
    )


def _obstacle(part: Part, expressions: tuple[Requirement, ...], tables: Sequence[PoolTable]) -> str:
    """Why a preferred term could not be had: by itself, beside what holds already, or for want of room."""
    alone = [
        node_requirements_of((*node_requirements.expressions, *expressions))
        for node_requirements in part.pods.demand.required
    ]
    if not any(
        _makes(part.pods, node_requirements, tables)
        for node_requirements in alone
        if isinstance(node_requirements, NodeRequirements)
    ):
        return "no pool can make such a node"
    together = node_requirements_of((*part.node_requirements.expressions, *expressions))
    if not isinstance(together, NodeRequirements) or not _makes(part.pods, together, tables):
        return "it does not go together with what else holds there"
    return "no such node has room or can be made"


def _makes(pods: PodClass, node_requirements: NodeRequirements, tables: Sequence[PoolTable]) -> bool:
    return any(
        table.refuses(pods.shape.tolerations, soft=True) is None
        and table.fresh(pods, node_requirements) is not None
        for table in tables
    )


def _lowered(table: PoolTable, made: PlannedNode) -> Iterator[_Told]:
    for key, least in table.wanted:
        requirement = made.requirements.get(key)
        offered = (requirement.min_values if requirement is not None else None) or 0
        if offered < least:
            yield (
                RelaxationCode.MIN_VALUES_LOWERED,
                f"minValues of {key} in {table.pool.reference} lowered from {least} to {offered}: "
                "the instance types that hold the pods offer no more",
            )
