"""`nodeless plan`: what the controller would do, without doing it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.cli.bounded_files import STDIN
from nodeless.cli.commands.inputs import (
    CONTROLLER_NAMESPACE,
    CatalogOption,
    ControllerNamespace,
    Files,
    Kubeconfig,
    Namespace,
    PreferenceCostsOption,
    Region,
    Replicas,
    Snapshot,
    Source,
    SpotPercent,
    Strict,
    WhatIf,
    Zones,
    situation_of,
    trying_of,
)
from nodeless.cli.commands.output import (
    DOCUMENTS,
    FINDINGS,
    HTML,
    TABLE,
    WIDE,
    AsJson,
    format_of,
    output_option,
    write_document,
    write_findings,
    write_page,
)
from nodeless.cli.commands.terms import refuse
from nodeless.cli.progress import working

if TYPE_CHECKING:
    from nodeless.explain.report import Report

plans = typer.Typer()
_OUTPUT = "Output"
_FORMS = (TABLE, WIDE, *DOCUMENTS, HTML, *FINDINGS)

Html = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="Write the report as one HTML page. - is stdout.", rich_help_panel=_OUTPUT
    ),
]

Target = Annotated[
    bool,
    typer.Option(
        help="Show the target of consolidation, and the commands that lead to it.", rich_help_panel=_OUTPUT
    ),
]


@plans.command(rich_help_panel="Plans")
def plan(
    files: Files = None,
    snapshot: Snapshot = "",
    what_if: WhatIf = None,
    replicas: Replicas = "current",
    strict: Strict = False,
    kubeconfig: Kubeconfig = "",
    namespace: Namespace = "",
    controller_namespace: ControllerNamespace = CONTROLLER_NAMESPACE,
    region: Region = "",
    catalog: CatalogOption = "",
    zones: Zones = "",
    spot_percent: SpotPercent = 40.0,
    output: Annotated[str, output_option(*_FORMS)] = TABLE,
    as_json: AsJson = False,
    html: Html = "",
    target: Target = False,
    preference_costs: PreferenceCostsOption = "auto",
) -> None:
    """Show which nodes pending pods would get, where workloads run, what it costs, and why pods get none.

    Reads manifests (Pods, Nodes, DaemonSets, Jobs, CronJobs and everything else with a pod template, and
    pools and node classes of every API generation), a saved snapshot, or a running cluster. Changes nothing.
    With -n, only the pods of one namespace are planned. Exit code 0: every pod gets a node. 1: some pods do
    not. 2: the input cannot be used.

    nodeless plan examples/plan

    kubectl get pods,nodes -A -o yaml | nodeless plan - pools.yaml

    nodeless plan --snapshot cluster.json --what-if scale=deploy/web:20 --html report.html
    """
    # Imported here: other commands do not need the solver.
    from nodeless.cli.commands.plan_findings import unplaced_findings  # noqa: PLC0415
    from nodeless.cli.commands.plan_text import print_report  # noqa: PLC0415
    from nodeless.explain.neighbors import neighbor_notes  # noqa: PLC0415
    from nodeless.explain.preference_costs import preference_costs as price_preferences  # noqa: PLC0415
    from nodeless.explain.report import report  # noqa: PLC0415
    from nodeless.explain.walking import consolidation_path, unclaimed_notes  # noqa: PLC0415
    from nodeless.explain.what_if import pods_of_namespace  # noqa: PLC0415

    output = format_of(output, as_json=as_json, formats=_FORMS)
    trying = trying_of(preference_costs)
    if output in FINDINGS and not html:
        trying = trying_of("never")
    if output == HTML:
        html, output = html or STDIN, TABLE
    if html == STDIN and output in (*DOCUMENTS, *FINDINGS):
        refuse(f"--html - and -o {output} both write to stdout; hint: give --html a file")
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
        replicas,
        strict,
        ends=True,
        namespace=namespace,
        output=output,
    )
    situation, wider, notes = situation_of(source)
    if namespace:
        situation = pods_of_namespace(situation, namespace, notes)
    notes += neighbor_notes(situation.snapshot)
    if target:
        notes += unclaimed_notes(situation.snapshot)
    with working("planning"):
        made_plan = situation.plan()
    with working("planning again without preferences") as work:
        costs = price_preferences(situation, made_plan, trying, tried=work.step)
    with working("trying what would help"):
        made = report(situation, made_plan, notes, wider, costs)
    if html:
        _write_html(html, made)
    if html == STDIN:
        raise typer.Exit(0 if made.complete else 1)
    with working("looking for the target of consolidation"):
        walked = consolidation_path(situation, trying=trying) if target else None
    if output in DOCUMENTS:
        document = made.to_json() | ({"target": walked.to_json()} if walked is not None else {})
        write_document("PlanReport", document, output)
    elif output in FINDINGS:
        write_findings(unplaced_findings(made.unplaced, source.documents), (), output)
    else:
        print_report(made, wide=output == WIDE)
    if walked is not None and output in (TABLE, WIDE):
        typer.echo("\nTarget of consolidation")
        for line in walked.lines():
            typer.echo(f"  {line}")
    if not made.complete:
        raise typer.Exit(1)


def _write_html(file: str, made: "Report") -> None:
    from nodeless.explain.page import page  # noqa: PLC0415

    write_page(page(made, datetime.now(UTC)), file)
