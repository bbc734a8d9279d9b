"""Ten families of packing problems, drawn by a seed, in the format that `nodeless solve` reads.

They are of the kinds that clusters have, and of more sizes than anybody could tune to. Instance types and
prices are those of the catalog in `reference_problems`.
"""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.scheduling.made_problems import RATIOS, allowed
from tests.scheduling.problems import FOLDER

Json = dict[str, Any]
Draw = Callable[[random.Random], Json]

#: The catalog that the problems name, a file of `reference_problems`.
CATALOG = "catalogue.json.gz"
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_GPU = "nvidia.com/gpu"
_EVERYWHERE = {"tolerations": [{"operator": "Exists"}]}
_DAEMONS = [
    {"name": "aws-node", "requests": {"cpu": "50m"}, **_EVERYWHERE},
    {"name": "kube-proxy", "requests": {"cpu": "100m"}, **_EVERYWHERE},
    {"name": "agent", "requests": {"cpu": "30m", "memory": "120Mi"}, **_EVERYWHERE},
]
_ROUND_CPU = (100, 150, 200, 250, 500, 500, 750, 1000, 1500, 2000, 4000)


def drawn_problem(family: str, seed: str) -> Json:
    """The problem of a family that a seed draws; the same seed draws the same problem.

    Raises:
        KeyError: there is no such family.
    """
    problem = FAMILIES[family](random.Random(f"{family} {seed}"))
    return {"name": f"{family} {seed}", "catalogue": CATALOG, "daemonSets": _DAEMONS, **problem}


def write_problem(family: str, seed: str, folder: Path) -> Path:
    """The file of a drawn problem, in a folder that has its catalog then, too."""
    shutil.copy(FOLDER / CATALOG, folder)
    path = folder / f"{family} {seed}.json".replace(" ", "-")
    path.write_text(json.dumps(drawn_problem(family, seed)))
    return path


def _pool(
    name: str = "default",
    capacity: tuple[str, ...] = ("on-demand",),
    categories: tuple[str, ...] = ("c", "m", "r"),
    most_cpu: int | None = None,
    architectures: tuple[str, ...] = ("amd64",),
    **more: Any,
) -> Json:
    rules: list[tuple[str, str, tuple[str, ...]]] = [
        ("kubernetes.io/os", "In", ("linux",)),
        ("kubernetes.io/arch", "In", architectures),
        ("karpenter.sh/capacity-type", "In", capacity),
        ("karpenter.k8s.aws/instance-category", "In", categories),
        ("karpenter.k8s.aws/instance-generation", "Gt", ("2",)),
    ]
    if most_cpu is not None:
        rules.append(("karpenter.k8s.aws/instance-cpu", "Lt", (str(most_cpu + 1),)))
    requirements = [allowed(key, operator, *values) for key, operator, values in rules]
    return {"name": name, "requirements": requirements, **more}


def _pods(name: str, count: int, cpu: int, memory: int, **more: Any) -> Json:
    """So many pods: `cpu` in thousandths, `memory` in MiB."""
    return {"name": name, "count": count, "requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}, **more}


def _counts(chance: random.Random, total: int, parts: int) -> list[int]:
    """A total in so many parts of one at least, some of them much larger than others."""
    shares = [chance.paretovariate(1.2) for _ in range(parts)]
    counts = [1 + int((total - parts) * share / sum(shares)) for share in shares]
    counts[0] += total - sum(counts)
    return counts


def _services(chance: random.Random, total: int, number: int, **more: Any) -> list[Json]:
    """Services of round sizes."""
    made = []
    for index, count in enumerate(_counts(chance, total, number)):
        cpu = chance.choice(_ROUND_CPU)
        made.append(_pods(f"service-{index:03}", count, cpu, cpu * chance.choice(RATIOS), **more))
    return made


def _jobs(chance: random.Random, total: int, number: int) -> list[Json]:
    """Jobs of odd sizes."""
    made = []
    for index, count in enumerate(_counts(chance, total, number)):
        cpu = 50 * chance.randint(1, 80)
        made.append(
            _pods(f"job-{index:03}", count, cpu, cpu * chance.choice(RATIOS) + 32 * chance.randrange(32))
        )
    return made


def _selector(name: str) -> Json:
    return {"matchLabels": {"app": name}}


def _spread(name: str, key: str, skew: int = 1) -> Json:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _selector(name),
    }


