"""Null as Kubernetes' decoder takes it: as absent, and as an empty string in maps of strings."""

from collections.abc import Mapping
from typing import Any

from nodeless.api.drop_nulls import drop_nulls

_STRING_MAPS = ("labels", "annotations", "nodeSelector", "matchLabels")


def stored_form(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The object as the API server stores it: a selector keeps the label that it asks for with null."""
    return dict(drop_nulls(_with_empty_strings(manifest)))


def _with_empty_strings(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_empty_strings(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    read = {key: _with_empty_strings(member) for key, member in value.items()}
    for name in _STRING_MAPS:
        if isinstance(strings := read.get(name), dict):
            read[name] = {key: "" if text is None else text for key, text in strings.items()}
    return read
