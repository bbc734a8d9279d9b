"""What may stand in a price book: the names of members, and prices up to a ceiling. Pure.

An entry that cannot be used is left out and told, so that the bundled price that it would replace stays in
force.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

#: IOPS of a volume that each tier of io2 ends with.
TIERS = (32_000, 64_000)
#: What no price of its unit comes near: dollars a month for a GiB, an IOPS, a MiB/s; dollars an hour.
_HIGHEST = {"gib": 10.0, "iops": 5.0, "throughput": 10.0}
_HIGHEST_AN_HOUR = 10.0
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_PLAIN_NAME = re.compile(r"[\w-]+")
_LONGEST_SHOWN = 80
_AS_A_NUMBER = "write a number without quotes, for example 0.08"


class _Unusable(ValueError):
    """What is wrong with a value, and what to write."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


@dataclass(frozen=True, slots=True)
class _Members:
    """An object: its members by name, or by the form of their names."""

    named: "Mapping[str, _Rule]" = field(default_factory=dict, hash=False)
    form: re.Pattern[str] | None = None
    rule: "_Rule | None" = None
    """Of the members whose names have the form."""
    example: str = ""
    """A name of the form, in words."""

    def rule_of(self, name: str) -> "_Rule | None":
        if self.form is not None and self.form.fullmatch(name):
            return self.rule
        return self.named.get(name)

    @property
    def names(self) -> str:
        return self.example or ", ".join(self.named)


_Rule = _Members | Callable[[object], None]


def usable_entries(given: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    """The entries of a price book that can be used; a fault for each other one, with its path and value."""
    return _usable(given, _BOOK, faults, "")


def _usable(given: Mapping[str, Any], members: _Members, faults: list[str], at: str) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in given.items():
        here = at + (name if _PLAIN_NAME.fullmatch(name) else repr(name))
        rule = members.rule_of(name)
        if rule is None:
            fault = _Unusable(f"unknown member with the value {_shown(value)}", f"use {members.names}")
        elif not isinstance(rule, _Members):
            try:
                rule(value)
            except _Unusable as error:
                fault = error
            else:
                kept[name] = value
                continue
        elif isinstance(value, Mapping):
            if below := _usable(value, rule, faults, f"{here}."):
                kept[name] = below
            continue
        else:
            fault = _Unusable(f"{_shown(value)} is not an object", f"write an object with {rule.names}")
        faults.append(f"{here}: {fault.problem}; it is ignored; hint: {fault.hint}")
    return kept


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _number(value: object, highest: float, what: str, hint: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= highest:
        raise _Unusable(f"{_shown(value)} is not a {what} from 0 to {highest:g}", hint)


def _price(highest: float) -> Callable[[object], None]:
    return lambda value: _number(value, highest, "price", _AS_A_NUMBER)


def _percentage(value: object) -> None:
    _number(value, 100.0, "percentage", "write a number without quotes, for example 20")


def _tiers(value: object) -> None:
    listed = value if isinstance(value, list) else [value]
    most = len(TIERS) + 1
    if not listed:
        raise _Unusable("[] has no price", "give the price of an IOPS, or of each tier")
    if len(listed) > most:
        ends = ", ".join(f"up to {end}" for end in TIERS)
        raise _Unusable(
            f"{_shown(value)} has {len(listed)} tiers",
            f"give at most {most}: {ends} and beyond, as AWS has them",
        )
    for price in listed:
        _price(_HIGHEST["iops"])(price)


def _text(value: object) -> None:
    if not isinstance(value, str):
        raise _Unusable(f"{_shown(value)} is not a string", "write it in quotes, or leave it out")


def _day(value: object) -> None:
    try:
        if isinstance(value, str) and _DATE.fullmatch(value) and date.fromisoformat(value):
            return
    except ValueError:
        pass
    raise _Unusable(f"{_shown(value)} is not a day", "write for example 2026-12-01, or leave it out")


def _table(**entries: _Rule) -> _Members:
    """A table: its entries, and what is said of it."""
    return _Members({**entries, "date": _day, "name": _text, "source": _text, "unit": _text})


_VOLUME = _Members(
    {"gib": _price(_HIGHEST["gib"]), "iops": _tiers, "throughput": _price(_HIGHEST["throughput"])}
)
_KINDS = _Members(dict.fromkeys(("gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"), _VOLUME))
_REGIONS = _Members(
    form=re.compile(r"[a-z]{2,5}(-[a-z]+)+-\d{1,2}"),
    rule=_KINDS,
    example="the id of a region such as us-east-1",
)
_T_FAMILY, _A_T_FAMILY = re.compile(r"t\d[a-z0-9-]*"), "a family of T types such as t3"
_AN_HOUR = _price(_HIGHEST_AN_HOUR)
_SIZES = _Members(form=re.compile(r"[a-z0-9-]+"), rule=_percentage, example="a size such as large")
_BOOK = _Members(
    {
        "addresses": _table(ipv4=_AN_HOUR),
        "baselines": _table(families=_Members(form=_T_FAMILY, rule=_SIZES, example=_A_T_FAMILY)),
        "credits": _table(
            families=_Members(
                form=_T_FAMILY, rule=_Members({"linux": _AN_HOUR, "windows": _AN_HOUR}), example=_A_T_FAMILY
            )
        ),
        "licenses": _table(systems=_Members({"windows": _AN_HOUR})),
        "volumes": _table(regions=_REGIONS),
    }
)
