"""`nodeless snapshot` saves what a plan depends on; `nodeless replay` repeats recorded decisions."""

import sys
from typing import Annotated

import typer

from nodeless import __version__
from nodeless.cli.commands.inputs import CONTROLLER_NAMESPACE, Kubeconfig, OwnNamespace, Region
from nodeless.cli.commands.terms import from_cluster, refuse, remark, saved_situation
from nodeless.cli.folding import echo_folded
from nodeless.cli.progress import working
from nodeless.explain.words import count, price

situations = typer.Typer()


@situations.command(rich_help_panel="Plans")
def snapshot(
    kubeconfig: Kubeconfig = "", namespace: OwnNamespace = CONTROLLER_NAMESPACE, region: Region = ""
) -> None:
    """Save what a plan depends on (the cluster, what each pool can launch, the time) as JSON on stdout.

    Use the file with `nodeless plan --snapshot FILE` and `nodeless why --snapshot FILE`. It contains names,
    labels and requests of pods and nodes, but no environment variables and no secrets.
    """
    from nodeless.explain.decisions import write  # noqa: PLC0415 - the solver is loaded where it is used

    with working("asking the cluster and AWS"):
        situation = from_cluster(kubeconfig, namespace, region)
    sys.stdout.buffer.write(write(situation, __version__))
    seen = situation.snapshot
    types = {kind.name for kinds in situation.catalog.values() for kind in kinds}
    parts = ((seen.pods, "pod"), (seen.nodes, "node"), (seen.pools, "pool"), (types, "instance type"))
    remark(", ".join(count(len(some), word) for some, word in parts))


@situations.command(rich_help_panel="Plans")
def replay(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Recorded decisions. - is stdin.")],
) -> None:
    """Plan the controller's recorded decisions again, and compare the results. Exit code 1: one differs.

    The controller records its decisions in the folder that the environment variable NODELESS_DECISIONS names.
    It keeps the last NODELESS_DECISIONS_KEPT of them.
    """
    # Imported here: most commands do not need the solver.
    from nodeless.explain.decisions import same_plan  # noqa: PLC0415
    from nodeless.explain.differences import differences  # noqa: PLC0415

    same = True
    for file in files:
        saved = saved_situation(file)
        if saved.plan is None:
            refuse(f"{file}: contains no decision; hint: `nodeless plan --snapshot {file}` plans it")
        with working(f"planning {file} again"):
            again = saved.situation.plan()
        outcome = (
            f"{count(len(again.new_nodes), 'new node')}, {count(len(again.placements), 'pod')} on existing "
            f"nodes, {len(again.refusals)} refused, {price(again.cost_per_hour)}"
        )
        if same_plan(saved.plan, again):
            echo_folded(f"{file}: same plan: {outcome}")
            continue
        same = False
        echo_folded(
            f"{file}: another plan: {outcome}; recorded by release {saved.release}, this is {__version__}"
        )
        for line in differences(saved.plan, again):
            echo_folded(line, 2)
    if not same:
        raise typer.Exit(1)
