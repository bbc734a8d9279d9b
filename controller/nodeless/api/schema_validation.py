"""Faults of form: types, missing and unknown members, ranges; all of them at once.

The schema is the one of the resource definition, so that a manifest gets the same
verdict here, before it is sent, as from the API server. An explicit null counts as
absent, as everywhere in Kubernetes. Values that obey the form but break a rule are the
business of `validation`.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from nodeless.api.cel import VALIDATIONS, broken_rules
from nodeless.api.crds import schema
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.kinds import Kind
from nodeless.api.metav1 import ObjectMeta
from nodeless.api.moved_fields import with_new_home
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schedules import SCHEDULE_PATTERN, has_form_of_schedule
from nodeless.api.schema import Schema, schema_of
from nodeless.api.suggestions import did_you_mean
from nodeless.api.times import parse_time
from nodeless.model.quantity import parse_decimal

_WORDS = {"object": "an object", "array": "a list", "string": "a string", "integer": "a whole number"}
_WORDS |= {"boolean": "true or false"}
_METADATA: Schema = {**schema_of(ObjectMeta, described=False), "x-kubernetes-preserve-unknown-fields": True}
_DIGITS = 32
_RANGES = {"int32": 2**31, "int64": 2**63}


def structural_errors(manifest: Any, kind: Kind) -> Iterator[FieldError]:
    """The faults of form of a whole object, in document order, found as they are asked for."""
    for fault in form_errors(manifest, schema(kind, described=False)):
        # The status is what another controller has written, maybe a newer one.
        if fault.code is not RuleCode.UNKNOWN_FIELD or not fault.path.startswith("status."):
            yield with_new_home(fault, kind)


def form_errors(manifest: Any, wanted: Schema) -> Iterator[FieldError]:
    """The same by the schema of a whole object, for kinds that have no resource definition of ours."""
    yield from check(manifest, wanted, "")
    metadata = manifest.get("metadata") if isinstance(manifest, Mapping) else None
    if isinstance(metadata, Mapping):
        yield from check(metadata, _METADATA, "metadata")


def check(value: Any, wanted: Schema, path: str) -> Iterator[FieldError]:
    """The faults of one value and all below it; rules are asked where the form is right.

    Unknown members are faults where the schema lists its members and does not keep others.
    """
    # Every claim of a watch is checked: a generator for each value would take half of the time.
    if VALIDATIONS in wanted:
        return _check_with_rules(value, wanted, path)
    return _check_form(value, wanted, path)


def _check_with_rules(value: Any, wanted: Schema, path: str) -> Iterator[FieldError]:
    right = True
    for fault in _check_form(value, wanted, path):
        right = False
        yield fault
    if right:
        yield from broken_rules(drop_nulls(value), wanted[VALIDATIONS], path)


def _check_form(value: Any, wanted: Schema, path: str) -> Iterator[FieldError]:
    if wanted.get("x-kubernetes-int-or-string"):
        return _check_quantity(value, path)
    kind: str = wanted["type"]
    if kind == "object" and isinstance(value, Mapping):
        return _check_object(value, wanted, path)
    if kind == "array" and isinstance(value, list):
        return _check_array(value, wanted, path)
    if kind == "string" and isinstance(value, str):
        return _check_string(value, wanted, path)
    if kind == "integer" and isinstance(value, int) and not isinstance(value, bool):
        return _check_integer(value, wanted, path)
    if kind == "boolean" and isinstance(value, bool):
        return iter(())
    fault = FieldError(
        path or "the object",
        value,
        f"must be {_WORDS[kind]}",
        _type_hint(value, kind),
        code=RuleCode.WRONG_TYPE,
    )
    return iter((fault,))


def _check_array(value: list[Any], wanted: Schema, path: str) -> Iterator[FieldError]:
    for position, item in enumerate(value):
        yield from check(item, wanted["items"], at(path, position))
    if "minItems" in wanted or "maxItems" in wanted:
        yield from _check_length(value, wanted.get("minItems"), wanted.get("maxItems"), path)


def _check_object(value: Mapping[Any, Any], wanted: Schema, path: str) -> Iterator[FieldError]:
    properties: Mapping[str, Schema] = wanted.get("properties", {})
    if "minProperties" in wanted or "maxProperties" in wanted:
        given = [name for name, member in value.items() if member is not None]
        yield from _check_length(given, wanted.get("minProperties"), wanted.get("maxProperties"), path)
    for name, member in value.items():
        where = at(path, str(name))
        if not isinstance(name, str):
            yield FieldError(
                where, name, "must be a string: keys are", "put it in quotes", code=RuleCode.WRONG_TYPE
            )
        elif name in properties:
            if member is not None:
                yield from check(member, properties[name], where)
        elif "additionalProperties" in wanted:
            if member is not None:
                yield from check(member, wanted["additionalProperties"], where)
        elif properties and not wanted.get("x-kubernetes-preserve-unknown-fields"):
            yield FieldError(
                where,
                member,
                "is not a known field",
                did_you_mean(name, properties),
                code=RuleCode.UNKNOWN_FIELD,
            )
    for name in wanted.get("required", ()):
        if value.get(name) is None:
            yield FieldError(
                at(path, name), ABSENT, "is required", _missing_hint(name, value), code=RuleCode.MISSING_FIELD
            )


def _check_length(value: list[Any], least: int | None, most: int | None, path: str) -> Iterator[FieldError]:
    if least is not None and len(value) < least:
        yield FieldError(
            path, ABSENT, f"has {len(value)} items; at least {least} are needed", code=RuleCode.WRONG_LENGTH
        )
    if most is not None and len(value) > most:
        yield FieldError(
            path, ABSENT, f"has {len(value)} items; at most {most} are allowed", code=RuleCode.WRONG_LENGTH
        )


def _check_string(value: str, wanted: Schema, path: str) -> Iterator[FieldError]:
    if (choices := wanted.get("enum")) and value not in choices:
        listed = f"use one of {', '.join(choices)}"
        yield FieldError(
            path,
            value,
            "is not supported",
            did_you_mean(value, choices, listed),
            code=RuleCode.UNSUPPORTED_VALUE,
        )
    if (pattern := wanted.get("pattern")) and not _matches(pattern, value):
        yield FieldError(path, value, f"does not match {pattern}", code=RuleCode.INVALID_FORMAT)
    if wanted.get("format") == "date-time" and not _is_time(value):
        yield FieldError(
            path,
            value,
            "is not a time",
            "write RFC 3339, as 2023-05-01T12:00:00Z",
            code=RuleCode.INVALID_FORMAT,
        )
    if len(value) < wanted.get("minLength", 0):
        yield FieldError(path, value, "must not be empty", code=RuleCode.WRONG_LENGTH)
    if len(value) > wanted.get("maxLength", len(value)):
        yield FieldError(
            path, value, f"is longer than {wanted['maxLength']} characters", code=RuleCode.WRONG_LENGTH
        )


def _matches(pattern: str, text: str) -> bool:
    if pattern == SCHEDULE_PATTERN:
        return has_form_of_schedule(text)
    # Python's $ also matches before a newline at the end; that of the API server only at the end.
    return bool(re.search(re.sub(r"\$$", r"\\Z", pattern), text))


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except (ValueError, OverflowError):
        return False
    return True


def _check_integer(value: int, wanted: Schema, path: str) -> Iterator[FieldError]:
    minimum, maximum = wanted.get("minimum"), wanted.get("maximum")
    limit = _RANGES.get(wanted.get("format", ""), 2**63)
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        if maximum is None:
            yield FieldError(path, value, f"must be at least {minimum}", code=RuleCode.OUT_OF_RANGE)
        else:
            yield FieldError(path, value, f"must be from {minimum} to {maximum}", code=RuleCode.OUT_OF_RANGE)
    elif not -limit <= value < limit:
        yield FieldError(path, value, "is too big a number", code=RuleCode.OUT_OF_RANGE)


def _check_quantity(value: Any, path: str) -> Iterator[FieldError]:
    hint = "write a number with an optional suffix, as 500m, 2 or 4Gi"
    if isinstance(value, bool) or not isinstance(value, int | str):
        quoted = f'put it in quotes: "{value}"' if isinstance(value, float) else hint
        yield FieldError(
            path, value, "must be a quantity: a whole number or a string", quoted, code=RuleCode.WRONG_TYPE
        )
    elif not is_quantity(value):
        yield FieldError(path, value, "is not a quantity", hint, code=RuleCode.INVALID_FORMAT)


def is_quantity(value: int | str) -> bool:
    """Whether this is a quantity of a sensible size: no more than 32 digits, exponents of two digits."""
    text = str(value) if isinstance(value, str) or abs(value) < 10**_DIGITS else "too big"
    return (
        re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?", text)
        is not None
        and sum(character.isdigit() for character in text) <= _DIGITS
    )


def amount_of(value: Any) -> Decimal | None:
    """The amount of a quantity; None for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | str) or not is_quantity(value):
        return None
    return parse_decimal(value)


def _type_hint(value: Any, kind: str) -> str:
    if kind == "string" and isinstance(value, bool | int | float):
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        return f'put it in quotes: "{shown}"'
    if kind == "integer" and isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        return f"write it without quotes: {value}"
    if kind == "boolean" and isinstance(value, str) and value.lower() in ("true", "false"):
        return f"write it without quotes: {value.lower()}"
    return ""


def _missing_hint(name: str, value: Mapping[str, Any]) -> str:
    if name == "operator":
        operators = "one of In, NotIn, Exists, DoesNotExist, Gt and Lt"
        return (
            f"values are given, so In is probably meant ({operators})" if value.get("values") else operators
        )
    return ""
