"""Drains on the real API server: budgets that refuse, and the time after which nothing holds a node."""

import asyncio

import pytest

from nodeless.api.times import parse_time
from nodeless.model.events import PodSeen
from nodeless.operator.timing import Timing
from tests.controllers.test_claim_life import ended, one_node
from tests.controllers.world import CLAIMS, NODES, a_budget, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster


async def until_counted(rig, namespace, name):
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}"
    await rig.until(lambda: rig.api.get(path), lambda seen: seen.get("status", {}).get("currentHealthy") == 1)
    return path


def test_two_budgets_on_one_pod_are_told_and_hold_the_node_until_one_goes(scene):
    """The API server answers 500 to an eviction that two budgets concern: that is no failure of its own."""

    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        budgets = []
        for name in ("first", "second"):
            await rig.create(a_budget(name, namespace, app="web"))
            budgets.append(await until_counted(rig, namespace, name))
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        assert await rig.event("default", node, "FailedDraining", "more than one PodDisruptionBudget")
        assert rig.api.get(f"/api/v1/namespaces/{namespace}/pods/web")["status"]["phase"] == "Running"
        assert "pod's drain" not in rig.metrics.render().decode(), "a refusal by budgets is no failure"
        for budget in budgets:
            await asyncio.to_thread(rig.api.delete, budget)
        await ended(rig, claim)

    scene(scenario)


def a_deployment(name, namespace, replicas, cpu):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": a_pod(name, namespace, cpu=cpu)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def test_small_pods_are_evicted_when_the_successors_of_large_ones_have_their_place(scene):
    """Else what takes a small pod's place may take the room of a large one on the node that stays."""

    async def scenario(rig, namespace):
        xlarge = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]}
        await rig.create(a_template(), a_provisioner(requirements=[xlarge]))
        await rig.create(
            a_deployment("small", namespace, 6, "100m"), a_deployment("large", namespace, 2, "1500m")
        )
        pods = f"/api/v1/namespaces/{namespace}/pods"

        def running(seen):
            return len(seen) == 8 and all(pod["status"].get("phase") == "Running" for pod in seen)

        (drained,) = {pod["spec"]["nodeName"] for pod in await rig.until(lambda: rig.api.list(pods), running)}
        await rig.create(a_pod("spare", namespace, cpu="3500m"))
        stays = await rig.running(namespace, "spare")
        await asyncio.to_thread(rig.api.delete, f"{pods}/spare", grace_seconds=0)
        await rig.until_gone(f"{pods}/spare")
        happened = []

        def note(event, _before, _after):
            if isinstance(event, PodSeen) and event.pod.namespace == namespace:
                name = event.pod.name
                if event.pod.deletion_timestamp is not None:
                    happened.append((name.partition("-")[0], "leaves"))
                elif event.pod.node_name == stays and (name, "bound") not in happened:
                    happened.append((name, "bound"))

        rig.cluster.listen(note)
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{drained}")
        await rig.until(
            lambda: rig.api.list(pods),
            lambda seen: running(seen) and {pod["spec"]["nodeName"] for pod in seen} == {stays},
        )
        first_small = happened.index(("small", "leaves"))
        before = [name for name, what in happened[:first_small] if what == "bound"]
        assert [name.partition("-")[0] for name in before] == ["large", "large"], happened
        assert len(rig.api.list(CLAIMS)) <= 2

    scene(scenario)


def test_a_drain_that_a_budget_holds_up_fails_a_consistency_check(scene):
    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        await rig.create(a_budget("web", namespace, app="web"))
        budget = await until_counted(rig, namespace, "web")
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        assert await rig.event("default", node, "FailedConsistencyCheck", f"cannot evict pod {namespace}/web")
        errors = rig.metrics.nodes.consistency_errors.labels("Termination")
        assert next(iter(errors.collect())).samples[0].value == 1
        await asyncio.to_thread(rig.api.delete, budget)
        await ended(rig, claim)

    scene(scenario, timing=Timing(longest_eviction_wait=0.4))


def test_tm_16_a_pod_behind_a_budget_leaves_when_the_time_for_the_drain_is_over(scene):
    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        await rig.create(a_budget("web", namespace, app="web"))
        await until_counted(rig, namespace, "web")
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        await rig.event("default", node, "FailedDraining", f"cannot evict pod {namespace}/web")
        path = f"{CLAIMS}/{claim['metadata']['name']}"
        stamp = {"karpenter.sh/nodeclaim-termination-timestamp": "2023-01-01T00:00:00Z"}
        await asyncio.to_thread(rig.api.patch, path, {"metadata": {"annotations": stamp}})
        assert await rig.event(namespace, "web", "Disrupted")
        await ended(rig, claim)

    scene(scenario)


def test_a_pod_that_needs_time_to_save_its_work_is_told_by_a_condition_and_has_that_time(scene):
    async def scenario(rig, namespace):
        pod = a_pod("train", namespace, cpu="200m")
        pod["metadata"]["annotations"] = {"nodeless.dev/checkpoint-grace": "4s"}
        await rig.create(a_template(), a_provisioner(), pod)
        node = await rig.running(namespace, "train")
        claim = await rig.claim()
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")

        def told():
            seen = rig.api.get(f"/api/v1/namespaces/{namespace}/pods/train")
            conditions = {each["type"]: each for each in seen["status"]["conditions"]}
            return conditions if "nodeless.dev/CheckpointRequested" in conditions else {}

        conditions = await rig.until(told)
        requested = conditions["nodeless.dev/CheckpointRequested"]
        assert conditions["Ready"]["status"] == "True", "what the kubelet says stands"
        event = await rig.event(namespace, "train", "CheckpointRequested")
        assert event["message"] == requested["message"]
        # Another leader knows nothing but what is on the objects.
        rig.executor.checkpoints._noted.clear()
        evicted = await rig.event(namespace, "train", "Evicted")
        assert parse_time(evicted["firstTimestamp"]) >= parse_time(requested["lastTransitionTime"]) + 4
        await ended(rig, claim)
        events = rig.api.events(namespace, "train")
        assert [each["reason"] for each in events].count("CheckpointRequested") == 1

    scene(scenario)
