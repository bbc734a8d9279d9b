"""`nodeless run`: one replica of the controller."""

import asyncio

import typer

from nodeless.cli.commands.terms import refuse
from nodeless.operator.flags import with_flags

running = typer.Typer()


def run(flags: dict[str, str]) -> None:
    """Run one replica of the controller. Settings come from flags, the environment and the cluster."""
    # Imported here: a flag's help needs neither AWS nor the cluster.
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
        refuse(str(error))
    except BaseExceptionGroup as group:
        known, unknown = group.split(expected)
        if unknown is not None:
            raise
        refuse("; ".join(str(error) for error in _leaves(known)))


def _leaves(error: BaseException | None) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for child in error.exceptions for leaf in _leaves(child)]
    return [] if error is None else [error]


running.command(name="run", rich_help_panel="The controller")(with_flags(run))
