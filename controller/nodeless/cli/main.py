"""The command `nodeless`: data on stdout, messages on stderr, exit code 2 for wrong use."""

import os
import sys
from typing import Annotated

import typer

from nodeless import __version__
from nodeless.cli.command_group import Entry, group_of

_PLANS, _MANIFESTS, _CONTROLLER = "Plans", "Manifests", "The controller"
_OWN = "For contributors"
_COMMANDS = "nodeless.cli.commands"

#: In the order of the help.
ENTRIES = (
    Entry(
        "plan",
        "Show which nodes pending pods would get, where workloads run, what it costs, and why pods get none.",
        _PLANS,
        f"{_COMMANDS}.plan:plans",
    ),
    Entry(
        "drift",
        "Show which nodes would drift if you applied these manifests, what would replace them, and the cost.",
        _PLANS,
        f"{_COMMANDS}.drift:changes",
    ),
    Entry(
        "why",
        "Explain why a pod runs where it does or gets no node, and why a node or a pool is in its state.",
        _PLANS,
        f"{_COMMANDS}.why:reasons",
    ),
    Entry(
        "top",
        "Show nodes with utilization, pods, price, age, what keeps or disrupts them, and what happens next.",
        _PLANS,
        f"{_COMMANDS}.top:views",
    ),
    Entry(
        "advise",
        "List changes that would save money, by dollars a month. The solver tries each on the existing pods.",
        _PLANS,
        f"{_COMMANDS}.advise:advices",
    ),
    Entry(
        "snapshot",
        "Save what a plan depends on (the cluster, what each pool can launch, the time) as JSON on stdout.",
        _PLANS,
        f"{_COMMANDS}.situations:situations",
    ),
    Entry(
        "replay",
        "Plan the controller's recorded decisions again, and compare the results. Exit code 1: one differs.",
        _PLANS,
        f"{_COMMANDS}.situations:situations",
    ),
    Entry(
        "catalog",
        "Save the instance types and prices of a region as JSON on stdout, for `nodeless plan --catalog "
        "FILE`.",
        _PLANS,
        f"{_COMMANDS}.catalog:catalogs",
    ),
    Entry(
        "windows",
        "Show how many nodes of each pool may be disrupted at once, at what times and for which reasons.",
        _PLANS,
        f"{_COMMANDS}.windows:timetables",
    ),
    Entry(
        "solve",
        "Solve the packing problem in a file: nodes to launch, price, lower bound. Exit code 1: pods remain.",
        _PLANS,
        f"{_COMMANDS}.packing:packing",
    ),
    Entry(
        "validate",
        "Check manifests as the webhook and the API server do. Exit code 1: a manifest is invalid.",
        _MANIFESTS,
        "nodeless.cli.offline:offline",
    ),
    Entry(
        "convert",
        "Convert pools and node classes from v1alpha5 and v1beta1 to v1, or from v1 to v1alpha5.",
        _MANIFESTS,
        "nodeless.cli.offline:offline",
    ),
    Entry(
        "schema",
        "Print the JSON Schema of a document that a command writes with -o json. Without a kind, list all "
        "kinds.",
        _MANIFESTS,
        f"{_COMMANDS}.schema:schemas",
    ),
    Entry(
        "migrate",
        "Propose pools and node classes for Cluster Autoscaler's node groups or Karpenter's pools, with "
        "steps.",
        _MANIFESTS,
        f"{_COMMANDS}.migrate:migrations",
    ),
    Entry(
        "run",
        "Run one replica of the controller. Settings come from flags, the environment and the cluster.",
        _CONTROLLER,
        f"{_COMMANDS}.run:running",
    ),
    Entry(
        "crds",
        "Write the custom resource definitions, which are generated from the typed kinds.",
        _OWN,
        f"{_COMMANDS}.crds:definitions",
    ),
    Entry("version", "Print the version.", _OWN, "nodeless.cli.main:own"),
    Entry(
        "sweep",
        "Terminate, without draining, the nodes of a cluster whose controller is gone, and clean up after "
        "them.",
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
    help="The node provisioner for EKS. Run the controller, or use its rules offline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
own = typer.Typer()


@app.callback(invoke_without_command=True)
def options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
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
