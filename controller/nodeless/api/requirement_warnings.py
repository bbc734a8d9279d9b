"""Warnings about requirements, limits and tags, the same in both generations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.requirement_rules import is_restricted
from nodeless.api.rule_codes import RuleCode
from nodeless.api.suggestions import did_you_mean, well_known_counterpart
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    RESERVED,
    SPOT,
    WELL_KNOWN,
    canonical_key,
)
from nodeless.model.requirements import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement

_KNOWN_VALUES = {
    CAPACITY_TYPE: (SPOT, ON_DEMAND),
    ARCH: ("amd64", "arm64"),
    OS: ("linux",),
}
#: An EC2NodeClass can select capacity reservations and images of Windows; an AWSNodeTemplate cannot.
_KNOWN_VALUES_V1 = {**_KNOWN_VALUES, CAPACITY_TYPE: (SPOT, ON_DEMAND, RESERVED), OS: ("linux", "windows")}
_OTHER_NAMES = {
    "x86_64": "amd64",
    "x86": "amd64",
    "aarch64": "arm64",
    "arm": "arm64",
    "ondemand": "on-demand",
}
_NEEDS_NO_VALUES = (EXISTS, DOES_NOT_EXIST)
#: Resources that nodes have and that carry no domain (those of device plugins do).
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", "nodes")
#: Resources of the device plugins that instance types are made for.
_DEVICES = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "aws.amazon.com/neurondevice",
    "vpc.amazonaws.com/efa",
    "vpc.amazonaws.com/pod-eni",
    "vpc.amazonaws.com/PrivateIPv4Address",
)
#: With fewer types to choose from, spot capacity is interrupted more often than it needs to be.
FEW_TYPES = 5
#: Tags of one resource (EC2 User Guide, tag restrictions).
_MOST_TAGS = 50


def requirement_warnings(requirements: Any, path: str, *, v1: bool = False) -> Iterator[FieldError]:
    """What looks like a mistake in a list of requirements, of a NodePool when `v1`, else of a Provisioner."""
    known = _KNOWN_VALUES_V1 if v1 else _KNOWN_VALUES
    seen: dict[str, Requirement] = {}
    for position, requirement in enumerate(requirements if isinstance(requirements, list) else ()):
        if isinstance(requirement, Mapping):
            where = at(path, position)
            yield from _requirement(requirement, where, known)
            yield from _contradiction(requirement, where, seen)
    yield from _few_types(seen, path)


def _few_types(seen: Mapping[str, Requirement], path: str) -> Iterator[FieldError]:
    types, capacity = seen.get(INSTANCE_TYPE), seen.get(CAPACITY_TYPE)
    if types is None or types.complement or not types.values:
        return
    if capacity is not None and capacity.allows(SPOT):
        yield from few_types_for_spot(sorted(types.values), path)


def few_types_for_spot(names: Sequence[str], path: str) -> Iterator[FieldError]:
    """A warning where requirements leave few types for spot.

    Args:
        names: The types that they leave; none: the requirements are at fault in another way.
        path: Where the requirements stand.
    """
    if 0 < len(names) < FEW_TYPES:
        types = "instance type" if len(names) == 1 else "instance types"
        yield warning(
            path,
            ABSENT,
            f"leaves {len(names)} {types} for spot ({', '.join(names)})",
            f"allow {FEW_TYPES} or more: fewer interruptions, lower prices",
            code=RuleCode.FEW_SPOT_TYPES,
        )


def limit_warnings(limits: Any, path: str) -> Iterator[FieldError]:
    """What looks like a mistake in a pool's limits."""
    for name, amount in limits.items() if isinstance(limits, Mapping) else ():
        where = at(path, str(name))
        if str(amount).startswith("-"):
            yield warning(
                where, amount, "is negative: nothing will ever be launched", code=RuleCode.NEGATIVE_LIMIT
            )
        if isinstance(name, str) and not _may_exist(name):
            hint = did_you_mean(name, (*_RESOURCES, *_DEVICES), f"known: {', '.join(_RESOURCES)}")
            yield warning(
                where,
                amount,
                "limits nothing: no node has such a resource",
                hint,
                code=RuleCode.UNKNOWN_RESOURCE,
            )


