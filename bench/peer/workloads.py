"""Ten workloads and a rest, drawn from a seed: what is made, changed, interrupted and taken away in turn.

Pure data: both controllers get the very same. The first five begin on an empty cluster, so that none finds
room that an earlier one has paid for; what follows happens to the cluster of the fifth. All pods ask for what
is drawn for them and do nothing; those of the fifth take a drawn time to end, as behind load balancers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

NAMESPACE = "peer"
ZONES = ("us-east-1a", "us-east-1b")
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_IMAGE = "public.ecr.aws/eks-distro/kubernetes/pause:3.2"
#: Requests of real clusters' pods: milli-CPU, and MiB of memory for each milli-CPU.
_CPUS = (50, 100, 100, 250, 250, 500, 500, 1000, 1500, 2000, 4000)
_RATIOS = (1.0, 2.0, 2.0, 4.0, 4.0, 8.0)
_LEAST_MIB = 64
#: Seconds for which the preStop hooks of a Deployment's pods sleep.
_ENDINGS = (0, 0, 5, 10, 15, 20)

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing that happens to a cluster.

    Attributes:
        name: What the table calls it.
        made: Manifests to create.
        scaled: Deployment -> its new number of pods.
        rolled: Deployments whose pods are replaced.
        empty: Whether it begins without pods and without nodes.
        interrupted: Share of the nodes that AWS announces to take down.
        ends: Whether nothing at all is left to run.
    """

    name: str
    made: tuple[Object, ...] = ()
    scaled: Mapping[str, int] = field(default_factory=dict)
    rolled: tuple[str, ...] = ()
    empty: bool = False
    interrupted: float = 0.0
    ends: bool = False


def draw(seed: int, pods: int) -> tuple[Workload, ...]:
    """The ten workloads, and before the last one a rest.

    Args:
        seed: Of what is drawn.
        pods: About how many there are at the most; 40 at least, so that every workload has some.
    """
    chance = random.Random(seed)
    mixed = tuple(_ending_later(seed, each) for each in draw_mixed(chance, pods))
    replicas = {each["metadata"]["name"]: each["spec"]["replicas"] for each in mixed}
    few = max(pods // 20, 2)
    spread, apart = _spread(chance, pods // 2), _apart(chance, few)
    agent, served = _daemon_set(chance), _deployment(chance, "late", pods // 2)
    return (
        Workload("spread and anti-affinity", (spread, apart), empty=True),
        Workload("a DaemonSet, and pods", (agent, served), empty=True),
        Workload("StatefulSets with volumes", tuple(_stateful(chance, few)), empty=True),
        Workload("Jobs", tuple(_jobs(chance, pods // 2)), empty=True),
        Workload("mixed Deployments", mixed, empty=True),
        Workload("half the load leaves", scaled={name: number // 2 for name, number in replicas.items()}),
        Workload("the load returns", scaled=replicas),
        Workload("a third of the nodes interrupted", interrupted=1 / 3),
        Workload("a rollout", rolled=tuple(chance.sample(sorted(replicas), max(len(replicas) // 2, 1)))),
        Workload("nothing happens"),
        Workload("to zero", ends=True),
    )


def draw_mixed(chance: random.Random, pods: int) -> tuple[Object, ...]:
    """Deployments of drawn sizes: about so many pods in a handful of them."""
    number = chance.randint(4, 8)
    cuts = sorted(chance.sample(range(1, max(pods, number + 1)), number - 1))
    sizes = [end - begin for begin, end in zip([0, *cuts], [*cuts, max(pods, number + 1)], strict=True)]
    return tuple(_deployment(chance, f"mixed-{index}", size) for index, size in enumerate(sizes))


def _ending_later(seed: int, deployment: Object) -> Object:
    """The Deployment with pods that take a while to end, drawn apart from everything else."""
    seconds = random.Random(f"{seed} {deployment['metadata']['name']}").choice(_ENDINGS)
    if seconds:
        spec = deployment["spec"]["template"]["spec"]
        spec["terminationGracePeriodSeconds"] = seconds + 10
        for container in spec["containers"]:
            container["lifecycle"] = {"preStop": {"sleep": {"seconds": seconds}}}
    return deployment


def _spread(chance: random.Random, pods: int) -> Object:
    manifest = _deployment(chance, "spread", pods)
    constraint = {
        "maxSkew": 1,
        "topologyKey": _ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    manifest["spec"]["template"]["spec"]["topologySpreadConstraints"] = [constraint]
    return manifest


def _apart(chance: random.Random, pods: int) -> Object:
    manifest = _deployment(chance, "apart", pods)
    term = {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": _HOST}
    manifest["spec"]["template"]["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    return manifest


def _daemon_set(chance: random.Random) -> Object:
    template = _template("agent", {"cpu": f"{chance.choice((50, 100, 200))}m", "memory": "128Mi"})
    selector = {"matchLabels": {"app": "agent"}}
    return _object("apps/v1", "DaemonSet", "agent", {"selector": selector, "template": template})


def _stateful(chance: random.Random, pods: int) -> Iterator[Object]:
    """A StatefulSet, and before it volumes of drawn zones that are kept for its claims."""
    name, claims = "stateful", {"storageClassName": "", "accessModes": ["ReadWriteOnce"]}
    size = {"requests": {"storage": "10Gi"}}
    for index in range(pods):
        zone = chance.choice(ZONES)
        term = {"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{name}-{index}"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": NAMESPACE, "name": f"data-{name}-{index}"},
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{index:017x}"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        }
    manifest = _deployment(chance, name, pods)
    manifest["kind"] = "StatefulSet"
    manifest["spec"] |= {
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {**claims, "resources": size}}],
    }
    yield manifest


def _jobs(chance: random.Random, pods: int) -> Iterator[Object]:
    for index in range(2):
        number = max(pods // 2, 1)
        template = _template(f"job-{index}", _requests(chance))
        template["spec"]["restartPolicy"] = "Never"
        spec = {"parallelism": number, "completions": number, "template": template}
        yield _object("batch/v1", "Job", f"job-{index}", spec)


def _deployment(chance: random.Random, name: str, replicas: int) -> Object:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": _template(name, _requests(chance)),
    }
    return _object("apps/v1", "Deployment", name, spec)


def _template(name: str, requests: Mapping[str, str]) -> Object:
    container = {"name": "pause", "image": _IMAGE, "resources": {"requests": dict(requests)}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def _requests(chance: random.Random) -> dict[str, str]:
    cpu = chance.choice(_CPUS)
    memory = max(int(cpu * chance.choice(_RATIOS)), _LEAST_MIB)
    return {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}


def _object(version: str, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
