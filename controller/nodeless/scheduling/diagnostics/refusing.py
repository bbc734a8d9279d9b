"""Why a class of pods got no capacity: for each pool the one thing that failed.

The checks go in the order in which a person would fix them: the pool itself, its taints, what
the pod's requirements contradict, what can be bought, how large the pod is, what limits are
left. The first that leaves no instance type is the reason. Of alternatives (ORed terms) the
one that came furthest is told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nodeless.model.plan import PoolRefusal, Refusal, RefusalCode
from nodeless.model.requirements import Conflict
from nodeless.model.resources import format_amount, readable_amount
from nodeless.scheduling.capacity.diversity import shortage
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.supply import ReservationManager
from nodeless.scheduling.diagnostics.blocking import blocked
from nodeless.scheduling.first_fit.relaxing import beside_daemons
from nodeless.scheduling.pods.classes import Mask, PodClass, how_many
from nodeless.scheduling.pods.constraints import NodeRequirements
from nodeless.scheduling.topology.tracking import Topology

#: Alternatives of a pod's node affinity that are looked at for the reason.
_ALTERNATIVES = 32
#: The rule between pods that leaves no node, as code and message; None: none does.
_Blocking = tuple[RefusalCode, str] | None
#: From the first obstacle to the last.
_ORDER = (
    RefusalCode.NO_INSTANCE_TYPES,
    RefusalCode.REQUIREMENTS_CONFLICT,
    RefusalCode.NO_OFFERING_AVAILABLE,
    RefusalCode.HOST_PORT_TAKEN,
    RefusalCode.INSUFFICIENT_RESOURCES,
    RefusalCode.MIN_VALUES_NOT_MET,
    RefusalCode.LIMITS_EXCEEDED,
    RefusalCode.CAPACITY_EXHAUSTED,
    RefusalCode.POD_AFFINITY,
    RefusalCode.POD_ANTI_AFFINITY,
    RefusalCode.TOPOLOGY_SPREAD,
)


def refuse(
    pods: PodClass,
    keys: Sequence[str],
    tables: Sequence[PoolTable],
    budgets: RemainingLimits,
    supply: ReservationManager,
    problems: Mapping[str, str],
    topology: Topology,
) -> tuple[Refusal, ...]:
    """One refusal for each of the pods; they share their reasons."""
    if not tables:
        message = "no pool exists; hint: create a Provisioner or a NodePool"
        return tuple(Refusal(key, RefusalCode.NO_POOLS, (), message) for key in keys)
    blocking = _blocking(pods, topology)
    _, others = beside_daemons(pods, (), pods.hard_rules)
    blocking_beside = (
        blocking if others is pods.hard_rules else _blocking(replace(pods, hard_rules=others), topology)
    )
    reasons = tuple(
        PoolRefusal(
            table.pool.reference,
            *_reason(pods, table, (budgets, supply), problems, (blocking, blocking_beside)),
        )
        for table in tables
    )
    codes = {reason.code for reason in reasons}
    code = codes.pop() if len(codes) == 1 else RefusalCode.NO_POOL_FITS
    return tuple(Refusal(key, code, reasons) for key in keys)


def refuse_pool(table: PoolTable) -> PoolRefusal | None:
    """Why the pool can make no node at all, whatever the pods are; None when it can."""
    start, reference = table.start, table.pool.reference
    if not start.types.any():
        message = "no instance type that is available now meets the pool's own requirements"
        return PoolRefusal(reference, RefusalCode.NO_INSTANCE_TYPES, message)
    missing = shortage(table.table, np.flatnonzero(start.types).tolist(), table.least, start.requirements)
    if missing is None:
        return None
    key, least, offered = missing
    return PoolRefusal(
        reference,
        RefusalCode.MIN_VALUES_NOT_MET,
        f"minValues of {key} is {least}, but all its types offer {offered} of them",
    )


def _blocking(pods: PodClass, topology: Topology) -> _Blocking:
    return blocked(pods, topology) if pods.hard_rules else None


def _reason(
    pods: PodClass,
    table: PoolTable,
    left: tuple[RemainingLimits, ReservationManager],
    problems: Mapping[str, str],
    blocking: tuple[_Blocking, _Blocking],
) -> tuple[RefusalCode, str]:
    """`blocking`: the rule that leaves no node, and the one beside a DaemonSet's pods."""
    problem = problems.get(table.pool.key)
    if problem is not None:
        return RefusalCode.POOL_UNAVAILABLE, problem
    if len(table.table) == 0:
        return RefusalCode.NO_INSTANCE_TYPES, "the cloud offers no instance type to this pool"
    taint = table.refuses(pods.shape.tolerations, soft=True)
    if taint is not None:
        return RefusalCode.TAINT_NOT_TOLERATED, f"taint {taint} is not tolerated"
    required, key = pods.demand_of_slots.required, table.pool.key
    if pods.daemon_rules is not None:
        if key in pods.daemon_rules.refused:
            return RefusalCode.POD_ANTI_AFFINITY, pods.daemon_rules.refused[key]
        required = pods.daemon_rules.required.get(key, required)
    some, (rule, rule_beside) = required[:_ALTERNATIVES], blocking
    beside, _ = beside_daemons(pods, some, pods.hard_rules)
    if beside:
        some, rule = beside, rule_beside
    found = [_obstacle(pods, node_requirements, table, left, rule) for node_requirements in some]
    return max(found, key=lambda reason: _ORDER.index(reason[0]))


