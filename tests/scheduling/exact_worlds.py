"""Worlds of at most twelve pods, drawn at random: rules over nodes, zones, capacity types, a custom label."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from nodeless.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    ON_DEMAND,
    PROVISIONER_NAME,
    REGISTERED,
    SPOT,
    ZONE,
)
from nodeless.model.nodes import NodeClaim
from nodeless.model.pods import HostPort, NodeSelectorTerm, Pod
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.model.volumes import PersistentVolumeClaim, Volume
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE
from tests.scheduling.factories import (
    beside,
    claim,
    instance_type,
    needs,
    node,
    pods,
    pool,
    running,
    snapshot,
    spread,
    term,
)

RACK = "example.com/rack"
TYPES = (
    instance_type("one", 1, 4, price=0.06),
    instance_type("two", 2, 8, price=0.1),
    instance_type("lean", 4, 4, price=0.16),
    instance_type("four", 4, 16, price=0.22),
    instance_type("eight", 8, 32, price=0.4),
    instance_type("sixteen", 16, 64, price=0.9),
    instance_type("huge", 64, 256, price=3.4),
)
ZONES = ("z1", "z2", "z3")
NAMES = ("a", "b", "c", "d")
#: Pods of one drawn world at most.
MOST_PODS = 12
_SIZES = ("50m", "100m", "500m", "1", "1500m", "3", "6", "7900m", "15", "30", "60")
_KEYS = (HOSTNAME, HOSTNAME, ZONE, ZONE, ZONE, CAPACITY_TYPE, RACK)
_LIMITS = (None, None, None, {"cpu": "9"}, {"cpu": "20"}, {"cpu": "130"}, {"nodes": "2"})
_REQUIRED = (
    *[()] * 6,
    (term(needs(ZONE, "In", "z1", "z2")),),
    (term(needs(ZONE, "NotIn", "z1")),),
    (term(needs(CAPACITY_TYPE, "In", SPOT)), term(needs(ZONE, "In", "z3"))),
    (term(needs(CAPACITY_TYPE, "In", ON_DEMAND)),),
    (term(needs(RACK, "NotIn", "r1")),),
)


def drawn(seed: int) -> tuple[Snapshot, str]:
    """The world of a seed, and how its pools are packed."""
    chance = Random(seed)
    pools = _pools(chance)
    keys = _KEYS if any(RACK in own.requirements for own in pools) else _KEYS[:-1]
    workloads = [_workload(chance, index, keys) for index in range(chance.randint(1, len(NAMES)))]
    waiting: list[Pod] = []
    volumes: list[Volume | PersistentVolumeClaim] = []
    for some, zone in workloads:
        waiting += some[: MOST_PODS - len(waiting)]
        if zone:
            volumes += disk(some[0].shape.claims[0], zone)
    things = [waiting, pools, volumes, _nodes(chance, workloads), _claims(chance, pools)]
    return snapshot(*things), chance.choice([FEWEST_NODES, LOWEST_PRICE])


def _pools(chance: Random) -> list[Pool]:
    racks = chance.choice([[], [needs(RACK, "In", "r1")], [needs(RACK, "In", "r1", "r2")]])
    narrowed = chance.choice([[], [needs(ZONE, "In", "z1", "z3")], [needs(CAPACITY_TYPE, "In", ON_DEMAND)]])
    first = pool("first", *racks, weight=chance.choice([0, 0, 0, 5]), limits=chance.choice(_LIMITS))
    second = pool("second", *narrowed, limits=chance.choice(_LIMITS))
    return chance.choice([[first], [first], [first, second], [second]])


def _workload(chance: Random, index: int, keys: Sequence[str]) -> tuple[list[Pod], str | None]:
    """Pods of one workload, which spreads its own, and the zone that their volume is in."""
    name, known = NAMES[index], NAMES[: index + 1]
    fields: dict[str, object] = {}
    if chance.random() < 0.4:
        fields["spread"] = (
            spread(
                chance.choice(keys),
                name,
                chance.choice([1, 1, 2]),
                min_domains=chance.choice([None, None, None, 2, 3]),
                node_affinity_policy=chance.choice(["Honor", "Honor", "Ignore"]),
            ),
        )
    if chance.random() < 0.35:
        fields["affinity"] = (beside(chance.choice(keys), chance.choice(known)),)
    if chance.random() < 0.3:
        fields["anti_affinity"] = (beside(chance.choice(keys), chance.choice(NAMES)),)
    zone = chance.choice([None] * 7 + ["z1", "z3"])
    if zone:
        fields["claims"] = (f"disk-{name}",)
    if chance.random() < 0.1:
        fields["host_ports"] = (HostPort("", 80, "TCP"),)
    return (
        pods(
            chance.randint(1, 5),
            chance.choice(_SIZES),
            chance.choice(["0", "0", "1Gi", "3Gi", "14Gi"]),
            name=name,
            required_terms=chance.choice(_REQUIRED),
            **fields,
        ),
        zone,
    )


def disk(name: str, zone: str) -> list[Volume | PersistentVolumeClaim]:
    """A volume that one zone reaches, and its claim."""
    reach = (NodeSelectorTerm((needs(ZONE, "In", zone),)),)
    return [
        Volume(f"pv-{name}", terms=reach),
        PersistentVolumeClaim("default", name, volume_name=f"pv-{name}", bound=True, phase="Bound"),
    ]


def _nodes(chance: Random, workloads: list[tuple[list[Pod], str | None]]) -> list[object]:
    """Nodes that are there, some with a small pod of a workload."""
    things: list[object] = []
    for index in range(chance.choice([0, 0, 1, 2, 3])):
        zone = chance.choice(ZONES)
        sold = [ON_DEMAND] if zone == "z3" else [ON_DEMAND, SPOT]
        labels = {
            ZONE: zone,
            CAPACITY_TYPE: chance.choice(sold),
            PROVISIONER_NAME: "first",
            INITIALIZED: "true",
            REGISTERED: "true",
        }
        if chance.random() < 0.3:
            labels[RACK] = chance.choice(["r1", "r2"])
        name = f"n{index}"
        cpu = chance.choice(["1", "3", "8", "16"])
        things.append(node(name, cpu=cpu, labels=labels, provider_id=""))
        if chance.random() < 0.4:
            some, _ = chance.choice(workloads)
            small = replace(some[0].shape, requests=(("cpu", 100), ("pods", 1)), host_ports=(), claims=())
            things.append(
                running(replace(some[0], uid=f"old-{index}", name=f"old-{index}", shape=small), name)
            )
    return things


def _claims(chance: Random, pools: list[Pool]) -> list[NodeClaim]:
    """Claims that are on their way, each to one type in one zone."""
    made = []
    for index in range(chance.choice([0, 0, 0, 1, 2])):
        kind, zone = chance.choice(TYPES), chance.choice(["z1", "z2"])
        own = chance.choice(pools)
        bought = {ZONE: zone, CAPACITY_TYPE: chance.choice([ON_DEMAND, SPOT])}
        racks = own.requirements.get(RACK)
        if racks is not None:
            bought[RACK] = chance.choice(sorted(racks.values))
        if not own.requirements.satisfied_by({**bought, RACK: bought.get(RACK, "")} if racks else bought):
            continue
        requirements = [needs(key, "In", value) for key, value in bought.items()]
        launched = (
            {
                "provider_id": f"aws:///{zone}/i-c{index}",
                "labels": {**kind.requirements.single_values(), **bought, PROVISIONER_NAME: own.name},
                "capacity": kind.capacity,
                "allocatable": kind.allocatable,
            }
            if chance.random() < 0.5
            else {"labels": {PROVISIONER_NAME: own.name}}
        )
        made.append(
            claim(
                f"c{index}",
                pool_name=own.name,
                requirements=Requirements([*requirements, needs(INSTANCE_TYPE, "In", kind.name)]),
                created_at=1_700_000_000.0 - 10,
                **launched,
            )
        )
    return made
