"""Which object is it? Read from JSON that is cut, or that nobody can read as a whole.

The API server writes `kind`, `apiVersion` and `metadata` before everything else; of those the beginning of a
document suffices. Whatever cannot be had is missing, and nothing is raised.
"""

import json
from typing import Any

_DECODER = json.JSONDecoder()
#: Bytes that are looked at: labels and annotations, which may come before the name, have a quarter of it.
_MOST_BYTES = 4 * 1024 * 1024
_SPACE = " \t\r\n"


def head_of(raw: bytes) -> dict[str, Any]:
    """The members of an object before its first that cannot be read, those of `metadata` one by one."""
    text = raw[:_MOST_BYTES].decode("utf-8", "replace")
    return _members(text, 0, ("object", "metadata"))[0]


def _members(text: str, at: int, opened: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    """The members of the object that begins at a place, and where it ends; -1: its end could not be read.

    Members called as one of `opened` may be broken themselves: what there is of them is kept.
    """
    found: dict[str, Any] = {}
    at = _after(text, at, "{")
    while at > 0 and text[at : at + 1] == '"':
        name, at = _value(text, at)
        at = _after(text, at, ":")
        if at < 0:
            break
        if name in opened and text[at : at + 1] == "{":
            found[name], at = _members(text, at, opened)
        else:
            value, at = _value(text, at)
            # A number that is cut off is another number: only what something follows is whole.
            if at < 0 or text[_skip(text, at) : _skip(text, at) + 1] not in (",", "}"):
                break
            found[name] = value
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return found, at + 1
        at = _after(text, at, ",")
    return found, _after(text, at, "}")


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, -1


def _skip(text: str, at: int) -> int:
    while at >= 0 and text[at : at + 1] and text[at] in _SPACE:
        at += 1
    return at


def _after(text: str, at: int, mark: str) -> int:
    """The place of what follows a mark; -1 when something else stands there."""
    at = _skip(text, at)
    return _skip(text, at + 1) if at >= 0 and text[at : at + 1] == mark else -1
