# ruff: noqa: T201 - prints its figures
"""What hostile pods cost a pass: the slowest of many batches, and what honest pods feel of their neighbors.

Run: python -m bench.hostile_pods [BATCHES] [SEED] (`make bench` does, with 200 batches). Every
time is one of the processor. Exit code 1 when an honest pod gets no node in a pass.
"""

import sys
import time
from statistics import quantiles

from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy, solve
from tests.scheduling.hostile_batches import HONEST, batch, every_type

#: A pass over 5,000 pods ends within so many seconds of the processor, whatever they are.
_MOST = 10.0


def main(arguments: list[str]) -> int:
    number = int(arguments[0]) if arguments else 200
    seed = arguments[1] if len(arguments) > 1 else "1"
    every_type()
    alone: list[float] = []
    beside: list[tuple[float, str, int]] = []
    starved = 0
    for each in range(number):
        made = batch(f"{seed}-{each}")
        alone.append(_seconds(made.alone)[0])
        seconds, refused = _seconds(made.seen)
        beside.append((seconds, made.kind, len(made.hostile)))
        starved += refused
        if refused:
            print(
                f"    batch {seed}-{each} ({made.kind}, {len(made.hostile)} pods): {refused} honest pods wait"
            )
    slowest = sorted(beside, reverse=True)[:3]
    print(f"{number} hostile batches of up to 5,000 pods, seed {seed}, {len(every_type())} instance types")
    for seconds, kind, pods in slowest:
        late = "" if seconds <= _MOST else f"  missed: {_MOST:.0f} s"
        print(f"slowest passes: {seconds:6.2f} s, {pods} pods of {kind}{late}")
    told = [_p99(alone), _p99([seconds for seconds, _, _ in beside])]
    print(f"p99 of a pass: {told[0]:.2f} s without hostile neighbors, {told[1]:.2f} s with them")
    print(f"honest pods that got no node beside them: {starved}")
    return 1 if starved else 0


def _seconds(seen: Snapshot) -> tuple[float, int]:
    """Seconds of a pass, and how many honest pods it refuses."""
    began = time.process_time()
    plan = solve(seen, dict.fromkeys(seen.pools, every_type()), Policy())
    spent = time.process_time() - began
    return spent, sum(refusal.pod.startswith(f"{HONEST}/") for refusal in plan.refusals)


def _p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
