"""Processor time of commands that are started often: `--version`, `--help`, `validate` of one file.

`python -m bench.start_up` prints the least and the median of some starts and ends with 1 where a least is
above the bound; `make bench` does so too. The least hardly depends on what else the machine does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

#: Seconds of the processor that a start may take.
BOUND = 0.25
ROUNDS = 10
_POOLS = Path(__file__).parents[1] / "examples" / "plan" / "pools.yaml"
COMMANDS = {"--version": ["--version"], "--help": ["--help"], "validate": ["validate", str(_POOLS)]}


def seconds(arguments: list[str], rounds: int = ROUNDS) -> list[float]:
    """Processor time of each start but a first one, which compiles what is not compiled yet; sorted."""
    times = [_once(arguments) for _ in range(rounds + 1)]
    return sorted(times[1:])


def _once(arguments: list[str]) -> float:
    process = subprocess.Popen([sys.executable, "-m", "nodeless", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"nodeless {' '.join(arguments)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def run(rounds: int = ROUNDS) -> tuple[str, bool]:
    """A line for each command, and whether all are within the bound."""
    lines, within = [], True
    for name, arguments in COMMANDS.items():
        times = seconds(arguments, rounds)
        within &= times[0] <= BOUND
        verdict = "" if times[0] <= BOUND else f", above {BOUND} s"
        lines.append(
            f"start of nodeless {name}: {times[0]:.3f} s of the processor at least, "
            f"{median(times):.3f} s in the median of {rounds}{verdict}"
        )
    return "\n".join(lines), within


if __name__ == "__main__":
    text, well = run()
    sys.stdout.write(f"{text}\n")
    sys.exit(0 if well else 1)
