# ruff: noqa: T201 - prints its figures
"""Half of a load leaves: what the cluster costs in the quarter of an hour after that, on virtual time.

Deployments are drawn as `bench.peer` draws them, planned at the bundled prices of us-east-1, and half of the
pods of each are taken away, where a ReplicaSet takes them: from the node that has most of them. Then commands
are carried out one after the other: validated for 15 s, with replacements that boot for 32 s beside what they
replace, and the nodes quiet for 10 s before the next search. Beside ours stand Karpenter's packing and what
v0.27's rules do with it (`tests/disruption/rules_of_v27.py`).

Run: python -m bench.shrinking [NUMBER] [SEED] [PODS]   (`make bench` does, with 20 clusters of 100 and 200
pods, and a seed of its own). It prints, for all together, the price at the end, what was paid, how many pods
were evicted, and the seconds of the processor for our searches.
"""

import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.peer.workloads import draw_mixed
from bench.proofs import CATEGORY, GENERATION, bought_from
from nodeless.disruption import CommandHistory, DisruptionPolicy, Searches, disrupt
from nodeless.model.disruption import Command, Decisions
from nodeless.model.events import PodGone
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import ARCH, CAPACITY_TYPE, ON_DEMAND
from nodeless.model.pods import Pod
from nodeless.model.requirements import Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import FEWEST_NODES, Policy
from nodeless.state import apply
from tests.disruption.replay import NOW, carried_out, price_of
from tests.disruption.rules_of_v27 import consolidate
from tests.disruption.world import a_node_pool, cluster
from tests.scheduling.factories import needs, pods

_SPAN = 900.0
#: Seconds from the last change to a search, of validation, of a boot, and of a drain alone.
_QUIET, _VALIDATION, _BOOT, _DRAIN = 10.0, 15.0, 32.0, 3.0
#: How long the nodes have run when the load leaves: as in `bench.peer`.
_AGE = 120.0
_POOL = a_node_pool(
    requirements=Requirements(
        [
            needs(CAPACITY_TYPE, "In", ON_DEMAND),
            needs(ARCH, "In", "amd64"),
            needs(CATEGORY, "In", "c", "m", "r"),
            needs(GENERATION, "Gt", "2"),
        ]
    )
)

Types = tuple[InstanceType, ...]
Decide = Callable[[Snapshot, float], Decisions]


@dataclass(slots=True)
class Figures:
    """Of one cluster or of several together."""

    before: float = 0.0
    """USD an hour when the load leaves."""
    end: float = 0.0
    """The same when nothing is left to do, or the time is over."""
    dollars: float = 0.0
    evictions: int = 0
    processor: float = 0.0
    """Seconds for searches."""

    def add(self, other: "Figures") -> None:
        """Count another cluster in."""
        self.before += other.before
        self.end += other.end
        self.dollars += other.dollars
        self.evictions += other.evictions
        self.processor += other.processor


def main(arguments: list[str]) -> None:
    number = int(arguments[0]) if arguments else 20
    seed = int(arguments[1]) if len(arguments) > 1 else random.randrange(1_000_000)
    sizes = [int(arguments[2])] if len(arguments) > 2 else [100, 200]
    types = bought_from(cluster(_POOL))[1][_POOL.key]
    for size in sizes:
        ours, theirs = Figures(), Figures()
        for each in range(number):
            waiting = _drawn(seed + each, size)
            ours.add(_lived(waiting, types, Policy(), _nodeless(types)))
            rules = Policy(packing=FEWEST_NODES)
            theirs.add(_lived(waiting, types, rules, lambda seen, now: consolidate(seen, types, now)))
        print(f"half of about {size} pods leave {number} clusters, seed {seed}; {_SPAN / 60:.0f} minutes")
        for name, of in (("nodeless", ours), ("Karpenter's packing, rules of v0.27", theirs)):
            print(
                f"  {name:36} {of.before:8.2f} -> {of.end:7.2f} USD/h, {of.dollars:8.3f} USD paid, "
                f"{of.evictions:5} evictions, {of.processor:7.1f} s of the processor"
            )


def _drawn(seed: int, size: int) -> Snapshot:
    """The pool, and pods that wait."""
    made: list[Any] = [_POOL]
    for deployment in draw_mixed(random.Random(seed), size):
        spec = deployment["spec"]
        requests = spec["template"]["spec"]["containers"][0]["resources"]["requests"]
        name = deployment["metadata"]["name"]
        made += pods(spec["replicas"], requests["cpu"], requests["memory"], name=name)
    waiting: Snapshot = cluster(made)
    return waiting


def _nodeless(types: Types) -> Decide:
    searches = Searches()

    def decide(seen: Snapshot, now: float) -> Decisions:
        return disrupt(
            seen, dict.fromkeys(seen.pools, types), DisruptionPolicy(), now, CommandHistory(), searches
        )

    return decide


def _lived(waiting: Snapshot, types: Types, packing: Policy, decide: Decide) -> Figures:
    """A cluster from the moment at which half of its load leaves."""
    figures = Figures()
    seen = carried_out(waiting, Decisions(), types, policy=packing, born=NOW - _AGE, intended=True)
    figures.before = price_of(seen, types)
    seen = _halved(seen)
    clock = 0.0

    def pass_time(seconds: float, price: float) -> None:
        nonlocal clock
        seconds = min(seconds, _SPAN - clock)
        clock += seconds
        figures.dollars += price * seconds / 3600

    pass_time(_QUIET, figures.before)
    while clock < _SPAN:
        price = price_of(seen, types)
        begun = time.process_time()
        decisions = decide(seen, NOW + clock)
        figures.processor += time.process_time() - begun
        if not decisions.commands:
            pass_time(max(decisions.again_at - NOW - clock, 1.0), price)
            continue
        command = decisions.commands[0]
        figures.evictions += command.evictions
        pass_time(_VALIDATION, price)
        born = NOW + clock
        pass_time(_BOOT if command.replacements else _DRAIN, price + _price_of_new(command))
        seen = carried_out(
            seen, Decisions((command,)), types, NOW + clock, policy=packing, born=born, intended=True
        )
        pass_time(_QUIET, price_of(seen, types))
    figures.end = price_of(seen, types)
    return figures


def _price_of_new(command: Command) -> float:
    return sum(node.price for node in command.replacements)


def _halved(seen: Snapshot) -> Snapshot:
    """Without half of each Deployment's pods."""
    deployments: dict[str, list[Pod]] = defaultdict(list)
    for pod in seen.pods.values():
        deployments[pod.name.rpartition("-")[0]].append(pod)
    for _, mine in sorted(deployments.items()):
        for _ in range(len(mine) - len(mine) // 2):
            crowd = Counter(pod.node_name for pod in mine)
            gone = max(mine, key=lambda pod: (crowd[pod.node_name], pod.key))
            mine.remove(gone)
            seen = apply(seen, PodGone(gone.key))
    return seen


if __name__ == "__main__":
    main(sys.argv[1:])
