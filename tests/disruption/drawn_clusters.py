"""Clusters drawn from seeds, and what becomes of them by our commands and by those of v0.27."""

import random

from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from nodeless.model.requirements import Requirements
from tests.disruption.replay import until_still
from tests.disruption.rules_of_v27 import consolidate
from tests.disruption.world import a_budget, a_provisioner, cluster, node_of, on
from tests.scheduling.factories import beside, instance_type, needs, spread

SIZES = (("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("8xlarge", 32))
TYPES = tuple(
    instance_type(f"{family}.{size}", cpu, 4 * cpu, price=0.05 * cpu * (1 + place * 0.05))
    for place, family in enumerate("abcdefg")
    for size, cpu in SIZES
)
NAMED = {kind.name: kind for kind in TYPES}
USUAL = ("a.xlarge", "b.2xlarge", "c.4xlarge", "d.2xlarge")


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


def compared(seed, name):
    """What becomes of one of the clusters, by our commands and by v0.27's rules."""
    snapshot = a_cluster(seed, **CLUSTERS[name])
    theirs = until_still(snapshot, TYPES, decide=lambda seen, now: consolidate(seen, TYPES, now))
    return until_still(snapshot, TYPES), theirs
