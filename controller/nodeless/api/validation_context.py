"""What looks like a mistake only to those who know instance types and the other pools: warnings.

Admission and `nodeless validate` ask this about valid pools. What is not known is passed over in silence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from nodeless.api.defaulting import default
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.errors import ABSENT, FieldError, InvalidObject, at, in_order
from nodeless.api.kinds import NODE_POOL, PROVISIONER
from nodeless.api.known_types import KnownTypes
from nodeless.api.reading_pools import read_pool
from nodeless.api.requirement_warnings import FEW_TYPES, few_types_for_spot, warning
from nodeless.api.rule_codes import RuleCode
from nodeless.api.suggestions import did_you_mean
from nodeless.api.validation import MOST_FAULTS, advice, kind_of
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    EC2_NODE_CLASS_NAME,
    INSTANCE_TYPE,
    OS,
    PROVISIONER_NAME,
    SPOT,
)
from nodeless.model.labels import NODE_POOL as NODE_POOL_NAME
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirement, Requirements

#: Labels whose unknown values `requirement_warnings` tells of.
_FEW_VALUES = (ARCH, OS, CAPACITY_TYPE)
#: Labels that every pool bears a value of its own of.
_NAMES = frozenset({PROVISIONER_NAME, NODE_POOL_NAME, EC2_NODE_CLASS_NAME})
_SHOWN = 5
#: Labels, requirements and their values of a pool that is compared with types and other pools; the work grows
#: with their square. A list of every instance type that EC2 has is well below.
_MOST_COMPARED = 5000
_MOST_REQUIREMENTS = 500


@dataclass(frozen=True, slots=True)
class ValidationContext:
    """What is known around an object.

    Attributes:
        types: Instance types; None when they are not known.
        pools: The cluster's pools by `Kind/name`.
    """

    types: KnownTypes | None = None
    pools: Mapping[str, Pool] = field(default_factory=dict)


NOTHING_KNOWN = ValidationContext()


@dataclass(frozen=True, slots=True)
class _Entry:
    """One requirement, its place in the manifest, and the types that meet it."""

    path: str
    requirement: Requirement
    meeting: int


def context_warnings(manifest: Any, around: ValidationContext) -> list[FieldError]:
    """All warnings about an object: those of `validation.advice`, and those of its surroundings."""
    if kind_of(manifest) is None:
        return []
    return in_order([*advice(manifest), *islice(pool_warnings(manifest, around), MOST_FAULTS)])


def pool_warnings(manifest: Mapping[str, Any], around: ValidationContext) -> Iterator[FieldError]:
    """Warnings about a pool; nothing about other objects, and about pools that cannot be read."""
    if not (PROVISIONER.describes(manifest) or NODE_POOL.describes(manifest)):
        return
    try:
        pool, _ = read_pool(manifest)
    except InvalidObject:
        return
    listed = _requirements_of(manifest)
    compared = len(pool.labels) + sum(1 + len(requirement.get("values") or ()) for requirement in listed)
    if compared > _MOST_COMPARED or len(listed) > _MOST_REQUIREMENTS:
        return
    if around.types is not None:
        yield from _type_warnings(drop_nulls(manifest), pool, around.types)
    yield from _overlap_warnings(pool, around)


def _requirements_of(manifest: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The requirements of a valid pool as its manifest has them."""
    spec = manifest["spec"]
    if NODE_POOL.describes(manifest):
        spec = spec["template"]["spec"]
    return spec.get("requirements") or ()


def _type_warnings(manifest: Mapping[str, Any], pool: Pool, types: KnownTypes) -> Iterator[FieldError]:
    path, entries = _entries(manifest, types)
    labels = types.meeting_all(Requirements.from_labels(pool.labels).values())
    left = labels
    for entry in entries:
        before, left = left, left & entry.meeting
        if not left:
            message = f"excludes all {before.bit_count()} instance types that are possible without it"
            hint = _hint(entry.requirement, types)
            yield warning(
                entry.path,
                ABSENT,
                f"{entry.requirement} {message} ({types.source})",
                hint,
                code=RuleCode.NO_INSTANCE_TYPES,
            )
            return
    for position, entry in enumerate(entries):
        others = labels
        for other in (*entries[:position], *entries[position + 1 :]):
            others &= other.meeting
        yield from _dead_values(entry, others, types)
        yield from _too_little_choice(entry, left, types)
    yield from _few_for_spot(pool, left, path, types)


