"""The command `nodeless`: data on stdout, messages on stderr, exit code 2 for wrong use."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from nodeless import __version__
from nodeless.cli.commands.catalog import catalogs
from nodeless.cli.commands.drift import changes
from nodeless.cli.commands.packing import packing
from nodeless.cli.commands.plan import plans
from nodeless.cli.commands.situations import situations
from nodeless.cli.commands.sweeping import sweeping
from nodeless.cli.commands.top import views
from nodeless.cli.commands.why import reasons
from nodeless.cli.commands.windows import timetables
from nodeless.cli.offline import offline
from nodeless.cli.reference import reference
from nodeless.operator.flags import spelled_out, with_flags

app = typer.Typer(
    name="nodeless",
    help="The node provisioner for EKS: run it, or use its rules offline.",
    no_args_is_help=True,
    add_completion=False,
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


def run(flags: dict[str, str]) -> None:
    """Run one replica of the controller: settings come from flags, the environment and the cluster."""
    # Imported here: the other commands need neither AWS nor the cluster.
    from nodeless.controllers.server_version import OldServerError  # noqa: PLC0415
    from nodeless.kube import ApiError, ApiUnavailable  # noqa: PLC0415
    from nodeless.manager.health import PortTakenError  # noqa: PLC0415
    from nodeless.manager.manager import LeadershipLostError, run_controller  # noqa: PLC0415
    from nodeless.operator.process_settings import ProcessSettings  # noqa: PLC0415
    from nodeless.operator.settings import SettingsError  # noqa: PLC0415
    from nodeless.webhook import WebhookPortTakenError  # noqa: PLC0415

    expected = (
        SettingsError,
        ApiUnavailable,
        ApiError,
        PortTakenError,
        WebhookPortTakenError,
        LeadershipLostError,
        OldServerError,
    )
    try:
        asyncio.run(run_controller(ProcessSettings.from_environment(flags=flags)))
    except expected as error:
        _fail(str(error))
    except BaseExceptionGroup as group:
        known, unknown = group.split(expected)
        if unknown is not None:
            raise
        _fail("; ".join(str(error) for error in _leaves(known)))


own.command(name="run", rich_help_panel="The controller")(with_flags(run))


@own.command(rich_help_panel="For those who change nodeless")
def crds(
    directory: Annotated[Path, typer.Argument(help="Folder of the CRD files")] = Path("controller/crds"),
    check: Annotated[
        bool, typer.Option("--check", help="Compare instead of writing; exit 1 on a difference")
    ] = False,
) -> None:
    """Write the custom resource definitions, generated from the typed kinds."""
    from nodeless.api.crds import crd_files  # noqa: PLC0415

    stale = []
    for name, text in crd_files().items():
        path = directory / name
        if check:
            if not path.exists() or path.read_text() != text:
                stale.append(str(path))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            typer.echo(path)
    if stale:
        _fail(
            f"not what the typed kinds generate: {', '.join(stale)}; hint: run `nodeless crds {directory}`",
            code=1,
        )


@own.command(rich_help_panel="For those who change nodeless")
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


# In the order of the help.
for commands in (
    plans,
    changes,
    reasons,
    views,
    situations,
    catalogs,
    timetables,
    packing,
    offline,
    own,
    sweeping,
    reference,
):
    app.add_typer(commands)


def _fail(message: str, code: int = 2) -> None:
    print(f"nodeless: {message}", file=sys.stderr)  # noqa: T201 - the last line of the process
    raise typer.Exit(code)


def _leaves(error: BaseException | None) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for child in error.exceptions for leaf in _leaves(child)]
    return [] if error is None else [error]


def main() -> None:
    """Entry point."""
    app(args=spelled_out(sys.argv[1:]))
