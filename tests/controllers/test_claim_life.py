"""From a pending pod to a node that runs it, and every way in which that node ends."""

import asyncio

import pytest

from nodeless.nodeclaim.deadlines import Deadlines
from nodeless.nodeclaim.view import Step
from nodeless.operator.timing import Timing
from tests.controllers.world import (
    CLAIMS,
    NODES,
    POOLS,
    TEMPLATES,
    a_budget,
    a_pod,
    a_provisioner,
    a_template,
)

pytestmark = pytest.mark.cluster


async def one_node(rig, namespace, *pods, pool=None):
    """A pool, a template and the pods, all running on one node; gives back the claim and the node's name."""
    await rig.create(a_template(), pool or a_provisioner())
    await rig.create(*(a_pod(name, namespace, cpu="200m") for name in pods))
    node = await rig.running(namespace, *pods)
    return await rig.claim(), node


async def ended(rig, claim):
    """Claim, node and instance are gone, and nothing is remembered of them."""
    name, instance = claim["metadata"]["name"], claim["status"]["providerID"].rpartition("/")[2]
    await rig.until_gone(f"{CLAIMS}/{name}")
    await rig.until_gone(f"{NODES}/{claim['status']['nodeName']}", of=claim)
    await rig.until(rig.network.instances, lambda living: instance not in living)
    await rig.until(lambda: name not in rig.cluster.snapshot.claims)
    assert name not in rig.executor.instances.gone


def test_mc_01_a_pending_pod_gets_a_node_and_everybody_is_told(scene):
    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        (instance,) = rig.network.instances().values()
        assert claim["status"]["nodeName"] == node == instance["PrivateDnsName"]
        assert claim["status"]["providerID"].endswith(instance["InstanceId"])
        assert claim["metadata"]["finalizers"] == ["karpenter.sh/termination"]
        assert claim["status"]["capacity"]["cpu"] == "2"
        launched = {each["type"]: each["status"] for each in claim["status"]["conditions"]}["Launched"]
        assert launched == "True"
        labels = rig.api.get(f"{NODES}/{node}")["metadata"]["labels"]
        assert labels["karpenter.sh/provisioner-name"] == "default"
        assert labels["karpenter.sh/initialized"] == "true"
        # What the pool's nodes hold stands in its status, and what the template selects in that one's.
        pool = await rig.until(
            lambda: rig.api.get(f"{POOLS}/default"), lambda seen: seen.get("status", {}).get("resources")
        )
        assert pool["status"]["resources"]["cpu"] == "2"
        template = rig.api.get(f"{TEMPLATES}/default")
        assert len(template["status"]["subnets"]) == 2
        assert len(template["status"]["securityGroups"]) == 1
        name = claim["metadata"]["name"]
        assert name in (await rig.event(namespace, "web", "Nominated"))["message"]
        assert instance["InstanceId"] in (await rig.event("default", name, "Launched"))["message"]

    scene(scenario)


def test_tm_05_a_node_deleted_by_kubectl_is_drained_and_its_instance_terminated(scene):
    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        await rig.until_gone(f"{NODES}/{node}", of=claim)
        assert await rig.event(namespace, "web", "Evicted")
        await ended(rig, claim)

    scene(scenario)


def test_tm_07_a_disruption_budget_holds_the_node_until_it_allows(scene):
    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/web"
        await rig.create(a_budget("web", namespace, app="web"))
        await rig.until(
            lambda: rig.api.get(budget), lambda seen: seen.get("status", {}).get("currentHealthy") == 1
        )
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        assert await rig.event("default", node, "FailedDraining", f"cannot evict pod {namespace}/web")
        held = rig.api.get(f"{NODES}/{node}")
        assert held["spec"]["unschedulable"]
        assert rig.api.get(f"/api/v1/namespaces/{namespace}/pods/web")["status"]["phase"] == "Running"
        assert rig.network.instances("running")
        await asyncio.to_thread(rig.api.delete, budget)
        await rig.until_gone(f"{NODES}/{node}", of=claim)
        await ended(rig, claim)

    scene(scenario)


