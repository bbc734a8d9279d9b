"""Series of conditions and deletions of NodePools, EC2NodeClasses and NodeClaims, under Karpenter v1's names.

Each stands under two names: that of its kind, and the one that is common to all kinds, which v1 had first.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nodeless.model.conditions import Condition
from nodeless.model.labels import AWS_GROUP, CORE_GROUP, EC2_NODE_CLASS_NAME, NODE_POOL
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND
from nodeless.model.snapshot import Snapshot

_OBJECT = ("namespace", "name")
_CONDITION = (*_OBJECT, "type", "status", "reason")
_COMMON = ("group", "kind")
_GROUPS = {NODE_POOL_KIND: CORE_GROUP, EC2_NODE_CLASS: AWS_GROUP, "NodeClaim": CORE_GROUP}
#: Labels of a NodeClaim that its series have, too.
_CLAIM_LABELS = {
    key.replace("/", "_").replace(".", "_").replace("-", "_"): key for key in (NODE_POOL, EC2_NODE_CLASS_NAME)
}
_COUNT, _SECONDS, _TERMINATION = (
    "status_condition_count",
    "status_condition_current_status_seconds",
    "termination_current_time_seconds",
)
_MEANINGS = {
    _COUNT: ("1 for each condition of {}, with its status and reason.", _CONDITION),
    _SECONDS: ("How long a condition of {} has had its status.", _CONDITION),
    _TERMINATION: ("How long {} has been deleted and waits for its end.", _OBJECT),
}
_WORDS = {NODE_POOL_KIND: "a NodePool", EC2_NODE_CLASS: "an EC2NodeClass", "NodeClaim": "a NodeClaim"}


def _families() -> Iterator[tuple[str, tuple[str, tuple[str, ...]]]]:
    for name, (meaning, labels) in _MEANINGS.items():
        for kind, word in _WORDS.items():
            more = tuple(_CLAIM_LABELS) if kind == "NodeClaim" else ()
            yield f"operator_{kind.lower()}_{name}", (meaning.format(word), (*labels, *more))
        yield f"operator_{name}", (meaning.format("an object of these kinds"), (*labels, *_COMMON))


CONDITION_FAMILIES: Mapping[str, tuple[str, tuple[str, ...]]] = dict(_families())
"""Meaning and labels by name."""


@dataclass(frozen=True, slots=True)
class _Object:
    kind: str
    name: str
    conditions: Iterable[Condition]
    deletion_timestamp: float | None
    labels: Mapping[str, str]


def condition_series(snapshot: Snapshot, now: float) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Name, labels and value of each series; `now` is in seconds since the epoch."""
    for each in _objects(snapshot):
        common = {"group": _GROUPS[each.kind], "kind": each.kind}
        for name, labels, value in _series_of(each, now):
            yield f"operator_{each.kind.lower()}_{name}", {**labels, **each.labels}, value
            yield f"operator_{name}", {**labels, **common}, value


def _series_of(each: _Object, now: float) -> Iterator[tuple[str, dict[str, str], float]]:
    named = {"namespace": "", "name": each.name}
    for condition in each.conditions:
        labels = {**named, "type": condition.type, "status": condition.status, "reason": condition.reason}
        yield _COUNT, labels, 1
        yield _SECONDS, labels, max(now - condition.last_transition_time, 0.0)
    if each.deletion_timestamp is not None:
        yield _TERMINATION, named, max(now - each.deletion_timestamp, 0.0)


def _objects(snapshot: Snapshot) -> Iterator[_Object]:
    for owner in (*snapshot.pools.values(), *snapshot.node_classes.values()):
        if owner.reference.kind in _GROUPS:
            name, kind = owner.reference.name, owner.reference.kind
            yield _Object(kind, name, owner.conditions, owner.deletion_timestamp, {})
    for claim in snapshot.claims.values():
        labels = {label: claim.labels.get(key, "") for label, key in _CLAIM_LABELS.items()}
        yield _Object("NodeClaim", claim.name, claim.conditions, claim.deletion_timestamp, labels)
