"""`make demo`: the whole environment, the labs on it, the figures, and nothing left behind.

People get pictures on stdout; with `--json` stdout holds the results only and everything
else goes to stderr.
"""

from __future__ import annotations

import json
import sys
import time

from rich.console import Console

from localenv import stats
from localenv.console import LabView, show_result
from localenv.environment import Environment, Options
from localenv.labs import LABS, SETTINGS, LabResult, run_lab
from localenv.labs.timeline import log_lines
from localenv.progress import StreamReport

#: Of lines that go to a file or a pipe.
_PLAIN_WIDTH = 160


def run(*, as_json: bool = False, boot_seconds: float = 2.0) -> int:
    """Run the demo; give the exit code: 0 when every lab kept its promises."""
    stream = sys.stderr if as_json else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else _PLAIN_WIDTH)
    began = time.time()
    report = StreamReport(sys.stderr)
    console.print(
        "Bringing up the environment: control plane, local AWS, Pulumi stack, controller", style="bold"
    )
    config = {"nodeless:controllerSettings": json.dumps(SETTINGS)}
    options = Options(boot_seconds=boot_seconds, config=config)
    with Environment.start(report=report, options=options) as environment:
        memory = stats.memory(environment)
        results = [_run(number, lab, environment, console) for number, lab in enumerate(LABS, start=1)]
        _show_figures(console, environment, began, memory)
        console.print("\nStopping: pulumi destroy, then all processes", style="bold")
        environment.destroy()
    kept = sum(result.ok for result in results)
    console.print(f"{kept} of {len(results)} labs kept every promise", style="bold")
    if as_json:
        print(json.dumps({"labs": [result.to_json() for result in results]}, indent=2))  # noqa: T201
    return 0 if kept == len(results) else 1


def _run(number: int, lab_type: type, environment: Environment, console: Console) -> LabResult:
    with LabView(console, environment.api, number) as view:
        lab = lab_type(environment, view.note_change)
        view.watch(lab)
        result = run_lab(lab)
    show_result(console, result)
    return result


def _show_figures(console: Console, environment: Environment, began: float, memory: dict[str, float]) -> None:
    lines = list(log_lines(environment.controller_logs(), began))
    found = stats.decisions(lines, environment.aws.calls())
    first = next((line["at"] for line in lines if line["message"] == "registered node"), None)
    console.print("\nFigures of this run", style="bold")
    console.print(f"  end of the batch window to the fleet request: {stats.describe(found)}", highlight=False)
    if first is not None:
        console.print(f"  start of the environment to the first node: {first - began:.1f} s", highlight=False)
    resident = ", ".join(f"{mib:.0f} MiB" for mib in memory.values())
    console.print(f"  resident memory of the controller's replicas at start: {resident}", highlight=False)
