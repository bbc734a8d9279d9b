"""Pods that are resized in place on the real API server; the test writes what a kubelet would."""

import asyncio

import pytest

from tests.controllers.test_claim_life import one_node

pytestmark = pytest.mark.cluster


async def resize(rig, namespace, name, cpu):
    """Ask for another size, by the subresource."""
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    await asyncio.to_thread(rig.api.patch, path, body, kind="strategic", subresource="resize")


async def kubelet_says(rig, namespace, name, granted, reason=""):
    """What the kubelet has allocated, and why it grants no more."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    held = {
        "name": "c",
        "image": "pause",
        "imageID": "pause",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {}},
        "allocatedResources": {"cpu": granted},
        "resources": {"requests": {"cpu": granted}},
    }
    pending = {"type": "PodResizePending", "status": "True", "reason": reason, "message": "no room"}
    remove = {"$patch": "delete", "type": "PodResizePending"}
    status = {"containerStatuses": [held], "conditions": [pending if reason else remove]}
    await asyncio.to_thread(rig.api.patch, path, {"status": status}, kind="strategic", subresource="status")


def test_a_resized_pod_counts_as_allocated_and_is_told_what_would_let_it_grow(scene):
    async def scenario(rig, namespace):
        _, node = await one_node(rig, namespace, "db", "web")

        async def counted(cpu):
            def seen():
                pod = rig.cluster.snapshot.pods[f"{namespace}/db"]
                return pod.requests["cpu"], pod.resize.reason if pod.resize else ""

            await rig.until(seen, lambda found: found == cpu)

        await kubelet_says(rig, namespace, "db", "200m")
        await resize(rig, namespace, "db", "1900m")
        await counted((1900, ""))
        await kubelet_says(rig, namespace, "db", "200m", "Deferred")
        await counted((1900, "Deferred"))
        await rig.resizes.reconcile_once()
        event = await rig.event(namespace, "db", "ResizePending")
        text = f"its resize from cpu 200m to cpu 1900m waits (Deferred): node {node} lacks cpu 100m"
        assert event["message"].startswith(text)
        assert f"there is room for it without {namespace}/web" in event["message"]
        assert "a pod of that size gets a new node of Provisioner/default: m5.large" in event["message"]

        await kubelet_says(rig, namespace, "db", "200m", "Infeasible")
        await counted((200, "Infeasible"))
        await kubelet_says(rig, namespace, "db", "1900m")
        await counted((1900, ""))
        await rig.resizes.reconcile_once()

    scene(scenario)


def test_the_same_resize_is_told_once_however_often_it_is_looked_at(scene):
    async def scenario(rig, namespace):
        await one_node(rig, namespace, "db", "web")
        await resize(rig, namespace, "db", "1900m")
        await kubelet_says(rig, namespace, "db", "200m", "Infeasible")
        await rig.until(lambda: rig.cluster.snapshot.pods[f"{namespace}/db"].resize)
        for label in ("a", "b", "c"):
            path = f"/api/v1/namespaces/{namespace}/pods/db"
            body = {"metadata": {"labels": {"seen": label}}}
            await asyncio.to_thread(rig.api.patch, path, body)
            await rig.until(
                lambda label=label: rig.cluster.snapshot.pods[f"{namespace}/db"].labels.get("seen") == label
            )
            await rig.resizes.reconcile_once()
        await rig.event(namespace, "db", "ResizePending", "Infeasible")
        # Another size is another resize.
        await resize(rig, namespace, "db", "1950m")
        await rig.until(
            lambda: dict(rig.cluster.snapshot.pods[f"{namespace}/db"].resize.wanted)["cpu"] == 1950
        )
        await rig.resizes.reconcile_once()
        await rig.event(namespace, "db", "ResizePending", "to cpu 1950m")
        reasons = [each["reason"] for each in rig.api.events(namespace, "db")]
        assert reasons.count("ResizePending") == 2

    scene(scenario)
