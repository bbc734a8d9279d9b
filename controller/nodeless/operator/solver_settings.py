"""Readers of the solver's settings.

An adjustment of prices is an object with any of `pools`, `instanceTypes` and `capacityTypes` (lists of
strings that select; `*` is a wildcard in instance types) and either `price`, or `percent` and
`dollars` (`solve.pricing`), for example `[{"capacityTypes": ["on-demand"], "percent": -28}]`. A rate of
interruptions is an object with `perMonth` and any of `pools` and `instanceTypes`, which select as there.

A commitment is an object with a `name` and either `instances` (Reserved Instances of the one type in
`instanceTypes`, with `sizeFlexible` of its family) or `dollarsPerHour` and `discountPercent` (a Savings
Plan; a number, or an object of numbers by instance type), and any of `instanceTypes`, `zones`, `region`,
`from` and `until` (days or RFC 3339 times).

No figure is higher than `HIGHEST_FIGURE`, so that sums of them stay finite.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from nodeless.api.times import parse_time
from nodeless.model.bill import HIGHEST_FIGURE
from nodeless.model.commitments import Commitment
from nodeless.model.lost_work import InterruptionRate
from nodeless.model.packing import packing_defect
from nodeless.operator.setting_values import UnusableValue, number

if TYPE_CHECKING:
    # The solver's arrays take long to load: the command line shows its help without them.
    from nodeless.scheduling import PriceAdjustment

_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LISTS = {"pools": "pools", "instanceTypes": "instance_types", "capacityTypes": "capacity_types"}
_NUMBERS = ("percent", "dollars", "price")
_PER_MONTH = "perMonth"
_RATE_EXAMPLE = 'write for example [{"instanceTypes": ["p5.*"], "perMonth": 2}]'
_COMMITMENT_EXAMPLE = (
    'write for example [{"name": "plan", "dollarsPerHour": 5, "discountPercent": 28}, '
    '{"name": "m7g", "instanceTypes": ["m7g.xlarge"], "instances": 20, "sizeFlexible": true}]'
)
_COMMITMENT_MEMBERS = (
    "name", "instanceTypes", "zones", "region", "platform", "instances", "sizeFlexible", "dollarsPerHour",
    "discountPercent", "from", "until",
)  # fmt: skip
#: Digits of a figure in a message.
_LONGEST_FIGURE = 20
T = TypeVar("T")
_EXAMPLE = 'write for example [{"instanceTypes": ["m5.*"], "percent": -20}]'


class _Discounts(TypedDict, total=False):
    discount: float
    discounts: tuple[tuple[str, float], ...]


def packing(text: str) -> str:
    """The name of a packing."""
    if defect := packing_defect(text):
        problem, _, hint = defect.partition("; hint: ")
        raise UnusableValue(problem, hint)
    return text


def amount(text: str) -> float:
    """A number from 0 to `HIGHEST_FIGURE`."""
    figure = number(text)
    if not 0 <= figure <= HIGHEST_FIGURE:
        raise UnusableValue(f"is not a number from 0 to {HIGHEST_FIGURE}", "write for example 0.01")
    return figure


def adjustments(text: str) -> "tuple[PriceAdjustment, ...]":
    """A JSON list of adjustments. The first that cannot be used is told with its position."""
    return _entries(text, _adjustment, _EXAMPLE)


def interruption_rates(text: str) -> tuple[InterruptionRate, ...]:
    """A JSON list of how often spot takes instances. The first that cannot be used is told with its place."""
    return _entries(text, _rate, _RATE_EXAMPLE)


def commitments(text: str) -> tuple[Commitment, ...]:
    """A JSON list of commitments. The first that cannot be used is told with its position."""
    found = _entries(text, _commitment, _COMMITMENT_EXAMPLE)
    names = [commitment.name for commitment in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UnusableValue(f"two commitments are named {twice[0]!r}", "give each a name of its own")
    return found


def _entries(text: str, read: Callable[[Any], T], example: str) -> tuple[T, ...]:
    try:
        listed = json.loads(text or "[]")
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise UnusableValue("is not a JSON list", example)
    result = []
    for position, entry in enumerate(listed):
        try:
            result.append(read(entry))
        except ValueError as error:
            problem, _, hint = str(error).partition("; hint: ")
            raise UnusableValue(f"entry {position}: {problem}", hint or example) from error
    return tuple(result)


def _adjustment(entry: Any) -> "PriceAdjustment":
    from nodeless.scheduling import PriceAdjustment  # noqa: PLC0415

    _check_members(entry, (*_LISTS, *_NUMBERS))
    selections = {field: _strings(entry[name], name) for name, field in _LISTS.items() if name in entry}
    numbers = {name: _number(entry[name], name) for name in _NUMBERS if name in entry}
    if not numbers:
        raise ValueError("changes no price; hint: give percent, dollars or price")
    return PriceAdjustment(**selections, **numbers)  # type: ignore[arg-type]


def _rate(entry: Any) -> InterruptionRate:
    selecting = {name: field for name, field in _LISTS.items() if name != "capacityTypes"}
    _check_members(entry, (*selecting, _PER_MONTH))
    if _PER_MONTH not in entry:
        raise ValueError("says no rate; hint: give perMonth")
    selections = {field: _strings(entry[name], name) for name, field in selecting.items() if name in entry}
    return InterruptionRate(**selections, per_month=_number(entry[_PER_MONTH], _PER_MONTH))


def _commitment(entry: Any) -> Commitment:
    _check_members(entry, _COMMITMENT_MEMBERS)
    if "dollarsPerHour" in entry and "discountPercent" not in entry:
        raise ValueError(
            "discountPercent is missing; hint: a Savings Plan is used up at its own rates: "
            "say by how many percent they are below list prices"
        )
    if "discountPercent" in entry and "dollarsPerHour" not in entry:
        raise ValueError("discountPercent is for dollarsPerHour; hint: leave it out beside instances")
    flexible = entry.get("sizeFlexible", False)
    if not isinstance(flexible, bool):
        raise ValueError("sizeFlexible is neither true nor false; hint: write it without quotes")  # noqa: TRY004
    return Commitment(
        name=_text(entry, "name"),
        instance_types=_strings(entry.get("instanceTypes", []), "instanceTypes"),
        zones=_strings(entry.get("zones", []), "zones"),
        region=_text(entry, "region"),
        platform=_text(entry, "platform"),
        instances=_number(entry["instances"], "instances") if "instances" in entry else None,
        size_flexible=flexible,
        dollars=_number(entry["dollarsPerHour"], "dollarsPerHour") if "dollarsPerHour" in entry else None,
        **_discounts(entry.get("discountPercent", 0)),
        start=_moment(entry, "from"),
        end=_moment(entry, "until"),
    )


def _discounts(value: Any) -> _Discounts:
    """One for all instance types, or one for each of some."""
    if not isinstance(value, Mapping):
        return {"discount": _number(value, "discountPercent")}
    if not value:
        raise ValueError('discountPercent names no instance type; hint: write {"m7g.*": 34, "*": 27}')
    return {
        "discounts": tuple(
            (pattern, _number(percent, f"discountPercent of {pattern}")) for pattern, percent in value.items()
        )
    }


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a string; hint: write it in quotes")  # noqa: TRY004
    return value.strip()


def _moment(entry: Mapping[str, Any], name: str) -> float | None:
    """A day, from its beginning in UTC, or an RFC 3339 time; None: the entry has none."""
    text = _text(entry, name)
    if not text:
        return None
    try:
        return parse_time(f"{text}T00:00:00Z" if _DAY.fullmatch(text) else text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, not a day; hint: write 2027-01-31") from None


def _check_members(entry: Any, known: tuple[str, ...]) -> None:
    if not isinstance(entry, Mapping):
        raise ValueError("is not an object")  # noqa: TRY004 - a fault like the others
    unknown = sorted(set(entry) - set(known))
    if unknown:
        raise ValueError(f"unknown member {unknown[0]!r}; hint: use {', '.join(known)}")


def _strings(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'{name} is not a list of strings; hint: write ["NAME"]')
    return tuple(value)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number; hint: write it without quotes")  # noqa: TRY004
    if not -HIGHEST_FIGURE <= value <= HIGHEST_FIGURE:
        shown = str(value)
        shown = shown if len(shown) <= _LONGEST_FIGURE else f"{shown[:_LONGEST_FIGURE]}..."
        raise ValueError(f"{name} is {shown}; hint: at most {HIGHEST_FIGURE} is allowed")
    return float(value)
