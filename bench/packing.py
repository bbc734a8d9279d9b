# ruff: noqa: T201 - prints its figures
"""The packing problems: time, nodes, price and bound beside what is recorded of Karpenter's scheduler.

Run: python -m bench.packing [FOLDER] [NAME ...]   (`make bench` does; environment variable PROBLEMS
names the folder, too). Each problem is solved twice in a process of its own, without and with the search
for a cheaper plan, and each answer is checked by `feasibility`. Exit code 1 when one is wrong. A line under
a problem names each figure that is missed (`packing_bounds`).

After them come problems of growing size that `made_problems` makes, and what ten times the pods and ten
times the shapes cost in seconds of the processor. Nothing is kept from one solve to the next.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.packing_bounds import find_misses, missed_together, over_bound
from tests.scheduling.feasibility import Checker
from tests.scheduling.made_problems import batch_problem
from tests.scheduling.problems import FOLDER

_HEAD = (
    f"{'problem':25} {'pods':>6} | {'fast s':>7} {'nodes':>5} {'usd/h':>9} | {'full s':>6} {'nodes':>5} "
    f"{'usd/h':>9} {'MiB':>4} {'bound':>9} {'gap':>5} | {'theirs s':>8} {'nodes':>5} {'usd/h':>9} "
    f"{'bound':>9} "
    f"| {'x faster':>8} {'cheaper':>7} {'over':>5}"
)


def main(arguments: list[str]) -> int:
    folder = FOLDER
    if arguments and Path(arguments[0]).is_dir():
        folder = Path(arguments.pop(0))
    elif os.environ.get("PROBLEMS"):
        folder = Path(os.environ["PROBLEMS"])
    if not folder.is_dir():
        print(f"no packing problems at {folder}; hint: give a folder with *.json.gz", file=sys.stderr)
        return 1
    files = sorted(path for path in folder.glob("*.json*") if _is_problem(path))
    recorded = read(folder / "karpenter.json") if (folder / "karpenter.json").exists() else {}
    wrong = 0
    answers: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    print(_HEAD)
    for path in files:
        name = path.name.partition(".")[0]
        if arguments and name not in arguments:
            continue
        fast, full = (answer_of(path, seconds) for seconds in ("0", "1"))
        faults = [fault for answer in (fast, full) for fault in checker(path).faults(answer)]
        known = recorded.get(name, {})
        print(_row(name, fast, full, known))
        for fault in faults[:5]:
            print(f"    WRONG: {fault}")
        for fault in find_misses(name, fast, full, known):
            print(f"    missed: {fault}")
        answers.append((name, full, known))
        wrong += bool(faults)
    for fault in missed_together(answers):
        print(f"missed by all together: {fault}")
    if not arguments:
        wrong += _growth(folder)
    return 1 if wrong else 0


#: Pods and shapes of the problems of growing size; the first is what the others are compared with.
_SIZES = ((10_000, 100), (100_000, 100), (10_000, 1000), (100_000, 1000))


def _growth(folder: Path) -> int:
    """Print problems of growing size; returns how many answers are wrong."""
    wrong = 0
    seconds: dict[tuple[int, int], tuple[float, ...]] = {}
    catalog = str((folder / "catalogue.json.gz").resolve())
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "problem.json"
        for pods, shapes in _SIZES:
            path.write_text(json.dumps(batch_problem(pods, shapes, catalog)))
            fast, full = (answer_of(path, improve) for improve in ("0", "1"))
            seconds[pods, shapes] = tuple(answer["solveCpuSeconds"] for answer in (fast, full))
            faults = [fault for answer in (fast, full) for fault in checker(path).faults(answer)]
            print(_row(f"made, {shapes} shapes", fast, full, {}))
            for fault in faults[:5]:
                print(f"    WRONG: {fault}")
            wrong += bool(faults)
    base = seconds[_SIZES[0]]
    for subject, size in (("pods", _SIZES[1]), ("shapes", _SIZES[2])):
        fast_ratio, full_ratio = (here / there for here, there in zip(seconds[size], base, strict=True))
        print(f"ten times the {subject}: {fast_ratio:.1f} times the time fast, {full_ratio:.1f} times full")
    return wrong


def answer_of(path: Path, seconds: str) -> dict[str, Any]:
    """What `nodeless solve` answers to the problem of a file, with so many seconds for a cheaper plan."""
    command = [
        sys.executable,
        "-m",
        "nodeless",
        "solve",
        "--problem",
        str(path),
        "--json",
        "--improve",
        seconds,
    ]
    with tempfile.TemporaryFile() as output:
        subprocess.run(command, stdout=output, check=False)
        output.seek(0)
        answer: dict[str, Any] = json.load(output)
    return answer


def checker(path: Path) -> Checker:
    """The checker for the problem of a file."""
    problem = read(path)
    return Checker(problem, read(path.parent / problem["catalogue"]) if "catalogue" in problem else None)


def _is_problem(path: Path) -> bool:
    document = read(path)
    return isinstance(document, dict) and "nodePools" in document


def read(path: Path) -> Any:
    """JSON, plain or gzipped."""
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def _row(name: str, fast: dict[str, Any], full: dict[str, Any], known: dict[str, Any]) -> str:
    theirs, bound = known.get("totalHourlyPrice"), known.get("lowerBound")
    cost = full["totalHourlyPrice"]
    complete = known and not known.get("unscheduledPods")
    return (
        f"{name:25} {full['pods']:6} | {fast['solveCpuSeconds']:7.3f} {fast['newNodeCount']:5} "
        f"{fast['totalHourlyPrice']:9.3f} | "
        f"{full['solveCpuSeconds']:6.2f} {full['newNodeCount']:5} {cost:9.3f} "
        f"{full['maxRssMiB']:4.0f} {_number(full['lowerBound'], 9, 3)} {_percent(full['gap'])} | "
        f"{_number(known.get('solveSeconds'), 8, 3)} {known.get('newNodeCount', ''):5} "
        f"{_number(theirs, 9, 3)} "
        f"{_number(bound, 9, 3)} | "
        f"{_number(known['solveSeconds'] / fast['solveCpuSeconds'] if known else None, 8, 0)} "
        f"{_percent(1 - cost / theirs if complete else None, 7)} "
        f"{_percent(over_bound(full, known))}"
        + (f"  {full['unscheduledPods']} pods left" if full["unscheduledPods"] else "")
    )


def _number(value: float | None, width: int, digits: int) -> str:
    return " " * width if value is None else f"{value:{width}.{digits}f}"


def _percent(value: float | None, width: int = 5) -> str:
    return " " * width if value is None else f"{100 * value:{width - 1}.1f}%"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