def test_tm_17_a_budget_does_not_hold_a_node_whose_machine_is_gone(scene):
    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        await rig.create(a_budget("web", namespace, app="web"))
        (instance,) = rig.network.instances()
        rig.kubelets.silent.add(instance)
        await asyncio.to_thread(rig.network.terminate, instance)
        unready = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        await asyncio.to_thread(
            rig.api.patch, f"{NODES}/{node}", unready, kind="strategic", subresource="status"
        )
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        await rig.until_gone(f"{NODES}/{node}", of=claim)
        await ended(rig, claim)

    scene(scenario)


def test_a_node_removed_by_force_takes_its_instance_along(scene, monkeypatch):
    timing = Timing(claims=Deadlines(vanished_grace=1.0))
    # It would put the finalizer back, sometimes before the node is deleted.
    monkeypatch.setattr("nodeless.nodeclaim.reconcile.step_finalizers", lambda _view: Step())

    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        await asyncio.to_thread(rig.api.patch, f"{NODES}/{node}", {"metadata": {"finalizers": None}})
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}", missing_ok=True)
        assert await rig.event("default", claim["metadata"]["name"], "NodeGone")
        await ended(rig, claim)

    scene(scenario, timing=timing)


def test_the_drain_of_a_node_goes_on_without_its_claim_and_leaves_no_node_behind(scene):
    """Somebody took the finalizer off the claim; the collector ends the instance."""

    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        await rig.create(a_budget("web", namespace, app="web"))
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        await rig.event("default", node, "FailedDraining")
        path = f"{CLAIMS}/{claim['metadata']['name']}"
        await asyncio.to_thread(rig.api.patch, path, {"metadata": {"finalizers": None}})
        await rig.until_gone(path)
        await asyncio.sleep(1)
        assert rig.api.find(f"{NODES}/{node}")
        await asyncio.to_thread(
            rig.api.delete, f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/web"
        )
        await rig.until_gone(f"{NODES}/{node}", of=claim)

    scene(scenario)


def test_em_03_an_empty_node_ends_after_its_pools_time(scene):
    async def scenario(rig, namespace):
        pool = a_provisioner(ttlSecondsAfterEmpty=1)
        claim, node = await one_node(rig, namespace, "web", pool=pool)
        await asyncio.to_thread(rig.api.delete, f"/api/v1/namespaces/{namespace}/pods/web", grace_seconds=0)
        await rig.until_gone(f"{NODES}/{node}", of=claim)
        await ended(rig, claim)

    scene(scenario)


def test_a_deleted_pool_waits_for_its_nodes(scene):
    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        await rig.create(a_budget("web", namespace, app="web"))
        await asyncio.to_thread(rig.api.delete, f"{POOLS}/default")
        await rig.event("default", node, "FailedDraining")
        assert rig.api.find(f"{POOLS}/default") is not None
        budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/web"
        await asyncio.to_thread(rig.api.delete, budget)
        await rig.until_gone(f"{POOLS}/default")
        await ended(rig, claim)

    scene(scenario)


@pytest.mark.parametrize("deleted", [CLAIMS, POOLS])
def test_what_is_deleted_while_the_launch_is_under_way_ends_with_its_instance(scene, aws, deleted):
    aws.set_faults(delay={"CreateFleet": 2.0})

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        await rig.until(rig.network.instances)
        (claim,) = rig.api.list(CLAIMS)
        assert not claim.get("status", {}).get("providerID")
        # No pod, or its pending would rightly get a new claim.
        await asyncio.to_thread(rig.api.delete, f"/api/v1/namespaces/{namespace}/pods/web", grace_seconds=0)
        name = claim["metadata"]["name"] if deleted == CLAIMS else "default"
        await asyncio.to_thread(rig.api.delete, f"{deleted}/{name}")
        await rig.until_gone(f"{deleted}/{name}")
        await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: not claims)
        assert not rig.network.instances()
        assert not rig.executor.instances.gone

    scene(scenario)
