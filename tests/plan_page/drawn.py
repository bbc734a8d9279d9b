"""Plans of drawn clusters: many sizes, pools, zones, existing nodes, pods without a place, long names."""

from dataclasses import replace
from random import Random
from typing import Any

from nodeless.explain.decisions import Situation
from nodeless.explain.report import Report, report
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INITIALIZED,
    INSTANCE_TYPE,
    OS,
    PROVISIONER_NAME,
    REGISTERED,
    ZONE,
)
from nodeless.model.nodes import Node
from nodeless.model.pods import Owner, Pod
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling import Policy
from tests.scheduling.factories import NOW, daemon, needs, node, pods, pool, snapshot

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
#: Processors, memory in GiB, US dollars an hour: as large as they come, beside small ones.
SIZES = {
    "c6a.large": (2, 4, 0.0765),
    "m5a.xlarge": (4, 16, 0.172),
    "r5a.xlarge": (4, 32, 0.226),
    "m6a.2xlarge": (8, 32, 0.3456),
    "c6a.4xlarge": (16, 32, 0.612),
    "m7i-flex.8xlarge": (32, 128, 1.5322),
    "r6a.24xlarge": (96, 768, 5.4432),
}
POOLS = (
    "general",
    "batch",
    "memory",
    "front",
    "a-team-with-a-name-that-is-as-long-as-names-of-teams-can-become",
)
LARGE, SMALL = ("r5a.xlarge", "r6a.24xlarge"), ("c6a.large", "m5a.xlarge")
REQUESTS = (("250m", "512Mi"), ("1", "2Gi"), ("1900m", "3Gi"), ("3", "24Gi"), ("6", "12Gi"))
WORDS = (
    "web",
    "api",
    "search",
    "cart",
    "mail",
    "index",
    "report",
    "cache",
    "queue",
    "worker",
    "ledger",
    "graph",
)


def _type(name: str) -> InstanceType:
    cpu, gib, price = SIZES[name]
    return InstanceType(
        name=name,
        requirements=Requirements(
            [
                needs(INSTANCE_TYPE, "In", name),
                needs(ARCH, "In", "amd64"),
                needs(OS, "In", "linux"),
                needs(ZONE, "In", *ZONES),
                needs(CAPACITY_TYPE, "In", "spot", "on-demand"),
            ]
        ),
        capacity={"cpu": 1000 * cpu, "memory": gib * 2**30, "pods": 58},
        overhead={"cpu": 80, "memory": 2**29},
        offerings=tuple(
            Offering(zone, kind, round(price * (0.4 if kind == "spot" else 1), 4))
            for zone in ZONES
            for kind in ("spot", "on-demand")
        ),
    )


TYPES = tuple(map(_type, SIZES))


def drawn(number: int, seed: int = 0) -> Report:
    """The report on a plan for so many pods, some of which run already and some of which have no place."""
    chance = Random(seed)
    pools, waiting = _pools(), _waiting(chance, number)
    nodes, running = _existing(chance, waiting)
    daemons = [daemon("agent", "100m", "200Mi"), daemon("logs", "50m", "100Mi")]
    seen = snapshot(pools, waiting, nodes, running, daemons)
    policy = Policy(time_box=0.5, deadline=2.0)
    situation = Situation(seen, dict.fromkeys(seen.pools, TYPES), policy, NOW)
    notes = ("prices of a drawn catalog", "spot is assumed to cost 40 % of on-demand")
    return report(situation, situation.plan(), notes)


def _pools() -> list[Pool]:
    spot, on_demand = (needs(CAPACITY_TYPE, "In", name) for name in ("spot", "on-demand"))
    large, small = (needs(INSTANCE_TYPE, "In", *names) for names in (LARGE, SMALL))
    tainted = (Taint("batch", "NoSchedule", "yes"),)
    return [
        pool("general", labels={"team": "general"}),
        pool("batch", spot, labels={"team": "batch"}, taints=tainted),
        pool("memory", large, labels={"team": "memory"}),
        pool("front", small, labels={"team": "front"}),
        pool(POOLS[-1], on_demand, labels={"team": "long"}),
    ]


def _waiting(chance: Random, number: int) -> list[Pod]:
    made: list[Pod] = []
    while len(made) < number:
        name = f"{chance.choice(WORDS)}-{len(made)}"
        if chance.random() < 0.1:
            name += "-of-a-service-whose-name-somebody-made-as-long-as-kubernetes-allows-it"
        replicas = min(number - len(made), chance.randint(1, max(2, number // 40)))
        namespace = chance.choice(("shop", "billing", "data"))
        own = pods(replicas, *chance.choice(REQUESTS), name=name, namespace=namespace, **_wanted(chance))
        owner = Owner("apps/v1", chance.choice(("Deployment", "StatefulSet")), name, controller=True)
        made += [replace(pod, owners=(owner,)) for pod in own]
    return made


def _wanted(chance: Random) -> dict[str, Any]:
    """Where pods of a workload may be: in a pool, in a zone, where nothing is."""
    kind = chance.random()
    if kind < 0.2:
        tolerated = (Toleration("batch", "Exists"),) if kind < 0.12 else ()
        return {"selector": {"team": "batch"}, "tolerations": tolerated}
    if kind < 0.26:
        return {"selector": {"disk": f"{chance.choice(WORDS)}-ssd"}}
    zone = {ZONE: chance.choice(ZONES)} if kind < 0.5 else {}
    return {"selector": {"team": chance.choice(("general", "memory", "front", "long")), **zone}}


def _existing(chance: Random, waiting: list[Pod]) -> tuple[list[Node], list[Pod]]:
    nodes, running = [], []
    for number in range(max(2, len(waiting) // 60)):
        name = f"ip-10-0-{number}-17.us-east-1.compute.internal"
        chosen = chance.choice(TYPES[1:])
        labels = {
            PROVISIONER_NAME: chance.choice(POOLS[:4]),
            INITIALIZED: "true",
            REGISTERED: "true",
            ZONE: chance.choice(ZONES),
            ARCH: "amd64",
            OS: "linux",
            INSTANCE_TYPE: chosen.name,
            CAPACITY_TYPE: "on-demand",
        }
        nodes.append(node(name, labels=labels, allocatable=chosen.allocatable, capacity=chosen.capacity))
        for index in range(chance.randint(0, 5)):
            (pod,) = pods(1, "400m", "1Gi", name=f"old-{number}-{index}", namespace="shop")
            owner = Owner("apps/v1", "Deployment", chance.choice(WORDS), controller=True)
            running.append(
                replace(pod, unschedulable=False, node_name=name, phase="Running", owners=(owner,))
            )
    return nodes, running
