# ruff: noqa: T201 - prints its figures
"""Seconds of one look at 1,000 nodes, of the processor and by the clock; what ten clusters come to by moves.

Beside ours stands what v0.27's rules would have done (`rules_of_v27`): at least as dear in the end, for no
fewer evictions, on each; and what the same pods cost at least, were every node bought anew.

Run: python -m tests.disruption.measure
"""

import random
from time import perf_counter, process_time

from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from nodeless.model.requirements import Requirements
from tests.disruption.replay import bound_of, until_still
from tests.disruption.rules_of_v27 import consolidate
from tests.disruption.world import a_budget, a_provisioner, cluster, decide, node_of, on
from tests.scheduling.factories import beside, instance_type, needs, spread

SIZES = (("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("8xlarge", 32))
TYPES = tuple(
    instance_type(f"{family}.{size}", cpu, 4 * cpu, price=0.05 * cpu * (1 + place * 0.05))
    for place, family in enumerate("abcdefg")
    for size, cpu in SIZES
)
NAMED = {kind.name: kind for kind in TYPES}
USUAL = ("a.xlarge", "b.2xlarge", "c.4xlarge", "d.2xlarge")
#: What a look at 1,000 nodes and 10,000 pods may take.
MOST_SECONDS = 5.0


def a_cluster(seed, nodes=40, fill=0.5, *, spot=0.0, guarded=0.0, shape=None, most=14):
    """Nodes filled to about a part of their CPU with small pods; seeded, the same every time."""
    chance = random.Random(seed)
    allowed = (SPOT, ON_DEMAND) if spot else (ON_DEMAND,)
    pool = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", *allowed)]))
    things = [pool, a_budget("guarded")]
    for number in range(nodes):
        name, kind = f"n{number:04}", chance.choice(USUAL)
        capacity_type = SPOT if chance.random() < spot else ON_DEMAND
        zone = chance.choice(["z1", "z2"])
        things.append(node_of(pool, name, kind, zone=zone, capacity_type=capacity_type, types=NAMED))
        left = NAMED[kind].allocatable["cpu"] * min(chance.uniform(fill - 0.3, fill + 0.3), 1.0)
        for place in range(most):
            cpu = chance.choice([100, 250, 500, 500, 1000, 1500])
            left -= cpu
            if left < 0 and place:
                break
            app = "guarded" if chance.random() < guarded else f"app{place}"
            things.append(on(name, cpu=f"{cpu}m", memory=f"{2 * cpu}Mi", app=app, shape=shape or {}))
    return cluster(things)


CLUSTERS = {
    "fragmented": {"fill": 0.4},
    "over-provisioned": {"fill": 0.3},
    "nearly full": {"fill": 0.9, "most": 40},
    "spot-heavy": {"fill": 0.5, "spot": 0.8},
    "half spot": {"fill": 0.5, "spot": 0.5},
    "budget-bound": {"fill": 0.4, "guarded": 0.2},
    "spread over zones": {"fill": 0.4, "shape": {"spread": (spread(ZONE, "app1", 3),)}},
    "anti-affine": {"fill": 0.4, "shape": {"anti_affinity": (beside(HOSTNAME, "app0"),)}},
    "mixed": {"fill": 0.5, "spot": 0.3, "guarded": 0.05},
    "many small pods": {"fill": 0.5, "most": 60},
}


def main() -> None:
    large = a_cluster(1, nodes=1000, fill=0.88, most=16)
    started, worked = perf_counter(), process_time()
    decisions = decide(large, TYPES)
    seconds, processor = perf_counter() - started, process_time() - worked
    ending = sum(len(move.claims) for move in decisions.moves)
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


def compared(seed, name):
    """What becomes of one of the clusters, by our moves and by v0.27's rules."""
    snapshot = a_cluster(seed, **CLUSTERS[name])
    theirs = until_still(snapshot, TYPES, decide=lambda seen, now: consolidate(seen, TYPES, now))
    return until_still(snapshot, TYPES), theirs


def _line(story):
    still = "" if story.still else " (not still)"
    figures = f"{story.price_after:9.3f} {story.nodes_after:6} {story.moves:6} {story.evictions:9}"
    return figures + still


if __name__ == "__main__":
    main()
