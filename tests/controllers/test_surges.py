"""A single replica on a node that ends, on the real Deployment controller and scheduler."""

import asyncio

import pytest

from localenv.kubernetes import ApiError
from tests.controllers.test_claim_life import ended
from tests.controllers.test_refused_claims import refusing, taking_back
from tests.controllers.world import CLAIMS, NODES, POOLS, a_budget, a_pod, a_provisioner, a_template
from tests.rights import allow_surges

pytestmark = pytest.mark.cluster


def a_deployment(namespace, **annotations):
    pod = a_pod("shop", namespace, cpu="200m")
    labels = {"app": "shop"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod["spec"]},
        },
    }


def test_the_successor_of_a_single_replica_is_ready_before_the_pod_leaves(scene, control_plane, namespace):
    allow_surges(control_plane, namespace)

    async def scenario(rig, namespace):
        pods = f"/api/v1/namespaces/{namespace}/pods"

        def ready():
            return [
                pod
                for pod in rig.api.list(pods)
                if not pod["metadata"].get("deletionTimestamp")
                and any(
                    c["type"] == "Ready" and c["status"] == "True"
                    for c in pod["status"].get("conditions", ())
                )
            ]

        await rig.create(
            a_template(), a_provisioner(), a_deployment(namespace, **{"nodeless.dev/surge": "true"})
        )
        (first,) = await rig.until(ready)
        claim = await rig.claim()
        # Even a budget that never yields does not hold the node: nothing is evicted.
        await rig.create(a_budget("shop", namespace, app="shop"))
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{claim['status']['nodeName']}")
        await rig.event(namespace, first["metadata"]["name"], "Surging", "ready replacement")
        served = []

        def gone():
            served.append(len(ready()))
            return rig.api.find(f"{pods}/{first['metadata']['name']}") is None

        await rig.until(gone)
        assert min(served) >= 1
        await ended(rig, claim)

    scene(scenario)


def test_a_restart_that_a_policy_refuses_keeps_no_other_pod_from_leaving(scene, control_plane, namespace):
    allow_surges(control_plane, namespace)
    expression = f"object.metadata.namespace != '{namespace}'"
    policy, binding = refusing(
        "no-restarts", expression, group="apps", resource="deployments", operation="UPDATE"
    )
    shop = f"/apis/apps/v1/namespaces/{namespace}/deployments/shop"

    def refused(api):
        try:
            api.patch(shop, {"metadata": {"annotations": {"probe": "yes"}}})
        except ApiError as error:
            return "not in this cluster" in str(error)
        return False

    async def scenario(rig, namespace):
        await rig.create(
            a_template(),
            a_provisioner(),
            a_deployment(namespace, **{"nodeless.dev/surge": "true"}),
            a_pod("small", namespace, cpu="100m"),
        )
        node = await rig.running(namespace, "small")
        pods = f"/api/v1/namespaces/{namespace}/pods"
        await rig.until(
            lambda: rig.api.list(pods),
            lambda seen: all(pod["status"].get("phase") == "Running" for pod in seen) and len(seen) == 2,
        )
        assert {pod["spec"]["nodeName"] for pod in rig.api.list(pods)} == {node}
        await rig.create(policy, binding)
        await rig.until(lambda: refused(rig.api))
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        await rig.event("default", node, "FailedDraining", f"restart Deployment {namespace}/shop")
        await rig.event(namespace, "small", "Evicted")
        await rig.until_gone(f"{pods}/small")

    try:
        scene(scenario)
    finally:
        scene(taking_back("no-restarts"))


def test_a_pool_that_is_deleted_says_in_its_status_what_it_waits_for(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        await rig.claim()
        await rig.create(a_budget("web", namespace, app="web"))
        budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/web"
        await rig.until(
            lambda: rig.api.get(budget), lambda seen: seen.get("status", {}).get("currentHealthy") == 1
        )
        await asyncio.to_thread(rig.api.delete, f"{POOLS}/default")

        def told():
            pool = rig.api.find(f"{POOLS}/default") or {}
            conditions = pool.get("status", {}).get("conditions", ())
            return [each["message"] for each in conditions if each["type"] == "Deleting"]

        (message,) = await rig.until(told, lambda seen: seen and f"{namespace}/web" in seen[0])
        assert f"1 node still to end: {node} (waiting for 1 pods to leave" in message
        await asyncio.to_thread(rig.api.delete, budget)
        await rig.until_gone(f"{POOLS}/default")
        assert rig.api.list(CLAIMS) == []

    scene(scenario)
