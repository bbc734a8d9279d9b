"""Writes TOML (tables, strings, numbers, booleans, lists), keys sorted: the standard library only reads."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
#: What a literal string cannot hold: its own quotation mark, and what TOML calls control characters.
_NOT_LITERAL = re.compile(r"['\x00-\x1f\x7f]")


def to_toml(document: Mapping[str, Any]) -> str:
    """The document as TOML text; equal documents give equal text."""
    return "\n".join(_table(document, ())) + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    values = {key: value for key, value in table.items() if not _is_table_like(value)}
    lines = [f"{_key(key)} = {_value(values[key])}" for key in sorted(values)]
    if path and (lines or not table):
        lines.insert(0, f"[{'.'.join(map(_key, path))}]")
    for key in sorted(table.keys() - values.keys()):
        inner = (*path, key)
        if isinstance(table[key], Mapping):
            lines += _table(table[key], inner)
            continue
        for entry in table[key]:
            lines.append(f"[[{'.'.join(map(_key, inner))}]]")
            lines += [f"{_key(name)} = {_value(entry[name])}" for name in sorted(entry)]
    return lines


def _is_table_like(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)
    )


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    """A literal string, as the library writes it that Karpenter uses; else a basic one.

    A basic string is as in JSON, but for the one control character that JSON leaves as it is.
    """
    if not _NOT_LITERAL.search(text):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _string(value)
        case int() | float():
            return repr(value)
        case datetime() | date() | time():
            return value.isoformat()
        case list():
            return f"[{', '.join(_value(entry) for entry in value)}]"
        case Mapping():
            inner = ", ".join(f"{_key(key)} = {_value(value[key])}" for key in sorted(value))
            return f"{{{inner}}}"
    raise TypeError(f"TOML has no form for {type(value).__name__}")
