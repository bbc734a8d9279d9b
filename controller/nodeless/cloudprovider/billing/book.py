"""The book of prices: what AWS charges for what comes with an instance, each table with its source and date.

The distribution brings one (`book.json`); the setting `nodeless.priceBook` lays entries of the same form
over it. What cannot be used (an unknown member, no number, negative, absurdly high) is left out and told:
the bundled price stays in force; where there is none, the part is not known, which is something else than
free.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from nodeless.cloudprovider.billing.entries import usable_entries
from nodeless.model.bill import PriceSource

#: The setting by which users give prices of their own.
PRICE_BOOK = "nodeless.priceBook"
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
    """What the setting lays over the bundled book: the entries that can be used."""

    def sources(self, table: str, *paths: tuple[str, ...]) -> tuple[PriceSource, ...]:
        """Where the entries at some paths of a table are from, each source once."""
        return tuple(dict.fromkeys(self._source(table, path) for path in paths))

    def _source(self, table: str, path: tuple[str, ...]) -> PriceSource:
        *above, last = path
        given = _table(self.given, table)
        if last in _table(given, *above):
            return PriceSource(PRICE_BOOK, given.get("date", ""))
        bundled = _bundled_document()[table]
        return PriceSource(bundled["name"], bundled["date"])

    def volume(self, region: str, kind: str) -> VolumePrices | None:
        """The prices of a kind of volume in a region."""
        return self.volumes.get((region, kind))

    def credit(self, region: str, family: str, system: str) -> float | None:
        """Dollars for a vCPU-hour beyond the baseline of a T family."""
        known = self._is_priced(region, "credits", "families", family, system)
        return self.credits.get((family, system)) if known else None

    def license(self, region: str, system: str) -> float | None:
        """What an operating system adds to Linux's price, in dollars an hour for a vCPU."""
        return self.licenses.get(system) if self._is_priced(region, "licenses", "systems", system) else None

    def address(self, region: str) -> float | None:
        """Dollars an hour of a public IPv4 address."""
        return self.ipv4 if self._is_priced(region, "addresses", "ipv4") else None

    def _is_priced(self, region: str, table: str, *path: str) -> bool:
        """Whether an entry is for a region: bundled ones are in US dollars, others in the user's currency."""
        *above, last = path
        return not _is_foreign(region) or last in _table(self.given, table, *above)


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
    usable = usable_entries(given, faults)
    document = _laid_over(_bundled_document(), usable)
    return PriceBook(
        volumes=dict(_volumes(document)),
        credits=dict(_credits(document)),
        baselines=dict(_baselines(document)),
        licenses=document["licenses"]["systems"],
        ipv4=document["addresses"]["ipv4"],
        dates={name: document[name]["date"] for name in sorted(document)},
        faults=tuple(faults),
        given=usable,
    )


@cache
def _bundled_document() -> dict[str, Any]:
    """Nobody changes it: what is laid over it is laid over a copy."""
    document: dict[str, Any] = json.loads(
        files(__package__ or "").joinpath("book.json").read_text(encoding="utf-8")
    )
    return document


def _laid_over(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Objects are merged member by member; whatever else is given replaces what was there."""
    result = dict(base)
    for name, value in given.items():
        merged = isinstance(value, Mapping) and name in base
        result[name] = _laid_over(base[name], value) if merged else value
    return result


def _table(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = document
    for name in names:
        found = found.get(name, {})
    return found


def _volumes(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], VolumePrices]]:
    for region, kinds in document["volumes"]["regions"].items():
        for kind, entry in kinds.items():
            iops = entry.get("iops", ())
            tiers = tuple(iops) if isinstance(iops, list | tuple) else (iops,)
            yield (region, kind), VolumePrices(entry.get("gib"), tiers, entry.get("throughput"))


def _credits(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    for family, systems in document["credits"]["families"].items():
        for system, price in systems.items():
            yield (family, system), price


def _baselines(document: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for family, sizes in document["baselines"]["families"].items():
        for size, percent in sizes.items():
            yield f"{family}.{size}", percent
