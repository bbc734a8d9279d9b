"""Where a situation comes from: manifests, a saved snapshot, or the cluster; options that commands share."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.app.commands.terms import STDIN, content_of, from_cluster, refuse, remark, saved_situation

if TYPE_CHECKING:
    from nodeless.cloud.aws.catalogue_file import CatalogueFile
    from nodeless.explain.decisions import Situation
    from nodeless.model.instance_types import Catalog

_SUFFIXES = (".yaml", ".yml", ".json")
_INPUT, _CATALOGUE = "What is planned", "What may be bought"

Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE...|DIR|-]", help="Manifests; none: the cluster of the kubeconfig"),
]
Snapshot = Annotated[
    str, typer.Option("--snapshot", metavar="FILE", help="Made by nodeless snapshot", rich_help_panel=_INPUT)
]
WhatIf = Annotated[
    list[str] | None,
    typer.Option(
        "--what-if",
        metavar="CHANGE",
        help="Plan as if: scale=deploy/web:20, remove=deploy/web, without-pool=P, without-node=N, "
        "without-type=m5.*, only-type=m5.*, without-zone=Z, without-spot, price=m5.large:0.05, "
        "price=c5.*:-20%, limit=POOL:cpu=100; any number of them, in their order",
        rich_help_panel=_INPUT,
    ),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        help="Path of a kubeconfig; without it, $KUBECONFIG, then ~/.kube/config", rich_help_panel=_INPUT
    ),
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace of the controller", rich_help_panel=_INPUT)
]
Region = Annotated[str, typer.Option(help="AWS region of the cluster", rich_help_panel=_INPUT)]
Catalogue = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Made by nodeless catalogue; without it, the bundled one",
        rich_help_panel=_CATALOGUE,
    ),
]
Zones = Annotated[
    str,
    typer.Option(
        metavar="ZONE,...",
        help="Zones of the subnets; without it, the first three",
        rich_help_panel=_CATALOGUE,
    ),
]
SpotPercent = Annotated[
    float,
    typer.Option(
        help="Spot price in percent of on-demand, where the catalogue has none",
        min=1,
        max=100,
        rich_help_panel=_CATALOGUE,
    ),
]


@dataclass(frozen=True, slots=True)
class Source:
    """The options by which a situation is found."""

    files: Sequence[str] = ()
    snapshot: str = ""
    what_if: Sequence[str] = ()
    kubeconfig: str = ""
    namespace: str = "karpenter"
    region: str = ""
    catalogue: str = ""
    zones: str = ""
    spot_percent: float = 40.0


def situation_of(source: Source) -> "tuple[Situation, Catalog, list[str]]":
    """The situation, what pools might buy if they allowed it, and notes; or the end of the command."""
    # Imported here: other commands do not need the solver.
    from nodeless.cloud.aws.catalogue_file import offline_catalogs  # noqa: PLC0415
    from nodeless.explain.what_if import BadChange, changed  # noqa: PLC0415

    if source.files and source.snapshot:
        refuse("manifests and --snapshot exclude each other; hint: leave one of them out")
    sold = _catalogue(source.catalogue, source.spot_percent)
    zones = _zones(sold, source.zones)
    notes: list[str] = []
    if source.snapshot:
        situation = saved_situation(source.snapshot).situation
    elif source.files:
        situation = _from_files(source.files, sold, zones, notes)
    else:
        situation = _from_cluster(source, sold, zones, notes)
    try:
        for change in source.what_if:
            situation = changed(situation, change)
            notes.append(f"as if: {change}")
    except BadChange as error:
        refuse(str(error))
    wider: Catalog = {}
    if source.files:
        wider, _ = offline_catalogs(sold, situation.snapshot, zones, allowed_only=False)
    return situation, wider, notes


def _catalogue(file: str, spot_percent: float) -> "CatalogueFile":
    from nodeless.cloud.aws.catalogue_file import bundled_catalogue, read_catalogue  # noqa: PLC0415
    from nodeless.state.saving import SavedFormatError  # noqa: PLC0415

    if not file:
        return bundled_catalogue().with_spot_percent(spot_percent)
    try:
        return read_catalogue(content_of(file).decode("utf-8", "replace")).with_spot_percent(spot_percent)
    except SavedFormatError as error:
        refuse(f"{file}: {error}")


def _zones(sold: "CatalogueFile", text: str) -> tuple[str, ...]:
    zones = tuple(zone.strip() for zone in text.split(",") if zone.strip()) or sold.all_zones[:3]
    unknown = [zone for zone in zones if zone not in sold.all_zones]
    if unknown:
        refuse(
            f"--zones: {unknown[0]!r} is no zone of the catalogue; hint: {', '.join(sold.all_zones)}, "
            "or make a catalogue of your region with `nodeless catalogue`"
        )
    return zones


def _from_files(
    files: Sequence[str], sold: "CatalogueFile", zones: tuple[str, ...], notes: list[str]
) -> "Situation":
    from nodeless.app.manifests import BadManifests, Document, documents_of, given_by  # noqa: PLC0415
    from nodeless.cloud.aws.catalogue_file import offline_catalogs  # noqa: PLC0415
    from nodeless.explain.decisions import Situation  # noqa: PLC0415
    from nodeless.solve import Policy  # noqa: PLC0415

    faults: list[str] = []
    documents: list[Document] = []
    for file in _listed(files):
        try:
            documents += documents_of(file, content_of(file).decode("utf-8", "replace"))
        except BadManifests as error:
            faults += error.faults
    try:
        given = given_by(documents)
    except BadManifests as error:
        faults += error.faults
    if faults:
        for fault in faults:
            remark(fault)
        refuse(
            f"{len(faults)} fault{'s' if len(faults) > 1 else ''} in the manifests; hint: see the lines above"
        )
    notes += _offline_notes(sold, zones)
    notes += given.assumed
    if given.passed_over:
        kinds = ", ".join(f"{kind} ({number})" for kind, number in given.passed_over.items())
        notes.append(f"play no part: {kinds}")
    catalog, problems = offline_catalogs(sold, given.snapshot, zones)
    return Situation(given.snapshot, catalog, Policy(pool_problems=problems), time.time())


def _from_cluster(
    source: Source, sold: "CatalogueFile", zones: tuple[str, ...], notes: list[str]
) -> "Situation":
    from nodeless.cloud.aws.catalogue_file import offline_catalogs  # noqa: PLC0415
    from nodeless.model.instance_types import Catalog  # noqa: PLC0415
    from nodeless.model.snapshot import Snapshot as Seen  # noqa: PLC0415

    def offline(seen: Seen) -> tuple[Catalog, dict[str, str]]:
        notes.extend(_offline_notes(sold, zones))
        return offline_catalogs(sold, seen, zones)

    return from_cluster(source.kubeconfig, source.namespace, source.region, offline)


def _offline_notes(sold: "CatalogueFile", zones: tuple[str, ...]) -> list[str]:
    types = f"{len(sold.facts)} instance types"
    notes = [f"prices of {sold.region}, {sold.date}, {types}, zones {', '.join(zones)}"]
    if sold.spot_percent is not None:
        notes.append(f"spot is taken to cost {sold.spot_percent:g} % of on-demand")
    return notes


def _listed(files: Sequence[str]) -> Iterator[str]:
    """The files, those of folders in the order of their names."""
    for file in files:
        path = Path(file)
        if file == STDIN or not path.is_dir():
            yield file
            continue
        found = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
        if not found:
            refuse(f"{file} holds no manifests; hint: files that end with {', '.join(_SUFFIXES)}")
        yield from map(str, found)
