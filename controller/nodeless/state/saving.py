"""Values of the model as plain JSON documents, and back.

A dataclass becomes an object of those members that differ from their defaults, so that a
file stays small and an older file still reads after a member was added. Sets and mappings are
written in the order of their entries, requirements in their own: the same value gives the same
text, and what is read back equals what was written, to the bit.
"""

import dataclasses
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin

import msgspec
from immutables import Map

from nodeless.model.requirements import Requirement, Requirements

T = TypeVar("T")


class SavedFormatError(ValueError):
    """A saved document cannot be read; the text names the place and what to do."""


def plain(value: object) -> Any:
    """A value of the model in terms of JSON: objects, lists, strings, numbers, booleans, null."""
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Requirements):
        return [plain(requirement) for requirement in value.values()]
    if isinstance(value, Mapping):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, frozenset):
        return sorted(plain(each) for each in value)
    return {
        name: plain(member)
        for name, default in _members(cast("Hashable", type(value)))
        if not _same(member := getattr(value, name), default)
    }


def build_value(kind: type[T], document: object, where: str = "") -> T:
    """The value of a kind that a document stands for.

    Members that are built already may stand in the document.

    Args:
        kind: A dataclass of the model, or a container of them.
        document: What `plain` made, or what JSON made of that.
        where: What the document is called in an error.

    Raises:
        SavedFormatError: The document is not of that kind.
    """
    try:
        return msgspec.convert(document, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        hint = "the file was edited, cut off, or written by another release"
        raise SavedFormatError(f"{where or kind.__name__}: {error}; hint: {hint}") from None


@cache
def _members(kind: Hashable) -> tuple[tuple[str, object], ...]:
    """Names and defaults of a dataclass; members without default get a value that equals nothing."""
    members = []
    for member in dataclasses.fields(cast("Any", kind)):
        default: object = member.default
        if member.default_factory is not dataclasses.MISSING:
            default = member.default_factory()
        members.append((member.name, default))
    return tuple(members)


def _same(value: object, default: object) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and value == default


def _decode(kind: Any, document: Any) -> object:
    """What msgspec cannot build by itself."""
    if isinstance(document, get_origin(kind) or kind):
        return document
    if kind is Requirements:
        return Requirements(_built_each(Requirement, document))
    if get_origin(kind) is Map:
        if not isinstance(document, dict):
            raise ValueError(f"expected an object, got {type(document).__name__}")
        _, kind_of_value = get_args(kind)
        return Map({key: _built_at(kind_of_value, key, value) for key, value in document.items()})
    raise TypeError(f"{kind} is not a kind that is saved")


def _built_each(kind: type[T], documents: Iterable[object]) -> list[T]:
    return [msgspec.convert(document, kind, dec_hook=_decode) for document in documents]


def _built_at(kind: type[T], key: str, document: object) -> T:
    try:
        return msgspec.convert(document, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise ValueError(f"{key}: {error}") from None
