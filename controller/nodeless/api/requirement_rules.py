"""Rules for requirements and labels of a pool: syntax, restricted keys, operators, values.

The paths are those of the exact member (`spec.requirements[2].operator`). Members of the
wrong type are skipped here: `schema_validation` has named them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.names import label_value_defects, qualified_name_defects
from nodeless.api.rule_codes import RuleCode
from nodeless.api.suggestions import did_you_mean, well_known_counterpart
from nodeless.model.labels import (
    EMPTINESS_TIMESTAMP,
    HOSTNAME,
    NODE_POOL,
    PROVISIONER_NAME,
    WELL_KNOWN,
    canonical_key,
)
from nodeless.model.requirements import DOES_NOT_EXIST, EXISTS, GT, IN, LT, NOT_IN

OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT)
#: Domains that belong to Kubernetes and to us, compared by their ending, without a boundary at a dot.
_RESTRICTED_DOMAINS = ("kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws")
#: Domains inside those that users may use, compared as a whole.
_FREE_DOMAINS = frozenset({"kops.k8s.io", "node.kubernetes.io", "testing.karpenter.sh"})
_RESTRICTED_KEYS = frozenset({HOSTNAME, EMPTINESS_TIMESTAMP})
#: Domains of other parties that end like a restricted one; upstream lets them through as well.
_WELL_KNOWN_TO_USERS = WELL_KNOWN - {NODE_POOL}


def is_restricted(key: str) -> bool:
    """Whether users may not set a label of this key (Karpenter v0.27 `IsRestrictedLabel`)."""
    if key in _WELL_KNOWN_TO_USERS:
        return False
    domain = key.partition("/")[0] if "/" in key else ""
    if domain in _FREE_DOMAINS:
        return False
    return domain.endswith(_RESTRICTED_DOMAINS) or key in _RESTRICTED_KEYS


def label_errors(labels: Any, path: str) -> Iterator[FieldError]:
    """The faults of `spec.labels`."""
    if not isinstance(labels, Mapping):
        return
    for key, value in labels.items():
        if not isinstance(key, str):
            continue
        yield from _key_errors(key, key, at(path, key))
        if isinstance(value, str):
            for defect in label_value_defects(value):
                yield FieldError(at(path, key), value, defect, _trim_hint(value), code=RuleCode.INVALID_LABEL)


def requirement_errors(requirements: Any, path: str) -> Iterator[FieldError]:
    """The faults of a list of requirements."""
    if not isinstance(requirements, list):
        return
    for position, requirement in enumerate(requirements):
        if isinstance(requirement, Mapping):
            yield from _requirement_errors(requirement, at(path, position))


def _requirement_errors(requirement: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    key, operator, values = (requirement.get(name) for name in ("key", "operator", "values"))
    if isinstance(key, str):
        yield from _key_errors(key, canonical_key(key), at(path, "key"))
    if isinstance(operator, str) and operator not in OPERATORS:
        yield _operator_error(operator, values, at(path, "operator"))
    where = at(path, "values")
    listed = values if isinstance(values, list) else []
    for position, value in enumerate(listed):
        if isinstance(value, str):
            for defect in label_value_defects(value):
                yield FieldError(
                    at(where, position), value, defect, _trim_hint(value), code=RuleCode.INVALID_LABEL
                )
    if values is not None and not isinstance(values, list):
        return
    if operator == IN and not listed:
        yield FieldError(
            where,
            listed,
            "must hold at least one value for In",
            "use Exists for any value",
            code=RuleCode.INVALID_REQUIREMENT,
        )
    if operator in (GT, LT):
        yield from _bound_errors(operator, listed, where)


def _key_errors(key: str, canonical: str, path: str) -> Iterator[FieldError]:
    if key != key.strip():
        hint = f"remove the blanks: {key.strip()}" if key.strip() else "name a label"
        yield FieldError(path, key, "has blanks around it", hint, code=RuleCode.INVALID_LABEL)
        return
    if canonical == PROVISIONER_NAME:
        yield FieldError(
            path,
            key,
            "is restricted: it is the Provisioner's own name",
            "leave it out",
            code=RuleCode.RESTRICTED_LABEL,
        )
        return
    for defect in qualified_name_defects(canonical):
        yield FieldError(path, key, defect, _counterpart_hint(key), code=RuleCode.INVALID_LABEL)
    if is_restricted(canonical):
        yield FieldError(
            path,
            key,
            "is restricted: its domain is not for custom labels",
            _counterpart_hint(key),
            code=RuleCode.RESTRICTED_LABEL,
        )


def _counterpart_hint(key: str) -> str:
    twin = well_known_counterpart(key)
    return f"did you mean {twin}?" if twin else "use a label in a domain of your own, as example.com/team"


def _operator_error(operator: str, values: Any, path: str) -> FieldError:
    listed = f"use one of {', '.join(OPERATORS)}"
    if not operator:
        meant = "values are given, so In is probably meant; " if values else ""
        return FieldError(path, operator, "is required", meant + listed, code=RuleCode.MISSING_FIELD)
    return FieldError(
        path,
        operator,
        "is not an operator",
        did_you_mean(operator, OPERATORS, listed),
        code=RuleCode.UNSUPPORTED_VALUE,
    )


def _bound_errors(operator: str, values: list[Any], path: str) -> Iterator[FieldError]:
    if len(values) != 1:
        yield FieldError(
            path,
            values,
            f"must hold exactly one whole number for {operator}",
            code=RuleCode.INVALID_REQUIREMENT,
        )
    elif isinstance(values[0], str) and not (values[0].isascii() and values[0].isdecimal()):
        yield FieldError(
            at(path, 0),
            values[0],
            f"must be a whole number of 0 or more for {operator}",
            code=RuleCode.INVALID_REQUIREMENT,
        )


def _trim_hint(value: str) -> str:
    return f"remove the blanks: {value.strip()}" if value != value.strip() else ""
