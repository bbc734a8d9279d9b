"""Readers of the settings that say what belongs to a node's bill."""

import json
from collections.abc import Mapping

from nodeless.model.bill import PARTS
from nodeless.model.quantity import QuantityError, parse_units
from nodeless.operator.setting_values import UnusableValue, number

_NONE = "none"


def bill_parts(text: str) -> frozenset[str]:
    """A list of parts with commas between them; `none` for none of them."""
    if text.strip() == _NONE:
        return frozenset()
    parts = frozenset(part.strip() for part in text.split(","))
    unknown = sorted(parts - set(PARTS))
    if unknown:
        raise UnusableValue(
            f"{unknown[0]!r} is not a part of the bill", f"use some of {', '.join(PARTS)}, or {_NONE}"
        )
    return parts


def percent(text: str) -> float:
    """A number from 0 to 100."""
    figure = number(text)
    if not 0 <= figure <= 100:
        raise UnusableValue("is not a percentage from 0 to 100", "write for example 60")
    return figure


def memory(text: str) -> int:
    """A Kubernetes quantity of memory, in bytes."""
    try:
        amount = parse_units(text)
    except QuantityError:
        amount = -1
    if amount < 0:
        raise UnusableValue("is not an amount of memory", "write for example 128Mi, or 0")
    return amount


def price_book(text: str) -> str:
    """A JSON object, as its text; what is in it is judged where the book is read."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, Mapping):
        raise UnusableValue("is not a JSON object", 'write for example {"addresses": {"ipv4": 0.005}}')
    return text
