"""What nodes were seen to have is learned by the cloud, and is known after a restart."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.controllers.nodeclaim.measured_capacity import MEASURED_NAME, MeasuredCapacity
from nodeless.kube.cluster import Cluster
from nodeless.model.events import NodeSeen
from nodeless.model.labels import INITIALIZED, INSTANCE_AMI_ID, INSTANCE_TYPE
from nodeless.model.memory_observations import MemoryObservations
from nodeless.model.nodes import Node
from tests.api.manifests import ec2_node_class, node_pool, requirement
from tests.controllers.conftest import eventually
from tests.controllers.test_generation_one import clean  # noqa: F401 - an autouse fixture
from tests.controllers.world import a_pod

pytestmark = pytest.mark.cluster

LABELS = {INSTANCE_TYPE: "m5.large", INSTANCE_AMI_ID: "ami-1", INITIALIZED: "true"}
NODE = Node("a", labels=LABELS, capacity={"memory": 8_000_000_000})


class Learner:
    """The one method of the cloud that is called."""

    def __init__(self):
        self.known = MemoryObservations()

    def record_memory_overhead(self, measured):
        self.known = measured


async def a_life(client, namespace, *nodes, until):
    """One life of the controller: it sees nodes, and ends when what is waited for has come."""
    cluster, cloud = Cluster(), Learner()
    keeper = MeasuredCapacity(client, cluster, cloud, namespace)
    running = asyncio.create_task(keeper.run())
    for node in nodes:
        cluster.handle(NodeSeen(node))
    try:
        await eventually(lambda: until(cloud.known))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_a_restarted_controller_knows_what_an_earlier_one_saw(api, namespace, on_cluster):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    raw = replace(NODE, name="b", labels={**LABELS, INSTANCE_TYPE: "m5.xlarge", INITIALIZED: "false"})

    def kept():
        return {each["metadata"]["name"]: each.get("data", {}) for each in api.list(path)}.get(
            MEASURED_NAME, {}
        )

    async def scenario(client):
        await a_life(client, namespace, raw, NODE, until=lambda known: kept())
        await a_life(client, namespace, until=lambda known: known.memory("m5.large", "ami-1") == 8 * 10**9)

    on_cluster(scenario)
    assert list(kept()) == ["m5.large_ami-1"]


def test_a_pod_that_the_disks_of_new_nodes_do_not_hold_is_told_so_after_one_node(scene, aws):
    """Two types with the same disk could be bought, one after the other, for as long as the pod waits."""

    async def scenario(rig, namespace):
        keeper = MeasuredCapacity(rig.client, rig.cluster, rig.cloud, namespace)
        rig.tasks.append(asyncio.create_task(keeper.run(), name="measured"))
        rig.kubelets.ephemeral_storage = "10Gi"
        kinds = requirement("node.kubernetes.io/instance-type", "In", "m5.large", "m5.xlarge")
        await rig.create(
            ec2_node_class(amiSelectorTerms=[{"alias": "al2@latest"}]),
            node_pool(template={"requirements": [kinds]}),
            a_pod("small", namespace),
            a_pod("large", namespace, **{"containers": [asking_for("12Gi")]}),
        )
        await rig.running(namespace, "small")
        # kube-scheduler names the resource too, but not how much of it was asked for.
        event = await rig.event(namespace, "large", "FailedScheduling", "12Gi requested")
        assert "ephemeral-storage" in event["message"]
        assert len(rig.network.instances()) == 1
        # What fits into the disk that was seen still gets a node.
        await rig.create(
            a_pod("next", namespace, cpu="1500m", **{"containers": [asking_for("6Gi", "1500m")]})
        )
        await rig.running(namespace, "next")

    scene(scenario)


def asking_for(storage, cpu="100m"):
    requests = {"cpu": cpu, "ephemeral-storage": storage}
    return {"name": "c", "image": "pause", "resources": {"requests": requests}}
