"""`nodeless advise`: what a cluster would cost with other rules, each tried by the solver."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.cli.commands.inputs import (
    CONTROLLER_NAMESPACE,
    CatalogOption,
    ControllerNamespace,
    Files,
    Kubeconfig,
    Namespace,
    Region,
    Snapshot,
    Source,
    SpotPercent,
    WhatIf,
    Zones,
    catalog_of,
    situation_of,
)
from nodeless.cli.commands.output import DOCUMENTS, TABLE, AsJson, OutputOption, format_of, write_document
from nodeless.cli.commands.terms import refuse
from nodeless.cli.progress import working
from nodeless.model.bill import HOURS_A_MONTH

if TYPE_CHECKING:
    from nodeless.explain.advice.usage import Usage

advices = typer.Typer()
_METRICS = "What pods use"


@advices.command(rich_help_panel="Plans")
def advise(
    files: Files = None,
    snapshot: Snapshot = "",
    what_if: WhatIf = None,
    usage: Annotated[
        list[str] | None,
        typer.Option(
            "--usage",
            metavar="FILE",
            help="PodMetrics of metrics-server, or an answer of Prometheus's query API. Repeatable.",
            rich_help_panel=_METRICS,
        ),
    ] = None,
    prometheus: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Prometheus server from which to read the usage of containers.",
            rich_help_panel=_METRICS,
        ),
    ] = "",
    window: Annotated[
        str, typer.Option(help="How far back the Prometheus query looks.", rich_help_panel=_METRICS)
    ] = "7d",
    percentile: Annotated[
        float, typer.Option(help="Percentile of the CPU usage.", min=50, max=100, rich_help_panel=_METRICS)
    ] = 95.0,
    least: Annotated[
        float, typer.Option(help="Smallest saving to show, in US dollars a month.", min=0)
    ] = 1.0,
    kubeconfig: Kubeconfig = "",
    namespace: Namespace = "",
    controller_namespace: ControllerNamespace = CONTROLLER_NAMESPACE,
    region: Region = "",
    catalog: CatalogOption = "",
    zones: Zones = "",
    spot_percent: SpotPercent = 40.0,
    output: OutputOption = TABLE,
    as_json: AsJson = False,
) -> None:
    """List changes that would save money, by dollars a month. The solver tries each on the existing pods.

    It tries other architectures, capacity types, instance types, zones, packings and weights of pools. With
    metrics, it also tries smaller requests. It lists preferences, disruption budgets and protected pods that
    cost money. Each entry has a fragment of a manifest, its risk, and how the saving was calculated. No
    dollar is counted twice. Nothing is changed.

    nodeless advise cluster.yaml --usage podmetrics.yaml

    nodeless advise --prometheus http://localhost:9090 --window 14d
    """
    # Imported here: other commands do not need the solver.
    from nodeless.cli.commands.advise_text import print_advice  # noqa: PLC0415
    from nodeless.explain.advice.ranking import advise as advice_of  # noqa: PLC0415

    output = format_of(output, as_json=as_json)
    source = Source(
        files or (),
        snapshot,
        what_if or (),
        kubeconfig,
        controller_namespace,
        region,
        catalog,
        zones,
        spot_percent,
        wide=True,
        namespace=namespace,
    )
    with working("reading what pods use"):
        used = _usage(usage or (), files or (), prometheus, window, percentile)
    situation, wide, notes = situation_of(source)
    if used is None and not (files or snapshot):
        used = _live_usage(notes)
    if snapshot:
        notes.append("a snapshot contains only the types that pools allow, so no others are tried")
    if not situation.snapshot.pools:
        refuse("there is no pool to advise on; hint: add the pools to the files, or see `nodeless migrate`")
    percent = catalog_of(catalog, spot_percent).spot_percent
    spot_note = f"spot is assumed to cost {percent:g} % of on-demand" if files and percent is not None else ""
    with working("trying what would save money") as work:
        made = advice_of(
            situation,
            wide or situation.catalog,
            used,
            least=least / HOURS_A_MONTH,
            spot_note=spot_note,
            notes=notes,
            tried=work.step,
        )
    if output in DOCUMENTS:
        write_document("AdviceReport", made.to_json(), output)
    else:
        print_advice(made)


def _usage(
    names: Sequence[str], files: Sequence[str], prometheus: str, window: str, percentile: float
) -> "Usage | None":
    """What is given of use; None where nothing is."""
    from nodeless.cli.usage_input import read_usage  # noqa: PLC0415 - most calls do without it
    from nodeless.explain.advice.usage import BadUsage  # noqa: PLC0415

    try:
        return read_usage(names, files, prometheus, window, percentile)
    except BadUsage as error:
        refuse(str(error))


def _live_usage(notes: list[str]) -> "Usage | None":
    """What metrics-server says, where there is one."""
    import asyncio  # noqa: PLC0415

    from nodeless.cli.usage_input import live_usage  # noqa: PLC0415

    return asyncio.run(live_usage(notes))
