# ruff: noqa: T201 - prints its figures
"""Small problems of drawn families: how many plans are proved to be the cheapest, and what that takes.

Run: python -m bench.proofs [NUMBER] [SEED]   (`make bench` does, with 100 problems and a seed of its own)

Each problem has at most 150 pods, as most clusters add at once. Instance types and their prices are the
bundled ones of us-east-1, or a made catalog where every CPU of a family costs the same. Times are seconds of
the processor for the whole plan. It prints the figures beside those that are promised, with -v each problem;
exit code 1 where a pod is refused.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from statistics import mean, median
from typing import Any

from immutables import Map

from nodeless.api.packing_problem import read_problem
from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import ARCH, CAPACITY_TYPE, ON_DEMAND, SPOT
from nodeless.model.plan import PROVED, Plan
from nodeless.model.pools import NodeClass
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import daemon, needs, node, pods, pool, snapshot
from tests.scheduling.made_problems import batch_problem

#: Pods of a problem at most.
_PODS = 150
#: What is promised: the share that is proved, and seconds of the processor for one plan.
_PROVED, _SECONDS = 0.95, 1.0
_ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
CATEGORY, GENERATION = "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-generation"
_AMD64 = needs(ARCH, "In", "amd64")
_ANY_OF_C_M_R = (needs(CATEGORY, "In", "c", "m", "r"), needs(GENERATION, "Gt", "4"), _AMD64)
_TO_ORDER = needs(CAPACITY_TYPE, "In", ON_DEMAND)
Problem = tuple[Snapshot, Catalog]


def main(arguments: list[str]) -> int:
    verbose = "-v" in arguments
    given = [each for each in arguments if each != "-v"]
    number = int(given[0]) if given else 100
    seed = given[1] if len(given) > 1 else str(random.randrange(1_000_000))
    chance = random.Random(f"proofs {seed}")
    names = list(FAMILIES)
    proved: Counter[str] = Counter()
    gaps: list[float] = []
    seconds: list[float] = []
    wrong = fewer = soon = 0
    for index in range(number):
        name = names[index % len(names)]
        seen, catalog = FAMILIES[name](chance)
        begun = time.process_time()
        made = solve(seen, catalog, Policy())
        seconds.append(time.process_time() - begun)
        gaps.append(gap_of(made))
        proved[name] += gaps[-1] <= PROVED
        soon += gaps[-1] <= PROVED and seconds[-1] <= _SECONDS
        fewer += made.cheapest_found < made.cost_per_hour
        if made.refusals or made.faults:
            wrong += 1
            print(f"  problem {index}: {len(made.refusals)} pods are refused, faults: {made.faults}")
        if verbose:
            print(
                f"  {index:3} {name:37} {len(seen.pods):3} pods {made.cost_per_hour:9.4f} USD/h, "
                f"gap {100 * gaps[-1]:6.3f} %, {seconds[-1]:.2f} s"
            )
    print(f"{number} drawn problems of at most {_PODS} pods, seed {seed}")
    for place, name in enumerate(names):
        drawn = len(range(place, number, len(names)))
        print(f"  {name:37} {proved[name]:3} of {drawn:3} proved cheapest")
    print(
        f"  proved {100 * proved.total() / number:.0f} %; within {_SECONDS:.0f} s of the processor "
        f"{100 * soon / number:.0f} % ({100 * _PROVED:.0f} % are promised)"
    )
    print(f"  processor time: median {median(seconds):.2f} s, worst {max(seconds):.2f} s")
    print(f"  {fewer} plans have fewer nodes than the cheapest plan found, for a little more money")
    print(f"  gap: mean {100 * mean(gaps):.2f} %, worst {100 * max(gaps):.2f} %")
    return 1 if wrong else 0


def gap_of(made: Plan) -> float:
    """Of the cheapest plan that was found, 0 to 1; 1 without a bound."""
    return 1.0 if made.gap_found is None else made.gap_found


def bought_from(seen: Snapshot) -> Problem:
    """The problem with the bundled types and prices of nodes."""
    own = {str(each.node_class): NodeClass(each.node_class) for each in seen.pools.values()}
    seen = replace(seen, node_classes=Map(own))
    return seen, offline_catalogs(bundled_catalog().with_spot_percent(40.0), seen, _ZONES)[0]


_DAEMONS = (daemon("kube-proxy", "100m"), daemon("aws-node", "50m"), daemon("agent", "30m", "120Mi"))


def _services(chance: random.Random, most: int, **fields: Any) -> list[Any]:
    """A dozen services or so, of round sizes, with a few replicas each."""
    left, made = chance.randint(2, most), []
    for index in range(chance.randint(1, 25)):
        number = min(left, chance.randint(1, max(1, most // 12)))
        left -= number
        if number:
            cpu = chance.choice((100, 150, 200, 250, 500, 500, 750, 1000, 1500, 2000, 4000))
            memory = cpu * chance.choice((1, 2, 2, 4, 4, 8)) // 128 * 128 or 128
            made += pods(number, f"{cpu}m", f"{memory}Mi", name=f"app{index}", **fields)
    return made


def _small_team(chance: random.Random) -> Problem:
    """Up to thirty pods."""
    return bought_from(snapshot(_services(chance, 30), pool("default", *_ANY_OF_C_M_R, _TO_ORDER), *_DAEMONS))


def _services_and_burstable(chance: random.Random) -> Problem:
    """Burstable types, too."""
    own = pool("default", needs(CATEGORY, "In", "t", "c", "m", "r"), _AMD64, _TO_ORDER)
    return bought_from(snapshot(_services(chance, 60), own, *_DAEMONS))


def _many_services(chance: random.Random) -> Problem:
    """As many pods as there may be."""
    return bought_from(
        snapshot(_services(chance, _PODS), pool("default", *_ANY_OF_C_M_R, _TO_ORDER), *_DAEMONS)
    )


def _spot(chance: random.Random) -> Problem:
    """Both capacity types and architectures."""
    own = pool("default", *_ANY_OF_C_M_R[:2], needs(CAPACITY_TYPE, "In", ON_DEMAND, SPOT))
    return bought_from(snapshot(_services(chance, 80), own, *_DAEMONS))


def _rest_room(chance: random.Random) -> Problem:
    """Nodes that are there have room left."""
    there = [
        node(f"n{index}", cpu=chance.choice(("1", "2", "3500m")), memory=chance.choice(("2Gi", "7Gi")))
        for index in range(chance.randint(1, 5))
    ]
    own = pool("default", *_ANY_OF_C_M_R, _TO_ORDER)
    return bought_from(snapshot(_services(chance, 60), own, there, *_DAEMONS))


def _jobs(chance: random.Random) -> Problem:
    """Odd sizes; every CPU of a family costs the same."""
    shapes = chance.choice((2, 4, 8, 12, 20, 25))
    problem = read_problem(batch_problem(chance.randint(shapes, chance.choice((30, 60, _PODS))), shapes))
    return problem.snapshot, problem.catalog


def _one_workload(chance: random.Random) -> Problem:
    """Replicas of one pod, as when a deployment grows."""
    cpu = 50 * chance.randint(2, 80)
    waiting = pods(chance.randint(1, _PODS), f"{cpu}m", f"{cpu * chance.choice((1, 2, 3, 4, 6, 8))}Mi")
    return bought_from(snapshot(waiting, pool("default", *_ANY_OF_C_M_R, _TO_ORDER), *_DAEMONS))


FAMILIES: dict[str, Callable[[random.Random], Problem]] = {
    "a small team": _small_team,
    "services, also on burstable types": _services_and_burstable,
    "many services": _many_services,
    "services on spot, both architectures": _spot,
    "services beside nodes with room": _rest_room,
    "jobs of odd sizes": _jobs,
    "one workload": _one_workload,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
