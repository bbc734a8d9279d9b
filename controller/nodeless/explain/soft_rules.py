"""Soft rules by a name that their author knows, and the cluster without some of them.

A soft rule is one that a plan keeps only as long as the pod has a place with it. Pods have them (topology
spread with `ScheduleAnyway`, preferred node affinity, preferred pod affinity and anti-affinity, on-demand for
the work that interruptions lose), and pools do (`PreferNoSchedule` taints).
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from nodeless.explain.words import listed
from nodeless.model.identity import Identity
from nodeless.model.labels import HOSTNAME, LOST_WORK, ZONE, canonical_key
from nodeless.model.plan import RelaxationCode
from nodeless.model.pods import NodeSelectorTerm, Pod, PodAffinityTerm, PodShape, TopologySpreadConstraint
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, find_untolerated
from nodeless.scheduling.capacity.pool_table import prefers_only
from nodeless.scheduling.pods.lost_work import lost_work
from nodeless.scheduling.pods.rules import HARD

_JOINED = ", "
_DOMAINS = {HOSTNAME: "hosts", ZONE: "zones"}
#: Rules that the setting `nodeless.preferencePolicy: Ignore` leaves in force.
_NEVER_IGNORED = (RelaxationCode.PREFER_NO_SCHEDULE, RelaxationCode.ON_DEMAND_FOR_LOST_WORK)


@dataclass(frozen=True, slots=True, order=True)
class SoftRule:
    """Soft rules of one kind over one key, whichever pods have them."""

    code: RelaxationCode
    """What a plan says where it is relaxed."""
    key: str = ""
    """The topology key; the labels that a node affinity is about, joined by `, `; a taint as `key=value`."""

    def __str__(self) -> str:
        over = _DOMAINS.get(self.key, self.key)
        match self.code:
            case RelaxationCode.SCHEDULE_ANYWAY:
                return f"ScheduleAnyway over {over}"
            case RelaxationCode.PREFERRED_POD_AFFINITY:
                return f"preferred pod affinity over {over}"
            case RelaxationCode.PREFERRED_POD_ANTI_AFFINITY:
                return f"preferred pod anti-affinity over {over}"
            case RelaxationCode.PREFERRED_NODE_AFFINITY:
                return f"preferred node affinity {listed(self.key.split(_JOINED))}".rstrip()
            case RelaxationCode.PREFER_NO_SCHEDULE:
                return f"PreferNoSchedule taint {self.key}"
            case RelaxationCode.ON_DEMAND_FOR_LOST_WORK:
                return "on-demand for lost work"
            case _:
                return f"{self.code} {self.key}".rstrip()

    @property
    def can_be_ignored(self) -> bool:
        """Whether it has no influence with `nodeless.preferencePolicy: Ignore`."""
        return self.code not in _NEVER_IGNORED


def soft_rules(snapshot: Snapshot, pods: Iterable[str]) -> dict[SoftRule, list[str]]:
    """The soft rules of some pods, each with the keys of the pods that have it, in their order.

    A pool's taint is a rule of the pods that do not tolerate it.
    """
    taints = {taint for pool in snapshot.pools.values() for taint in pool.taints if prefers_only(taint)}
    known: dict[Identity, tuple[SoftRule, ...]] = {}
    found: dict[SoftRule, list[str]] = {}
    for key in pods:
        pod = snapshot.pods.get(key)
        if pod is None:
            continue
        same = Identity(pod.shape)
        if same not in known:
            known[same] = tuple({*_of_shape(pod.shape), *_of_taints(taints, pod.shape)})
        own = (*known[same], _LOST_WORK) if pod.annotations and lost_work(pod) else known[same]
        for rule in own:
            found.setdefault(rule, []).append(key)
    return found


def without_soft_rules(snapshot: Snapshot, rules: Collection[SoftRule], pods: Iterable[str]) -> Snapshot:
    """The cluster without some soft rules of some pods, and without the taints among them on any pool."""
    gone = frozenset(rules)
    changed: dict[str, Pod] = {}
    shapes: dict[Identity, PodShape] = {}
    for key in pods:
        pod = snapshot.pods[key]
        same = Identity(pod.shape)
        shape = shapes.get(same)
        if shape is None:
            shape = shapes[same] = shape_without(pod.shape, gone.__contains__)
        saying = _LOST_WORK in gone and bool(pod.annotations) and LOST_WORK in pod.annotations
        if saying:
            others = {name: text for name, text in pod.annotations.items() if name != LOST_WORK}
            # Where the choice was made already, it goes as well.
            unsaid = shape if shape.lost_work is None else replace(shape, lost_work=None)
            changed[key] = replace(pod, shape=unsaid, annotations=others)
        elif shape is not pod.shape:
            changed[key] = replace(pod, shape=shape)
    untainted = {key: _without_taints(pool, gone) for key, pool in snapshot.pools.items()}
    return replace(snapshot, pods=snapshot.pods.update(changed), pools=snapshot.pools.update(untainted))


def shape_without(shape: PodShape, goes: Callable[[SoftRule], bool]) -> PodShape:
    """A shape without its soft rules for which that is said; itself where none goes."""

    def stays(rule: SoftRule | None) -> bool:
        return rule is None or not goes(rule)

    if not any(goes(rule) for rule in _of_shape(shape)):
        return shape
    return replace(
        shape,
        preferred_terms=tuple(each for each in shape.preferred_terms if stays(_of_term(each[1]))),
        spread=tuple(each for each in shape.spread if stays(_of_spread(each))),
        affinity=tuple(each for each in shape.affinity if stays(_of_affinity(each))),
        anti_affinity=tuple(each for each in shape.anti_affinity if stays(_of_anti_affinity(each))),
    )


_LOST_WORK = SoftRule(RelaxationCode.ON_DEMAND_FOR_LOST_WORK)


def _of_shape(shape: PodShape) -> Iterable[SoftRule]:
    rules = (
        *map(_of_spread, shape.spread),
        *(_of_term(term) for _, term in shape.preferred_terms),
        *map(_of_affinity, shape.affinity),
        *map(_of_anti_affinity, shape.anti_affinity),
    )
    return (rule for rule in rules if rule is not None)


def _of_spread(constraint: TopologySpreadConstraint) -> SoftRule | None:
    if constraint.when_unsatisfiable == HARD:
        return None
    return SoftRule(RelaxationCode.SCHEDULE_ANYWAY, canonical_key(constraint.topology_key))


def _of_term(term: NodeSelectorTerm) -> SoftRule:
    keys = sorted({canonical_key(one.key) for one in (*term.expressions, *term.fields)})
    return SoftRule(RelaxationCode.PREFERRED_NODE_AFFINITY, _JOINED.join(keys))


def _of_affinity(term: PodAffinityTerm) -> SoftRule | None:
    if term.weight is None:
        return None
    return SoftRule(RelaxationCode.PREFERRED_POD_AFFINITY, canonical_key(term.topology_key))


def _of_anti_affinity(term: PodAffinityTerm) -> SoftRule | None:
    if term.weight is None:
        return None
    return SoftRule(RelaxationCode.PREFERRED_POD_ANTI_AFFINITY, canonical_key(term.topology_key))


def _of_taint(taint: Taint) -> SoftRule:
    name = f"{taint.key}={taint.value}" if taint.value else taint.key
    return SoftRule(RelaxationCode.PREFER_NO_SCHEDULE, name)


def _of_taints(taints: Iterable[Taint], shape: PodShape) -> Iterable[SoftRule]:
    return (_of_taint(taint) for taint in taints if find_untolerated((taint,), shape.tolerations) is not None)


def _without_taints(pool: Pool, gone: Collection[SoftRule]) -> Pool:
    kept = tuple(taint for taint in pool.taints if not (prefers_only(taint) and _of_taint(taint) in gone))
    return pool if len(kept) == len(pool.taints) else replace(pool, taints=kept)