def _one_workload(chance: random.Random) -> Json:
    """Equal pods, as when one workload grows."""
    cpu = 50 * chance.randint(2, 60)
    memory = cpu * chance.choice((1, 2, 3, 4, 6, 8))
    return {"nodePools": [_pool()], "pods": [_pods("web", chance.randint(200, 3000), cpu, memory)]}


def _diverse_jobs(chance: random.Random) -> Json:
    """Thousands of jobs in hundreds of odd sizes, on spot or on demand."""
    capacity = chance.choice((("on-demand",), ("spot", "on-demand")))
    jobs = _jobs(chance, chance.randint(3000, 10_000), chance.randint(100, 400))
    return {"nodePools": [_pool(capacity=capacity, most_cpu=chance.choice((32, 64, 96)))], "pods": jobs}


def _skewed(chance: random.Random) -> Json:
    """CPU-heavy and memory-heavy pods: packed apart, each wastes half of its nodes."""
    heavy = []
    for index, count in enumerate(_counts(chance, chance.randint(300, 1500), chance.randint(4, 10))):
        heavy.append(_pods(f"cpu-{index}", count, 1000 * chance.randint(1, 8), 512 * chance.randint(1, 4)))
    for index, count in enumerate(_counts(chance, chance.randint(300, 1500), chance.randint(4, 10))):
        heavy.append(_pods(f"memory-{index}", count, 250 * chance.randint(1, 4), 4096 * chance.randint(1, 8)))
    return {"nodePools": [_pool(most_cpu=chance.choice((16, 32, 64)))], "pods": heavy}


def _beside_nodes(chance: random.Random) -> Json:
    """More pods than nodes with room can take."""
    nodes = []
    for index in range(chance.randint(30, 150)):
        kind, cpu, memory = chance.choice((("m5.xlarge", 3920, 14162), ("m5.2xlarge", 7910, 29317)))
        used = chance.uniform(0.3, 0.8)
        own = [{"name": item["name"], "requests": item["requests"], "daemonSet": True} for item in _DAEMONS]
        own.append({"name": "app", **_used(used, cpu - 180, memory - 120)})
        labels = {
            "karpenter.sh/nodepool": "default",
            "karpenter.sh/capacity-type": "on-demand",
            "node.kubernetes.io/instance-type": kind,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            _ZONE: chance.choice(("us-east-1a", "us-east-1b", "us-east-1c")),
        }
        room = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": "58", "ephemeral-storage": "17Gi"}
        nodes.append({"name": f"node-{index:03}", "labels": labels, "allocatable": room, "pods": own})
    jobs = _jobs(chance, chance.randint(800, 2500), chance.randint(20, 60))
    return {"nodePools": [_pool(most_cpu=32)], "existingNodes": nodes, "pods": jobs}


def _used(share: float, cpu: int, memory: int) -> Json:
    return {"requests": {"cpu": f"{int(share * cpu)}m", "memory": f"{int(share * memory)}Mi"}}


