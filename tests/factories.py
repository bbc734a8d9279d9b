"""Model objects with only the field that matters to a test."""

from typing import Any

from nodeless.model.labels import (
    CAPACITY_TYPE,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_CLAIM,
    ON_DEMAND,
    REGISTERED,
    TERMINATION_FINALIZER,
    ZONE,
)
from nodeless.model.nodes import (
    CONSISTENT_STATE_FOUND,
    INITIALIZED_CONDITION,
    LAUNCHED,
    READY,
    REGISTERED_CONDITION,
    Condition,
    Instance,
    Node,
    NodeClaim,
)
from nodeless.model.pods import Owner, Pod, PodShape
from nodeless.model.pools import Pool, Reference

NOW = 1_700_000_000.0
GIB = 1024**3
PROVISIONER = Reference("Provisioner", "default", "pool-uid")
TEMPLATE = Reference("AWSNodeTemplate", "default")
DAEMON = (Owner("apps/v1", "DaemonSet", "aws-node", controller=True),)


def a_pod(name: str = "web-1", **fields: Any) -> Pod:
    requests = fields.pop("requests", {"cpu": 1000})
    shape = fields.pop("shape", None) or PodShape(requests=tuple(sorted({**requests, "pods": 1}.items())))
    return Pod(
        uid=f"uid-{name}", namespace="default", name=name, shape=shape, **{"created_at": NOW, **fields}
    )


def a_pending_pod(name: str = "web-1", **fields: Any) -> Pod:
    return a_pod(name, unschedulable=True, **fields)


def a_pool(**fields: Any) -> Pool:
    return Pool(reference=PROVISIONER, node_class=TEMPLATE, finalizers=(TERMINATION_FINALIZER,), **fields)


def conditions(*types: str, at: float = NOW) -> tuple[Condition, ...]:
    return tuple(Condition(type_, "True", type_, "", at) for type_ in types)


def a_claim(name: str = "default-abcde", **fields: Any) -> NodeClaim:
    return NodeClaim(
        **{
            "name": name,
            "uid": f"uid-{name}",
            "pool": PROVISIONER,
            "node_class": TEMPLATE,
            "created_at": NOW,
            "finalizers": (TERMINATION_FINALIZER,),
            **fields,
        }
    )


def a_launched_claim(name: str = "default-abcde", **fields: Any) -> NodeClaim:
    defaults = {
        "provider_id": f"aws:///us-east-1a/i-{name}",
        "capacity": {"cpu": 2000, "pods": 29},
        "allocatable": {"cpu": 1930, "pods": 29},
        "labels": {INSTANCE_TYPE: "m5.large"},
        "conditions": conditions(LAUNCHED),
    }
    return a_claim(name, **{**defaults, **fields})


def an_initialized_claim(name: str = "default-abcde", **fields: Any) -> NodeClaim:
    defaults = {
        "conditions": conditions(
            LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION, READY, CONSISTENT_STATE_FOUND
        ),
        "node_name": f"node-{name}",
    }
    return a_launched_claim(name, **{**defaults, **fields})


def a_node(claim_name: str = "default-abcde", **fields: Any) -> Node:
    """The node of a claim, registered and initialized."""
    labels = {
        INSTANCE_TYPE: "m5.large",
        ZONE: "us-east-1a",
        CAPACITY_TYPE: ON_DEMAND,
        NODE_CLAIM: claim_name,
        REGISTERED: "true",
        INITIALIZED: "true",
    }
    defaults = {
        "name": f"node-{claim_name}",
        "uid": f"uid-node-{claim_name}",
        "provider_id": f"aws:///us-east-1a/i-{claim_name}",
        "labels": labels,
        "capacity": {"cpu": 2000, "pods": 29},
        "allocatable": {"cpu": 1930, "pods": 29},
        "ready": True,
        "created_at": NOW,
        "finalizers": (TERMINATION_FINALIZER,),
        "owners": (Owner("karpenter.sh/v1", "NodeClaim", claim_name),),
    }
    return Node(**{**defaults, **fields})


def an_instance(claim_name: str = "default-abcde", **fields: Any) -> Instance:
    defaults = {
        "id": f"i-{claim_name}",
        "provider_id": f"aws:///us-east-1a/i-{claim_name}",
        "instance_type": "m5.large",
        "zone": "us-east-1a",
        "capacity_type": ON_DEMAND,
        "state": "running",
        "launched_at": NOW,
        "tags": {NODE_CLAIM: claim_name},
    }
    return Instance(**{**defaults, **fields})
