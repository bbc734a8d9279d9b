"""Changes that might give a refused pod its place: to the pod, or to a pool, the smaller ones first.

Each is a guess from the reason of one pool; `counterfactual` tries it by solving again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_LOCAL_NVME, WELL_KNOWN, ZONE, canonical_key
from nodeless.model.plan import PoolRefusal, RefusalCode
from nodeless.model.pods import PodShape
from nodeless.model.pools import Pool
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.resources import EPHEMERAL_STORAGE, fits, readable_amount
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import TaintEffect, Toleration

_GI = 2**30


@dataclass(frozen=True, slots=True)
class Trial:
    """The part of a solve's arguments that a change is made to."""

    snapshot: Snapshot
    catalog: Catalog

    def with_shape(self, keys: Sequence[str], shape: PodShape) -> "Trial":
        """Some pods with another shape."""
        pods = self.snapshot.pods
        for key in keys:
            pods = pods.set(key, replace(pods[key], shape=shape))
        return replace(self, snapshot=replace(self.snapshot, pods=pods))

    def with_pool(self, pool: Pool, types: tuple[InstanceType, ...] | None = None) -> "Trial":
        """A pool in place of the one of its name, with the types that it may buy."""
        snapshot = replace(self.snapshot, pools=self.snapshot.pools.set(pool.key, pool))
        catalog = self.catalog if types is None else {**self.catalog, pool.key: types}
        return Trial(snapshot, catalog)


@dataclass(frozen=True, slots=True)
class Change:
    """What to do, in words, and the trial after it."""

    text: str
    trial: Trial


def changes(
    trial: Trial, wider: Catalog, keys: Sequence[str], shape: PodShape, reason: PoolRefusal
) -> Iterator[Change]:
    """Changes that follow from the reason of one pool; amounts and limits are `counterfactual`'s.

    Args:
        trial: The situation as it is.
        wider: Types that pools might buy if their requirements allowed them, by pool key.
        keys: Pods of one shape.
        shape: Their shape.
        reason: Why a pool cannot make a node for them.
    """
    pool = trial.snapshot.pools[str(reason.pool)]
    match reason.code:
        case RefusalCode.TAINT_NOT_TOLERATED:
            yield from _tolerating(trial, keys, shape, pool)
        case (
            RefusalCode.REQUIREMENTS_CONFLICT
            | RefusalCode.NO_OFFERING_AVAILABLE
            | RefusalCode.NO_INSTANCE_TYPES
        ):
            yield from _allowing(trial, wider, shape, pool)
            yield from _asking_less(trial, keys, shape, pool)
        case RefusalCode.INSUFFICIENT_RESOURCES:
            yield from _larger_types(trial, wider, shape, pool)
        case RefusalCode.HOST_PORT_TAKEN:
            free = replace(shape, host_ports=())
            yield Change("use no host port", trial.with_shape(keys, free))
        case _ if reason.code in (
            RefusalCode.TOPOLOGY_SPREAD,
            RefusalCode.POD_AFFINITY,
            RefusalCode.POD_ANTI_AFFINITY,
        ):
            yield from _looser(trial, keys, shape, reason.code)


def _tolerating(trial: Trial, keys: Sequence[str], shape: PodShape, pool: Pool) -> Iterator[Change]:
    missing = [
        taint
        for taint in pool.taints
        if taint.effect != TaintEffect.PREFER_NO_SCHEDULE
        and not any(toleration.tolerates(taint) for toleration in shape.tolerations)
    ]
    added = tuple(
        Toleration(taint.key, "Equal" if taint.value else "Exists", taint.value, taint.effect)
        for taint in missing
    )
    tolerant = replace(shape, tolerations=(*shape.tolerations, *added))
    text = f"tolerate {' and '.join(str(taint) for taint in missing)} to use {pool.reference}"
    yield Change(text, trial.with_shape(keys, tolerant))


