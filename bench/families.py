# ruff: noqa: T201 - prints its figures
"""Packing problems of ten drawn families: price, gap and processor time for each time box.

Run: python -m bench.families [SEED ...] [--boxes 0,0.5,1,2,5,10]   (`make bench` does, with three new seeds)

Prices are those that the search found: what a plan costs more once nodes are merged is in its gap.
Each problem is solved once for each box in a process of its own, and each answer is checked by `feasibility`.
Times are seconds of the processor. It prints what is promised beside what was reached; exit code 1 when an
answer cannot be carried out or leaves pods over.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from bench.packing import answer_of, checker
from tests.scheduling.drawn_problems import FAMILIES, write_problem

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Promise:
    """What is promised for a box: the gap on average and at worst, and seconds of the processor at most."""

    mean_gap: float
    worst_gap: float
    #: Times the box, beyond what the plan without a box takes.
    times_box: float | None = None


_PROMISES = {1.0: _Promise(0.03, 0.06, times_box=1.5), 5.0: _Promise(0.015, 0.03)}
#: Prices that differ by less are the same.
_SAME = 1e-6


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.families")
    parser.add_argument("seeds", nargs="*", help="three new ones by default")
    parser.add_argument("--boxes", default="0,0.5,1,2,5,10", help="seconds for a cheaper plan")
    options = parser.parse_args(arguments)
    seeds = options.seeds or [str(random.randrange(1_000_000)) for _ in range(3)]
    boxes = sorted(float(box) for box in options.boxes.split(","))
    print(f"ten families, seeds {' '.join(seeds)}; USD/h and gap for boxes of {options.boxes} s")
    answers: dict[str, dict[float, Answer]] = {}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            for family in FAMILIES:
                path = write_problem(family, seed, Path(folder))
                found: dict[float, Answer] = {box: answer_of(path, f"{box:g}") for box in boxes}
                print(_row(f"{family} {seed}", found))
                for fault in _faults(path, found):
                    wrong += 1
                    print(f"    WRONG: {fault}")
                answers[f"{family} {seed}"] = found
    for line in summary(answers, boxes):
        print(line)
    return 1 if wrong else 0


def _row(name: str, found: Mapping[float, Answer]) -> str:
    cells = (
        f"{searched_price(answer):10.3f} {_gap(answer):>7} {answer['solveCpuSeconds']:5.2f} s"
        for answer in found.values()
    )
    return f"{name:22} {next(iter(found.values()))['pods']:6} pods |{' |'.join(cells)}"


def searched_price(answer: Answer) -> float:
    """US dollars an hour of what the search found, before nodes were merged."""
    fewer = answer["fewerNodes"]
    return float(answer["totalHourlyPrice"] - (fewer["perHour"] if fewer else 0.0))


def _gap(answer: Answer) -> str:
    return f"{100 * answer['gap']:.2f} %" if answer["gap"] is not None else "-"


def _faults(path: Path, found: Mapping[float, Answer]) -> Iterator[str]:
    check = checker(path)
    for box, answer in found.items():
        yield from (f"box {box:g}: {fault}" for fault in check.faults(answer)[:3])
        if answer["unscheduledPods"]:
            yield f"box {box:g}: {answer['unscheduledPods']} pods are left over"


def summary(answers: Mapping[str, Mapping[float, Answer]], boxes: Sequence[float]) -> Iterator[str]:
    """What was reached beside what is promised, a line each.

    Args:
        answers: The answers to each problem, by box, the smallest first.
        boxes: Those boxes.
    """
    for box, promise in _PROMISES.items():
        if box not in boxes:
            continue
        gaps = {name: found[box]["gap"] or 0.0 for name, found in answers.items()}
        worst = max(gaps, key=lambda name: gaps[name])
        yield (
            f"box {box:g}: gap {100 * mean(gaps.values()):.2f} % on average"
            f" (promised {100 * promise.mean_gap:g} %), {100 * gaps[worst]:.2f} % at worst"
            f" (promised {100 * promise.worst_gap:g} %): {worst}"
        )
        over = [name for name, gap in gaps.items() if gap > promise.worst_gap]
        if over:
            yield f"  missed by {len(over)} of {len(gaps)}: {', '.join(over)}"
        if promise.times_box is not None and 0.0 in boxes:
            late = [
                name
                for name, found in answers.items()
                if found[box]["solveCpuSeconds"] > promise.times_box * box + found[0.0]["solveCpuSeconds"]
            ]
            listed = ", ".join(late) or "none"
            yield f"  more processor time than {promise.times_box:g} times the box: {listed}"
    rising = [
        f"{name} ({before:g} to {after:g} s)"
        for name, found in answers.items()
        for before, after in pairwise(boxes)
        if searched_price(found[after]) > searched_price(found[before]) + _SAME
    ]
    yield f"more time made a plan dearer: {', '.join(rising) or 'never'}"
    if {0.0, 0.5, 1.0} <= set(boxes):
        yield _first_half(answers)


def _first_half(answers: Mapping[str, Mapping[float, Answer]]) -> str:
    """How much of what a second saves the first half of it saves."""
    saved = {
        box: sum(searched_price(found[0.0]) - searched_price(found[box]) for found in answers.values())
        for box in (0.5, 1.0)
    }
    if saved[1.0] <= 0:
        return "a box of 1 s saves nothing"
    return f"half a second saves {100 * saved[0.5] / saved[1.0]:.0f} % of what one saves"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
