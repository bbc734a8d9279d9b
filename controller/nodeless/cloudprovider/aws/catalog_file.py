"""Instance types and prices of one region as a file, so that plans can be made without AWS. Pure.

The distribution brings one (`catalog.json`); `nodeless catalog` makes others. A type is one
row, its members in the order of `members`; prices are US dollars an hour.
"""

import dataclasses
import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from nodeless.api.known_types import KnownTypes
from nodeless.cloudprovider.aws.instance_type_builder import Known, build
from nodeless.cloudprovider.aws.instance_type_labels import type_requirements
from nodeless.cloudprovider.aws.node_shape import NodeShape, shape_of
from nodeless.cloudprovider.aws.price_list import Prices
from nodeless.cloudprovider.aws.type_facts import TypeFacts
from nodeless.cloudprovider.billing.catalogs import billed
from nodeless.cloudprovider.billing.parts import Location
from nodeless.cloudprovider.billing.room import named_by_pods, with_room
from nodeless.cloudprovider.billing.terms import BillTerms
from nodeless.launch.overlays import Evaluation, evaluate, laid_over
from nodeless.model.identity import Identity
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import ON_DEMAND, OS, SPOT, WINDOWS_BUILD
from nodeless.model.pools import NodeClass, Pool, kubelet_of
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.state import PoolUnusable, usable
from nodeless.state.saving import SavedFormatError, built, plain

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
        raise SavedFormatError(f"no catalog of version {VERSION}; {hint}")
    zones = built(tuple[str, ...], document.get("zones"), "zones")
    members = built(tuple[str, ...], document.get("members"), "members")
    rows = built(tuple[tuple[Any, ...], ...], document.get("types"), "types")
    try:
        return _catalog(document, zones, [dict(zip(members, row, strict=True)) for row in rows])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SavedFormatError(f"a type cannot be read: {error}; {hint}") from None


@cache
def bundled_catalog() -> CatalogFile:
    """The catalog that comes with this distribution."""
    return read_catalog(files(__package__).joinpath("catalog.json").read_text(encoding="utf-8"))


def offline_catalogs(
    catalog: CatalogFile,
    snapshot: Snapshot,
    zones: Iterable[str],
    terms: BillTerms | None = None,
    *,
    allowed_only: bool = True,
) -> tuple[dict[str, tuple[InstanceType, ...]], dict[str, str]]:
    """Types of each usable pool at the prices of its nodes, and what is wrong with the others.

    The NodeOverlays of the snapshot are laid over.

    Args:
        catalog: What is sold.
        snapshot: The pools and their node classes.
        zones: Zones of the subnets, which a file does not tell.
        terms: What counts as part of a price; None: the default.
        allowed_only: Leave out types that the pool's requirements do not allow.
    """
    terms, named, location = terms or BillTerms(), named_by_pods(snapshot), Location(catalog.region)
    sold, problems = _sold(catalog, snapshot, zones)
    overlays = evaluate(snapshot.node_overlays.values(), sold).accepted if snapshot.node_overlays else ()
    made: dict[Hashable, tuple[InstanceType, ...]] = {}
    catalogs: dict[str, tuple[InstanceType, ...]] = {}
    for pool, types in sold:
        _, node_class = usable(snapshot, pool.reference, pool.node_class)
        # Pools that pay the same share their types; overlays may be for one pool alone.
        priced_as = (
            Identity(types),
            node_class,
            terms.name_for(pool.name),
            pool.key if overlays else "",
        )
        if priced_as not in made:
            laid = laid_over(overlays, pool, types) if overlays else types
            made[priced_as] = billed(laid, pool.name, node_class, location, terms)
        chosen, conflict = made[priced_as], pool.requirements.conflict
        if allowed_only:
            chosen = tuple(each for each in chosen if conflict(each.requirements) is None)
        catalogs[pool.key] = with_room(chosen, pool.requirements, node_class, named, terms)
    return catalogs, problems


def offline_evaluation(catalog: CatalogFile, snapshot: Snapshot, zones: Iterable[str]) -> Evaluation:
    """Which NodeOverlays of a snapshot count for its pools, as far as a file tells."""
    return evaluate(snapshot.node_overlays.values(), _sold(catalog, snapshot, zones)[0])


def _sold(
    catalog: CatalogFile, snapshot: Snapshot, zones: Iterable[str]
) -> tuple[list[tuple[Pool, tuple[InstanceType, ...]]], dict[str, str]]:
    """Each usable pool with all that is sold in the zones, and what is wrong with the others."""
    where = frozenset(zones)
    sold: list[tuple[Pool, tuple[InstanceType, ...]]] = []
    problems: dict[str, str] = {}
    for key, pool in sorted(snapshot.pools.items()):
        try:
            shape = _shape(*usable(snapshot, pool.reference, pool.node_class))
        except PoolUnusable as error:
            problems[key] = str(error)
        else:
            sold.append((pool, _types(catalog, shape, where)))
    return sold, problems


#: A command asks several times for the same types: with and without what a pool allows, and as if changed.
@lru_cache(maxsize=8)
def _types(catalog: CatalogFile, shape: NodeShape, zones: frozenset[str]) -> tuple[InstanceType, ...]:
    prices = Prices(catalog.on_demand, catalog.spot or None)
    return build(Known(catalog.facts, catalog.zones), shape, zones, prices, catalog.region)


def known_types(catalog: CatalogFile) -> KnownTypes:
    """The labels of a catalog's types, for rules and warnings; systems are those that types can run."""
    return KnownTypes(
        {facts.name: _labels(facts, catalog.region) for facts in catalog.facts},
        f"{len(catalog.facts)} types of {catalog.region} are known",
    )


def _labels(facts: TypeFacts, region: str) -> Requirements:
    made = type_requirements(facts, region=region, zones=(), capacity_types=facts.usage_classes, pods=0)
    systems = ["linux", "windows"] if facts.architecture == "amd64" else ["linux"]
    kept = [made[key] for key in made if key not in (OS, WINDOWS_BUILD)]
    return Requirements([*kept, Requirement.of(OS, IN, systems)])


def _shape(pool: Pool, node_class: NodeClass) -> NodeShape:
    return shape_of(node_class, kubelet_of(pool, node_class))


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
        facts=tuple(built(TypeFacts, row, row["name"]) for row in rows),
        zones={name: frozenset(where) for name, where in sold.items()},
        on_demand={row["name"]: float(row[ON_DEMAND]) for row in rows if row[ON_DEMAND] is not None},
        spot={
            (row["name"], zone): float(price)
            for row in rows
            for zone, price in zip(sold[row["name"]], row.get(SPOT, ()), strict=False)
            if price is not None
        },
    )
