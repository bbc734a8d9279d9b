"""The report of a plan as tables for a terminal or a pipe."""

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nodeless.explain.report import MONTH, Cost, Report, Unplaced, holding, where, zones
from nodeless.explain.words import count, listed

#: Columns when the output is no terminal, so that a pipe gets whole lines.
PIPE_WIDTH = 200


def print_report(report: Report) -> None:
    """Print notes, launches, landings, what is not placed, and the cost."""
    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(width=PIPE_WIDTH, highlight=False)
    with console.capture() as captured:
        _print(report, console)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def _print(report: Report, console: Console) -> None:
    for note in report.notes:
        console.print(Text(note, style="dim"))
    if report.launches:
        console.print(_launches(report))
    if report.landings:
        console.print(_landings(report))
    else:
        console.print("No pod is pending." if report.launches else "Nothing to plan: no pod is pending.")
    for group in report.unplaced:
        _print_unplaced(group, console)
    if report.relaxed:
        console.print(Text("\nPreferences relaxed so that pods can be scheduled", style="bold"))
    for lost in report.relaxed:
        console.print(Text(f"  {holding(lost.workloads)}: {lost.message} [{lost.code}]"))
    if report.together:
        console.print(Text("\nKept together by required pod affinity", style="bold"))
    for each in report.together:
        console.print(Text(f"  {each}"))
    _print_cost(report.cost, report, console)


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 3, 0, 0)
    )


def _launches(report: Report) -> Table:
    table = _table(f"\nLaunch {count(sum(launch.count for launch in report.launches), 'node')}")
    for name in ("nodes", "type", "zones", "capacity", "USD/h each", "pool", "holds", "next best"):
        table.add_column(
            name, justify="right" if name in ("nodes", "USD/h each") else "left", header_style="dim"
        )
    for launch in report.launches:
        others = [f"{alternative.instance_type} {alternative.price:.4f}" for alternative in launch.next_best]
        table.add_row(
            str(launch.count),
            launch.instance_type,
            zones(launch.zones),
            launch.capacity_type,
            f"{launch.price:.4f}",
            launch.pool,
            holding(launch.workloads),
            ", ".join(others) or "none",
        )
    return table


def _landings(report: Report) -> Table:
    table = _table("\nWhere workloads land")
    for name in ("workload", "pods", "on new nodes", "on existing nodes", "not placed"):
        table.add_column(
            name, justify="right" if name in ("pods", "not placed") else "left", header_style="dim"
        )
    for landing in report.landings:
        table.add_row(
            str(landing.workload),
            str(landing.pods),
            where(landing.on_new) or "-",
            where(landing.on_existing) or "-",
            str(landing.refused) if landing.refused else "-",
        )
    return table


def _print_unplaced(group: Unplaced, console: Console) -> None:
    names = listed([str(workload) for workload, _ in group.workloads], 3)
    console.print(Text(f"\nNot placed: {count(len(group.pods), 'pod')} of {names}", style="bold"))
    for obstacle in group.obstacles:
        about = f"{listed(obstacle.pools, 3)}: " if obstacle.pools else ""
        console.print(Text(f"  {about}{obstacle.message} [{obstacle.code}]"))
    for remedy in group.remedies:
        console.print(Text(f"  would fit: {remedy}", style="green"))


def _print_cost(cost: Cost, report: Report, console: Console) -> None:
    table = _table("\nCost")
    for name in ("", "USD/h", "USD/month"):
        table.add_column(name, justify="right" if name else "left", header_style="dim")
    for name, dollars in (("before", cost.before), ("added", cost.added), ("after", cost.after)):
        table.add_row(name, f"{dollars:,.4f}", f"{dollars * MONTH:,.2f}")
    if cost.lower_bound is not None and cost.added > 0:
        table.add_row(
            "lower bound of what is added", f"{cost.lower_bound:,.4f}", f"{cost.lower_bound * MONTH:,.2f}"
        )
    console.print(table)
    if cost.gap is not None and cost.added > 0:
        console.print(f"No plan for these pods can save more than {100 * cost.gap:.1f} % of what is added.")
    if cost.unpriced:
        console.print(f"Not counted: {count(cost.unpriced, 'node')} of which no price is known.")
    placed = report.pods - sum(len(group.pods) for group in report.unplaced)
    if report.pods:
        console.print(f"Placed {placed} of {count(report.pods, 'pod')}.")
