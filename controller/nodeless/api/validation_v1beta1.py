"""Faults and warnings of v1beta1 objects at their own fields: form, and what v1 says of them as converted."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from nodeless.api.conversion_v1beta1 import (
    KUBELET_PATH,
    V1_OF,
    ConvertedObject,
    convert_object,
    kind_v1beta1,
    path_v1beta1,
)
from nodeless.api.crds import schema
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.errors import FieldError, in_order
from nodeless.api.kinds import Kind
from nodeless.api.moved_fields import with_new_home
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schema_validation import form_errors
from nodeless.api.settings_warnings import kubelet_warnings
from nodeless.api.v1beta1 import schema_v1beta1
from nodeless.api.validation import MOST_FAULTS, advice, validate
from nodeless.api.validation_context import NOTHING_KNOWN, ValidationContext, context_warnings


def validate_v1beta1(
    manifest: Mapping[str, Any],
    around: ValidationContext = NOTHING_KNOWN,
    converted: ConvertedObject | None = None,
) -> list[FieldError]:
    """Faults and warnings of an object of v1beta1, sorted by path; one warning is always there.

    Args:
        manifest: An object of a kind of `kinds.V1BETA1`, of any form.
        around: What is known around it; asked when it has no fault.
        converted: What `as_v1` says of it, where that has been asked already.
    """
    kind = kind_v1beta1(manifest)
    if kind is None:
        raise ValueError("the object is not of v1beta1")
    form = [
        _with_generation(with_new_home(fault, kind), kind)
        for fault in islice(form_errors(manifest, schema_v1beta1(kind)), MOST_FAULTS)
    ]
    converted = converted or convert_object(manifest, kind)
    own = [*form, *converted.losses]
    found = validate(converted.manifest) or advice(converted.manifest)
    rules = _at_their_fields(found, manifest, kind)
    errors = [*own, *_apart_from(own, rules)]
    if not any(not fault.warning for fault in errors):
        errors = [*_at_their_fields(context_warnings(converted.manifest, around), manifest, kind)]
    if isinstance(converted.kubelet, Mapping):
        errors += kubelet_warnings(converted.kubelet, KUBELET_PATH[kind])
    return in_order([_not_served(kind), *errors])


def as_v1(manifest: Any) -> ConvertedObject:
    """An object of v1beta1 as v1 says it; any other manifest as it is."""
    kind = kind_v1beta1(manifest)
    return ConvertedObject(manifest) if kind is None else convert_object(manifest, kind)


def _with_generation(fault: FieldError, kind: Kind) -> FieldError:
    """The fault; when its field is one that v1 has at the same place, with a hint that says so."""
    part: Any = schema(V1_OF[kind], described=False)
    for name in re.findall(r"[^.\[\]]+", fault.path):
        part = part.get("items", {}) if name.isdecimal() else part.get("properties", {}).get(name, {})
    if fault.hint or fault.message != "is not a known field" or not part:
        return fault
    served = V1_OF[kind].api_version
    return replace(fault, hint=f"{served} has it: write that apiVersion, if the whole object is meant so")


def _not_served(kind: Kind) -> FieldError:
    message = "is served neither by clusters that have only v1 nor by this controller"
    hint = "convert it to v1 with `nodeless convert`"
    return FieldError(
        "apiVersion", kind.api_version, message, hint, warning=True, code=RuleCode.OLD_API_VERSION
    )


def _at_their_fields(
    faults: Iterable[FieldError], manifest: Mapping[str, Any], kind: Kind
) -> Iterator[FieldError]:
    given = drop_nulls(dict(manifest))
    for fault in faults:
        yield replace(fault, path=path_v1beta1(fault.path, given, kind))


def _apart_from(own: Iterable[FieldError], others: Iterable[FieldError]) -> Iterator[FieldError]:
    """The warnings, and the faults of fields in which, or below which, none was found already."""
    paths = [fault.path for fault in own]
    for fault in others:
        if fault.warning or not any(_are_related(fault.path, path) for path in paths):
            yield fault


def _are_related(one: str, other: str) -> bool:
    return (
        one == other or one.startswith((f"{other}.", f"{other}[")) or other.startswith((f"{one}.", f"{one}["))
    )
