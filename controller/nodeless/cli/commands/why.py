"""`nodeless why`: the reasons of a plan, for one pod, one workload, one node or one pool."""

from typing import Annotated

import typer

from nodeless.cli.commands.inputs import (
    CONTROLLER_NAMESPACE,
    CatalogOption,
    ControllerNamespace,
    Files,
    Kubeconfig,
    Namespace,
    PreferenceCostsOption,
    Region,
    Snapshot,
    Source,
    SpotPercent,
    WhatIf,
    Zones,
    situation_of,
    trying_of,
)
from nodeless.cli.commands.output import DOCUMENTS, TABLE, AsJson, OutputOption, format_of, write_document
from nodeless.cli.commands.terms import refuse
from nodeless.cli.completion import ANYTHING, object_names
from nodeless.cli.folding import echo_folded
from nodeless.cli.progress import working

reasons = typer.Typer()


@reasons.command(rich_help_panel="Plans")
def why(
    name: Annotated[
        str,
        typer.Argument(
            metavar="POD|WORKLOAD|NODE|POOL",
            help="pod/web-0, shop/pod/web-0, deploy/web, node/NAME, nodeclaim/NAME, nodepool/NAME, or new-1 "
            "of the plan. For a pod or a node, the name alone is enough.",
            autocompletion=object_names(ANYTHING),
        ),
    ],
    files: Files = None,
    snapshot: Snapshot = "",
    what_if: WhatIf = None,
    kubeconfig: Kubeconfig = "",
    namespace: Namespace = "",
    controller_namespace: ControllerNamespace = CONTROLLER_NAMESPACE,
    region: Region = "",
    catalog: CatalogOption = "",
    zones: Zones = "",
    spot_percent: SpotPercent = 40.0,
    output: OutputOption = TABLE,
    as_json: AsJson = False,
    preference_costs: PreferenceCostsOption = "auto",
) -> None:
    """Explain why a pod runs where it does or gets no node, and why a node or a pool is in its state.

    For a pod without a node, it shows what fails in each pool, and the smallest changes that would help. It
    tries each change by planning again. For a new node, it shows what the node must hold, why it has this
    instance type, and the next best types with their prices. For both, it shows what the preferences of their
    workloads cost.

    For a pool, it shows whether the pool can create nodes and why not, its limits and their usage, its nodes,
    the pods that it cannot take, what its budgets allow now, and the other pools that can take the same pods.

    Exit code 1: the pod gets no node, or the pool is not ready. 2: the pod, workload, node or pool does not
    exist.
    """
    # Imported here: other commands do not need the solver.
    from nodeless.explain.answers import NotThere, answer  # noqa: PLC0415

    output = format_of(output, as_json=as_json)
    trying = trying_of(preference_costs)
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
        namespace=namespace,
    )
    situation, wider, _ = situation_of(source)
    try:
        with working("planning, and trying what would help"):
            found = answer(situation, situation.plan(), name, wider, namespace, trying)
    except NotThere as error:
        refuse(str(error))
    if output in DOCUMENTS:
        write_document("Explanation", found.to_json(), output)
    else:
        echo_folded(found.subject)
        for line in found.lines:
            echo_folded(line, 2)
    if not (found.placed and found.ready):
        raise typer.Exit(1)
