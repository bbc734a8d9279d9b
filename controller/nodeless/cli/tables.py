"""Text that fits its terminal: what names a thing is never cut, and what is of less use gives way first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from nodeless.cli.folding import folded

#: Columns when the output is no terminal, so that a pipe gets whole lines.
PIPE_WIDTH = 200
#: A cell that says nothing.
NOTHING = "-"
#: Cells between two columns, and before a cell that has lines of its own.
_GAP, _INDENT = 3, 8


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    right: bool = False
    """Whether its cells are aligned to the right."""
    folds: bool = False
    """Whether a cell may take several lines; where they would be short, they stand below the row."""
    least: int = 24
    """Cells of width that a column which folds needs to stand beside the others."""
    optional: bool = False
    """Whether it is left out, and named below, where the table is too wide otherwise; the last ones first."""


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table that is no wider than its console, where the columns that are always shown allow that.

    Attributes:
        columns: In their order.
        rows: A cell for each column, in each of them.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines of the table, and of what does not stand in it."""
        widths = [self._natural(number) for number in range(len(self.columns))]
        shown, below, left_out = self._arranged(options.max_width, widths)
        width = max(options.max_width, self._width(shown, widths))
        lines = console.render_lines(self._table(shown), options.update(width=width), pad=False)
        for at, line in enumerate(lines):
            yield from (*line, Segment.line())
            # Nothing folds in the table then: below its heads, each line is a row.
            for number in below if at else ():
                cell = self.rows[at - 1][number]
                if cell != NOTHING:
                    yield from indented(f"{self.columns[number].name}: {cell}", options.max_width, _INDENT)
        if left_out:
            yield Text(f"not shown for want of width: {', '.join(left_out)}", style="dim")

    def _arranged(self, width: int, widths: Sequence[int]) -> tuple[list[int], list[int], list[str]]:
        """The columns in the table, those below each row, and the names of those that are left out."""
        everything = list(range(len(self.columns)))
        shown, left_out = self._without_some(everything, width, widths)
        if self._width(shown, widths) <= width:
            return shown, [], left_out
        folding = [number for number in everything if self.columns[number].folds]
        rest = [each for each in everything if each not in folding]
        shown, left_out = self._without_some(rest, width, widths)
        below = [number for number in folding if not self.columns[number].optional]
        return shown, below, left_out + [self.columns[each].name for each in folding if each not in below]

    def _without_some(
        self, shown: Sequence[int], width: int, widths: Sequence[int]
    ) -> tuple[list[int], list[str]]:
        """Some columns without those that say nothing, and optional ones, until they fit; their names."""
        rest, left_out = list(shown), list[str]()
        hollow = [number for number in shown if all(row[number] == NOTHING for row in self.rows)]
        optional = [number for number in shown if self.columns[number].optional and number not in hollow]
        for number in [*reversed(hollow), *reversed(optional)]:
            if self._width(rest, widths) > width:
                rest.remove(number)
                left_out[:0] = [self.columns[number].name] if number in optional else []
        return rest, left_out

    def _width(self, shown: Sequence[int], widths: Sequence[int]) -> int:
        """The least width of some columns."""
        cells = [
            min(widths[number], self.columns[number].least) if self.columns[number].folds else widths[number]
            for number in shown
        ]
        return sum(cells) + _GAP * (len(shown) - 1)

    def _natural(self, number: int) -> int:
        """The width of a column whose cells have one line each."""
        return max(map(cell_len, (self.columns[number].name, *(row[number] for row in self.rows))))

    def _table(self, shown: Sequence[int]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        for column in (self.columns[number] for number in shown):
            table.add_column(
                column.name,
                justify="right" if column.right else "left",
                header_style="dim",
                no_wrap=not column.folds,
                overflow="fold",
            )
        for row in self.rows:
            table.add_row(*(Text(row[number]) for number in shown))
        return table


def indented(text: str, width: int, indent: int, style: str = "") -> list[Text]:
    """The lines of a text, as `folded` has them, in a style."""
    return [Text(line, style=style, no_wrap=True, overflow="ignore") for line in folded(text, width, indent)]


def print_fitted(draw: Callable[[Console], None], *, wide: bool = False) -> None:
    """Print what `draw` puts on a console: as wide as the terminal, or as a pipe has it.

    Args:
        draw: Prints on the console that it is given.
        wide: Whether a terminal gets what a pipe would.
    """
    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal and not wide else Console(width=PIPE_WIDTH, highlight=False)
    with console.capture() as captured:
        draw(console)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def print_table(
    console: Console, title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]
) -> None:
    """A table under its title."""
    console.print(Text(f"\n{title}", style="bold"))
    console.print(FittedTable(columns, rows), soft_wrap=True)


def print_line(console: Console, text: str, indent: int = 0, style: str = "") -> None:
    """A line that folds, indented by so many columns."""
    for line in indented(text, console.width, indent, style):
        console.print(line, soft_wrap=True)