def _obstacle(
    pods: PodClass,
    node_requirements: NodeRequirements,
    table: PoolTable,
    left: tuple[RemainingLimits, ReservationManager],
    blocking: _Blocking,
) -> tuple[RefusalCode, str]:
    conflict = _conflict(node_requirements, table)
    if conflict is not None:
        return RefusalCode.REQUIREMENTS_CONFLICT, conflict
    terms = table.grow(table.start, node_requirements)
    if isinstance(terms, Conflict):
        return RefusalCode.REQUIREMENTS_CONFLICT, str(terms)
    if not terms.types.any():
        return _not_sold(node_requirements, table)
    usable = terms.types
    if pods.shape.host_ports:
        usable = usable & table.free_ports(pods.shape.host_ports)
        if not usable.any():
            port = pods.shape.host_ports[0]
            return (
                RefusalCode.HOST_PORT_TAKEN,
                f"host port {port.port}/{port.protocol or 'TCP'} is taken by a DaemonSet",
            )
    large_enough = usable & (how_many(table.room, pods.requests) > 0)
    if not large_enough.any():
        return RefusalCode.INSUFFICIENT_RESOURCES, _too_small(pods, table, usable)
    missing = shortage(table.table, np.flatnonzero(large_enough).tolist(), table.least, terms.requirements)
    if missing is not None:
        key, least, offered = missing
        return RefusalCode.MIN_VALUES_NOT_MET, (
            f"minValues of {key} is {least}, but the {int(large_enough.sum())} instance types that hold the "
            f"pod offer {offered} of them; hint: lower it, or allow more types"
        )
    budgets, supply = left
    if (large_enough & budgets.affordable(table)).any():
        scarce = supply.shortage(table, pods, node_requirements)
        if scarce is not None:
            return RefusalCode.CAPACITY_EXHAUSTED, scarce
        if blocking is not None:
            return blocking
    return RefusalCode.LIMITS_EXCEEDED, _limits(table, budgets)


def _conflict(node_requirements: NodeRequirements, table: PoolTable) -> str | None:
    """The requirement that the pool contradicts, or that nothing defines, or that no type meets."""
    conflict = table.start.requirements.conflict(node_requirements.requirements)
    if conflict is not None:
        return str(conflict)
    unknown = table.undefined(node_requirements)
    if unknown is not None:
        return str(Conflict(unknown.key, unknown, None, tuple(table.start.requirements)))
    for expression in node_requirements.expressions:
        if not table.allowed(expression).any():
            return f"no instance type satisfies {expression}"
    return None


