"""Checks the inputs of resources against the SDK's own declarations.

A resource reaches the engine as plain data: a misspelt nested name, a missing required input or a number
where a text belongs goes unnoticed until the cloud refuses it. The SDKs know better: every token has a
class, every class has typed arguments, nested ones included. `check_inputs` compares wire inputs with them.
Kubernetes objects are left out, since the API server checks those itself; a Helm release is not one of them.
"""

import collections.abc
import enum
import importlib
import inspect
import types
import typing
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

import pulumi
from pulumi import _types as sdk_types
from pulumi.runtime import rpc

from localenv.pulumi import wire

CHECKED_PACKAGES = ("aws", "eks", "docker-build")
HELM_RELEASE = "kubernetes:helm.sh/v3:Release"
SECRET = "4dabf18193072939515e22adb298388d"


class UnknownTokenError(LookupError):
    """No SDK declares a resource of this token."""


def check_inputs(token: str, inputs: Mapping[str, Any]) -> list[str]:
    """Every fault of a resource's wire inputs, each with the path it is at; none for other packages.

    Raises:
        UnknownTokenError: the SDKs know no such resource.
    """
    if token.partition(":")[0] not in CHECKED_PACKAGES and token != HELM_RELEASE:
        return []
    args = arguments_class(token)
    return _check_object(args, inputs, token.rsplit(":", 1)[1])


def load_arguments(tokens: Iterable[str]) -> None:
    """Import what the tokens need, before a program does so from another thread.

    The SDKs import their modules lazily, which before Python 3.12 must not happen from two threads at once.
    """
    for token in tokens:
        arguments_class(token)


@cache
def arguments_class(token: str) -> type:
    """The class of typed arguments that belongs to a token.

    Raises:
        UnknownTokenError: the SDKs know no such resource.
    """
    package, module, _ = token.split(":")
    importlib.import_module(f"pulumi_{package.replace('-', '_')}")
    for registered in rpc._RESOURCE_MODULES.get(f"{package}:{module}", []):
        info: Mapping[str, Any] = vars(registered)["mod_info"]
        if token in info["classes"]:
            name = info["classes"][token]
            resource = getattr(importlib.import_module(info["fqn"]), name)
            found: type = getattr(inspect.getmodule(resource), f"{name}Args")
            return found
    raise UnknownTokenError(token)


def _check_object(cls: type, value: Any, path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path}: expected an object like {cls.__name__}, got {type(value).__name__}"]
    kinds, wire_names = _fields(cls)
    problems = []
    for name, given in value.items():
        if name not in kinds:
            close = get_close_matches(name, kinds, 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            problems.append(f"{path}.{name}: no such input on {cls.__name__}{hint}")
        elif given is not None:
            problems += _check(kinds[name], given, f"{path}.{name}")
    parameters = inspect.signature(cls).parameters
    for name, wire_name in wire_names.items():
        required = parameters[name].default is inspect.Parameter.empty
        if required and value.get(wire_name) is None:
            problems.append(f"{path}.{wire_name}: required input of {cls.__name__} is missing")
    return problems


@cache
def _fields(cls: type) -> tuple[dict[str, Any], dict[str, str]]:
    return sdk_types.input_type_types(cls), sdk_types.input_type_py_to_pulumi_names(cls)


def _check(kind: Any, value: Any, path: str) -> list[str]:
    if isinstance(value, Mapping) and SECRET in value:
        return []
    unknown = isinstance(value, str) and wire.is_unknown(value)
    if unknown or isinstance(value, pulumi.Output | pulumi.output.Unknown) or kind is Any:
        return []
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _check_union(arguments, value, path)
    if origin is typing.Literal:
        return [] if value in arguments else [f"{path}: {value!r} is not one of {list(arguments)}"]
    if origin is collections.abc.Sequence:
        if not isinstance(value, list):
            return [f"{path}: expected a list, got {type(value).__name__}"]
        return [fault for i, item in enumerate(value) for fault in _check(arguments[0], item, f"{path}[{i}]")]
    if origin is collections.abc.Mapping:
        if not isinstance(value, Mapping):
            return [f"{path}: expected a map, got {type(value).__name__}"]
        return [fault for k, item in value.items() for fault in _check(arguments[1], item, f"{path}.{k}")]
    return _check_plain(kind, value, path)


def _check_union(arguments: tuple[Any, ...], value: Any, path: str) -> list[str]:
    """The alternative of the value's kind, then with the fewest faults; what wraps a value is none."""
    alternatives = [
        argument
        for argument in arguments
        if argument is not type(None)
        and typing.get_origin(argument) not in (pulumi.Output, collections.abc.Awaitable)
    ]
    kept = [alternative for alternative in alternatives if _shape(alternative) is type(value)] or alternatives
    return min((_check(each, value, path) for each in kept), key=len)


def _shape(kind: Any) -> type | None:
    """What a value of the kind is on the wire: a map, a list, or something plain (None)."""
    origin = typing.get_origin(kind)
    if origin is collections.abc.Sequence:
        return list
    if origin is typing.Literal or kind is Any:
        return None
    plain = inspect.isclass(kind) and issubclass(kind, str | int | float | enum.Enum | pulumi.Resource)
    return None if plain else dict


def _check_plain(kind: Any, value: Any, path: str) -> list[str]:
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        allowed = [member.value for member in kind]
        return [] if value in allowed else [f"{path}: {value!r} is not one of {allowed}"]
    if kind in (int, float):
        right = isinstance(value, int | float) and not isinstance(value, bool)
        right = right and (kind is float or value == int(value))
    elif kind in (str, bool):
        right = isinstance(value, kind)
    elif inspect.isclass(kind) and issubclass(kind, pulumi.Resource):
        right = True
    else:
        return _check_object(kind, value, path)
    return [] if right else [f"{path}: expected {kind.__name__}, got {value!r}"]
