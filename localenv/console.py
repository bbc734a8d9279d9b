"""What the demo shows: expectations as they come true, nodes and pods live, and a summary for each lab.

On a terminal the picture is redrawn in place; elsewhere each expectation is a line. Color
carries no meaning of its own.
"""

from __future__ import annotations

import threading
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from localenv.kubernetes import ApiError, ApiUnreachable, KubernetesApi
from localenv.labs.cluster_view import ClusterView, NodeRow, take
from localenv.labs.run import Check, Lab, LabResult

_REFRESH_SECONDS = 0.5
_MARKS = {True: ("ok", "green"), False: ("FAILED", "red bold"), None: ("...", "yellow")}
_STAGES = ("pending", "decided", "launched", "registered", "running")
_PODS_SHOWN = 2
#: The nodes of a lab are of several templates, the static one of none: only their instances have a price.
_COST = "instances per hour, without CPU credits and volumes"
#: Columns from which on pods are named.
_WIDE = 130


class LabView:
    """Shows one lab while it runs; used in a `with` block around it."""

    def __init__(self, console: Console, api: KubernetesApi, number: int) -> None:
        self._console = console
        self._api = api
        self._number = number
        self._lab: Lab | None = None
        self._printed = 0
        self._picture: ClusterView | None = None
        self._live: Live | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="view", daemon=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._live is not None:
            self._thread.join()
            self._live.stop()

    def watch(self, lab: Lab) -> None:
        """Begin to show a lab."""
        self._lab = lab
        self._console.print(f"\nLab {self._number}: {lab.title}", style="bold", highlight=False)

    def note_change(self) -> None:
        """Something about the lab's expectations changed."""
        if self._lab is None:
            return
        if self._live is not None:
            self._draw()
            return
        checks = self._lab.result.checks
        while self._printed < len(checks) and checks[self._printed].ok is not None:
            self._console.print(_line(checks[self._printed]), highlight=False)
            self._printed += 1

    def _follow(self) -> None:
        while not self._stop.wait(_REFRESH_SECONDS):
            try:
                self._picture = take(self._api)
            except (ApiError, ApiUnreachable):
                continue
            self._draw()

    def _draw(self) -> None:
        if self._live is None or self._lab is None:
            return
        parts: list[RenderableType] = [_line(check) for check in self._lab.result.checks]
        if self._picture is not None:
            parts += [
                Text(),
                node_table(self._picture.nodes, self._console.width),
                Text(_format_pending(self._picture)),
            ]
        self._live.update(Group(*parts), refresh=True)


def show_result(console: Console, result: LabResult) -> None:
    """The summary of a finished lab."""
    if console.is_terminal:
        for check in result.checks:
            console.print(_line(check), highlight=False)
    if result.nodes:
        console.print(node_table(result.nodes, console.width))
    if result.timeline:
        stages = "  ".join(
            f"{stage} {result.timeline[stage]:.2f}" for stage in _STAGES if stage in result.timeline
        )
        console.print(f"seconds since the first pending pod: {stages}", highlight=False)
    console.print(
        f"{_COST}: ${result.cost_before:.4f} before, ${result.cost_after:.4f} with the pods running",
        highlight=False,
    )


def node_table(nodes: tuple[NodeRow, ...], width: int) -> Table:
    """Nodes and their pods; names of pods only where there is room for them."""
    wide = width >= _WIDE
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("NODE", no_wrap=True, overflow="ellipsis", max_width=40 if wide else 24)
    for heading in ("TYPE", "ZONE", "CAPACITY"):
        table.add_column(heading, no_wrap=True)
    for heading in ("$/HOUR", "CPU", "AGE"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("PODS", overflow="fold")
    for node in nodes:
        name = node.name.partition(".")[0]
        name = name if node.state == "Ready" else f"{node.state}: {name}"
        price = f"{node.price:.4f}" if node.price else "-"
        row = (name, node.instance_type, node.zone, node.capacity_type, price)
        pods = _pods(node.pods) if wide else str(len(node.pods))
        table.add_row(*row, f"{node.cpu_used:.0%}", f"{node.age:.0f}s", pods)
    return table


def _pods(names: tuple[str, ...]) -> str:
    more = len(names) - _PODS_SHOWN
    return f"{len(names)}: {', '.join(names[:_PODS_SHOWN])}" + (f" and {more} more" if more > 0 else "")


def _format_pending(picture: ClusterView) -> str:
    return f"pending pods: {len(picture.pending)}   {_COST}: ${picture.cost_per_hour:.4f}"


def _line(check: Check) -> Text:
    mark, style = _MARKS[check.ok]
    text = Text(f"  {mark:<7}", style=style)
    text.append(check.text, style="default")
    if check.ok is not None and check.seconds >= 1:
        text.append(f" ({check.seconds:.0f} s)", style="dim")
    if check.detail:
        lines = check.detail.splitlines()
        text.append("\n" + "\n".join(f"          {line}" for line in lines), style="dim")
    return text