def _not_sold(node_requirements: NodeRequirements, table: PoolTable) -> tuple[RefusalCode, str]:
    """No type is left: requirements that only together exclude all, or nothing for sale."""
    merged = table.offered.intersect(node_requirements.requirements)
    types = np.ones(len(table.table), dtype=np.bool_)
    for requirement in table.pool.requirements.values():
        types = types & table.table.allowed(requirement, defined=True)
    if not types.any():
        return RefusalCode.NO_INSTANCE_TYPES, "no instance type satisfies the pool's own requirements"
    narrowing = [(expression, table.allowed(expression)) for expression in node_requirements.expressions]
    narrowing += [(one, table.table.allowed(one, defined=True)) for one in merged.values()]
    for requirement, mask in narrowing:
        types = types & mask
        if not types.any():
            return (
                RefusalCode.REQUIREMENTS_CONFLICT,
                f"no instance type satisfies {requirement} with the other requirements",
            )
    count = int(types.sum())
    sold = types & np.isfinite(table.table.cheapest(merged, sold_out_too=True))
    if not sold.any():
        return (
            RefusalCode.REQUIREMENTS_CONFLICT,
            f"none of the {count} matching instance types is offered for {_where(merged)}",
        )
    return RefusalCode.NO_OFFERING_AVAILABLE, (
        f"no offering of the {int(sold.sum())} matching instance types is available now for {_where(merged)}"
    )


def _where(requirements: Mapping[str, object]) -> str:
    parts = [
        str(requirements[key])
        for key in ("topology.kubernetes.io/zone", "karpenter.sh/capacity-type")
        if key in requirements
    ]
    return " and ".join(parts) or "any zone"


def _too_small(pods: PodClass, table: PoolTable, usable: Mask) -> str:
    """The resource of which no matching type has enough, or the request that fits none as a whole."""
    names = table.table.axis.names
    room = np.where(usable[:, None], table.room, np.int64(-1))
    for column, name in enumerate(names):
        wanted, own = int(pods.requests[column]), table.table.allocatable[:, column]
        short = wanted > 0 and wanted > int(room[:, column].max())
        # A DaemonSet that no matching type has room for leaves none for others either, whatever they request.
        if short or (own < table.daemons[:, column])[usable].all():
            row = int(np.argmax(np.where(usable, own, -1)))
            daemons = readable_amount(name, int(table.daemons[row, column]))
            largest = (
                f"the largest matching instance type ({table.table.types[row].name}) allocates "
                f"{readable_amount(name, int(own[row]))}"
            )
            if not short:
                return (
                    f"{name}: daemons use {daemons}, but {largest}; hint: keep the DaemonSet off such nodes "
                    "by node affinity"
                )
            daemon = f" and daemons use {daemons}" if table.daemons[row, column] else ""
            return f"{name}: {readable_amount(name, wanted)} requested, but {largest}{daemon}"
    request = ", ".join(
        f"{name} {readable_amount(name, int(amount))}"
        for name, amount in zip(names, pods.requests, strict=True)
        if amount and name != "pods"
    )
    return f"no single matching instance type has room for {request} at once"


def _limits(table: PoolTable, budgets: RemainingLimits) -> str:
    used_up = budgets.exhausted(table)
    if used_up is not None:
        name, limit, used = used_up
        return (
            f"the limit of {format_amount(name, limit)} {name} is used up "
            f"({format_amount(name, used)} in use); hint: raise the pool's limits"
        )
    listed = ", ".join(
        f"{name} {format_amount(name, int(amount))}"
        for name, amount in zip(table.limit_names, table.limits, strict=True)
    )
    return f"all available instance types exceed what is left of the limits ({listed}); hint: raise them"
