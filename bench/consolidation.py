# ruff: noqa: T201 - prints its figures
"""Seconds of one look at 1,000 nodes, of the processor and by the clock; what ten clusters come to by moves.

Beside ours stands what v0.27's rules would have done (`rules_of_v27`): at least as dear in the end, for no
fewer evictions for each dollar, on each; and what the same pods cost at least, were every node bought anew.

Run: python -m bench.consolidation
"""

from time import perf_counter, process_time
from typing import Any

from tests.disruption.drawn_clusters import CLUSTERS, TYPES, a_cluster, compared
from tests.disruption.replay import bound_of
from tests.disruption.world import decide

#: What a look at 1,000 nodes and 10,000 pods may take.
MOST_SECONDS = 5.0


def main() -> None:
    large = a_cluster(1, nodes=1000, fill=0.88, most=16)
    started, worked = perf_counter(), process_time()
    decisions = decide(large, TYPES)
    seconds, processor = perf_counter() - started, process_time() - worked
    ending = sum(len(command.claims) for command in decisions.commands)
    print(
        f"one look at {len(large.nodes)} nodes, {len(large.pods)} pods: {processor:.2f} s of the processor,"
        f" {seconds:.2f} s by the clock, at most {MOST_SECONDS:.0f} s; {ending} nodes end"
    )
    print(f"{'':20} {'before':>8} {'bound':>7} {'nodeless':>33} {'rules of v0.27':>33}")
    columns = f"{'usd/h':>9} {'nodes':>6} {'moves':>6} {'evictions':>9}"
    print(f"{'cluster':20} {'usd/h':>8} {'usd/h':>7} {columns} {columns}")
    for seed, name in enumerate(CLUSTERS):
        ours, theirs = compared(seed, name)
        bound = bound_of(a_cluster(seed, **CLUSTERS[name]), TYPES)
        print(f"{name:20} {ours.price_before:8.3f} {bound:7.3f} {_line(ours)} {_line(theirs)}")


def _line(story: Any) -> str:
    still = "" if story.still else " (not still)"
    figures = f"{story.price_after:9.3f} {story.nodes_after:6} {story.commands:6} {story.evictions:9}"
    return figures + still


if __name__ == "__main__":
    main()
