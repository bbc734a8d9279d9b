"""The OpenAPI v3 schema of a definition, structural as the API server wants it.

Structs become objects, `Quantity` becomes an integer-or-string with the pattern of a
quantity, `dict[str, Any]` keeps unknown members; limits, formats and extensions come
from the fields' `Meta`. `crds` wraps the result; `schema_validation` checks manifests with it.
"""

from functools import cache
from typing import Any, TypeAlias

from msgspec import inspect

from nodeless.api.docstrings import describe, describe_fields
from nodeless.api.metav1 import Definition

Schema: TypeAlias = dict[str, Any]

#: The same texts that `nodeless.model.quantity` reads.
QUANTITY_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
_QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": QUANTITY_PATTERN,
    "x-kubernetes-int-or-string": True,
}
_API_VERSION = "Version of the API that the object is written in."
_KIND = "Kind of the object."


@cache
def schema_of(definition: type[Definition], *, described: bool = True) -> Schema:
    """The schema of a definition; the caller must not change it.

    Args:
        definition: The struct.
        described: With descriptions, which are read from the source; checks need none.

    Raises:
        TypeError: A field has a type that a structural schema cannot express.
    """
    return _schema(inspect.type_info(definition), described)


def root_schema_of(definition: type[Definition], *, described: bool = True) -> Schema:
    """The schema of a whole object: `metadata` is left to the API server."""
    schema = schema_of(definition, described=described)
    properties = dict(schema["properties"])
    properties["apiVersion"] = {"type": "string", "description": _API_VERSION}
    properties["kind"] = {"type": "string", "description": _KIND}
    properties["metadata"] = {"type": "object"}
    return {**schema, "properties": properties}


def _schema(info: inspect.Type, described: bool) -> Schema:
    match info:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return _schema(inner, described) | (extra or {})
        case inspect.UnionType(types=types):
            return _union(types, described)
        case inspect.StructType():
            return _object(info, described)
        case inspect.DictType(value_type=inspect.AnyType()):
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case inspect.DictType(value_type=value):
            limits = _if_set(minProperties=info.min_length, maxProperties=info.max_length)
            return {"type": "object", "additionalProperties": _schema(value, described)} | limits
        case inspect.ListType(item_type=item):
            limits = _if_set(minItems=info.min_length, maxItems=info.max_length)
            return {"type": "array", "items": _schema(item, described)} | limits
        case inspect.StrType():
            return {"type": "string"} | _if_set(minLength=info.min_length, maxLength=info.max_length)
        case inspect.IntType():
            return {"type": "integer"} | _if_set(minimum=info.ge, maximum=info.le)
        case inspect.BoolType():
            return {"type": "boolean"}
    raise TypeError(f"{info!r} has no structural schema; hint: use the types of nodeless.api.metav1")


def _union(types: tuple[inspect.Type, ...], described: bool) -> Schema:
    present = [info for info in types if not isinstance(info, inspect.NoneType)]
    if len(present) == 1:
        return _schema(present[0], described)
    if {type(info) for info in present} == {inspect.IntType, inspect.StrType}:
        return dict(_QUANTITY)
    raise TypeError(f"a union of {present!r} has no structural schema; hint: only Quantity is a union")


def _object(info: inspect.StructType, described: bool) -> Schema:
    descriptions = describe_fields(info.cls) if described else {}
    properties = {}
    for field in info.fields:
        schema = _schema(field.type, described)
        if text := descriptions.get(field.name):
            schema = {**schema, "description": text}
        properties[field.encode_name] = dict(sorted(schema.items()))
    description = {"description": describe(info.cls)} if described else {}
    result: Schema = {"type": "object", **description, "properties": properties}
    if required := sorted(field.encode_name for field in info.fields if field.required):
        result["required"] = required
    return result


def _if_set(**limits: int | None) -> Schema:
    return {name: limit for name, limit in limits.items() if limit is not None}
