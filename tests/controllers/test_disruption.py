"""Voluntary moves on the real API server and the local AWS, replacement first."""

import asyncio

import pytest

from nodeless.operator.timing import Timing
from tests.controllers.world import CLAIMS, NODES, POOLS, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster


#: Often: the scenarios are about order, not about pace.
QUICK = Timing(disruption_look=0.5, disruption_validation=1.0, disruption_step=0.2)


def consolidating(**spec):
    return a_provisioner(consolidation={"enabled": True}, **spec)


async def nodes_of(rig, number):
    """Wait until so many claims are initialized; gives them back by the name of their node."""

    def ready(claims):
        return (
            len(claims) == number
            and all(
                any(
                    each["type"] == "Initialized" and each["status"] == "True"
                    for each in claim["status"]["conditions"]
                )
                for claim in claims
                if claim.get("status", {}).get("conditions")
            )
            and all(claim.get("status", {}).get("conditions") for claim in claims)
        )

    claims = await rig.until(lambda: rig.api.list(CLAIMS), ready)
    return {claim["status"]["nodeName"]: claim for claim in claims}


def test_co_15_an_empty_node_of_a_consolidating_pool_ends(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), consolidating(), a_pod("web", namespace))
        await rig.running(namespace, "web")
        claim = await rig.claim()
        await asyncio.to_thread(rig.api.delete, f"/api/v1/namespaces/{namespace}/pods/web", grace_seconds=0)
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")
        assert not rig.network.instances("running")

    scene(scenario, timing=QUICK)


def test_co_02_of_two_nodes_whose_pods_fit_together_one_ends_and_its_pod_moves(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), consolidating())
        # Two nodes of their own, since together they would need a larger one.
        await rig.create(a_pod("a", namespace, cpu="1500m"))
        first = await rig.running(namespace, "a")
        await nodes_of(rig, 1)
        await rig.create(a_pod("b", namespace, cpu="1500m"))
        second = await rig.running(namespace, "b")
        assert first != second
        await nodes_of(rig, 2)
        # Both shrink to what fits on one node: their successors are small.
        for name, node in (("a", first), ("b", second)):
            await rig.create(a_pod(f"small-{name}", namespace, cpu="200m", nodeName=node))
            await rig.running(namespace, f"small-{name}")
        for name in "ab":
            path = f"/api/v1/namespaces/{namespace}/pods/{name}"
            await asyncio.to_thread(rig.api.delete, path, grace_seconds=0)
        left = await nodes_of(rig, 1)
        assert set(left) < {first, second}
        assert len(rig.network.instances("running")) == 1

    scene(scenario, timing=QUICK)


def test_co_01_a_large_node_with_a_small_pod_is_replaced_before_it_ends(scene):
    async def scenario(rig, namespace):
        # What saves forty times its price repays the overlap of both nodes at once.
        types = {
            "key": "node.kubernetes.io/instance-type",
            "operator": "In",
            "values": ["m5.large", "g4dn.12xlarge"],
        }
        await rig.create(a_template(), consolidating(requirements=[types]))
        await rig.create(a_pod("large", namespace, cpu="40"))
        large = await rig.running(namespace, "large")
        old = (await nodes_of(rig, 1))[large]
        await rig.create(a_pod("small", namespace, cpu="200m", nodeName=large))
        await rig.running(namespace, "small")
        path = f"/api/v1/namespaces/{namespace}/pods/large"
        await asyncio.to_thread(rig.api.delete, path, grace_seconds=0)
        name = old["metadata"]["name"]
        # The replacement names what it replaces, and is ready before the old node goes.
        (new,) = await rig.until(
            lambda: [
                claim
                for claim in rig.api.list(CLAIMS)
                if claim["metadata"].get("annotations", {}).get("nodeless.dev/replaces") == name
            ]
        )
        await rig.until_gone(f"{CLAIMS}/{name}")
        (left,) = (await nodes_of(rig, 1)).values()
        assert left["metadata"]["name"] == new["metadata"]["name"]
        (instance,) = rig.network.instances("running").values()
        assert instance["InstanceType"] == "m5.large"
        assert await rig.event("default", large, "DeprovisioningTerminating", "replacement")
        assert await rig.event("default", large, "DeprovisioningWaitingDeletion")

    scene(scenario, timing=QUICK)


def test_ex_04_an_expired_node_is_replaced_before_it_ends(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace, cpu="200m"))
        await rig.running(namespace, "web")
        old = await rig.claim()
        patch = {"spec": {"ttlSecondsUntilExpired": 1}}
        await asyncio.to_thread(rig.api.patch, f"{POOLS}/default", patch)
        name = old["metadata"]["name"]
        (new,) = await rig.until(
            lambda: [
                claim
                for claim in rig.api.list(CLAIMS)
                if claim["metadata"].get("annotations", {}).get("nodeless.dev/replaces") == name
            ]
        )
        # Once is enough: the successor may live.
        await asyncio.to_thread(rig.api.patch, f"{POOLS}/default", {"spec": {"ttlSecondsUntilExpired": None}})
        await rig.until_gone(f"{CLAIMS}/{name}")
        ((node, left),) = (await nodes_of(rig, 1)).items()
        assert left["metadata"]["name"] == new["metadata"]["name"]
        assert left["status"]["providerID"] != old["status"]["providerID"]
        assert rig.api.get(f"{NODES}/{node}")["spec"]["providerID"] == left["status"]["providerID"]

    scene(scenario, timing=QUICK)
