"""The view of `nodeless top`: what a person looks at, and what each key does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from nodeless.cli.folding import folded
from nodeless.cli.tables import NOTHING, Column, FittedTable
from nodeless.explain.answers import node_lines
from nodeless.explain.overview import NodeRow, Overview
from nodeless.explain.words import count

SORTS = ("price", "cpu", "memory", "pods", "age", "name")
_RIGHT = ("USD/h", "CPU", "MEMORY", "PODS", "AGE", "AS PLANNED")
#: What a narrow terminal does without, the last ones first.
_OPTIONAL = ("POOL", "CAPACITY", "ZONE", "AGE", "AS PLANNED")
#: Seconds of each, the largest first.
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
#: Stands before each row, and is shown before the chosen one alone.
_MARK = ">"
_CHOSEN = Style(reverse=True)
_DIM = Style(dim=True)
_HELP = (
    "up, k / down, j       choose the node before, or after",
    "page up / page down   go a screen up, or down",
    "home, g / end, G      the first node, or the last one",
    "enter                 open the node: its pods, and what disrupts it; escape goes back",
    "s, S                  sort by the next column, or by the one before: " + ", ".join(SORTS),
    "/                     show only the nodes that have all the words typed; escape shows all again",
    "r                     refresh now",
    "?                     this help",
    "q                     leave",
)
_MOVES = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "home": -(10**9),
    "g": -(10**9),
    "end": 10**9,
    "G": 10**9,
}


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at.

    Attributes:
        sort: What nodes are sorted by.
        words: What a node has to have in its row to be shown.
        typing: Whether keys are letters of `words`.
        chosen: Name of the chosen node; empty: the first one.
        opened: Whether that node alone is shown.
        help: Whether the keys are shown.
        scrolled: Lines above the screen, of a node that is opened.
        left: Whether the person has had enough.
        again: Whether the cluster is to be looked at now.
    """

    sort: str = "price"
    words: str = ""
    typing: bool = False
    chosen: str = ""
    opened: bool = False
    help: bool = False
    scrolled: int = 0
    left: bool = False
    again: bool = False

    def pressed(self, key: str, names: Sequence[str], page: int) -> "View":
        """The view after a key.

        Args:
            key: A character, or a name of `cli.keyboard`.
            names: The nodes that are shown, in their order.
            page: Lines of the screen.
        """
        view = replace(self, again=False)
        if key == "end of input":
            return replace(view, left=True)
        if view.typing:
            return view._typed(key)
        if view.help:
            return replace(view, help=False, left=key == "q")
        if key in ("q", "?", "r"):
            return replace(view, left=key == "q", help=key == "?", again=key == "r")
        step = {"page up": -page, "page down": page, " ": page, **_MOVES}.get(key, 0)
        if view.opened:
            if key in ("escape", "enter", "backspace", "left"):
                return replace(view, opened=False, scrolled=0)
            return replace(view, scrolled=max(view.scrolled + step, 0))
        return view._in_list(key, names, step)

    def _in_list(self, key: str, names: Sequence[str], step: int) -> "View":
        if key in ("s", "S"):
            number = SORTS.index(self.sort) + (1 if key == "s" else -1)
            return replace(self, sort=SORTS[number % len(SORTS)])
        if key == "/":
            return replace(self, typing=True)
        if key == "escape":
            return replace(self, words="")
        if key in ("enter", "right"):
            return replace(self, opened=bool(names), chosen=self.among(names), scrolled=0)
        if step and names:
            at = names.index(self.among(names)) + step
            return replace(self, chosen=names[min(max(at, 0), len(names) - 1)])
        return self

    def _typed(self, key: str) -> "View":
        if key == "enter":
            return replace(self, typing=False)
        if key == "escape":
            return replace(self, typing=False, words="")
        if key in ("backspace", "clear"):
            return replace(self, words=self.words[:-1] if key == "backspace" else "")
        return replace(self, words=self.words + key) if len(key) == 1 else self

    def among(self, names: Sequence[str]) -> str:
        """The chosen one of the nodes that are shown; empty where there is none."""
        return self.chosen if self.chosen in names else next(iter(names), "")


