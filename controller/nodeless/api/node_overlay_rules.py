"""Rules for a NodeOverlay beyond those that the API server enforces by itself.

Karpenter v1 checks these while it runs (`RuntimeValidate`) and leaves the overlay without effect, with a
condition that says why; so it is here, and `nodeless validate` says it beforehand.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.devices_annotation import devices_errors
from nodeless.api.errors import FieldError, at
from nodeless.api.names import label_value_defects, qualified_name_defects
from nodeless.api.requirements_v1 import BOUNDS
from nodeless.api.rule_codes import RuleCode
from nodeless.model.labels import CAPACITY_TYPE, DEVICES, ON_DEMAND, RESERVED, SPOT, canonical_key
from nodeless.model.quantity import QuantityError, parse_units

_CAPACITY_TYPES = (ON_DEMAND, SPOT, RESERVED)


def node_overlay_errors(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    """The broken rules of a NodeOverlay."""
    metadata, spec = manifest.get("metadata"), manifest.get("spec")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if isinstance(annotations, Mapping) and DEVICES in annotations:
        yield from devices_errors(annotations[DEVICES])
    if not isinstance(spec, Mapping):
        return
    requirements = spec.get("requirements")
    for position, requirement in enumerate(requirements if isinstance(requirements, list) else ()):
        if isinstance(requirement, Mapping):
            yield from _requirement_errors(requirement, at("spec.requirements", position))
    for name in ("price", "priceAdjustment"):
        text = spec.get(name)
        if isinstance(text, str) and math.isinf(_number(text)):
            yield FieldError(
                f"spec.{name}",
                text,
                "is larger than any number that can be computed with",
                code=RuleCode.OUT_OF_RANGE,
            )
    capacity = spec.get("capacity")
    for name, amount in capacity.items() if isinstance(capacity, Mapping) else ():
        yield from _capacity_errors(name, amount)


def _requirement_errors(requirement: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    key, operator, values = (requirement.get(name) for name in ("key", "operator", "values"))
    listed = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    for position, value in enumerate(listed):
        for defect in label_value_defects(value) if operator not in BOUNDS else ():
            yield FieldError(
                at(at(path, "values"), position), value, defect, code=RuleCode.INVALID_REQUIREMENT
            )
        if operator in BOUNDS and not (value.isascii() and value.isdecimal()):
            yield FieldError(
                at(at(path, "values"), position),
                value,
                "must be a whole number of 0 or more",
                code=RuleCode.INVALID_REQUIREMENT,
            )
    if not isinstance(key, str):
        return
    for defect in qualified_name_defects(key):
        yield FieldError(at(path, "key"), key, defect, code=RuleCode.INVALID_REQUIREMENT)
    known = any(value in _CAPACITY_TYPES for value in listed)
    if canonical_key(key) == CAPACITY_TYPE and operator == "In" and listed and not known:
        hint = f"known: {', '.join(_CAPACITY_TYPES)}"
        yield FieldError(
            at(path, "values"), values, "holds no known capacity type", hint, code=RuleCode.UNSUPPORTED_VALUE
        )


def _capacity_errors(name: object, amount: object) -> Iterator[FieldError]:
    if not isinstance(name, str):
        return
    where = at("spec.capacity", name)
    for defect in qualified_name_defects(name):
        yield FieldError(where, name, defect, code=RuleCode.INVALID_NAME)
    try:
        negative = isinstance(amount, int | str) and parse_units(amount) < 0
    except QuantityError:
        return  # the schema tells
    if negative:
        yield FieldError(
            where,
            amount,
            "is negative: no node has less than nothing",
            "write 0 or more",
            code=RuleCode.OUT_OF_RANGE,
        )


def _number(text: str) -> float:
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        return 0.0  # the schema tells
