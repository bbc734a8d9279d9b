"""What may be changed: each option makes another situation out of one, so that options can be combined."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nodeless.explain.advice.usage import Fitting, with_requests
from nodeless.explain.decisions import Situation
from nodeless.explain.soft_rules import shape_without
from nodeless.explain.words import amounts, count
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    EC2_NODE_CLASS_NAME,
    INSTANCE_CATEGORY,
    INSTANCE_CPU,
    INSTANCE_FAMILY,
    INSTANCE_GENERATION,
    INSTANCE_MEMORY,
    INSTANCE_SIZE,
    INSTANCE_TYPE,
    NODE_POOL,
    ON_DEMAND,
    PROVISIONER_NAME,
    SPOT,
    ZONE,
)
from nodeless.model.packing import FEWEST_NODES, LOWEST_PRICE, PACKING_ANNOTATION
from nodeless.model.pods import Pod
from nodeless.model.pools import PROVISIONER, Pool
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.resources import format_resources
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of
from nodeless.scheduling.pods.selecting import selects
from nodeless.state.protection import protection

Manifest = dict[str, Any]
_ARM64 = "arm64"
#: By which pools choose types.
_TYPES = (
    INSTANCE_TYPE,
    INSTANCE_FAMILY,
    INSTANCE_CATEGORY,
    INSTANCE_SIZE,
    INSTANCE_GENERATION,
    INSTANCE_CPU,
    INSTANCE_MEMORY,
)
#: Categories that any pool of general work may use.
_GENERAL = ("c", "m", "r")
#: Requirements that every pool has by itself.
IMPLIED = (NODE_POOL, PROVISIONER_NAME, EC2_NODE_CLASS_NAME)
_RISK_TYPES = "pods run on other processors: measure the workloads that depend on one"


@dataclass(frozen=True, slots=True)
class Option:
    """Something that may be changed.

    Attributes:
        code: What kind of change.
        subject: The object that it is of.
        title: What it does, in a line.
        risk: What may be worse then.
        change: Fragments of manifests, or what to do where there are none.
        apply: The situation with it.
        excludes: Options with the same word here exclude each other; empty: it excludes none.
        note: What the figure rests on.
    """

    code: str
    subject: str
    title: str
    risk: str
    change: tuple[Manifest, ...]
    apply: Callable[[Situation], Situation] = field(compare=False)
    excludes: str = ""
    note: str = ""


def options_of(
    situation: Situation, wide: Catalog, fittings: Iterable[Fitting] = (), spot_note: str = ""
) -> Iterator[Option]:
    """Everything that may be changed.

    Args:
        situation: The cluster.
        wide: What each pool may buy if its requirements allowed it, by pool key.
        fittings: Requests that would do.
        spot_note: What spot prices rest on.
    """
    snapshot = situation.snapshot
    for key, pool in sorted(snapshot.pools.items()):
        if pool.invalid or pool.replicas is not None or not wide.get(key):
            continue
        yield from _of_pool(pool, wide, spot_note)
    yield from _of_policy(situation)
    yield from _of_weights(snapshot)
    yield from _of_protection(situation)
    yield from _of_budgets(snapshot)
    yield from _of_preferences(snapshot)
    yield from _of_soft_taints(snapshot, wide)
    for fitting in fittings:
        yield _requests(fitting)


def _of_pool(pool: Pool, wide: Catalog, spot_note: str) -> Iterator[Option]:
    kinds = wide[pool.key]
    architecture, capacity = pool.requirements.get(ARCH), pool.requirements.get(CAPACITY_TYPE)
    has_arm = any(
        kind.requirements[ARCH].allows(_ARM64) for kind in kinds if ARCH in tuple(kind.requirements)
    )
    names = _without(pool, INSTANCE_TYPE, INSTANCE_FAMILY) if _is_x86(pool) else pool.requirements
    if has_arm and not (architecture is None or architecture.allows(_ARM64)):
        wanted = _with(names, Requirement.of(ARCH, IN, ["amd64", _ARM64]))
        yield _pool_option(
            "AllowArm64",
            pool,
            wanted,
            wide,
            f"let {pool.key} allow arm64 beside amd64",
            "images must exist for both architectures; pods that need amd64 must select it",
            ""
            if names is pool.requirements
            else "instance types and families that the pool names are amd64, so the change drops them",
            excludes="" if names is pool.requirements else f"types of {pool.key}",
        )
    has_spot = any(offering.capacity_type == SPOT for kind in kinds for offering in kind.offerings)
    if has_spot and capacity is not None and not capacity.allows(SPOT) and capacity.allows(ON_DEMAND):
        yield _pool_option(
            "AllowSpot",
            pool,
            _with(pool.requirements, Requirement.of(CAPACITY_TYPE, IN, [SPOT, ON_DEMAND])),
            wide,
            f"let {pool.key} allow spot beside on-demand",
            "EC2 reclaims spot nodes with two minutes' notice: pods must tolerate a restart",
            spot_note,
        )
    yield from _of_types(pool, wide)
    zone = pool.requirements.get(ZONE)
    if zone is not None and not zone.complement:
        yield _pool_option(
            "AllowAllZones",
            pool,
            _without(pool, ZONE),
            wide,
            f"let {pool.key} use all zones of its subnets",
            "traffic between zones costs money, which these figures do not include",
        )
    if pool.packing == FEWEST_NODES:
        yield _pool_packing(pool)


def _is_x86(pool: Pool) -> bool:
    """Whether a pool names types or families, which are of one architecture each."""
    return any(
        (term := pool.requirements.get(key)) is not None and not term.complement
        for key in (INSTANCE_TYPE, INSTANCE_FAMILY)
    )


def _of_types(pool: Pool, wide: Catalog) -> Iterator[Option]:
    """Newer generations of what a pool has, and any type."""
    named = [
        key
        for key in (INSTANCE_TYPE, INSTANCE_FAMILY, INSTANCE_GENERATION)
        if key in tuple(pool.requirements)
    ]
    allowed = [kind for kind in wide[pool.key] if pool.requirements.conflict(kind.requirements) is None]
    categories = sorted(_values(allowed, INSTANCE_CATEGORY))
    generations = [int(value) for value in _values(allowed, INSTANCE_GENERATION) if value.isdigit()]
    excludes = f"types of {pool.key}"
    if named and categories and generations:
        wanted = _with(
            _without(pool, *named),
            Requirement.of(INSTANCE_CATEGORY, IN, categories),
            Requirement.of(INSTANCE_GENERATION, "Gt", [str(min(generations) - 1)]),
        )
        yield _pool_option(
            "AllowNewerTypes",
            pool,
            _same_architecture(wanted, pool, allowed),
            wide,
            f"let {pool.key} use all types of category {', '.join(categories)} from generation "
            f"{min(generations)} on",
            _RISK_TYPES,
            excludes=excludes,
        )
    chosen = [key for key in _TYPES if key in tuple(pool.requirements)]
    if chosen and allowed:
        wider = sorted({*categories, *_GENERAL})
        wanted = _with(_without(pool, *chosen), Requirement.of(INSTANCE_CATEGORY, IN, wider))
        yield _pool_option(
            "AllowAnyType",
            pool,
            _same_architecture(wanted, pool, allowed),
            wide,
            f"let {pool.key} use any type of categories {', '.join(wider)}",
            f"{_RISK_TYPES}; nodes may be larger or smaller",
            excludes=excludes,
        )


def _same_architecture(wanted: Requirements, pool: Pool, allowed: Iterable[InstanceType]) -> Requirements:
    """With the architectures that a pool has by its types, where it does not say them."""
    if pool.requirements.get(ARCH) is not None:
        return wanted
    values = sorted(_values(allowed, ARCH))
    return _with(wanted, Requirement.of(ARCH, IN, values)) if values else wanted


def _values(kinds: Iterable[InstanceType], key: str) -> set[str]:
    """The values of a label; types that do not have it have none."""
    terms = (kind.requirements.get(key) for kind in kinds)
    return {value for term in terms if term is not None for value in term.values}


def _without(pool: Pool, *keys: str) -> Requirements:
    return Requirements([pool.requirements[key] for key in pool.requirements if key not in keys])


def _with(requirements: Requirements, *more: Requirement) -> Requirements:
    """The requirements with others in the place of those of the same key."""
    keys = {requirement.key for requirement in more}
    return Requirements([*(requirements[key] for key in requirements if key not in keys), *more])


def _pool_option(
    code: str,
    pool: Pool,
    wanted: Requirements,
    wide: Catalog,
    title: str,
    risk: str,
    note: str = "",
    excludes: str = "",
) -> Option:
    """A pool with other requirements: what differs from those it has is changed in whatever it has then."""
    gone = {key for key in pool.requirements if key not in tuple(wanted)}
    new = [wanted[key] for key in wanted if pool.requirements.get(key) != wanted[key]]

    def apply(situation: Situation) -> Situation:
        there = situation.snapshot.pools[pool.key]
        kept = Requirements([there.requirements[key] for key in there.requirements if key not in gone])
        changed = replace(there, requirements=_with(kept, *new))
        return with_pool(situation, changed, wide)

    return Option(code, pool.key, title, risk, (_requirements_fragment(pool, wanted),), apply, excludes, note)


def with_pool(situation: Situation, pool: Pool, wide: Catalog) -> Situation:
    """A situation with another version of a pool, and what that may buy."""
    kinds = tuple(kind for kind in wide[pool.key] if pool.requirements.conflict(kind.requirements) is None)
    snapshot = replace(situation.snapshot, pools=situation.snapshot.pools.set(pool.key, pool))
    return replace(situation, snapshot=snapshot, catalog={**situation.catalog, pool.key: kinds})


def _fragment(pool: Pool, spec: Manifest, **metadata: Any) -> Manifest:
    version = "karpenter.sh/v1alpha5" if pool.reference.kind == PROVISIONER else "karpenter.sh/v1"
    head = {"apiVersion": version, "kind": pool.reference.kind, "metadata": {"name": pool.name, **metadata}}
    return {**head, "spec": spec} if spec else head


def _requirements_fragment(pool: Pool, wanted: Requirements) -> Manifest:
    kept = Requirements([wanted[key] for key in wanted if key not in pool.labels and key not in IMPLIED])
    terms = kept.to_api()
    if pool.reference.kind == PROVISIONER:
        return _fragment(pool, {"requirements": terms})
    return _fragment(pool, {"template": {"spec": {"requirements": terms}}})


def _pool_packing(pool: Pool) -> Option:
    def apply(situation: Situation) -> Situation:
        there = replace(situation.snapshot.pools[pool.key], packing=LOWEST_PRICE)
        pools = situation.snapshot.pools.set(pool.key, there)
        return replace(situation, snapshot=replace(situation.snapshot, pools=pools))

    fragment = _fragment(pool, {}, annotations={PACKING_ANNOTATION: LOWEST_PRICE})
    return Option(
        "PackForPrice",
        pool.key,
        f"pack {pool.key} for the lowest price instead of the fewest nodes",
        "more nodes: more daemons, addresses and licenses by the node (nodeless.nodeFee counts those)",
        (fragment,),
        apply,
    )


def _of_policy(situation: Situation) -> Iterator[Option]:
    if situation.policy.packing != FEWEST_NODES:
        return

    def apply(given: Situation) -> Situation:
        return replace(given, policy=replace(given.policy, packing=LOWEST_PRICE))

    data = {"nodeless.packing": LOWEST_PRICE}
    fragment = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "karpenter-global-settings"},
        "data": data,
    }
    yield Option(
        "PackForPrice",
        "settings",
        "pack for the lowest price instead of the fewest nodes",
        "more nodes: more daemons, addresses and licenses by the node (nodeless.nodeFee counts those)",
        (fragment,),
        apply,
    )


def _of_weights(snapshot: Snapshot) -> Iterator[Option]:
    weighted = [pool for _, pool in sorted(snapshot.pools.items()) if pool.weight]
    if len(snapshot.pools) < 2 or not weighted or len({pool.weight for pool in snapshot.pools.values()}) < 2:
        return

    def apply(situation: Situation) -> Situation:
        pools = situation.snapshot.pools
        for pool in weighted:
            pools = pools.set(pool.key, replace(pools[pool.key], weight=0))
        return replace(situation, snapshot=replace(situation.snapshot, pools=pools))

    yield Option(
        "DropWeights",
        ", ".join(pool.key for pool in weighted),
        f"let price decide among pools: drop the weight of {', '.join(pool.key for pool in weighted)}",
        "pools that were tried first for a reason (reservations, licenses) no longer are",
        tuple(_fragment(pool, {"weight": None}) for pool in weighted),
        apply,
    )


def _of_protection(situation: Situation) -> Iterator[Option]:
    """Pods that asked not to be disturbed."""
    protected: dict[Workload, int] = {}
    for pod in situation.snapshot.pods.values():
        if pod.node_name and pod.occupies and protection(pod, situation.now):
            protected[workload_of(pod)] = protected.get(workload_of(pod), 0) + 1
    for workload, number in sorted(protected.items()):
        yield Option(
            "AllowDisruption",
            str(workload),
            f"let {count(number, 'pod')} of {workload} be moved: they keep their nodes with {DO_NOT_DISRUPT}",
            "they restart when their node is consolidated; jobs start from the beginning",
            (_template(workload, {"metadata": {"annotations": {DO_NOT_DISRUPT: None}}}),),
            _changing_pods(workload, _unprotected),
        )


def _unprotected(pod: Pod) -> Pod:
    kept = {key: text for key, text in pod.annotations.items() if key not in (DO_NOT_DISRUPT, DO_NOT_EVICT)}
    return replace(pod, annotations=kept)


def _changing_pods(workload: Workload, change: Callable[[Pod], Pod]) -> Callable[[Situation], Situation]:
    def apply(situation: Situation) -> Situation:
        pods = situation.snapshot.pods
        for key, pod in situation.snapshot.pods.items():
            if workload_of(pod) == workload:
                pods = pods.set(key, change(pod))
        return replace(situation, snapshot=replace(situation.snapshot, pods=pods))

    return apply


def _of_budgets(snapshot: Snapshot) -> Iterator[Option]:
    """Disruption budgets of pods that allow no eviction."""
    for key, budget in sorted(snapshot.disruption_budgets.items()):
        selected = [
            pod
            for pod in snapshot.pods.values()
            if pod.namespace == budget.namespace
            and pod.node_name
            and pod.occupies
            and budget.refuses(pod)
            and selects(budget.selector, pod.labels)
        ]
        if not selected:
            continue

        def apply(situation: Situation, key: str = key) -> Situation:
            budgets = situation.snapshot.disruption_budgets
            allowing = budgets.set(key, replace(budgets[key], disruptions_allowed=1))
            return replace(situation, snapshot=replace(situation.snapshot, disruption_budgets=allowing))

        fragment = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": budget.name, "namespace": budget.namespace},
            # A budget may have one of the two only.
            "spec": {"minAvailable": None, "maxUnavailable": 1},
        }
        yield Option(
            "AllowEviction",
            f"PodDisruptionBudget/{key}",
            f"let PodDisruptionBudget {key} allow an eviction: it keeps the nodes of "
            f"{count(len(selected), 'pod')}",
            "one of the pods may be unavailable while it restarts on another node",
            (fragment,),
            apply,
        )


def _of_preferences(snapshot: Snapshot) -> Iterator[Option]:
    """Soft rules of workloads."""
    found: dict[Workload, set[str]] = {}
    for pod in snapshot.pods.values():
        if pod.occupies and (kinds := _soft(pod)):
            found.setdefault(workload_of(pod), set()).update(kinds)
    for workload, rules in sorted(found.items()):
        yield Option(
            "DropPreferences",
            str(workload),
            f"drop {', '.join(sorted(rules))} of {workload}",
            "pods may be closer together, or on nodes that they do not prefer",
            (),
            _changing_pods(workload, _without_preferences),
            note="the fragment is the pod template without these members",
        )


def _soft(pod: Pod) -> list[str]:
    shape = pod.shape
    kinds = []
    if shape.preferred_terms:
        kinds.append("preferred node affinity")
    if any(term.weight is not None for term in (*shape.affinity, *shape.anti_affinity)):
        kinds.append("preferred pod affinity")
    if any(spread.when_unsatisfiable == "ScheduleAnyway" for spread in shape.spread):
        kinds.append("ScheduleAnyway spread")
    return kinds


def _without_preferences(pod: Pod) -> Pod:
    return replace(pod, shape=shape_without(pod.shape, lambda _: True))


def _of_soft_taints(snapshot: Snapshot, wide: Catalog) -> Iterator[Option]:
    for key, pool in sorted(snapshot.pools.items()):
        soft = [taint for taint in pool.taints if taint.effect == "PreferNoSchedule"]
        if not soft or key not in wide:
            continue

        def apply(situation: Situation, key: str = key) -> Situation:
            there = situation.snapshot.pools[key]
            kept = tuple(taint for taint in there.taints if taint.effect != "PreferNoSchedule")
            return with_pool(situation, replace(there, taints=kept), wide)

        kept = [
            {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
            for taint in pool.taints
            if taint not in soft
        ]
        spec = (
            {"taints": kept}
            if pool.reference.kind == PROVISIONER
            else {"template": {"spec": {"taints": kept}}}
        )
        yield Option(
            "DropPreferences",
            key,
            f"drop the PreferNoSchedule taints of {key}",
            "pods that do not tolerate them come to its nodes as well",
            (_fragment(pool, spec),),
            apply,
        )


def _requests(fitting: Fitting) -> Option:
    def apply(situation: Situation) -> Situation:
        return replace(situation, snapshot=with_requests(situation.snapshot, fitting))

    before = {name: amount for name, amount in fitting.requested.items() if name in fitting.wanted}
    containers = [
        {"name": name, "resources": {"requests": format_resources(wanted)}}
        for name, wanted in fitting.containers.items()
        if wanted
    ]
    return Option(
        "LowerRequests",
        str(fitting.workload),
        f"request {amounts(fitting.wanted)} for each pod of {fitting.workload} instead of {amounts(before)}",
        "the metrics may not show all peaks: CPU is throttled or shared, and too little memory ends the "
        "container",
        (_template(fitting.workload, {"spec": {"containers": containers}}),),
        apply,
    )


def _template(workload: Workload, template: Mapping[str, Any]) -> Manifest:
    """A fragment of a workload's pod template."""
    version = {"Job": "batch/v1", "CronJob": "batch/v1", "Pod": "v1"}.get(workload.kind, "apps/v1")
    head = {
        "apiVersion": version,
        "kind": workload.kind,
        "metadata": {"name": workload.name, "namespace": workload.namespace},
    }
    if workload.kind == "Pod":
        metadata = {**head["metadata"], **template.get("metadata", {})}  # type: ignore[dict-item]
        return {**head, **template, "metadata": metadata}
    return {**head, "spec": {"template": dict(template)}}
