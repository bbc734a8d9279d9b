"""A migration as text for a terminal or a pipe, and as sections of a page."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from nodeless.cli.tables import NOTHING, Column, print_fitted, print_line, print_table
from nodeless.explain.migration.ledger import Left, merged
from nodeless.explain.migration.report import Bill, Manifest, Migration
from nodeless.explain.report import zones
from nodeless.explain.words import count, listed
from nodeless.explain.workload_counts import holding
from nodeless.model.bill import HOURS_A_MONTH
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE

#: Members named for one reason before "and N others", which JSON has all of.
_SHOWN = 6
_POOLS = (
    Column("pool"),
    Column("from"),
    Column("capacity"),
    Column("zones"),
    Column("limits", optional=True),
    Column("weight", right=True, optional=True),
    Column("types", folds=True, least=20),
)
_COST = (Column(""), Column("USD/h", right=True), Column("USD/month", right=True))


def print_migration(made: Migration) -> None:
    """Print pools, bills, differences, what is not carried over, and the steps."""
    print_fitted(lambda console: _print(made, console))


def _print(made: Migration, console: Console) -> None:
    for note in made.notes:
        print_line(console, note, 0, "dim")
    print_table(
        console,
        f"Propose {count(len(made.origins), 'pool')}",
        _POOLS,
        [_pool_row(made, *one) for one in made.origins],
    )
    print_table(console, "Cost of the same pods", _COST, _cost_rows(made.bill))
    for line in _cost_notes(made):
        print_line(console, line, 0)
    for title, lines in _findings(made):
        console.print(Text(f"\n{title}", style="bold"))
        for line in lines:
            print_line(console, line, 2)
    console.print(Text("\nSteps", style="bold"))
    for number, step in enumerate(made.steps, 1):
        print_line(console, f"{number}. {step.title}", 2)
        if step.caution:
            print_line(console, f"mind: {step.caution}", 5)
        for command in step.commands:
            console.print(Text(f"     $ {command}"), soft_wrap=True)
        print_line(console, f"worked: {step.check}", 5)
        for command in step.undo:
            console.print(Text(f"     undo: {command}"), soft_wrap=True)


def sections(made: Migration) -> Iterator[tuple[str, Sequence[str]]]:
    """Titles and lines for a page."""
    yield (
        "Proposed pools",
        [
            "; ".join(
                part
                for part in (f"{pool} from {origin}", *_pool_row(made, pool, origin)[2:])
                if part != NOTHING
            )
            for pool, origin in made.origins
        ],
    )
    costs = [f"{name}: {hour} USD/h, {month} USD/month" for name, hour, month in _cost_rows(made.bill)]
    yield "Cost of the same pods", [*costs, *_cost_notes(made)]
    yield from _findings(made)
    yield (
        "Steps",
        [
            f"{number}. {step.title}: {'; '.join(step.commands)}. Worked: {step.check}. Undo: "
            f"{'; '.join(step.undo)}"
            for number, step in enumerate(made.steps, 1)
        ],
    )
    yield "What it rests on", list(made.notes)


def _pool_row(made: Migration, pool: str, origin: str) -> tuple[str, ...]:
    manifest = _pool_called(made, pool)
    spec = manifest["spec"]
    terms = {term["key"]: term for term in spec["template"]["spec"].get("requirements", ())}
    where = tuple(_values(terms, ZONE))
    limits = ", ".join(f"{name} {amount}" for name, amount in (spec.get("limits") or {}).items())
    others = [
        f"{key.rpartition('/')[2]} {term['operator']} {', '.join(term.get('values', ()))}".strip()
        for key, term in terms.items()
        if key not in (CAPACITY_TYPE, ZONE, INSTANCE_TYPE)
    ]
    return (
        pool,
        origin,
        ", ".join(_values(terms, CAPACITY_TYPE)) or NOTHING,
        zones(where) if where else NOTHING,
        limits or NOTHING,
        str(spec["weight"]) if spec.get("weight") else NOTHING,
        listed(_values(terms, INSTANCE_TYPE), 12) or "; ".join(others) or "all",
    )


def _pool_called(made: Migration, name: str) -> Manifest:
    return next(
        one for one in made.manifests if one["kind"] == "NodePool" and one["metadata"].get("name") == name
    )


def _values(terms: dict[str, Manifest], key: str) -> list[str]:
    return list(terms[key].get("values", ())) if key in terms else []


def _cost_rows(bill: Bill) -> list[tuple[str, str, str]]:
    rows = [("before", bill.before), ("after, with these pools", bill.after)]
    rows.append(("after, if they allow any current type", bill.any_type))
    return [(name, f"{each:,.4f}", f"{each * HOURS_A_MONTH:,.2f}") for name, each in rows if each is not None]


def _cost_notes(made: Migration) -> Iterator[str]:
    bill = made.bill
    if bill.after is None:
        yield "No pods in the input: what they would cost is not known; add a dump of the cluster."
    elif made.plan is not None:
        nodes = [
            f"{launch.count} x {launch.instance_type} ({holding(launch.workloads)})"
            for launch in made.plan.launches
        ]
        yield f"Launched: {listed(nodes, 8) or 'no node'}."
    if bill.staying:
        yield f"Not counted: {bill.staying:,.4f} USD/h of nodes that no group of the input has; they stay."
    if bill.unpriced:
        yield f"Not counted: {count(len(bill.unpriced), 'node')} of which no price is known: "
        f"{listed(bill.unpriced)}."
    if made.refused and made.plan is not None:
        yield (
            f"{count(made.refused, 'pod has', 'pods have')} no place: see below; the bill after does "
            "not include them."
        )


def _findings(made: Migration) -> Iterator[tuple[str, list[str]]]:
    refused = []
    for group in () if made.plan is None else made.plan.unplaced:
        names = listed([str(workload) for workload, _ in group.workloads], 3)
        refused.append(f"{count(len(group.pods), 'pod')} of {names}")
        refused += [f"  {listed(one.pools, 3)}: {one.message} [{one.code}]" for one in group.obstacles]
        refused += [f"  would fit: {remedy}" for remedy in group.remedies]
    if refused:
        yield "Pods that would have no place", refused
    differing = [
        line
        for entry in made.differences
        for line in (
            f"{entry.workload}, {count(entry.pods, 'pod')}: {entry.reason} [{entry.code}]",
            f"  to do: {entry.change}",
        )
    ]
    if differing:
        yield "Pods that would behave differently", differing
    matter = [entry for entry in made.left if entry.matters]
    if matter:
        yield (
            "Not carried over",
            [_left_line(reason, entries) for (reason, _), entries in merged(matter).items()],
        )
    quiet = [entry for entry in made.left if not entry.matters]
    if quiet:
        lines = [_left_line(reason, entries, values=False) for (reason, _), entries in merged(quiet).items()]
        yield "Not carried over, and without effect", lines


def _left_line(reason: str, entries: Sequence[Left], *, values: bool = True) -> str:
    members: dict[str, list[str]] = {}
    for entry in entries:
        shown = f"{entry.member} {entry.value}".strip() if values else entry.member
        members.setdefault(entry.source, []).append(shown)
    sources = [f"{source}: {listed(names, _SHOWN)}" for source, names in members.items()]
    return f"{listed(sources, _SHOWN)}: {reason}"