def _allowing(trial: Trial, wider: Catalog, shape: PodShape, pool: Pool) -> Iterator[Change]:
    """The pool takes in what the pod asks for."""
    wanted = _required_labels(shape)
    clashing = [
        requirement
        for key, requirement in wanted.items()
        if key in pool.requirements and not pool.requirements[key].overlaps(requirement)
    ]
    unknown = [
        requirement
        for key, requirement in wanted.items()
        if key not in pool.requirements and key not in WELL_KNOWN and not requirement.allows_absence()
    ]
    if clashing or unknown:
        if all(not each.complement and each.values for each in (*clashing, *unknown)):
            yield _widened(trial, wider, pool, clashing, unknown)
        return
    for key in (CAPACITY_TYPE, ZONE):
        own = pool.requirements.get(key)
        if own is not None and key not in wanted:
            yield _widened(trial, wider, pool, [Requirement(key, True)], [])


def _widened(
    trial: Trial, wider: Catalog, pool: Pool, clashing: Sequence[Requirement], unknown: Sequence[Requirement]
) -> Change:
    requirements = dict(pool.requirements)
    labels = dict(pool.labels)
    parts = []
    for each in clashing:
        if each.complement:
            del requirements[each.key]
            parts.append(f"allow any {each.key}")
        else:
            requirements[each.key] = Requirement(
                each.key, False, pool.requirements[each.key].values | each.values
            )
            parts.append(f"allow {each.key} {', '.join(sorted(each.values))}")
        labels.pop(each.key, None)
    for each in unknown:
        value = min(each.values)
        requirements[each.key] = Requirement(each.key, False, frozenset((value,)))
        labels[each.key] = value
        parts.append(f"have the label {each.key}={value}")
    changed = replace(pool, requirements=Requirements(requirements.values()), labels=labels)
    text = f"let {pool.reference} {' and '.join(parts)}"
    return Change(text, trial.with_pool(changed, buyable(wider, trial.catalog, changed)))


def buyable(wider: Catalog, catalog: Catalog, pool: Pool) -> tuple[InstanceType, ...]:
    """The types that a pool with other requirements may buy, as far as types are known."""
    known = wider.get(pool.key)
    if known is None:
        # Types of other pools stand for what the cloud has: their own kubelet settings may differ a little.
        known = tuple(
            {
                instance_type.name: instance_type
                for instance_types in catalog.values()
                for instance_type in instance_types
            }.values()
        )
    conflict = pool.requirements.conflict
    return tuple(instance_type for instance_type in known if conflict(instance_type.requirements) is None)


def _asking_less(trial: Trial, keys: Sequence[str], shape: PodShape, pool: Pool) -> Iterator[Change]:
    for key, requirement in _required_labels(shape).items():
        own = pool.requirements.get(key)
        if own is not None and own.overlaps(requirement):
            continue
        yield Change(f"drop {requirement} from the pod", trial.with_shape(keys, _without_key(shape, key)))


def _larger_types(trial: Trial, wider: Catalog, shape: PodShape, pool: Pool) -> Iterator[Change]:
    """Of the types that hold the pod the one that clashes least with the pool; of those the cheapest."""
    requests = dict(shape.requests)
    found: list[tuple[int, float, str, tuple[Requirement, ...]]] = []
    for instance_type in wider.get(pool.key, ()):
        offering = instance_type.cheapest(_zones_of(pool))
        if offering is None or not fits(requests, instance_type.allocatable):
            continue
        clashing = tuple(
            instance_type.requirements[key]
            for key, own in sorted(pool.requirements.items())
            if key in instance_type.requirements and not own.overlaps(instance_type.requirements[key])
        )
        if clashing and all(each.values and not each.complement for each in clashing):
            found.append((len(clashing), offering.price, instance_type.name, clashing))
    if found:
        _, price, name, clashing = min(found, key=lambda each: each[:3])
        change = _widened(trial, wider, pool, clashing, [])
        yield replace(change, text=f"{change.text} (for example {name}, {price:.4f} USD/h)")


