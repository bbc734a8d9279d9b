"""Batches in which an honest tenant's pods wait beside hostile ones, over every type that EC2 sells."""

import random
from dataclasses import dataclass, replace
from functools import cache

from immutables import Map

from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from nodeless.model.nodes import Node
from nodeless.model.pods import Pod
from nodeless.model.pools import NodeClass, Pool
from nodeless.model.snapshot import Snapshot
from tests.hostile_pods import KINDS, hostile_pod, how_many, pending
from tests.scheduling.factories import NOW, beside, needs, node, pods, pool, running, snapshot, spread

HONEST = "honest"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@cache
def every_type() -> tuple[InstanceType, ...]:
    """What a pool without requirements may buy in a region."""
    anyone = pool()
    classes = Map({str(anyone.node_class): NodeClass(anyone.node_class)})
    seen = replace(snapshot(anyone), node_classes=classes)
    catalogs, problems = offline_catalogs(bundled_catalog().with_spot_percent(40), seen, ZONES)
    assert not problems
    return catalogs[anyone.key]


@dataclass(frozen=True, slots=True)
class Batch:
    """What one pass sees; `alone`: the same without the hostile pods."""

    kind: str
    honest: tuple[Pod, ...]
    hostile: tuple[Pod, ...]
    rest: tuple[Pool | Node | Pod, ...]

    @property
    def seen(self) -> Snapshot:
        return snapshot([*self.honest, *self.hostile, *self.rest])

    @property
    def alone(self) -> Snapshot:
        return snapshot([*self.honest, *self.rest])


def honest_pods(chance: random.Random, workloads: int) -> list[Pod]:
    """Deployments: many plain ones, some spread over zones, a few whose pods keep apart."""
    made: list[Pod] = []
    for number in range(workloads):
        name, drawn = f"shop-{number}", chance.random()
        fields: dict[str, object] = {}
        if drawn < 0.35:
            fields["spread"] = (spread(ZONE, name, soft=chance.random() < 0.5),)
        elif drawn < 0.45:
            fields["anti_affinity"] = (beside(HOSTNAME, name),)
        elif drawn < 0.55:
            fields["anti_affinity"] = (beside(HOSTNAME, name, weight=100),)
        cpu, memory = chance.choice(("100m", "250m", "1", "2")), chance.choice(("128Mi", "1Gi", "4Gi"))
        made += pods(how_many(chance, 30), cpu, memory, name=name, namespace=HONEST, **fields)
    return made


def batch(seed: object, most: int = 5000, kind: str | None = None) -> Batch:
    """The batch of a seed: an honest tenant, up to `most` hostile pods of one kind or of all, some nodes."""
    chance = random.Random(f"hostile batch {seed}")
    kind = kind or chance.choice((*KINDS, "all", "all"))
    number = how_many(chance, most)
    alike = chance.random() < 0.3
    hostile = [_hostile(chance, each, kind) for each in range(1 if alike else number)]
    if alike:
        hostile = [replace(hostile[0], name=f"h-{each}", uid=f"h-{each}") for each in range(number)]
    rest: list[Pool | Node | Pod] = [pool("default")]
    if chance.random() < 0.5:
        rest.append(pool("spot", needs(CAPACITY_TYPE, "In", SPOT), weight=10))
    for each in range(how_many(chance, 300) if chance.random() < 0.5 else 0):
        rest += _node(chance, f"node-{each}")
    return Batch(kind, tuple(honest_pods(chance, 40)), tuple(hostile), tuple(rest))


def _hostile(chance: random.Random, number: int, kind: str) -> Pod:
    made = pending(hostile_pod(chance, f"h-{number}", kind=None if kind == "all" else kind))
    return replace(made, created_at=NOW - 10_000)


def _node(chance: random.Random, name: str) -> list[Node | Pod]:
    """A node nearly full, with a pod of the honest tenant."""
    labels = {
        "karpenter.sh/provisioner-name": "default",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/registered": "true",
        HOSTNAME: name,
        ZONE: chance.choice(ZONES),
        INSTANCE_TYPE: chance.choice(("m5.xlarge", "c5.xlarge", "r6g.xlarge")),
        CAPACITY_TYPE: chance.choice((SPOT, ON_DEMAND)),
    }
    bound = pods(1, "3", "4Gi", name=f"on-{name}", namespace=HONEST)[0]
    return [node(name, "4", "16Gi", labels=labels), running(bound, name)]
