"""The real kube-scheduler on plans of drawn workloads to whose pods nobody nominates a node.

All nodes of a plan are there, the pods come at once, and the scheduler follows its scores. How many then
have no room is what `binding` foresees: not pod by pod, for ties are broken by chance, but in all.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from nodeless.model.pods import Owner, Pod
from nodeless.scheduling import FEWEST_NODES, Policy, solve
from tests.scheduling.factories import instance_type, pods, pool, snapshot
from tests.scheduling.manifests import pod_manifest
from tests.scheduling.test_scheduler_agrees import fenced, on_the_control_plane
from tests.scheduling.topology_worlds import cluster_of

pytestmark = pytest.mark.cluster
#: Small, so that there are many nodes, and packed tightly.
TYPES = tuple(instance_type(f"{gib}x{cpu}", cpu, gib * cpu) for gib in (2, 4) for cpu in (4, 16))
_TIGHT = Policy(packing=FEWEST_NODES, as_bound=True)
_CPUS = ("100m", "250m", "500m", "1", "1500m", "2", "4")
_MEMORIES = ("256Mi", "512Mi", "1Gi", "2Gi", "6Gi")


def workloads(chance: Random) -> list[Pod]:
    """So many pods that some twenty spill in all: of five, chance makes three or eight."""
    made: list[Pod] = []
    for index in range(chance.randint(8, 12)):
        app = f"app{index}"
        made += pods(chance.randint(10, 30), chance.choice(_CPUS), chance.choice(_MEMORIES), name=app)
    owned = [replace(pod, owners=(Owner("apps/v1", "ReplicaSet", pod.labels["app"]),)) for pod in made]
    chance.shuffle(owned)
    return [replace(pod, created_at=float(at)) for at, pod in enumerate(owned)]


def service(name: str, world: str) -> dict[str, object]:
    """Whose pods the scheduler spreads, as it does those of a ReplicaSet."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": world},
        "spec": spec,
    }


def tried(api, world: str, wanted: Sequence[Pod]) -> int | None:
    """How many pods have no node, once each was tried; None before."""
    conditions = [
        (each["spec"].get("nodeName"), each["status"].get("conditions", ()))
        for each in api.list(f"/api/v1/namespaces/{world}/pods")
    ]
    left = [said for node, said in conditions if not node]
    if len(conditions) < len(wanted) or not all(
        any(one.get("reason") == "Unschedulable" for one in said) for said in left
    ):
        return None
    return len(left)


def spilled(api, seed: int) -> tuple[int, int]:
    """Of one drawn batch: the pods without room, as foreseen and as it came."""
    chance = Random(seed)
    world = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "world-"}})
    name = world["metadata"]["name"]
    try:
        api.wait(f"/api/v1/namespaces/{name}/serviceaccounts/default")
        own = fenced(snapshot(workloads(chance), pool()), name)
        plan = solve(own, dict.fromkeys(own.pools, TYPES), _TIGHT)
        cluster, _ = cluster_of(own, plan, 0, TYPES)
        ordered = sorted(own.pods.values(), key=lambda pod: pod.created_at)
        with on_the_control_plane(api, cluster, name):
            for app in sorted({pod.labels["app"] for pod in ordered}):
                api.create(service(app, name))
            for pod in ordered:
                api.create(pod_manifest(pod, gated=True))
            for pod in ordered:
                path = f"/api/v1/namespaces/{name}/pods/{pod.name}"
                api.patch(path, {"spec": {"schedulingGates": None}})
            came = api.wait(
                lambda: tried(api, name, ordered),
                lambda left: left is not None,
                what="each pod to be tried",
            )
            return len(plan.spill), came
    finally:
        api.delete(f"/api/v1/namespaces/{name}")


def test_what_spills_is_foreseen(api):
    found = [spilled(api, seed) for seed in range(1, 7)]
    foreseen, came = map(sum, zip(*found, strict=True))
    assert came
    assert 0.6 * came <= foreseen <= 1.5 * came, found
