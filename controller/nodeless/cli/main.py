"""The command `nodeless`: data on stdout, messages on stderr, exit code 2 for wrong use."""

import os
import sys
from typing import Annotated

import typer

from nodeless import __version__
from nodeless.cli.command_group import Entry, group_of

_PLANS, _MANIFESTS, _CONTROLLER = "Plans", "Manifests", "The controller"
_OWN = "For those who change nodeless"
_COMMANDS = "nodeless.cli.commands"

#: In the order of the help.
ENTRIES = (
    Entry(
        "plan",
        "Show what would be launched for pending pods, where each workload lands, what it costs, "
        "and why not.",
        _PLANS,
        f"{_COMMANDS}.plan:plans",
    ),
    Entry(
        "drift",
        "Show which nodes would drift if these manifests were applied, what replaces them, and "
        "what it costs.",
        _PLANS,
        f"{_COMMANDS}.drift:changes",
    ),
    Entry(
        "why",
        "Say why a pod lands where it does or has no place, and why a node or a pool is what it is.",
        _PLANS,
        f"{_COMMANDS}.why:reasons",
    ),
    Entry(
        "top",
        "Show nodes with fill, pods, price, age and what holds or disrupts them, and what is "
        "about to happen.",
        _PLANS,
        f"{_COMMANDS}.top:views",
    ),
    Entry(
        "advise",
        "Show what would save money, ranked by dollars a month, each tried by the solver on the pods there "
        "are.",
        _PLANS,
        f"{_COMMANDS}.advise:advices",
    ),
    Entry(
        "snapshot",
        "Save what a plan depends on: the cluster, what each pool may buy, and the time. JSON on stdout.",
        _PLANS,
        f"{_COMMANDS}.situations:situations",
    ),
    Entry(
        "replay",
        "Plan again what the controller planned, and say whether the plan is the same; exit 1 "
        "when one is not.",
        _PLANS,
        f"{_COMMANDS}.situations:situations",
    ),
    Entry(
        "catalog",
        "Save the instance types and prices of a region, for `nodeless plan --catalog FILE`. JSON on stdout.",
        _PLANS,
        f"{_COMMANDS}.catalog:catalogs",
    ),
    Entry(
        "windows",
        "Print when how many nodes of each pool may be disrupted at once, by reason.",
        _PLANS,
        f"{_COMMANDS}.windows:timetables",
    ),
    Entry(
        "solve",
        "Solve a packing problem of a file: nodes to launch, price, lower bound; exit 1 when pods are left.",
        _PLANS,
        f"{_COMMANDS}.packing:packing",
    ),
    Entry(
        "validate",
        "Check manifests as the webhook and the API server do; exit 1 when one is invalid.",
        _MANIFESTS,
        "nodeless.cli.offline:offline",
    ),
    Entry(
        "convert",
        "Convert pools and node classes of v1alpha5 and v1beta1 to v1, or those of v1 to v1alpha5.",
        _MANIFESTS,
        "nodeless.cli.offline:offline",
    ),
    Entry(
        "schema",
        "Print the JSON Schema of a document that a command writes with -o json; without a kind, list them.",
        _MANIFESTS,
        f"{_COMMANDS}.schema:schemas",
    ),
    Entry(
        "migrate",
        "Propose pools and node classes for node groups of Cluster Autoscaler or pools of Karpenter, with "
        "steps.",
        _MANIFESTS,
        f"{_COMMANDS}.migrate:migrations",
    ),
    Entry(
        "run",
        "Run one replica of the controller: settings come from flags, the environment and the cluster.",
        _CONTROLLER,
        f"{_COMMANDS}.run:running",
    ),
    Entry(
        "crds",
        "Write the custom resource definitions, generated from the typed kinds.",
        _OWN,
        f"{_COMMANDS}.crds:definitions",
    ),
    Entry("version", "Print the version.", _OWN, "nodeless.cli.main:own"),
    Entry(
        "sweep",
        "End the instances of a cluster whose controller is gone, without draining, and what "
        "belongs to them.",
        _CONTROLLER,
        f"{_COMMANDS}.sweeping:sweeping",
    ),
    Entry(
        "reference",
        "Write the reference pages: settings, metrics, events, kinds and fields, commands, messages, "
        "rules, schemas.",
        _OWN,
        "nodeless.cli.reference:reference",
    ),
)

app = typer.Typer(
    name="nodeless",
    cls=group_of(ENTRIES),
    help="The node provisioner for EKS: run it, or use its rules offline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
own = typer.Typer()


@app.callback(invoke_without_command=True)
def options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)
    ] = False,
) -> None:
    """What stands before the commands."""
    if show_version:
        typer.echo(__version__)
        raise typer.Exit


@own.command(rich_help_panel=_OWN)
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def program_name(path: str) -> str:
    """What the user has typed, by the path of the program: kubectl starts its plugins as `kubectl-NAME`."""
    name = path.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
    return "kubectl nodeless" if name == "kubectl-nodeless" else "nodeless"


def main() -> None:
    """Run the command that the process was started with."""
    if os.environ.get("_NODELESS_COMPLETE") == "complete_bash":
        # Imported here: most calls complete nothing.
        from nodeless.cli.completion import join_words  # noqa: PLC0415

        join_words()
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"]:
        # Imported here: the flags stand in the tables of settings.
        from nodeless.operator.flags import spelled_out  # noqa: PLC0415

        arguments = spelled_out(arguments)
    app(args=arguments, prog_name=program_name(sys.argv[0]))