class Screen:
    """One look at a cluster, drawn as a view has it. What does not change from key to key is kept."""

    def __init__(self, seen: Overview, note: str = "") -> None:
        """A look at a cluster, and a note on it: what was in the way of a later one."""
        self._seen, self._note = seen, note
        self._key: tuple[str, str, int] | None = None
        self._rows: list[NodeRow] = []
        self._lines: list[list[Segment]] = []

    def names(self, view: View) -> list[str]:
        """The nodes that a view shows, in their order."""
        return [row.fill.name for row in rows_of(self._seen, view.sort, view.words)]

    def drawn(self, view: View) -> "Drawn":
        """What fills a terminal."""
        return Drawn(self, view)

    def draw(self, view: View, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        """The lines of the screen, no more than it has."""
        width, height = options.max_width, options.max_height
        if view.help:
            return _plain(_HELP, width)[:height]
        if view.opened:
            return self._opened(view, width, height)
        head = _plain(list(self._seen.lines()), width)
        self._lay_out(view, console, options)
        status = self._status(view)
        top = [*head, *_plain([status], width, _DIM), *self._lines[:1]]
        room = max(height - len(top), 1)
        return [*top, *self._window(view, room)][:height]

    def _lay_out(self, view: View, console: Console, options: ConsoleOptions) -> None:
        key = (view.sort, view.words, options.max_width)
        if key != self._key:
            self._key, self._rows = key, rows_of(self._seen, view.sort, view.words)
            table = table_of(self._rows, mark=_MARK)
            self._lines = console.render_lines(table, options.update(height=None), pad=False)

    def _window(self, view: View, room: int) -> list[list[Segment]]:
        """The part of the table that has the chosen row, which is marked."""
        body = self._lines[1:]
        starts = [at for at, line in enumerate(body) if _text(line).startswith(_MARK)]
        names = [row.fill.name for row in self._rows]
        if not names:
            return []
        number = names.index(view.among(names))
        begin = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else begin + 1
        # A third of the screen is left above it, where there is so much.
        first = min(max(begin - room // 3, 0), max(len(body) - room, 0))
        lines = []
        for at, line in enumerate(body[first : first + room], first):
            if begin <= at < end:
                lines.append([Segment(_text(line), _CHOSEN)])
            elif _text(line).startswith(_MARK):
                lines.append([Segment(" " + _text(line)[1:])])
            else:
                lines.append(line)
        return lines

    def _status(self, view: View) -> str:
        shown = len(rows_of(self._seen, view.sort, view.words)) if view.words else len(self._seen.rows)
        of_all = f"{shown} of {count(len(self._seen.rows), 'node')}"
        cursor = "_" if view.typing else ""
        words = f", with /{view.words}{cursor}" if view.words or view.typing else ""
        note = f"; not refreshed: {self._note}" if self._note else ""
        return f"{of_all} by {view.sort}{words}; ? help, q quit{note}"

    def _opened(self, view: View, width: int, height: int) -> list[list[Segment]]:
        row = next((row for row in self._seen.rows if row.fill.name == view.chosen), None)
        if row is None:
            return _plain([f"{view.chosen} is gone", "escape goes back"], width)
        lines = _plain(opened_lines(row), width)
        room = max(height - 1, 1)
        first = min(view.scrolled, max(len(lines) - room, 0))
        return [*lines[first : first + room], *_plain(["escape goes back, q quit"], width, _DIM)]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A screen as a view has it, for Rich."""

    screen: Screen
    view: View

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines."""
        for number, line in enumerate(self.screen.draw(self.view, console, options)):
            if number:
                yield Segment.line()
            yield from line


def printed(seen: Overview, sort: str) -> Group:
    """The look as it is printed once."""
    table = table_of(rows_of(seen, sort))
    return Group(*(Text(line) for line in seen.lines()), Text(), table)


def rows_of(seen: Overview, sort: str, words: str = "") -> list[NodeRow]:
    """The nodes that have all words in their row, sorted."""
    asked = words.lower().split()
    rows = sorted(seen.rows, key=lambda row: _key(row, sort))
    if not asked:
        return rows
    return [row for row in rows if all(word in " ".join(_cells(row)).lower() for word in asked)]


def table_of(rows: Sequence[NodeRow], mark: str = "") -> FittedTable:
    """The table of nodes; with a mark, it stands before each row."""
    names = ("NODE", "POOL", "TYPE", "ZONE", "CAPACITY", *_RIGHT, "DISRUPTION")
    columns = [
        Column(
            f" {name}" if mark and name == "NODE" else name,
            right=name in _RIGHT,
            folds=name == "DISRUPTION",
            optional=name in _OPTIONAL,
        )
        for name in names
    ]
    cells = [_cells(row) for row in rows]
    return FittedTable(columns, [(mark + first, *rest) for first, *rest in cells] if mark else cells)


def opened_lines(row: NodeRow) -> list[str]:
    """All that is known of one node."""
    fill = row.fill
    lines = [f"{fill.name}, {fill.state}, {age(row.age)} old", *(f"  {line}" for line in node_lines(fill))]
    if row.planned:
        lines.append(f"  {row.kept} of the {count(row.planned, 'pod')} that it was launched for run here")
    if row.code:
        lines.append(f"  {'is' if row.disrupted else 'is not'} disrupted: {row.message} [{row.code}]")
    for share in fill.shares:
        lines += ["", f"{share.workload}", *(f"  {key}" for key in share.keys)]
    return lines


def _plain(lines: Sequence[str], width: int, style: Style | None = None) -> list[list[Segment]]:
    return [[Segment(part, style)] for line in lines for part in (folded(line, width) or [""])]


def _text(line: Sequence[Segment]) -> str:
    return "".join(segment.text for segment in line)


def _key(row: NodeRow, sort: str) -> tuple[float, str]:
    """What is sorted by, the largest first; then the name."""
    fill = row.fill
    keys = {
        "price": fill.price or 0.0,
        "cpu": fill.fraction("cpu"),
        "memory": fill.fraction("memory"),
        "pods": fill.pods,
        "age": row.age,
    }
    return -keys.get(sort, 0.0), fill.name


def _cells(row: NodeRow) -> tuple[str, ...]:
    fill = row.fill
    return (
        fill.name,
        fill.pool.rpartition("/")[2] or NOTHING,
        fill.instance_type or NOTHING,
        fill.zone or NOTHING,
        fill.capacity_type or NOTHING,
        NOTHING if fill.price is None else f"{fill.price:.4f}",
        f"{fill.fraction('cpu'):.0%}" if fill.allocatable else NOTHING,
        f"{fill.fraction('memory'):.0%}" if fill.allocatable else NOTHING,
        str(fill.pods),
        age(row.age),
        f"{row.kept}/{row.planned}" if row.planned else NOTHING,
        f"{'! ' if row.disrupted else ''}{row.message} [{row.code}]" if row.code else NOTHING,
    )


def age(seconds: float) -> str:
    """As kubectl writes ages: the largest unit, and below ten of it the next one: `3d4h`, `45m`."""
    left = int(seconds)
    for (unit, size), (smaller, part) in pairwise(_UNITS):
        number, rest = divmod(left, size)
        if number >= 10:
            return f"{number}{unit}"
        if number:
            return f"{number}{unit}{rest // part}{smaller}" if rest // part else f"{number}{unit}"
    return f"{left}s"
