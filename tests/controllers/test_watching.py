"""The snapshot follows the real API server, whatever happens to the connection."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.kube.cluster import Cluster
from nodeless.kube.kinds import watched_kinds
from tests.controllers.conftest import eventually

pytestmark = pytest.mark.cluster


def a_pod(name, namespace):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": [
                {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "1"}}},
            ]
        },
    }


def pods_only():
    return tuple(kind for kind in watched_kinds(lambda *_: None) if kind.name == "pods")


async def watching(client, scenario):
    cluster = Cluster()
    task = asyncio.create_task(cluster.run(client, pods_only()))
    try:
        await cluster.wait_for_sync()
        await scenario(cluster)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_pods_appear_change_and_disappear(on_cluster, namespace, api):
    api.create(a_pod("before", namespace))

    async def scenario(client):
        async def follow(cluster):
            assert f"{namespace}/before" in cluster.snapshot.pods
            await asyncio.to_thread(api.create, a_pod("after", namespace))
            pod = await eventually(lambda: cluster.snapshot.pods.get(f"{namespace}/after"))
            assert pod.requests == {"cpu": 1000, "pods": 1}
            await eventually(lambda: cluster.snapshot.pods[f"{namespace}/after"].provisionable)
            await asyncio.to_thread(api.delete, f"/api/v1/namespaces/{namespace}/pods/after", grace_seconds=0)
            await eventually(lambda: f"{namespace}/after" not in cluster.snapshot.pods)

        await watching(client, follow)

    on_cluster(scenario)


def test_a_restarted_api_server_is_survived_without_losing_a_change(
    on_cluster, namespace, api, control_plane
):
    async def scenario(client):
        async def follow(cluster):
            await asyncio.to_thread(control_plane.restart, "kube-apiserver")
            await asyncio.to_thread(api.create, a_pod("late", namespace))
            await eventually(lambda: f"{namespace}/late" in cluster.snapshot.pods)

        await watching(client, follow)

    on_cluster(scenario)


def test_a_cluster_without_the_crds_gets_one_line_that_says_what_to_do(on_cluster):
    async def scenario(client):
        cluster = Cluster()
        (claims,) = (kind for kind in watched_kinds(lambda *_: None) if kind.name == "nodeclaims")
        # A version that nobody serves stands for a cluster without the CRDs, whatever other tests installed.
        missing = replace(claims, path="/apis/karpenter.sh/v9/nodeclaims")
        task = asyncio.create_task(cluster.run(client, (missing,)))
        await eventually(cluster.problems)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return cluster.problems()

    (problem,) = on_cluster(scenario)
    assert "nodeclaims" in problem
    assert "hint: install the CRDs" in problem
