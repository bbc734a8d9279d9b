"""The report of a plan as tables for a terminal or a pipe."""

from rich.console import Console
from rich.text import Text

from nodeless.cli.tables import NOTHING, Column, print_fitted, print_line, print_table
from nodeless.explain.launch_bills import launch_bills
from nodeless.explain.report import UNKNOWN_BEFORE, Cost, Report, Unplaced, where, zones
from nodeless.explain.words import count, listed
from nodeless.explain.workload_counts import holding
from nodeless.model.bill import HOURS_A_MONTH


def print_report(report: Report, *, wide: bool = False) -> None:
    """Print notes, launches, landings, what is not placed, and the cost; `wide`: as wide as into a pipe."""
    print_fitted(lambda console: _print(report, console), wide=wide)


def _print(report: Report, console: Console) -> None:
    for note in report.notes:
        print_line(console, note, 0, style="dim")
    if report.launches:
        _print_launches(report, console)
    _print_bills(report, console)
    if report.landings:
        _print_landings(report, console)
    else:
        console.print("No pod is pending." if report.launches else "Nothing to plan: no pod is pending.")
    for group in report.unplaced:
        _print_unplaced(group, console)
    if report.relaxed:
        console.print(Text("\nPreferences relaxed so that pods can be scheduled", style="bold"))
    for lost in report.relaxed:
        print_line(console, f"{holding(lost.workloads)}: {lost.message} [{lost.code}]", 2)
    if report.chosen:
        console.print(Text("\nSpot or on-demand for each pod, by what interruptions lose", style="bold"))
    for chosen in report.chosen:
        print_line(console, f"{holding(chosen.workloads)}: {chosen.message}", 2)
    if report.together:
        console.print(Text("\nKept together by required pod affinity", style="bold"))
    for each in report.together:
        print_line(console, str(each), 2)
    if report.preferences:
        console.print(Text("\nWhat preferences cost", style="bold"))
    for line in report.preferences.lines():
        print_line(console, line, 2)
    _print_cost(report.cost, report, console)


_LAUNCHES = (
    Column("nodes", right=True),
    Column("type"),
    Column("zones"),
    Column("capacity"),
    Column("USD/h each", right=True),
    Column("pool"),
    Column("holds", folds=True),
    Column("next best", folds=True, least=40, optional=True),
)
_LANDINGS = (
    Column("workload"),
    Column("pods", right=True),
    Column("on new nodes", folds=True),
    Column("on existing nodes", folds=True),
    Column("not placed", right=True),
)
_COST = (Column(""), Column("USD/h", right=True), Column("USD/month", right=True))


def _print_launches(report: Report, console: Console) -> None:
    rows = []
    for launch in report.launches:
        others = [f"{alternative.instance_type} {alternative.price:.4f}" for alternative in launch.next_best]
        rows.append(
            (
                str(launch.count),
                launch.instance_type,
                zones(launch.zones),
                launch.capacity_type,
                f"{launch.price:.4f}",
                launch.pool,
                holding(launch.workloads),
                ", ".join(others) or "none",
            )
        )
    title = f"Launch {count(sum(launch.count for launch in report.launches), 'node')}"
    print_table(console, title, _LAUNCHES, rows)


def _print_bills(report: Report, console: Console) -> None:
    """What each price is made of, and where it is from."""
    told = launch_bills(report.launches)
    if told.bills:
        console.print(Text("\nWhat a node costs an hour", style="bold"))
    for line in told.bills:
        print_line(console, line, 2)
    for line in told.missing:
        print_line(console, line, 2 if told.bills else 0)
    if report.commitments:
        console.print(Text("\nReserved Instances and Savings Plans", style="bold"))
    for use in report.commitments:
        print_line(console, str(use), 2)
    if told.sources:
        console.print(Text("\nWhere prices are from", style="bold"))
    for line in told.sources:
        print_line(console, line, 2)


def _print_landings(report: Report, console: Console) -> None:
    rows = [
        (
            str(landing.workload),
            str(landing.pods),
            where(landing.on_new) or NOTHING,
            where(landing.on_existing) or NOTHING,
            str(landing.refused) if landing.refused else NOTHING,
        )
        for landing in report.landings
    ]
    print_table(console, "Where workloads land", _LANDINGS, rows)


def _print_unplaced(group: Unplaced, console: Console) -> None:
    names = listed([str(workload) for workload, _ in group.workloads], 3)
    console.print(Text(f"\nNot placed: {count(len(group.pods), 'pod')} of {names}", style="bold"))
    for obstacle in group.obstacles:
        about = f"{listed(obstacle.pools, 3)}: " if obstacle.pools else ""
        print_line(console, f"{about}{obstacle.message} [{obstacle.code}]", 2)
    for remedy in group.remedies:
        print_line(console, f"would fit: {remedy}", 2, style="green")


def _print_cost(cost: Cost, report: Report, console: Console) -> None:
    dollars = [("before", cost.before), ("added", cost.added), ("after", cost.after)]
    if cost.lower_bound is not None and cost.added > 0:
        dollars.append(("lower bound of what is added", cost.lower_bound))
    if len(cost.parts) > 1:
        dollars[2:2] = [(f"  {part.name}", part.dollars) for part in cost.parts]
    rows = [(name, f"{each:,.4f}", f"{each * HOURS_A_MONTH:,.2f}") for name, each in dollars]
    print_table(console, "Cost", _COST, rows)
    if cost.proved_cheapest and cost.added > 0:
        known = cost.as_known or "Proved cheapest: "
        print_line(console, f"{known}no other plan for these pods costs less.", 0)
    elif cost.gap is not None and cost.added > 0:
        nothing = f"{cost.as_known}no plan" if cost.unknown else "No plan"
        most = f"{100 * cost.gap:.1f} % of what is added"
        print_line(console, f"{nothing} for these pods can save more than {most}.", 0)
    if cost.fewer_nodes is not None and cost.fewer_nodes.price > 0:
        console.print(f"{cost.fewer_nodes}.")
    if cost.unpriced:
        console.print(f"Not counted: {count(cost.unpriced, 'node')} of which no price is known.")
    if unknown := report.unknown_before:
        print_line(console, f"{UNKNOWN_BEFORE}: {unknown}", 0)
    placed = report.pods - sum(len(group.pods) for group in report.unplaced)
    if report.pods:
        console.print(f"Placed {placed} of {count(report.pods, 'pod')}.")
