"""Packing problems of any size, for figures about growth: batch pods in a number of shapes, one pool."""

import random
from typing import Any

#: Gibibytes of memory for each CPU that shapes ask for, compute-heavy to memory-heavy.
RATIOS = (1, 2, 2, 4, 4, 4, 8, 8)
_DAEMONS = {"aws-node": "50m", "kube-proxy": "100m", "ebs-csi-node": "30m"}
#: Families of types: GiB and dollars an hour for each CPU.
_FAMILIES = {"c": (2, 0.0425), "m": (4, 0.048), "r": (8, 0.063)}


def batch_problem(pods: int, shapes: int, catalog: str | None = None) -> dict[str, Any]:
    """A problem with so many pods in so many different shapes; the same arguments make the same problem.

    Args:
        pods: At least one for each shape.
        shapes: No two of them request the same.
        catalog: The file of instance types; None: a small catalog in the problem itself.
    """
    chance = random.Random(f"{pods} in {shapes}")
    requests: dict[tuple[int, int], None] = {}
    while len(requests) < shapes:
        cpu = chance.choice((100, 250, 500, 1000, 2000, 4000)) + 50 * chance.randrange(20)
        requests[cpu, cpu * chance.choice(RATIOS) + 32 * chance.randrange(32)] = None
    shares = [chance.random() + 0.1 for _ in requests]
    counts = [1 + int((pods - shapes) * share / sum(shares)) for share in shares]
    counts[0] += pods - sum(counts)
    return {
        "name": f"{pods} pods in {shapes} shapes",
        **({"catalogue": catalog} if catalog else {"instanceTypes": _types()}),
        "nodePools": [{"name": "default", "requirements": [allowed(*one) for one in _POOL]}],
        "pods": [
            {
                "name": f"job-{number:04}",
                "count": count,
                "requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"},
            }
            for number, ((cpu, memory), count) in enumerate(zip(requests, counts, strict=True))
        ],
        "daemonSets": [
            {"name": name, "requests": {"cpu": cpu}, "tolerations": [{"operator": "Exists"}]}
            for name, cpu in _DAEMONS.items()
        ],
    }


_POOL = (
    ("kubernetes.io/arch", "In", "amd64"),
    ("karpenter.sh/capacity-type", "In", "on-demand"),
    ("karpenter.k8s.aws/instance-category", "In", "c", "m", "r"),
    ("karpenter.k8s.aws/instance-generation", "Gt", "2"),
    ("karpenter.k8s.aws/instance-cpu", "Lt", "97"),
)


def allowed(key: str, operator: str, *values: str) -> dict[str, Any]:
    """One requirement of a pool."""
    return {"key": key, "operator": operator, "values": list(values)}


def _types() -> list[dict[str, Any]]:
    return [
        {
            "name": f"{family}5.{cpu}",
            "capacity": {"cpu": str(cpu), "memory": f"{cpu * ratio}Gi", "pods": "110"},
            "overhead": {"cpu": "100m", "memory": "600Mi"},
            "requirements": {
                "kubernetes.io/arch": ["amd64"],
                "karpenter.k8s.aws/instance-category": [family],
                "karpenter.k8s.aws/instance-generation": ["5"],
                "karpenter.k8s.aws/instance-cpu": [str(cpu)],
            },
            "offerings": [
                {"zone": zone, "capacityType": "on-demand", "price": price * cpu}
                for zone in ("us-east-1a", "us-east-1b")
            ],
        }
        for family, (ratio, price) in _FAMILIES.items()
        for cpu in (2, 4, 8, 16, 32, 48, 64, 96)
    ]