def _may_exist(resource: str) -> bool:
    """Whether nodes may have a resource: a known one, or one of a device plugin that we do not know."""
    domain, slash, _ = resource.partition("/")
    if not slash:
        return resource in _RESOURCES or resource.startswith("hugepages-")
    return resource in _DEVICES or all(domain != known.partition("/")[0] for known in _DEVICES)


def tag_warnings(tags: Any, path: str) -> Iterator[FieldError]:
    """Tags that EC2 refuses."""
    if isinstance(tags, Mapping) and len(tags) > _MOST_TAGS:
        message = f"has {len(tags)} tags: EC2 allows {_MOST_TAGS}, and the controller adds some of its own"
        yield warning(path, ABSENT, message, code=RuleCode.TOO_MANY_TAGS)
    for key in tags if isinstance(tags, Mapping) else ():
        if str(key).lower().startswith("aws:"):
            yield warning(
                at(path, str(key)),
                ABSENT,
                "is reserved: EC2 refuses tags that start with aws:",
                code=RuleCode.RESERVED_TAG,
            )


def _requirement(
    requirement: Mapping[str, Any], path: str, known_values: Mapping[str, Sequence[str]]
) -> Iterator[FieldError]:
    key, operator, values = (requirement.get(name) for name in ("key", "operator", "values"))
    listed = values if isinstance(values, list) else []
    if isinstance(key, str) and key == key.strip():
        canonical = canonical_key(key)
        if (
            canonical not in WELL_KNOWN
            and not is_restricted(canonical)
            and (twin := well_known_counterpart(key))
        ):
            message = "is not a known key: it does not select instances, nodes only get it as a label"
            yield warning(
                at(path, "key"), key, message, f"did you mean {twin}?", code=RuleCode.UNKNOWN_LABEL_KEY
            )
        known = known_values.get(canonical, ())
        for position, value in enumerate(listed if known and operator in (IN, NOT_IN, None, "") else ()):
            if isinstance(value, str) and value not in known:
                other = _OTHER_NAMES.get(value.strip().lower(), "")
                hint = (
                    f"did you mean {other}?"
                    if other
                    else did_you_mean(value, known, f"known: {', '.join(known)}")
                )
                yield warning(
                    at(at(path, "values"), position),
                    value,
                    f"is not a known value of {canonical}",
                    hint,
                    code=RuleCode.UNKNOWN_LABEL_VALUE,
                )
    if operator == NOT_IN and not listed:
        yield warning(
            at(path, "values"),
            ABSENT,
            "is empty: NotIn then allows every value",
            "use Exists",
            code=RuleCode.IGNORED_VALUES,
        )
    if operator in _NEEDS_NO_VALUES and listed:
        yield warning(
            at(path, "values"),
            listed,
            f"is ignored by {operator}",
            "leave it out",
            code=RuleCode.IGNORED_VALUES,
        )


def _contradiction(
    requirement: Mapping[str, Any], path: str, seen: dict[str, Requirement]
) -> Iterator[FieldError]:
    try:
        added = Requirement.of(
            requirement["key"],
            requirement["operator"],
            [str(value) for value in requirement.get("values") or ()],
        )
    except (KeyError, ValueError, IndexError, TypeError, AttributeError):
        return  # no requirement at all: validation tells
    before = seen.get(added.key)
    seen[added.key] = added if before is None else before.intersect(added)
    if before is not None and not before.overlaps(added):
        message = f"contradicts the requirements on {added.key} before it: no node can meet them all"
        yield warning(path, ABSENT, message, code=RuleCode.CONTRADICTING_REQUIREMENTS)


def warning(path: str, value: Any, message: str, hint: str = "", *, code: RuleCode) -> FieldError:
    """A fault that is no reason for a refusal."""
    return FieldError(path, value, message, hint, warning=True, code=code)
