"""`nodeless migrate`: from Cluster Autoscaler's node groups, or from Karpenter, to pools and node classes."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.cli.bounded_files import STDIN
from nodeless.cli.commands.inputs import CatalogOption, SpotPercent, Zones, catalog_of, zones_of
from nodeless.cli.commands.output import (
    DOCUMENTS,
    FINDINGS,
    HTML,
    PLAIN,
    TABLE,
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
    from nodeless.explain.migration.report import Migration

migrations = typer.Typer()
MANIFESTS = "manifests"
_OUTPUT = "Output"
_FORMS = (*PLAIN, MANIFESTS, HTML, *FINDINGS)


@migrations.command(rich_help_panel="Manifests")
def migrate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|DIR|-...",
            help="JSON output of the AWS CLI, and Kubernetes objects: the autoscaler's Deployment, "
            "Karpenter's pools, a dump of the cluster.",
        ),
    ],
    role: Annotated[
        str,
        typer.Option(help="IAM role of the nodes, for node groups without a known role or instance profile."),
    ] = "",
    any_type: Annotated[
        bool,
        typer.Option(
            "--any-type",
            help="Allow all current instance types of a node group's architecture instead of "
            "the group's own types.",
        ),
    ] = False,
    catalog: CatalogOption = "",
    zones: Zones = "",
    spot_percent: SpotPercent = 40.0,
    output: Annotated[str, output_option(*_FORMS)] = TABLE,
    as_json: AsJson = False,
    html: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Write everything as one HTML page. - is stdout.", rich_help_panel=_OUTPUT
        ),
    ] = "",
) -> None:
    """Propose pools and node classes for Cluster Autoscaler's node groups or Karpenter's pools, with steps.

    Shows the cost before and after on the same pods, the pods that would behave differently and why, what it
    does not carry over from the input, and the steps, each with a way back. Changes nothing. Exit code 0:
    every pod gets a node. 1: some pods do not. 2: the input cannot be used.

    aws eks describe-nodegroup --cluster-name shop --nodegroup-name web > web.json

    kubectl get all,nodes,pdb,pv,pvc -A -o yaml > cluster.yaml

    nodeless migrate web.json cluster.yaml

    nodeless migrate web.json cluster.yaml -o manifests > pools.yaml
    """
    # Imported here: other commands do not need the solver.
    from nodeless.cli.commands.migrating import Options, migration_of  # noqa: PLC0415

    output = format_of(output, as_json=as_json, formats=_FORMS)
    if output == HTML:
        html, output = html or STDIN, TABLE
    if html == STDIN and output != TABLE:
        refuse(f"--html - and -o {output} both write to stdout; hint: give --html a file")
    sold = catalog_of(catalog, spot_percent)
    with working("comparing the current state with the proposal"):
        made = migration_of(
            Options(files, role, any_type, zones_of(sold, zones) if zones else (), output), sold
        )
    if html:
        _write_html(html, made)
    if html != STDIN:
        _print(made, output)
    if made.refused:
        raise typer.Exit(1)


def _print(made: "Migration", output: str) -> None:
    from nodeless.cli.commands.migrate_text import print_migration  # noqa: PLC0415
    from nodeless.cli.commands.plan_findings import unplaced_findings  # noqa: PLC0415

    if output in DOCUMENTS:
        write_document("MigrationReport", made.to_json(), output)
    elif output == MANIFESTS:
        typer.echo(manifests_text(made), nl=False)
    elif output in FINDINGS:
        write_findings(unplaced_findings(made.plan.unplaced if made.plan else (), ()), (), output)
    else:
        print_migration(made)


def manifests_text(made: "Migration") -> str:
    """The proposed objects as YAML, each pool with what it was made of."""
    from nodeless.cli.manifests.yaml_writer import yaml_text  # noqa: PLC0415 - most calls do without it

    origins = dict(made.origins)
    parts = []
    for manifest in made.manifests:
        name = str(manifest["metadata"].get("name"))
        remarked = f"# from {origins[name]}\n" if manifest["kind"] == "NodePool" and name in origins else ""
        parts.append(remarked + yaml_text(manifest))
    return "---\n".join(parts)


def _write_html(file: str, made: "Migration") -> None:
    from nodeless.cli.commands.migrate_text import sections  # noqa: PLC0415
    from nodeless.explain.page import page  # noqa: PLC0415

    if made.plan is None:
        refuse("there is no pod to plan, so there is no page; hint: add a dump of the cluster")
    text = page(made.plan, datetime.now(UTC), "nodeless migrate", sections(made))
    write_page(text, file)
