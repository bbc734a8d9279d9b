"""Clusters for decisions on disruption: nodes with their claims, and pods that run."""

from dataclasses import replace

from nodeless.disruption import DisruptionPolicy, disrupt
from nodeless.model import events
from nodeless.model.disruption import PodDisruptionBudget
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_CLAIM,
    ON_DEMAND,
    OS,
    REGISTERED,
    ZONE,
)
from nodeless.model.nodes import (
    INITIALIZED_CONDITION,
    LAUNCHED,
    REGISTERED_CONDITION,
    Condition,
    Node,
    NodeClaim,
)
from nodeless.model.pods import DaemonSet, Pod
from nodeless.model.pools import PROVISIONER, Pool, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply
from tests.scheduling.factories import FAMILY, NOW, pods, selecting

HOUR = 3600.0
BORN = NOW - HOUR
BY_NAME = {kind.name: kind for kind in FAMILY}


def a_provisioner(name="default", **fields):
    return Pool(
        reference=Reference(PROVISIONER, name),
        node_class=Reference("AWSNodeTemplate", "default"),
        **{"consolidation_enabled": True, "consolidate_after": 0, **fields},
    )


def a_node_pool(name="default", **fields):
    return Pool(
        reference=Reference("NodePool", name),
        node_class=Reference("EC2NodeClass", "default"),
        **{"consolidation_enabled": True, "consolidate_after": 0, **fields},
    )


def node_of(pool, name, kind="large", *, zone="z1", capacity_type=ON_DEMAND, types=None, node=None, **claim):
    """A claim of a pool and its initialized node; `node` changes the one, the other fields the other."""
    type_ = (types or BY_NAME)[kind]
    labels = {
        INSTANCE_TYPE: kind,
        ZONE: zone,
        CAPACITY_TYPE: capacity_type,
        ARCH: "amd64",
        OS: "linux",
        pool.reference.pool_label: pool.name,
        NODE_CLAIM: name,
    }
    conditions = tuple(
        Condition(each, "True", each, "", BORN)
        for each in (LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION)
    )
    made = NodeClaim(
        **{
            "name": name,
            "pool": pool.reference,
            "node_class": pool.node_class,
            "uid": f"uid-{name}",
            "labels": labels,
            "provider_id": f"aws:///{zone}/i-{name}",
            "node_name": f"node-{name}",
            "created_at": BORN,
            "conditions": conditions,
            "capacity": type_.capacity,
            "allocatable": type_.allocatable,
            **claim,
        }
    )
    own = Node(
        **{
            "name": f"node-{name}",
            "uid": f"uid-node-{name}",
            "provider_id": made.provider_id,
            "labels": {**labels, REGISTERED: "true", INITIALIZED: "true"},
            "capacity": type_.capacity,
            "allocatable": type_.allocatable,
            "ready": True,
            "created_at": BORN,
            **(node or {}),
        }
    )
    return [made, own]


def on(name, number=1, cpu="1", memory="1Gi", *, app=None, **fields):
    """Running pods on the node of a claim."""
    made = pods(number, cpu, memory, name=app or f"app-{name}", **fields.pop("shape", {}))
    return [
        replace(
            pod,
            node_name=f"node-{name}",
            unschedulable=False,
            phase="Running",
            created_at=BORN,
            name=f"{pod.name}-{name}",
            uid=f"{pod.uid}-{name}",
            **{"ready": True, "started_at": BORN, **fields},
        )
        for pod in made
    ]


def a_budget(app, allowed=0, name="budget"):
    return PodDisruptionBudget("default", name, selecting(app=app), allowed)


_SEEN = {
    Pod: events.PodSeen,
    Node: events.NodeSeen,
    NodeClaim: events.ClaimSeen,
    Pool: events.PoolSeen,
    PodDisruptionBudget: events.PodDisruptionBudgetSeen,
    DaemonSet: events.DaemonSetSeen,
}


def cluster(*things):
    """A snapshot of things and lists of things, however deep."""
    snapshot = Snapshot()
    for thing in things:
        if isinstance(thing, list | tuple):
            for one in _flat(thing):
                snapshot = apply(snapshot, _SEEN[type(one)](one))
        else:
            snapshot = apply(snapshot, _SEEN[type(thing)](thing))
    return snapshot


def _flat(things):
    return [one for thing in things for one in (_flat(thing) if isinstance(thing, list | tuple) else [thing])]


def decide(snapshot, types=FAMILY, now=NOW, **policy):
    catalog = dict.fromkeys(snapshot.pools, types)
    return disrupt(snapshot, catalog, DisruptionPolicy(**policy), now)


def only_command(decisions):
    (command,) = decisions.commands
    return command
