"""Pods that are hard on a planner and that the API server accepts: manifests, drawn from a seed.

Anybody who may create a pod may write each of them. `hostile_pod` draws one of any kind, `KINDS` names the
kinds one by one. They are plain manifests, so that they can be decoded for a pure solve, applied to a real
API server, or thrown at the running controller.
"""

import json
import random
from collections.abc import Callable
from typing import Any

from nodeless.kube.decoding import decode_pod
from nodeless.model.pods import Pod

Json = dict[str, Any]
Spec = Callable[[random.Random], Json]

_ZONE, _HOST, _TYPE = (
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "node.kubernetes.io/instance-type",
)
_AWS = "karpenter.k8s.aws/instance-"
#: Labels with many values on new nodes, and some that nobody bears.
TOPOLOGY_KEYS = (
    _TYPE,
    _ZONE,
    _HOST,
    "karpenter.sh/capacity-type",
    "kubernetes.io/arch",
    *(_AWS + name for name in ("family", "cpu", "memory", "size", "generation", "network-bandwidth")),
    "example.com/nowhere",
)
_VALUES = (
    "amd64",
    "arm64",
    "spot",
    "on-demand",
    "us-east-1a",
    "us-east-1b",
    "m5",
    "4",
    "16",
    "m5.large",
    "x",
)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def how_many(chance: random.Random, most: int) -> int:
    """1 to `most`, small numbers as likely as large ones."""
    return max(1, round(most ** chance.random()))


def _expression(chance: random.Random, values: int = 20) -> Json:
    operator = chance.choice(_OPERATORS)
    made: Json = {"key": chance.choice((*TOPOLOGY_KEYS, f"example.com/k{chance.randrange(300)}"))}
    made["operator"] = operator
    if operator in ("In", "NotIn"):
        made["values"] = sorted({_value(chance) for _ in range(how_many(chance, values))})
    elif operator in ("Gt", "Lt"):
        made["values"] = [str(chance.randrange(-1, 200))]
    return made


def _value(chance: random.Random) -> str:
    return chance.choice((*_VALUES, f"v{chance.randrange(1000)}"))


def _preferred_value(chance: random.Random) -> str:
    """Preferred node affinity may name what can be no label's value: the API server does not look."""
    odd = ("no label value!", "-", "ü" * 20, "x" * 300, "a/b/c", " ", "$(reboot)", "`id`", "'; x")
    return chance.choice((*odd, _value(chance)))


def _selector(chance: random.Random) -> Json:
    drawn = chance.randrange(4)
    if drawn == 0:
        return {}
    if drawn == 1:
        return {"matchLabels": {"app": f"app-{chance.randrange(20)}"}}
    if drawn == 2:
        return {"matchLabels": {"nobody": f"has-{chance.randrange(1000)}"}}
    operator = chance.choice(("NotIn", "Exists", "DoesNotExist"))
    expression: Json = {"key": f"label-{chance.randrange(50)}", "operator": operator}
    if operator == "NotIn":
        expression["values"] = [f"v{chance.randrange(1000)}"]
    return {"matchExpressions": [expression]}


def _pod_term(chance: random.Random, *keys: str) -> Json:
    made: Json = {"topologyKey": chance.choice(keys or TOPOLOGY_KEYS), "labelSelector": _selector(chance)}
    if chance.random() < 0.3:
        made["namespaceSelector"] = {}
    return made


def _spread(chance: random.Random, key: str, soft: bool) -> Json:
    made: Json = {
        "topologyKey": key,
        "maxSkew": chance.choice((1, 1, 2, 5, 1000)),
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        "labelSelector": _selector(chance),
    }
    if chance.random() < 0.3:
        made["nodeAffinityPolicy"] = chance.choice(("Honor", "Ignore"))
        made["nodeTaintsPolicy"] = chance.choice(("Honor", "Ignore"))
    if not soft and chance.random() < 0.2:
        made["minDomains"] = chance.choice((2, 5, 1000))
    return made


def _spreads(chance: random.Random, most: int) -> list[Json]:
    # The API server takes each pair of key and strictness once.
    pairs = {(chance.choice(TOPOLOGY_KEYS), chance.random() < 0.6) for _ in range(how_many(chance, most))}
    return [_spread(chance, key, soft) for key, soft in sorted(pairs)]


def spread_and_lonely(chance: random.Random) -> Json:
    """A soft spread over many domains, and affinity on the hostname to pods that do not exist."""
    soft = [_spread(chance, key, True) for key in sorted({_TYPE, chance.choice(TOPOLOGY_KEYS)})]
    wanted = {"matchLabels": {"nobody": f"has-{chance.randrange(1000)}"}}
    near = [{"topologyKey": chance.choice((_HOST, _HOST, _TYPE, _ZONE)), "labelSelector": wanted}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}
    return {"topologySpreadConstraints": soft, "affinity": affinity}