def _gpus(chance: random.Random) -> Json:
    """Inference and training beside ordinary services; nodes with GPUs are tainted."""
    taint = {"key": _GPU, "value": "true", "effect": "NoSchedule"}
    made = _services(chance, chance.randint(50, 300), chance.randint(3, 12))
    for index in range(chance.randint(2, 6)):
        number = chance.choice((1, 1, 1, 2, 4, 8))
        cpu = number * 500 * chance.randint(2, 20)
        pod = _pods(f"gpu-{index}", chance.randint(2, 60 // number), cpu, cpu * chance.choice((2, 4)))
        pod["requests"][_GPU] = str(number)
        pod["tolerations"] = [{"key": _GPU, "operator": "Exists"}]
        if number == 1 and chance.random() < 0.5:
            kind = chance.choice(("a10g", "l4", "t4"))
            pod["nodeSelector"] = {"karpenter.k8s.aws/instance-gpu-name": kind}
            pod["requests"] |= {"cpu": f"{min(cpu, 6000)}m", "memory": f"{min(cpu, 6000) * 2}Mi"}
        made.append(pod)
    return {
        "nodePools": [_pool(), _pool("gpu", categories=("g", "p"), weight=10, taints=[taint])],
        "pods": made,
    }


def _limited_pool(chance: random.Random) -> Json:
    """A pool of spot nodes that is tried first and is too small for all; the rest goes to another."""
    cpu = 50 * chance.randint(2, 12)
    capped = _pool(
        "capped", ("spot",), most_cpu=32, weight=50, limits={"cpu": str(cpu), "memory": f"{4 * cpu}Gi"}
    )
    pods = _services(chance, chance.randint(500, 2000), chance.randint(15, 50))
    return {"nodePools": [capped, _pool("overflow", most_cpu=32)], "pods": pods}


def _spread_apps(chance: random.Random) -> Json:
    """Workloads that are spread over zones or hosts, or run one to a host, and some without a rule."""
    made = _services(chance, chance.randint(50, 300), chance.randint(1, 6))
    for index in range(chance.randint(4, 14)):
        name, cpu = f"app-{index:02}", chance.choice(_ROUND_CPU[1:9])
        rule: Json = {"topologySpreadConstraints": [_spread(name, _ZONE)]}
        most = 60
        kind = chance.choice(("zones", "zones", "apart", "hosts"))
        if kind == "apart":
            rule["podAntiAffinity"] = [{"topologyKey": _HOST, "labelSelector": _selector(name)}]
            most = 40
        elif kind == "hosts":
            rule = {"topologySpreadConstraints": [_spread(name, _HOST, chance.randint(1, 4))]}
        memory = cpu * chance.choice((1, 2, 4))
        made.append(_pods(name, chance.randint(3, most), cpu, memory, labels={"app": name}, **rule))
    capacity = chance.choice((("on-demand",), ("spot", "on-demand")))
    return {"nodePools": [_pool(capacity=capacity)], "pods": made}


def _teams(chance: random.Random) -> Json:
    """A tainted pool for each team, and one for all."""
    pools, pods = [_pool(most_cpu=32)], _services(chance, chance.randint(100, 500), chance.randint(3, 12))
    for team in ("blue", "green", "red")[: chance.randint(1, 3)]:
        taint = {"key": "team", "value": team, "effect": "NoSchedule"}
        pools.append(_pool(team, most_cpu=16, weight=20, labels={"team": team}, taints=[taint]))
        own = {
            "tolerations": [{"key": "team", "operator": "Equal", "value": team}],
            "nodeSelector": {"team": team},
        }
        services = _services(chance, chance.randint(20, 200), chance.randint(1, 6), **own)
        pods += [{**pod, "name": f"{team}-{pod['name']}"} for pod in services]
    return {"nodePools": pools, "pods": pods}


def _small_team(chance: random.Random) -> Json:
    """A few dozen pods of a few services."""
    pods = _services(chance, chance.randint(12, 60), chance.randint(4, 12))
    return {
        "nodePools": [_pool(capacity=chance.choice((("on-demand",), ("spot", "on-demand"))))],
        "pods": pods,
    }


def _many_services(chance: random.Random) -> Json:
    """Hundreds of services with a few replicas each, on both architectures."""
    number = chance.randint(80, 300)
    pods = _services(chance, number * chance.randint(3, 8), number)
    return {"nodePools": [_pool(architectures=("amd64", "arm64"))], "pods": pods}


FAMILIES: dict[str, Draw] = {
    "one workload": _one_workload,
    "diverse jobs": _diverse_jobs,
    "skewed pods": _skewed,
    "beside nodes": _beside_nodes,
    "GPUs": _gpus,
    "limited pool": _limited_pool,
    "spread apps": _spread_apps,
    "teams": _teams,
    "small team": _small_team,
    "many services": _many_services,
}
