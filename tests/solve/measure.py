# ruff: noqa: T201 - prints its figures
"""Seconds, nodes and price of `solve` on the packing problems.

Run: python -m tests.solve.measure [NAME ...]
"""

import sys
from time import perf_counter

from nodeless.solve import FEWEST_NODES, Policy, solve
from tests.solve.problems import FOLDER, load, read_json


def main(names: list[str]) -> None:
    reference = read_json(FOLDER / "karpenter.json")
    print(f"{'problem':26} {'pods':>6} {'seconds':>8} {'nodes':>6} {'usd/h':>9} {'refused':>7}   reference")
    for name in names or sorted(reference):
        problem = load(name)
        seconds = []
        for _ in range(3):
            start = perf_counter()
            plan = solve(problem.snapshot, problem.catalog, Policy(packing=FEWEST_NODES), now=0.0)
            seconds.append(perf_counter() - start)
        known = reference[name]
        print(
            f"{name:26} {known['pods']:6} {min(seconds):8.4f} {len(plan.new_nodes):6} "
            f"{plan.cost_per_hour:9.3f} {len(plan.refusals):7}   {known['solveSeconds']:.3f} s, "
            f"{known['newNodeCount']} nodes, {known['totalHourlyPrice']:.3f} usd/h, "
            f"{known['unscheduledPods']} refused"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
