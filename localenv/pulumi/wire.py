"""Property values as they travel between the engine and a provider, and as plain Python.

The engine sends properties as protobuf structs in which numbers are floats, and in
which secrets, outputs, resource references and values not known yet are marked by
signatures (documented in Pulumi's developer docs, "property values"). `plain` takes
all that away but for unknowns, which stay as the text `UNKNOWN`, so that a handler
sees what a person would write. `provider` is the only caller that has to know more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2

#: Stands for any value that is not known before the update runs.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

#: The engine has one such text for each kind of value; a provider may meet any of them.
_UNKNOWNS = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


def plain(properties: struct_pb2.Struct) -> dict[str, Any]:
    """The properties without marks: integers are `int`, secrets and outputs are their values."""
    return {key: _plain(value) for key, value in json_format.MessageToDict(properties).items()}


def struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """The properties as the engine takes them; absent (None) values are left out."""
    made = struct_pb2.Struct()
    json_format.ParseDict(without_none(properties), made)
    return made


def secret(value: Any) -> dict[str, Any]:
    """Mark a value as secret: the engine encrypts it in its state and masks it on the screen."""
    return {_SIGNATURE: _SECRET, "value": value}


def reference(urn: str, identity: str) -> dict[str, Any]:
    """A reference to a resource, from which a program makes an object of the resource's class."""
    return {_SIGNATURE: _RESOURCE, "urn": urn, "id": identity, "packageVersion": ""}


def is_unknown(value: Any) -> bool:
    """Whether the value, or any value inside it, is not known yet."""
    if isinstance(value, Mapping):
        return any(is_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(is_unknown(item) for item in value)
    return isinstance(value, str) and value in _UNKNOWNS


def without_none(value: Any) -> Any:
    """A copy in which no mapping has a key whose value is None."""
    if isinstance(value, Mapping):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_none(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    mark = value.get(_SIGNATURE)
    if mark == _SECRET:
        return _plain(value.get("value"))
    if mark == _OUTPUT:
        return _plain(value["value"]) if "value" in value else UNKNOWN
    if mark == _RESOURCE:
        return _plain(value.get("id") or value.get("urn"))
    return {key: _plain(item) for key, item in value.items()}