def _entries(manifest: Mapping[str, Any], types: KnownTypes) -> tuple[str, list[_Entry]]:
    """The requirements that types differ in, each where it stands; a default stands nowhere."""
    spec, path = default(manifest)["spec"], "spec.requirements"
    given = len(manifest["spec"].get("requirements") or ())
    if NODE_POOL.describes(manifest):
        spec, path = spec["template"]["spec"], "spec.template.spec.requirements"
        given = len(spec["requirements"])
    entries = []
    for position, each in enumerate(spec.get("requirements") or ()):
        requirement = Requirement.of(
            each["key"], each["operator"], each.get("values") or (), each.get("minValues")
        )
        if types.describes(requirement.key):
            where = at(path, position) if position < given else path
            entries.append(_Entry(where, requirement, types.meeting(requirement)))
    return path, entries


def _hint(requirement: Requirement, types: KnownTypes) -> str:
    unknown = [value for value in sorted(requirement.values) if not types.bearing(requirement.key, value)]
    return _near(unknown[0], requirement.key, types) if unknown else ""


def _near(value: str, key: str, types: KnownTypes) -> str:
    """Spelling is compared with names of the same first letter only: there are over a thousand."""
    return did_you_mean(value, [type_ for type_ in types.values(key) if type_[:1] == value[:1]])


def _dead_values(entry: _Entry, others: int, types: KnownTypes) -> Iterator[FieldError]:
    """Values of an `In` that no type bears which the other requirements leave."""
    requirement = entry.requirement
    if requirement.complement:
        return
    dead = []
    for value in sorted(requirement.values):
        bearing = types.bearing(requirement.key, value)
        if not bearing & others and (bearing or requirement.key not in _FEW_VALUES):
            dead.append(value)
    if dead:
        unknown = next((value for value in dead if not types.bearing(requirement.key, value)), None)
        hint = _near(unknown, requirement.key, types) if unknown else ""
        message = (
            f"no instance type that meets the other requirements has {_join_names(dead)} ({types.source})"
        )
        yield warning(at(entry.path, "values"), ABSENT, message, hint, code=RuleCode.UNREACHABLE_VALUE)


def _too_little_choice(entry: _Entry, left: int, types: KnownTypes) -> Iterator[FieldError]:
    """A `minValues` that the types that are left cannot reach."""
    key, least = entry.requirement.key, entry.requirement.min_values
    if least is None:
        return
    possible = sum(bool(types.bearing(key, value) & left) for value in types.values(key))
    if possible < least:
        message = (
            f"is more than the {possible} values that are possible ({types.source}): "
            "nodeless creates no nodes"
        )
        yield warning(
            at(entry.path, "minValues"),
            least,
            message,
            f"write at most {possible}",
            code=RuleCode.UNREACHABLE_MIN_VALUES,
        )


def _few_for_spot(pool: Pool, left: int, path: str, types: KnownTypes) -> Iterator[FieldError]:
    capacity = pool.requirements.get(CAPACITY_TYPE)
    if capacity is None or capacity.complement or not capacity.allows(SPOT):
        return
    listed = pool.requirements.get(INSTANCE_TYPE)
    if listed is not None and not listed.complement and len(listed.values) < FEW_TYPES:
        return  # told from the list itself
    yield from few_types_for_spot(types.listed(left & types.spot), path)


def _overlap_warnings(pool: Pool, around: ValidationContext) -> Iterator[FieldError]:
    """Pools of one weight that the same pods may go to: which of them gets the pods is nobody's decision."""
    rivals = [key for key, other in sorted(around.pools.items()) if _overlap(pool, other, around.types)]
    if rivals:
        same = "which has the same weight" if len(rivals) == 1 else "which have the same weight"
        message = f"overlaps with {_join_names(rivals)}, {same}: the same pods can go to either"
        hint = "give the preferred one a higher weight, or separate them with labels or taints"
        yield warning("spec.weight", pool.weight or ABSENT, message, hint, code=RuleCode.OVERLAPPING_POOLS)


def _overlap(pool: Pool, other: Pool, types: KnownTypes | None) -> bool:
    if pool.key == other.key or other.invalid or other.deletion_timestamp is not None:
        return False
    if pool.replicas is not None or other.replicas is not None:
        return False  # no pod makes a static pool launch a node
    if pool.weight != other.weight or set(pool.taints) != set(other.taints):
        return False
    mine, theirs = pool.requirements, other.requirements
    if not all(mine[key].overlaps(theirs[key]) for key in mine.keys() & theirs.keys() - _NAMES):
        return False
    both = mine.intersect(theirs)
    return types is None or types.meeting_all(both[key] for key in both if key not in _NAMES) != 0


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
