"""`nodeless top`: the nodes of a cluster with fill, price and disruption, refreshed until it is ended."""

import io
import signal
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.cli.bounded_files import STDIN
from nodeless.cli.commands.inputs import (
    CONTROLLER_NAMESPACE,
    CatalogOption,
    ControllerNamespace,
    Kubeconfig,
    NamesAndFiles,
    Namespace,
    Region,
    Snapshot,
    Source,
    SpotPercent,
    WhatIf,
    Zones,
    situation_of,
)
from nodeless.cli.commands.output import (
    DOCUMENTS,
    TABLE,
    WIDE,
    AsJson,
    format_of,
    output_option,
    write_document,
)
from nodeless.cli.commands.terms import refuse
from nodeless.cli.completion import NODES
from nodeless.cli.object_names import split_names
from nodeless.cli.progress import nothing_shown, working
from nodeless.explain.words import listed

if TYPE_CHECKING:
    from nodeless.cli.keyboard import Keyboard
    from nodeless.explain.overview import Overview

views = typer.Typer()
_OUTPUT = "Output"
_FORMS = (TABLE, WIDE, *DOCUMENTS)
#: What nodes are sorted by; `top_view` draws it.
_SORTS = ("price", "cpu", "memory", "pods", "age", "name")


@views.command(rich_help_panel="Plans")
def top(
    files: NamesAndFiles = None,
    snapshot: Snapshot = "",
    what_if: WhatIf = None,
    kubeconfig: Kubeconfig = "",
    namespace: Namespace = "",
    controller_namespace: ControllerNamespace = CONTROLLER_NAMESPACE,
    region: Region = "",
    catalog: CatalogOption = "",
    zones: Zones = "",
    spot_percent: SpotPercent = 40.0,
    once: Annotated[
        bool | None,
        typer.Option(
            "--once/--watch",
            help="Print once, or keep watching, which also works with files. If not set, nodeless watches a "
            "cluster on a terminal.",
            rich_help_panel=_OUTPUT,
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1.0, help="Seconds between two updates.", rich_help_panel=_OUTPUT)
    ] = 5.0,
    sort: Annotated[
        str, typer.Option(help=f"Sort by {', '.join(_SORTS[:-1])} or {_SORTS[-1]}.", rich_help_panel=_OUTPUT)
    ] = "price",
    output: Annotated[str, output_option(*_FORMS)] = TABLE,
    as_json: AsJson = False,
) -> None:
    """Show nodes with utilization, pods, price, age, what keeps or disrupts them, and what happens next.

    On a terminal, it watches the cluster. Press ? for the keys with which you sort, find and open nodes, and
    q to quit. In a pipe, with files or with a snapshot, it prints once. AS PLANNED shows how many of the pods
    for which a node was launched run on it, out of those that still exist.

    nodeless top nodepool/general
    """
    # Imported here: other commands do not need the solver.
    from rich.console import Console  # noqa: PLC0415

    from nodeless.cli.commands.top_view import printed  # noqa: PLC0415
    from nodeless.cli.tables import print_fitted  # noqa: PLC0415

    if sort not in _SORTS:
        refuse(f"--sort {sort!r} is not known; hint: {', '.join(_SORTS)}")
    output = format_of(output, as_json=as_json, formats=_FORMS)
    given, names = split_names(files or (), NODES)
    source = Source(
        given,
        snapshot,
        what_if or (),
        kubeconfig,
        controller_namespace,
        region,
        catalog,
        zones,
        spot_percent,
        namespace=namespace,
    )
    console = Console()
    terminal = console.is_terminal and not console.is_dumb_terminal
    if once is False and (not terminal or output != TABLE or STDIN in source.files):
        refuse("--watch needs a terminal, and an input that can be read again; hint: leave it out")
    with working("looking at the nodes"):
        seen = _look(source, names)
    if output in DOCUMENTS:
        write_document("Overview", seen.to_json(), output)
    elif once or output == WIDE or not terminal or (once is None and (given or snapshot)):
        view = printed(seen, sort)
        print_fitted(lambda fitted: fitted.print(view, soft_wrap=True), wide=output == WIDE)
    else:
        with nothing_shown():
            _watch(_Looks(source, names, seconds, seen), sort)


def _look(source: Source, names: Sequence[str]) -> "Overview":
    """What is seen, of some nodes and pools alone where any is named; ends the command where one is not."""
    # Imported here: the solver is loaded where it is used.
    from nodeless.explain.overview import overview  # noqa: PLC0415

    situation = situation_of(source)[0]
    seen = overview(situation)
    if not names:
        return seen
    try:
        return seen.only(names, situation.snapshot)
    except KeyError as error:
        there = listed(sorted(row.fill.name for row in seen.rows)) or "none"
        pools = listed(sorted(situation.snapshot.pools)) or "none"
        refuse(f"{error.args[0]}: there is no such object; hint: nodes: {there}; pools: {pools}")


class _Looks:
    """Looks at a cluster, one after another in a thread of their own: keys are answered meanwhile."""

    def __init__(self, source: Source, names: Sequence[str], seconds: float, first: "Overview") -> None:
        self._source, self._names, self._seconds = source, names, seconds
        self.seen = first
        self.fault = ""
        """Why the last look failed."""
        self.number = 0
        """How many there were."""
        self._at_once = threading.Event()

    def now(self) -> None:
        """Look now."""
        self._at_once.set()

    def begin(self, keys: "Keyboard") -> None:
        """Go on looking; who waits for a key is woken after each."""
        threading.Thread(target=self._go_on, args=(keys,), daemon=True).start()

    def _go_on(self, keys: "Keyboard") -> None:
        while True:
            self._at_once.wait(self._seconds)
            self._at_once.clear()
            said = io.StringIO()
            try:
                # The screen is taken.
                with redirect_stderr(said):
                    self.seen, self.fault = _look(self._source, self._names), ""
            except typer.Exit:
                # What was in the way this time may be gone the next.
                self.fault = (said.getvalue().strip().splitlines() or ["the cluster cannot be read"])[-1]
            except Exception as error:
                # The screen stays, with what was seen last.
                self.fault = f"{type(error).__name__}: {error}"
            self.number += 1
            keys.wake()


def _watch(looks: _Looks, sort: str) -> None:
    """Show what is seen, as keys ask for it, until the person leaves."""
    # Imported here: most calls print once.
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from nodeless.cli.commands.top_view import Screen, View  # noqa: PLC0415
    from nodeless.cli.keyboard import keyboard  # noqa: PLC0415

    console = Console(highlight=False)
    view, screen, number = View(sort), Screen(looks.seen), 0
    try:
        with keyboard() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
            signal.signal(signal.SIGWINCH, lambda *_: keys.wake())
            looks.begin(keys)
            while not view.left:
                live.update(screen.drawn(view), refresh=True)
                for key in keys.read():
                    view = view.pressed(key, screen.names(view), max(console.height - 6, 1))
                    if view.again:
                        looks.now()
                if looks.number != number:
                    number, screen = looks.number, Screen(looks.seen, looks.fault)
    except KeyboardInterrupt:
        return
