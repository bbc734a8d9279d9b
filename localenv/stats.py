"""The figures that the demo and the benchmark print: our own share of the time, and the memory.

Each is measured in the run that prints it; none is asserted in a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

import psutil

from localenv.environment import NAMESPACE, Environment

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Decision:
    """One pass of the controller.

    Attributes:
        planned: Seconds from the end of the batch window until the plan was logged.
        requested: Seconds from the end of the batch window to the first CreateFleet request after it.
    """

    planned: float
    requested: float


def decisions(lines: Iterable[Mapping[str, Any]], calls: Iterable[Mapping[str, Any]]) -> list[Decision]:
    """Match the passes in the controller's log with the fleet requests that the local AWS recorded.

    Args:
        lines: Log lines with `at` (seconds since the epoch); those of a pass carry `pass`, its beginning.
        calls: The recorded calls.
    """
    fleets = sorted(
        _moment(call["time"])
        for call in calls
        if call["action"] == "CreateFleet" and call.get("error") != "DryRunOperation"
    )
    found = []
    for line in lines:
        if "pass" not in line or not line["message"].startswith("computed "):
            continue
        began = float(line["pass"])
        asked = next((at for at in fleets if at >= began), None)
        if asked is not None:
            found.append(Decision(line["at"] - began, asked - began))
    return found


def _moment(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else datetime.fromisoformat(value).timestamp()


def memory(environment: Environment) -> dict[str, float]:
    """Resident memory of each of the controller's processes, MiB, by pod."""
    return {
        pod: psutil.Process(environment.kubelets.pid_of(NAMESPACE, pod)).memory_info().rss / MIB
        for pod in environment.controller_pods()
    }


def describe(found: list[Decision]) -> str:
    """`median 41 ms (fastest 35, slowest 60, of 4)` for the time to the fleet request."""
    if not found:
        return "not measured: no fleet request was seen"
    times = sorted(1000 * decision.requested for decision in found)
    return f"median {median(times):.0f} ms (fastest {times[0]:.0f}, slowest {times[-1]:.0f}, of {len(times)})"
