"""Reading what arguments are made of, by its types: pools, their requirements, block devices, selectors.

An argument that holds dictionaries of its own arrives as unchecked as the outermost one, from a stack's
configuration more often than not. `read` walks along the documented types, reports each member that is
unknown, missing or of another kind by its full path, and gives back the value in one way of writing: texts
where texts belong (YAML reads `values: [2]` as a number), whole numbers without a fraction. `python_members`
is for configuration, whose members are written in camelCase. What the values mean is the callers' business.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

import pulumi

from pulumi_nodeless.arguments import ArgumentReader, as_text


def read(reader: ArgumentReader, path: str, value: Any, kind: Any, later: Sequence[Any] = ()) -> Any:
    """The value in one way of writing; where it is faulty, what could be read of it.

    Args:
        reader: Takes the faults.
        path: Path of the value, from the reader's arguments on.
        value: What was given.
        kind: A TypedDict, `Sequence[...]`, `Mapping[str, ...]`, `str`, `int`, `bool` or `Any`.
        later: Kinds whose values may be outputs, as they are only handed on.
    """
    if kind is Any:
        return value
    outer = get_origin(kind) or kind
    if isinstance(value, pulumi.Output | Awaitable):
        if outer in later:
            return value
        check_known(reader, path, value, name_kind(kind))
        return [] if outer is Sequence else None if outer in _PLAIN else {}
    if is_typeddict(outer):
        return _members(reader, path, value, kind, later)
    if outer is Sequence:
        return _items(reader, path, value, kind, later)
    if outer is Mapping:
        return _entries(reader, path, value, kind, later)
    return _plain(reader, path, value, outer)


def check_known(reader: ArgumentReader, path: str, value: Any, expected: str = "text") -> None:
    """Reports a value that the engine would know only later."""
    if isinstance(value, pulumi.Output | Awaitable):
        hint = "it shapes the resources, so it must be known before they are: pass it from configuration"
        reader.report(path, f"expected {expected}, got an output", hint)


def kinds(shape: type) -> dict[str, Any]:
    """The members of an argument type, each with its kind."""
    # Names that pulumi.Input leaves to be resolved.
    return get_type_hints(shape, localns={"Output": pulumi.Output, "T": Any})


def python_members(value: Any, kind: Any) -> Any:
    """A value whose members are named in camelCase, with the names that they have in Python.

    Keys of maps, of labels say, are the user's own and stay.
    """
    inner = get_args(kind)
    if is_typeddict(kind) and isinstance(value, Mapping):
        hints = kinds(kind)
        named = {python_name(key): each for key, each in value.items()}
        return {key: python_members(each, hints.get(key, Any)) for key, each in named.items()}
    if get_origin(kind) is Sequence and isinstance(value, list):
        return [python_members(each, inner[0]) for each in value]
    return value


def python_name(name: str) -> str:
    """An input's name in Python: `vpcCidr` is `vpc_cidr`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _members(
    reader: ArgumentReader, path: str, value: Any, kind: Any, later: Sequence[Any]
) -> dict[str, Any]:
    hints = kinds(kind)
    if not isinstance(value, Mapping):
        reader.report(path, f"expected {name_kind(kind)}, got {value!r}", f"members are {', '.join(hints)}")
        return {}
    inner = ArgumentReader("", value, kind, path)
    # Told by the names from the outermost arguments on, as the rest.
    for problem in inner.problems:
        reader.report(problem.path, problem.message, problem.hint)
    return {
        name: read(reader, f"{path}.{name}", value[name], hint, later)
        for name, hint in hints.items()
        if value.get(name) is not None
    }


def _items(reader: ArgumentReader, path: str, value: Any, kind: Any, later: Sequence[Any]) -> list[Any]:
    (item,) = get_args(kind)
    if isinstance(value, str) or not isinstance(value, Sequence):
        reader.report(path, f"expected a list, got {value!r}", "write a list, of one item too")
        return []
    return [read(reader, f"{path}[{index}]", each, item, later) for index, each in enumerate(value)]


def _entries(
    reader: ArgumentReader, path: str, value: Any, kind: Any, later: Sequence[Any]
) -> dict[str, Any]:
    item = get_args(kind)[1]
    if not isinstance(value, Mapping):
        reader.report(path, f"expected a map, got {value!r}", "write names and their values")
        return {}
    return {str(key): read(reader, f"{path}.{key}", each, item, later) for key, each in value.items()}


def _plain(reader: ArgumentReader, path: str, value: Any, kind: type) -> Any:
    name, example, reading = _PLAIN[kind]
    made = reading(value)
    if made is None:
        reader.report(path, f"expected {name}, got {value!r}", example)
    return made


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        return None
    return int(value) if isinstance(value, int | float) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def name_kind(kind: Any) -> str:
    """What a kind of value is called in messages; an input that may be an output is its plain kind."""
    outer = get_origin(kind) or kind
    if outer in _PLAIN:
        return _PLAIN[outer][0]
    if outer in (Union, UnionType):
        return name_kind(get_args(kind)[0])
    return "a list" if outer is Sequence else "a map"


#: What a plain kind is called, what to write, and how it is read; none where it cannot be.
_PLAIN: Final[Mapping[type, tuple[str, str, Callable[[Any], Any]]]] = {
    str: ("text", "write it in quotes", as_text),
    int: ("a whole number", "write it in digits, without quotes", _whole),
    bool: ("true or false", "write it without quotes", _flag),
}