def many_spreads(chance: random.Random) -> Json:
    """Spread over several labels at once, so that the domains multiply."""
    return {"topologySpreadConstraints": _spreads(chance, 16)}


def many_wishes(chance: random.Random) -> Json:
    """Preferred node affinity without end."""
    terms = [
        {
            "weight": chance.randrange(1, 101),
            "preference": {"matchExpressions": [_expression(chance) for _ in range(how_many(chance, 8))]},
        }
        for _ in range(how_many(chance, 400))
    ]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def many_alternatives(chance: random.Random) -> Json:
    """Required node affinity with very many terms, and wishes that each of them is tried with."""
    terms = [
        {"matchExpressions": [_expression(chance) for _ in range(how_many(chance, 6))]}
        for _ in range(how_many(chance, 600))
    ]
    node: Json = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    affinity = {"nodeAffinity": node}
    if chance.random() < 0.5:
        node |= many_wishes(chance)["affinity"]["nodeAffinity"]
    return {"affinity": affinity}


def many_absent_labels(chance: random.Random) -> Json:
    """One required term with more expressions than a NodeClaim may have requirements."""
    number = chance.choice((90, 105, 250, 1500))
    expressions = [{"key": f"example.com/no-{each}", "operator": "DoesNotExist"} for each in range(number)]
    terms = [{"matchExpressions": expressions}]
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": node}}


def odd_values(chance: random.Random) -> Json:
    """Preferred values that no label can have."""
    values = sorted({_preferred_value(chance) for _ in range(how_many(chance, 6))})
    key = chance.choice((_ZONE, _TYPE, "kubernetes.io/arch", "example.com/team"))
    preference = {
        "matchExpressions": [{"key": key, "operator": chance.choice(("In", "NotIn")), "values": values}]
    }
    terms = [{"weight": 100, "preference": preference}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def many_neighbors(chance: random.Random) -> Json:
    """Pod affinity and anti-affinity, required and preferred, with selectors that select everybody."""
    affinity: Json = {}
    for name in ("podAffinity", "podAntiAffinity"):
        if chance.random() < 0.8:
            affinity[name] = {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": chance.randrange(1, 101), "podAffinityTerm": _pod_term(chance)}
                    for _ in range(how_many(chance, 60))
                ]
            }
    if chance.random() < 0.5:
        name = chance.choice(("podAffinity", "podAntiAffinity"))
        required = [_pod_term(chance) for _ in range(how_many(chance, 12))]
        affinity.setdefault(name, {})["requiredDuringSchedulingIgnoredDuringExecution"] = required
    return {"affinity": affinity}


def everything(chance: random.Random) -> Json:
    """All of it in one pod."""
    made = many_neighbors(chance)
    made["affinity"] |= chance.choice((many_wishes, many_alternatives, odd_values))(chance)["affinity"]
    made["topologySpreadConstraints"] = _spreads(chance, 12)
    return made


def many_ports(chance: random.Random) -> Json:
    """Host ports by the hundred."""
    first = chance.randrange(1, 60000)
    ports = [
        {"containerPort": first + each, "hostPort": first + each} for each in range(how_many(chance, 500))
    ]
    return {"containers": [{"name": "c", "image": "i", "ports": ports}]}


KINDS: dict[str, Spec] = {
    made.__name__: made
    for made in (
        spread_and_lonely,
        many_spreads,
        many_wishes,
        many_alternatives,
        many_absent_labels,
        odd_values,
        many_neighbors,
        everything,
        many_ports,
    )
}


def hostile_pod(
    chance: random.Random, name: str, namespace: str = "hostile", kind: str | None = None
) -> Json:
    """A pod of one kind (None: any), small enough for a node unless its kind says otherwise."""
    spec = KINDS[kind or chance.choice(tuple(KINDS))](chance)
    spec.setdefault("containers", [{"name": "c", "image": "i"}])
    cpu = f"{chance.choice((10, 100, 500, 1500))}m"
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    labels = {
        f"label-{chance.randrange(50)}": f"v{chance.randrange(20)}",
        "app": f"app-{chance.randrange(20)}",
    }
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def pending(manifest: Json) -> Pod:
    """The pod as the controller reads it once the scheduler has found no node."""
    metadata = manifest["metadata"] | {
        "uid": f"{manifest['metadata']['namespace']}-{manifest['metadata']['name']}"
    }
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    document = manifest | {"metadata": metadata, "status": {"conditions": [condition]}}
    return decode_pod(json.dumps(document).encode())
