"""`nodeless top`: the nodes of a cluster with fill, price and disruption, refreshed until it is ended."""

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.cli.commands.inputs import (
    CatalogOption,
    Files,
    Kubeconfig,
    Namespace,
    Region,
    Snapshot,
    Source,
    SpotPercent,
    WhatIf,
    Zones,
    situation_of,
)
from nodeless.cli.commands.output import (
    DOCUMENTS,
    TABLES,
    WIDE,
    AsJson,
    WideOutputOption,
    format_of,
    write_document,
)
from nodeless.cli.commands.terms import refuse
from nodeless.cli.progress import nothing_shown, working

if TYPE_CHECKING:
    from rich.console import Group

    from nodeless.cli.tables import FittedTable
    from nodeless.explain.overview import NodeRow, Overview

views = typer.Typer()
_OUTPUT = "Output"
_SORTS = ("price", "cpu", "memory", "pods", "age", "name")
_RIGHT = ("USD/h", "CPU", "MEMORY", "PODS", "AGE", "AS PLANNED")
#: What a narrow terminal does without, the last ones first.
_OPTIONAL = ("POOL", "CAPACITY", "ZONE", "AGE", "AS PLANNED")
#: Seconds of each, the largest first.
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


@views.command(rich_help_panel="Plans")
def top(
    files: Files = None,
    snapshot: Snapshot = "",
    what_if: WhatIf = None,
    kubeconfig: Kubeconfig = "",
    namespace: Namespace = "karpenter",
    region: Region = "",
    catalog: CatalogOption = "",
    zones: Zones = "",
    spot_percent: SpotPercent = 40.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print once and leave", rich_help_panel=_OUTPUT)
    ] = False,
    seconds: Annotated[float, typer.Option(min=1.0, help="Between two looks", rich_help_panel=_OUTPUT)] = 5.0,
    sort: Annotated[str, typer.Option(help=", ".join(_SORTS), rich_help_panel=_OUTPUT)] = "price",
    output: WideOutputOption = "text",
    as_json: AsJson = False,
) -> None:
    """Show nodes with fill, pods, price, age and what holds or disrupts them, and what is about to happen.

    On a terminal the view is refreshed until Ctrl-C; into a pipe, from files or from a snapshot it is printed
    once. AS PLANNED: how many of the pods that a node was launched for, and that still exist, run on it.
    """
    # Imported here: other commands do not need the solver.
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from nodeless.cli.tables import print_fitted  # noqa: PLC0415
    from nodeless.explain.overview import overview  # noqa: PLC0415

    if sort not in _SORTS:
        refuse(f"--sort {sort!r} is not known; hint: {', '.join(_SORTS)}")
    output = format_of(output, as_json=as_json, formats=TABLES)
    source = Source(
        files or (), snapshot, what_if or (), kubeconfig, namespace, region, catalog, zones, spot_percent
    )
    with working("looking at the nodes"):
        seen = overview(situation_of(source)[0])
    if output in DOCUMENTS:
        write_document("Overview", seen.to_json(), output)
        return
    console = Console(highlight=False)
    if once or output == WIDE or files or snapshot or not console.is_terminal:
        view = _view(seen, sort)
        print_fitted(lambda fitted: fitted.print(view, soft_wrap=True), wide=output == WIDE)
        return
    try:
        first = _view(seen, sort)
        with nothing_shown(), Live(first, console=console, screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(seconds)
                live.update(_view(overview(situation_of(source)[0]), sort), refresh=True)
    except KeyboardInterrupt:
        return


def _view(seen: "Overview", sort: str) -> "Group":
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    return Group(*(Text(line) for line in seen.lines()), Text(), _table(seen, sort))


def _table(seen: "Overview", sort: str) -> "FittedTable":
    from nodeless.cli.tables import Column, FittedTable  # noqa: PLC0415

    names = ("NODE", "POOL", "TYPE", "ZONE", "CAPACITY", *_RIGHT, "DISRUPTION")
    columns = [
        Column(name, right=name in _RIGHT, folds=name == "DISRUPTION", optional=name in _OPTIONAL)
        for name in names
    ]
    return FittedTable(columns, [_cells(row) for row in sorted(seen.rows, key=lambda row: _key(row, sort))])


def _key(row: "NodeRow", sort: str) -> tuple[float, str]:
    """What is sorted by, the largest first; then the name."""
    fill = row.fill
    keys = {
        "price": fill.price or 0.0,
        "cpu": fill.fraction("cpu"),
        "memory": fill.fraction("memory"),
        "pods": fill.pods,
        "age": row.age,
    }
    return -keys.get(sort, 0.0), fill.name


def _cells(row: "NodeRow") -> tuple[str, ...]:
    fill = row.fill
    return (
        fill.name,
        fill.pool.rpartition("/")[2] or "-",
        fill.instance_type or "-",
        fill.zone or "-",
        fill.capacity_type or "-",
        "-" if fill.price is None else f"{fill.price:.4f}",
        f"{fill.fraction('cpu'):.0%}" if fill.allocatable else "-",
        f"{fill.fraction('memory'):.0%}" if fill.allocatable else "-",
        str(fill.pods),
        age(row.age),
        f"{row.kept}/{row.planned}" if row.planned else "-",
        f"{'! ' if row.disrupted else ''}{row.message} [{row.code}]" if row.code else "-",
    )


def age(seconds: float) -> str:
    """As kubectl writes ages: the largest unit, and below ten of it the next one: `3d4h`, `45m`."""
    left = int(seconds)
    for (unit, size), (smaller, part) in pairwise(_UNITS):
        number, rest = divmod(left, size)
        if number >= 10:
            return f"{number}{unit}"
        if number:
            return f"{number}{unit}{rest // part}{smaller}" if rest // part else f"{number}{unit}"
    return f"{left}s"
