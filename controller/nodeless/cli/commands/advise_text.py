"""Advice as text for a terminal or a pipe."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from nodeless.cli.manifests.yaml_writer import yaml_text
from nodeless.cli.tables import NOTHING, Column, FittedTable, print_fitted, print_line
from nodeless.explain.advice.ranking import Advice, AdviceReport, held_line
from nodeless.explain.words import count
from nodeless.model.bill import HOURS_A_MONTH

_COLUMNS = (
    Column("", right=True),
    Column("USD/month", right=True),
    Column("alone", right=True),
    Column("advice", folds=True, least=40),
)


def print_advice(made: AdviceReport) -> None:
    """Print the ranking, then each piece of advice with its change, risk and reason."""
    print_fitted(lambda console: _print(made, console))


def _print(made: AdviceReport, console: Console) -> None:
    for note in made.notes:
        print_line(console, note, 0, "dim")
    for line in _summary(made):
        print_line(console, line, 0)
    if made.advice:
        rows = [_row(number, one) for number, one in enumerate(made.advice, 1)]
        console.print()
        console.print(FittedTable(_COLUMNS, rows), soft_wrap=True)
        print_line(console, "USD/month: saved on top of the lines above; alone: saved by that one.", 0, "dim")
    for number, one in enumerate(made.advice, 1):
        _print_one(number, one, console)
    for title, lines in (("Tried, and saves nothing", made.tried), ("Worth a look", made.remarks)):
        if lines:
            console.print(Text(f"\n{title}", style="bold"))
        for line in lines:
            print_line(console, line, 2)


def _summary(made: AdviceReport) -> Iterator[str]:
    yield f"now {made.now.price:,.4f} USD/h, {made.now.price * HOURS_A_MONTH:,.2f} USD/month"
    if made.advice:
        saved = made.together * HOURS_A_MONTH
        part = 100 * made.together / made.now.price if made.now.price else 0
        yield f"all advice together saves {saved:,.2f} USD/month ({part:.0f} %)"
    else:
        yield "nothing that was tried saves money"
    if made.now.unpriced:
        yield f"not counted: {count(made.now.unpriced, 'node')} of which no price is known"
    if made.now.refused:
        yield f"{count(made.now.refused, 'pod')} cannot be placed, and are not included: see `nodeless plan`"
    if line := held_line(made.anew):
        yield line


def _row(number: int, one: Advice) -> tuple[str, ...]:
    on_top = NOTHING if one.on_top is None else f"{one.on_top * HOURS_A_MONTH:,.2f}"
    return (f"{number}", on_top, f"{one.alone * HOURS_A_MONTH:,.2f}", one.title)


def _print_one(number: int, one: Advice, console: Console) -> None:
    console.print()
    print_line(console, f"{number}. {one.title} [{one.code}]", 0, "bold")
    print_line(console, f"found: {one.how}", 3)
    print_line(console, f"risk: {one.risk}", 3)
    for other in one.excludes:
        print_line(console, f"excludes: {other}", 3)
    for fragment in one.change:
        for written in yaml_text(fragment).splitlines():
            console.print(Text(f"   | {written}"), soft_wrap=True)
