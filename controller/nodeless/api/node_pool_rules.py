"""Rules for a NodePool beyond those that the API server enforces by itself.

Karpenter v1 checks these while it runs and stops using the pool; here they are refused
at once, and told on the object's conditions when no webhook was asked.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.names import label_value_defects, qualified_name_defects
from nodeless.api.requirements_v1 import BOUNDS
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schedules import schedule_defect
from nodeless.api.taint_rules import duplicate_taints
from nodeless.model.labels import CAPACITY_TYPE, canonical_key

#: What the scale subresource can carry.
_MOST_REPLICAS = 2**31 - 1
_TEMPLATE = "spec.template.spec"
_CAPACITY_TYPES = ("on-demand", "spot", "reserved")
_NEW_POOL = "create a new NodePool, and delete this one when its nodes have moved"


def node_pool_errors(manifest: Mapping[str, Any], old: Any = None) -> Iterator[FieldError]:
    """The broken rules of a NodePool; with its former state also those about the change."""
    spec = _member(manifest, "spec")
    inner = _member(spec, "template", "spec")
    labels = _member(spec, "template", "metadata", "labels")
    for key in labels:
        if isinstance(key, str):
            for defect in qualified_name_defects(key):
                yield FieldError(
                    at("spec.template.metadata.labels", key), key, defect, code=RuleCode.INVALID_LABEL
                )
    requirements = inner.get("requirements")
    for position, requirement in enumerate(requirements if isinstance(requirements, list) else ()):
        if isinstance(requirement, Mapping):
            yield from _requirement_errors(requirement, at(f"{_TEMPLATE}.requirements", position))
    yield from duplicate_taints(inner, _TEMPLATE)
    replicas = spec.get("replicas")
    if isinstance(replicas, int) and replicas > _MOST_REPLICAS:
        yield FieldError(
            "spec.replicas", replicas, f"must be at most {_MOST_REPLICAS}", code=RuleCode.OUT_OF_RANGE
        )
    budgets = _member(spec, "disruption").get("budgets")
    for position, budget in enumerate(budgets if isinstance(budgets, list) else ()):
        schedule = budget.get("schedule") if isinstance(budget, Mapping) else None
        if isinstance(schedule, str) and (defect := schedule_defect(schedule)):
            where = f"{at('spec.disruption.budgets', position)}.schedule"
            yield FieldError(
                where,
                schedule,
                defect,
                "write five cron fields in UTC, as 0 9 * * mon-fri",
                code=RuleCode.INVALID_FORMAT,
            )
    if isinstance(old, Mapping):
        yield from _change_errors(spec, _member(old, "spec"))


def _requirement_errors(requirement: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    key, operator, values = (requirement.get(name) for name in ("key", "operator", "values"))
    listed = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    for position, value in enumerate(listed):
        for defect in label_value_defects(value) if operator not in BOUNDS else ():
            yield FieldError(at(at(path, "values"), position), value, defect, code=RuleCode.INVALID_LABEL)
        if operator in BOUNDS and not (value.isascii() and value.isdecimal()):
            yield FieldError(
                at(at(path, "values"), position),
                value,
                "must be a whole number of 0 or more",
                code=RuleCode.INVALID_REQUIREMENT,
            )
    if isinstance(key, str):
        for defect in qualified_name_defects(key):
            yield FieldError(at(path, "key"), key, defect, code=RuleCode.INVALID_LABEL)
        if canonical_key(key) == CAPACITY_TYPE and operator == "In" and listed:
            known = [value for value in listed if value in _CAPACITY_TYPES]
            least = requirement.get("minValues")
            if len(known) < (least if isinstance(least, int) else 1):
                listing = ", ".join(_CAPACITY_TYPES)
                yield FieldError(
                    at(path, "values"),
                    values,
                    "holds no known capacity type",
                    f"known: {listing}",
                    code=RuleCode.INVALID_REQUIREMENT,
                )


def _change_errors(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[FieldError]:
    now, before = (_member(each, "template", "spec", "nodeClassRef") for each in (spec, old))
    for name in ("group", "kind"):
        if before and now.get(name) != before.get(name):
            where = f"{_TEMPLATE}.nodeClassRef.{name}"
            yield FieldError(
                where,
                now.get(name),
                f"cannot be changed from {before.get(name)}",
                _NEW_POOL,
                code=RuleCode.IMMUTABLE_FIELD,
            )
    if (spec.get("replicas") is None) != (old.get("replicas") is None):
        yield FieldError(
            "spec.replicas",
            spec.get("replicas"),
            "can neither be added nor removed",
            _NEW_POOL,
            code=RuleCode.IMMUTABLE_FIELD,
        )


def _member(document: Any, *path: str) -> Mapping[str, Any]:
    """The object at a path; empty when there is none."""
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}