def larger_volume(trial: Trial, shape: PodShape, pool: Pool) -> Iterator[Change]:
    """A volume for the pods' files that holds what one of them requests, where that is more than there is.

    What the system keeps of it is taken to grow with it, though a part is fixed: never too little.
    """
    requested = dict(shape.requests).get(EPHEMERAL_STORAGE, 0)
    types = trial.catalog.get(pool.key, ())
    node_class = trial.snapshot.node_classes.get(str(pool.node_class))
    if not requested or node_class is None:
        return
    on_volume = [
        each for each in types if not (node_class.instance_store_raid and _has(each, INSTANCE_LOCAL_NVME))
    ]
    sizes = {each.capacity.get(EPHEMERAL_STORAGE, 0) for each in on_volume}
    room = max((each.allocatable.get(EPHEMERAL_STORAGE, 0) for each in on_volume), default=0)
    if len(sizes) != 1 or not 0 < room < requested:
        return
    (size,) = sizes
    wanted = -(-requested * size // room // _GI) * _GI
    grown = tuple(_with_disk(each, wanted) if each in on_volume else each for each in types)
    text = (
        f"give the nodes of {pool.reference} a volume of {wanted // _GI}Gi instead of "
        f"{readable_amount(EPHEMERAL_STORAGE, size)} (blockDeviceMappings of {pool.node_class})"
    )
    yield Change(text, trial.with_pool(pool, grown))


def _has(instance_type: InstanceType, key: str) -> bool:
    requirement = instance_type.label(key)
    return requirement is not None and not requirement.complement and bool(requirement.values)


def _with_disk(instance_type: InstanceType, size: int) -> InstanceType:
    before, kept = (
        amounts.get(EPHEMERAL_STORAGE, 0) for amounts in (instance_type.capacity, instance_type.overhead)
    )
    return replace(
        instance_type,
        capacity={**instance_type.capacity, EPHEMERAL_STORAGE: size},
        overhead={**instance_type.overhead, EPHEMERAL_STORAGE: -(-kept * size // before)},
    )


def _zones_of(pool: Pool) -> Requirements:
    return Requirements(each for key, each in pool.requirements.items() if key in (ZONE, CAPACITY_TYPE))


def _looser(trial: Trial, keys: Sequence[str], shape: PodShape, code: RefusalCode) -> Iterator[Change]:
    if code == RefusalCode.TOPOLOGY_SPREAD:
        for index, spread in enumerate(shape.spread):
            if spread.when_unsatisfiable != "ScheduleAnyway":
                kept = replace(spread, when_unsatisfiable="ScheduleAnyway")
                constraints = (*shape.spread[:index], kept, *shape.spread[index + 1 :])
                text = f"let the spread over {spread.topology_key} be ScheduleAnyway"
                yield Change(text, trial.with_shape(keys, replace(shape, spread=constraints)))
        return
    terms = shape.affinity if code == RefusalCode.POD_AFFINITY else shape.anti_affinity
    for term in terms:
        if term.weight is None:
            soft = tuple(replace(each, weight=100) if each is term else each for each in terms)
            name = "pod affinity" if code == RefusalCode.POD_AFFINITY else "pod anti-affinity"
            text = f"let the {name} over {term.topology_key} be preferred instead of required"
            loose = (
                replace(shape, affinity=soft)
                if code == RefusalCode.POD_AFFINITY
                else replace(shape, anti_affinity=soft)
            )
            yield Change(text, trial.with_shape(keys, loose))


def _required_labels(shape: PodShape) -> Mapping[str, Requirement]:
    """What the node selector and the only required term ask for, by key; alternatives are not looked at."""
    expressions = [Requirement.of(key, IN, (value,)) for key, value in shape.node_selector]
    if len(shape.required_terms) == 1:
        expressions += shape.required_terms[0].expressions
    return dict(sorted(Requirements(expressions).items()))


def _without_key(shape: PodShape, key: str) -> PodShape:
    terms = tuple(
        replace(term, expressions=tuple(each for each in term.expressions if each.key != key))
        for term in shape.required_terms
    )
    return replace(
        shape,
        node_selector=tuple(pair for pair in shape.node_selector if canonical_key(pair[0]) != key),
        required_terms=tuple(term for term in terms if term.expressions),
    )
