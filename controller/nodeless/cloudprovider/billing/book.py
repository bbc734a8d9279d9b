"""The book of prices: what AWS charges for what comes with an instance, each table with its source and date.

The distribution brings one (`book.json`); the setting `nodeless.priceBook` lays entries of the same form
over it. What cannot be a price (no number, negative, absurdly high) is left out and told: then that part of
a bill is not known, which is something else than free.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from nodeless.model.bill import PriceSource

#: What no price of its unit comes near: dollars a month for a GiB, an IOPS, a MiB/s; dollars an hour.
_HIGHEST = {"gib": 10.0, "iops": 5.0, "throughput": 10.0}
_HIGHEST_AN_HOUR = 10.0
#: The setting by which users give prices of their own.
PRICE_BOOK = "nodeless.priceBook"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
#: Regions that are billed in another currency.
_OTHER_CURRENCY = ("cn-",)


@dataclass(frozen=True, slots=True)
class VolumePrices:
    """Dollars a month of one kind of volume; None, or no tiers: not known."""

    gib: float | None = None
    iops: tuple[float, ...] = ()
    """For each IOPS, by tier: up to 32,000, up to 64,000, beyond; the last one holds for all that follow."""
    throughput: float | None = None
    """For each MiB/s."""


@dataclass(frozen=True, slots=True)
class PriceBook:
    """All of it. Look-ups give None for what the book does not know."""

    volumes: Mapping[tuple[str, str], VolumePrices] = field(default_factory=dict, hash=False)
    """By region and kind of volume."""
    credits: Mapping[tuple[str, str], float] = field(default_factory=dict, hash=False)
    """Dollars for a vCPU-hour beyond the baseline, by family and operating system."""
    baselines: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Percent of each vCPU, by instance type."""
    licenses: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Dollars an hour for a vCPU, by operating system."""
    ipv4: float | None = None
    """Dollars an hour for a public address."""
    dates: Mapping[str, str] = field(default_factory=dict, hash=False)
    """ISO 8601, by table."""
    faults: tuple[str, ...] = ()
    """What was left out, and why."""
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the setting lays over the bundled book."""

    def sources(self, table: str, *paths: tuple[str, ...]) -> tuple[PriceSource, ...]:
        """Where the entries at some paths of a table are from, each source once."""
        return tuple(dict.fromkeys(self._source(table, path) for path in paths))

    def _source(self, table: str, path: tuple[str, ...]) -> PriceSource:
        *above, last = path
        given = _table(self.given, table)
        if last in _table(given, *above):
            date = given.get("date")
            return PriceSource(PRICE_BOOK, date if isinstance(date, str) and _DATE.fullmatch(date) else "")
        bundled = _bundled_document()[table]
        return PriceSource(bundled["name"], bundled["date"])

    def volume(self, region: str, kind: str) -> VolumePrices | None:
        """The prices of a kind of volume in a region."""
        return self.volumes.get((region, kind))

    def credit(self, region: str, family: str, system: str) -> float | None:
        """Dollars for a vCPU-hour beyond the baseline of a T family."""
        return None if _is_foreign(region) else self.credits.get((family, system))

    def license(self, region: str, system: str) -> float | None:
        """What an operating system adds to Linux's price, in dollars an hour for a vCPU."""
        return None if _is_foreign(region) else self.licenses.get(system)

    def address(self, region: str) -> float | None:
        """Dollars an hour of a public IPv4 address."""
        return None if _is_foreign(region) else self.ipv4


def _is_foreign(region: str) -> bool:
    return region.startswith(_OTHER_CURRENCY)


@cache
def bundled_book() -> PriceBook:
    """The book that comes with this distribution."""
    return read_book("{}")


