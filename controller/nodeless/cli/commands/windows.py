"""`nodeless windows`: when the nodes of each pool may be disrupted, in the user's own time zone."""

import time
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from nodeless.api.errors import InvalidObject
from nodeless.api.kinds import NODE_POOL, PROVISIONER
from nodeless.api.reading import read_pool
from nodeless.cli.commands.output import DOCUMENTS, TABLE, OutputOption, format_of, write_document
from nodeless.cli.commands.terms import refuse
from nodeless.cli.folding import echo_folded
from nodeless.cli.offline import documents
from nodeless.explain.words import count

timetables = typer.Typer()
_DAY = 86400.0
#: More seconds than are ever shown.
_LONGEST_SPAN = 400 * _DAY


@timetables.command(rich_help_panel="Plans")
def windows(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Pools as YAML or JSON. - is stdin.")],
    timezone: Annotated[str, typer.Option("--timezone", "-z", help="IANA name of the time zone.")] = "UTC",
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days to look ahead.")] = 7,
    begin: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="Start time, such as 2026-12-24T18:00. If not set, now."),
    ] = "",
    nodes: Annotated[int, typer.Option(min=0, help="Number of nodes of each pool, for percentages.")] = 10,
    output: OutputOption = TABLE,
) -> None:
    """Show how many nodes of each pool may be disrupted at once, at what times and for which reasons.

    For a cluster: kubectl get nodepools,provisioners -o yaml | nodeless windows -
    """
    # Imported here: most commands do not need the solver, which stands behind the budgets.
    from nodeless.disruption.windows import Window, reasons_of  # noqa: PLC0415
    from nodeless.disruption.windows import windows as windows_of  # noqa: PLC0415

    output = format_of(output)
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        refuse(f"--timezone {timezone!r} is not a time zone; hint: write an IANA name, such as Europe/Berlin")
    start = _start(begin, zone)
    found: dict[str, dict[str, tuple[Window, ...]]] = {}
    for file, manifest in documents(files):
        if not (NODE_POOL.describes(manifest) or PROVISIONER.describes(manifest)):
            continue
        try:
            pool, _ = read_pool(manifest)
        except InvalidObject as error:
            refuse(f"{file}: {error}")
        found[pool.key] = {
            reason: windows_of(pool, reason, nodes, start, start + days * _DAY) for reason in reasons_of(pool)
        }
    if not found:
        refuse("there is no NodePool and no Provisioner in the files")
    if output in DOCUMENTS:
        write_document("DisruptionWindows", {"pools": _as_json(found, zone)}, output)
        return
    for key, by_reason in found.items():
        echo_folded(f"{key} ({timezone}, {count(nodes, 'node')})")
        groups: dict[tuple[Window, ...], list[str]] = {}
        for reason, some in by_reason.items():
            groups.setdefault(some, []).append(reason)
        for some, reasons in groups.items():
            echo_folded(", ".join(reasons), 2)
            for window in some:
                echo_folded(
                    f"{_when(window.start, zone)} - {_when(window.end, zone)}  {_many(window.nodes)}", 4
                )


def _start(begin: str, zone: ZoneInfo) -> float:
    """The minute from which on windows are shown; ends the command where it is none."""
    if not begin:
        return time.time() // 60 * 60
    try:
        moment = datetime.fromisoformat(begin)
        start = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp() // 60 * 60
        datetime.fromtimestamp(start + _LONGEST_SPAN, zone)
    except (ValueError, OverflowError):
        refuse(f"--from {begin!r} is not a time; hint: write it as 2026-12-24T18:00")
    return start


def _as_json(found: dict[str, dict[str, Any]], zone: ZoneInfo) -> dict[str, Any]:
    return {
        key: {
            reason: [
                {
                    "start": datetime.fromtimestamp(window.start, zone).isoformat(),
                    "end": datetime.fromtimestamp(window.end, zone).isoformat(),
                    "nodes": window.nodes,
                }
                for window in some
            ]
            for reason, some in by_reason.items()
        }
        for key, by_reason in found.items()
    }


def _when(at: float, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%a %Y-%m-%d %H:%M")


def _many(nodes: int | None) -> str:
    if nodes is None:
        return "any number of nodes"
    return "none" if nodes == 0 else f"{count(nodes, 'node')} at once"
