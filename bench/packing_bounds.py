"""The figures that answers to the packing problems must reach, beside what is recorded of Karpenter's.

Times are seconds of the processor: the solver runs in one thread, and machines are shared. Recorded times
are seconds by the clock of a scheduler with five workers.
"""

from collections.abc import Iterable, Mapping
from statistics import mean
from typing import Any

#: Without a search: how many times faster where the other needs more seconds than this.
_FASTER = ((5.0, 50.0), (0.25, 5.0))
#: Seconds for a problem of a handful of pods.
_HANDFUL, _AT_ONCE = 10, 0.020
#: Prices are compared on problems with more pods.
_MANY = 100
_CHEAPER, _ACHIEVABLE = 0.10, 1.01
#: Problems whose recorded bound is tight, and how far above it plans may be: each, and on average.
TIGHT = ("web-fleet", "gpu-mix", "existing-nodes", "taints", "cpu-memory-skew")
_WORST, _AVERAGE = 0.05, 0.03

Answer = Mapping[str, Any]


def find_misses(name: str, fast: Answer, full: Answer, known: Answer) -> list[str]:
    """What the answers to one problem miss; `known` is what is recorded of the other scheduler."""
    seconds, theirs = fast["solveCpuSeconds"], known.get("totalHourlyPrice")
    faults = []
    if full["pods"] <= _HANDFUL and seconds >= _AT_ONCE:
        faults.append(f"takes {1000 * seconds:.0f} ms")
    wanted = next((times for least, times in _FASTER if known.get("solveSeconds", 0) > least), 0.0)
    if wanted and known["solveSeconds"] < wanted * seconds:
        faults.append(f"is {known['solveSeconds'] / seconds:.0f} times faster, not {wanted:.0f}")
    if theirs is None or full["pods"] <= _MANY or known.get("unscheduledPods"):
        return faults
    if fast["totalHourlyPrice"] > theirs:
        faults.append(f"costs {fast['totalHourlyPrice']:.3f} without a search, more than {theirs:.3f}")
    if full["totalHourlyPrice"] >= theirs:
        faults.append(f"costs {full['totalHourlyPrice']:.3f}, no less than {theirs:.3f}")
    achievable = known.get("achievable")
    if achievable is not None and achievable < theirs and full["totalHourlyPrice"] > _ACHIEVABLE * achievable:
        faults.append(f"costs {full['totalHourlyPrice']:.3f}, where {achievable:.3f} is achievable")
    over = over_bound(full, known)
    if name in TIGHT and over is not None and over > _WORST:
        faults.append(f"is {100 * over:.1f} % over the bound")
    return faults


def missed_together(answers: Iterable[tuple[str, Answer, Answer]]) -> list[str]:
    """What the full answers to all problems miss on average: (name, answer, what is recorded)."""
    listed = list(answers)
    savings = [
        1 - full["totalHourlyPrice"] / known["totalHourlyPrice"]
        for _, full, known in listed
        if known and full["pods"] > _MANY and not known.get("unscheduledPods")
    ]
    overs = [
        over
        for name, full, known in listed
        if name in TIGHT and (over := over_bound(full, known)) is not None
    ]
    faults = []
    if savings and mean(savings) < _CHEAPER:
        faults.append(f"{100 * mean(savings):.1f} % cheaper on average")
    if overs and mean(overs) > _AVERAGE:
        faults.append(f"{100 * mean(overs):.1f} % over tight bounds on average")
    return faults


def over_bound(answer: Answer, known: Answer) -> float | None:
    """By how much an answer costs more than the better of the two lower bounds, as a share."""
    bounds = [bound for bound in (answer.get("lowerBound"), known.get("lowerBound")) if bound]
    return answer["totalHourlyPrice"] / max(bounds) - 1 if bounds else None