@cache
def read_book(text: str) -> PriceBook:
    """The bundled book with entries of a JSON text over it. What cannot be used is among its `faults`."""
    faults: list[str] = []
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, Mapping):
        faults.append("the price book is not a JSON object")
        given = {}
    document = _laid_over(_bundled_document(), given, faults)
    return PriceBook(
        volumes=dict(_volumes(document, faults)),
        credits=dict(_credits(document, faults)),
        baselines=dict(_baselines(document, faults)),
        licenses=dict(_licenses(document, faults)),
        ipv4=_price(_table(document, "addresses").get("ipv4"), _HIGHEST_AN_HOUR, "addresses.ipv4", faults),
        dates={name: str(_table(document, name).get("date", "")) for name in sorted(document)},
        faults=tuple(faults),
        given=given,
    )


@cache
def _bundled_document() -> dict[str, Any]:
    """Nobody changes it: what is laid over it is laid over a copy."""
    document: dict[str, Any] = json.loads(
        files(__package__ or "").joinpath("book.json").read_text(encoding="utf-8")
    )
    return document


def _laid_over(
    base: dict[str, Any], given: Mapping[str, Any], faults: list[str], at: str = ""
) -> dict[str, Any]:
    """Objects are merged member by member; whatever else is given replaces what was there."""
    result = dict(base)
    for name, value in given.items():
        here = f"{at}{name}"
        if not at and name not in base:
            faults.append(f"{here}: no table of that name; hint: {', '.join(sorted(base))}")
        elif isinstance(result.get(name), dict):
            if isinstance(value, Mapping):
                result[name] = _laid_over(result[name], value, faults, f"{here}.")
            else:
                faults.append(f"{here}: not an object; hint: write it as in the bundled book")
        else:
            result[name] = value
    return result


def _table(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    found: Any = document
    for name in names:
        found = found.get(name, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _price(value: object, highest: float, where: str, faults: list[str]) -> float | None:
    """A price; None where there is none, and where it cannot be one."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= highest:
        faults.append(
            f"{where}: {value!r} is not a price from 0 to {highest:g}; the part counts as not known"
        )
        return None
    return float(value)


def _volumes(
    document: Mapping[str, Any], faults: list[str]
) -> Iterator[tuple[tuple[str, str], VolumePrices]]:
    for region, kinds in _table(document, "volumes", "regions").items():
        for kind in _table({region: kinds}, region):
            where = f"volumes.regions.{region}.{kind}"
            entry = _table(kinds, kind)
            yield (
                (region, kind),
                VolumePrices(
                    _price(entry.get("gib"), _HIGHEST["gib"], f"{where}.gib", faults),
                    _tiers(entry.get("iops"), where, faults),
                    _price(entry.get("throughput"), _HIGHEST["throughput"], f"{where}.throughput", faults),
                ),
            )


def _tiers(value: object, where: str, faults: list[str]) -> tuple[float, ...]:
    if value is None:
        return ()
    listed = value if isinstance(value, list) else [value]
    prices = [_price(each, _HIGHEST["iops"], f"{where}.iops", faults) for each in listed]
    known = tuple(price for price in prices if price is not None)
    return known if len(known) == len(prices) else ()


def _credits(document: Mapping[str, Any], faults: list[str]) -> Iterator[tuple[tuple[str, str], float]]:
    for family, systems in _table(document, "credits", "families").items():
        for system, value in _table({family: systems}, family).items():
            price = _price(value, _HIGHEST_AN_HOUR, f"credits.families.{family}.{system}", faults)
            if price is not None:
                yield (family, system), price


def _baselines(document: Mapping[str, Any], faults: list[str]) -> Iterator[tuple[str, float]]:
    for family, sizes in _table(document, "baselines", "families").items():
        for size, value in _table({family: sizes}, family).items():
            percent = _price(value, 100.0, f"baselines.families.{family}.{size}", faults)
            if percent is not None:
                yield f"{family}.{size}", percent


def _licenses(document: Mapping[str, Any], faults: list[str]) -> Iterator[tuple[str, float]]:
    for system, value in _table(document, "licenses", "systems").items():
        price = _price(value, _HIGHEST_AN_HOUR, f"licenses.systems.{system}", faults)
        if price is not None:
            yield system, price
