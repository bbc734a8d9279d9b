"""Entries of persistent maps."""

from typing import TypeVar

from immutables import Map

Value = TypeVar("Value")


def delete_key(entries: Map[str, Value], key: str) -> Map[str, Value]:
    """The map without a key, which need not be there."""
    return entries.delete(key) if key in entries else entries
