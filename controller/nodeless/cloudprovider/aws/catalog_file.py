"""Instance types and prices of one region as a file, so that plans can be made without AWS. Pure.

The distribution brings one (`catalog.json`); `nodeless catalog` makes others. A type is one
row, its members in the order of `members`; prices are US dollars an hour.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from nodeless.api.known_types import KnownTypes
from nodeless.cloudprovider.aws.instance_type_labels import type_requirements
from nodeless.cloudprovider.aws.price_list import read_price
from nodeless.cloudprovider.aws.type_facts import TypeFacts
from nodeless.model.bill import PriceSource
from nodeless.model.labels import ON_DEMAND, OS, SPOT, WINDOWS_BUILD
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.state.saving import SavedFormatError, build_value, plain

FORMAT = "nodeless/catalog"
VERSION = 2
#: What spot costs where a catalog has no spot prices, in percent of on-demand: AWS's vary by the minute.
SPOT_PERCENT = 40.0


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """What a region sells at a date."""

    date: str
    """ISO 8601."""
    region: str
    facts: tuple[TypeFacts, ...] = field(hash=False)
    zones: Mapping[str, frozenset[str]] = field(hash=False)
    """By type, the zones that sell it."""
    on_demand: Mapping[str, float] = field(hash=False)
    spot: Mapping[tuple[str, str], float] = field(default_factory=dict, hash=False)
    """By type and zone; empty: not known."""
    spot_percent: float | None = None
    """Set where spot prices are no more than this share of on-demand."""

    @property
    def source(self) -> PriceSource:
        """Of its on-demand prices."""
        return PriceSource(f"catalog of {self.region}", self.date)

    @property
    def spot_source(self) -> PriceSource:
        """Of its spot prices."""
        if self.spot_percent is None:
            return self.source
        return PriceSource(f"{self.spot_percent:g} % of on-demand in the catalog of {self.region}", self.date)

    @property
    def all_zones(self) -> tuple[str, ...]:
        return tuple(sorted({zone for zones in self.zones.values() for zone in zones}))

    def with_spot_percent(self, percent: float) -> "CatalogFile":
        """The same with spot prices as a share of on-demand, where it has none of its own."""
        return self if self.spot else _with_spot(self, percent)


@lru_cache(maxsize=4)
def _with_spot(catalog: CatalogFile, percent: float) -> CatalogFile:
    spot = {
        (name, zone): round(price * percent / 100, 6)
        for name, price in catalog.on_demand.items()
        for zone in catalog.zones.get(name, ())
    }
    return dataclasses.replace(catalog, spot=spot, spot_percent=percent)


def write_catalog(catalog: CatalogFile) -> str:
    """JSON, one type a line, sorted by name."""
    members = [member.name for member in dataclasses.fields(TypeFacts)]
    zones = catalog.all_zones
    head = {
        "format": FORMAT,
        "version": VERSION,
        "date": catalog.date,
        "region": catalog.region,
        "unit": "US dollars an hour, Linux",
        "zones": zones,
        "members": [*members, "zones", ON_DEMAND, *([SPOT] if catalog.spot else [])],
    }
    rows = [_row(catalog, facts, members, zones) for facts in catalog.facts]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    return f'{json.dumps(head, indent=1)[:-2]},\n "types": [\n{lines}\n]}}\n'


def read_catalog(text: str) -> CatalogFile:
    """The catalog of a file's text. Raises SavedFormatError."""
    hint = "hint: make the file with `nodeless catalog`"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SavedFormatError(f"not JSON: {error}; {hint}") from None
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (
        FORMAT,
        VERSION,
    ):
        raise SavedFormatError(f"not a catalog of version {VERSION}; {hint}")
    zones = build_value(tuple[str, ...], document.get("zones"), "zones")
    members = build_value(tuple[str, ...], document.get("members"), "members")
    rows = build_value(tuple[tuple[Any, ...], ...], document.get("types"), "types")
    try:
        return _catalog(document, zones, [dict(zip(members, row, strict=True)) for row in rows])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SavedFormatError(f"a type cannot be read: {error}; {hint}") from None


@cache
def bundled_catalog() -> CatalogFile:
    """The catalog that comes with this distribution."""
    return read_catalog(files(__package__).joinpath("catalog.json").read_text(encoding="utf-8"))


def known_types(catalog: CatalogFile) -> KnownTypes:
    """The labels of a catalog's types, for rules and warnings; systems are those that types can run."""
    return KnownTypes.of(
        {facts.name: _labels(facts, catalog.region) for facts in catalog.facts},
        f"{len(catalog.facts)} types of {catalog.region} are known",
    )


def _labels(facts: TypeFacts, region: str) -> Requirements:
    made = type_requirements(facts, region=region, zones=(), capacity_types=facts.usage_classes, pods=0)
    systems = ["linux", "windows"] if facts.architecture == "amd64" else ["linux"]
    kept = [made[key] for key in made if key not in (OS, WINDOWS_BUILD)]
    return Requirements([*kept, Requirement.of(OS, IN, systems)])


def _row(catalog: CatalogFile, facts: TypeFacts, members: list[str], zones: tuple[str, ...]) -> list[Any]:
    sold = sorted(catalog.zones.get(facts.name, ()))
    row = [plain(getattr(facts, member)) for member in members]
    row += [[zones.index(zone) for zone in sold], catalog.on_demand.get(facts.name)]
    return row + ([[catalog.spot.get((facts.name, zone)) for zone in sold]] if catalog.spot else [])


def _catalog(document: Mapping[str, Any], zones: tuple[str, ...], rows: list[dict[str, Any]]) -> CatalogFile:
    sold = {row["name"]: [zones[index] for index in row["zones"]] for row in rows}
    return CatalogFile(
        date=str(document["date"]),
        region=str(document["region"]),
        facts=tuple(build_value(TypeFacts, row, row["name"]) for row in rows),
        zones={name: frozenset(where) for name, where in sold.items()},
        # What is no price, negative or absurdly high counts as not known.
        on_demand={row["name"]: price for row in rows if (price := read_price(row[ON_DEMAND])) is not None},
        spot={
            (row["name"], zone): price
            for row in rows
            for zone, listed in zip(sold[row["name"]], row.get(SPOT, ()), strict=False)
            if (price := read_price(listed)) is not None
        },
    )
