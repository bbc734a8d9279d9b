"""How nodes end when much ends at once, when AWS stumbles, and when there was never anything to end."""

import asyncio

import pytest
import structlog

from nodeless.cloudprovider import CloudUnavailable
from nodeless.cloudprovider.aws import AwsProvider
from tests.controllers.test_claim_life import ended, one_node
from tests.controllers.world import AWS_SETTINGS, CLAIMS, NODES, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster


class Stumbling(AwsProvider):
    """The real provider; the first terminations get no answer."""

    def __init__(self, failures):
        self.failures, self.asked = failures, []
        super().__init__(AWS_SETTINGS, structlog.get_logger())

    async def terminate(self, instance_id):
        self.asked.append(instance_id)
        if len(self.asked) <= self.failures:
            raise CloudUnavailable("ec2", "EC2 did not answer")
        return await super().terminate(instance_id)


def test_tm_13_a_termination_that_fails_is_tried_again_and_the_node_stays_until_it_went_through(scene):
    cloud = Stumbling(failures=2)

    async def scenario(rig, namespace):
        claim, node = await one_node(rig, namespace, "web")
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        await rig.until(lambda: cloud.asked)
        finalizers = (rig.api.find(f"{NODES}/{node}") or {"metadata": {}})["metadata"].get("finalizers", [])
        assert "karpenter.sh/termination" in finalizers or len(cloud.asked) > cloud.failures
        await ended(rig, claim)
        assert len(cloud.asked) > cloud.failures

    scene(scenario, cloud=cloud)


def test_mc_09_a_claim_that_was_never_launched_ends_without_a_termination(scene):
    cloud = Stumbling(failures=0)

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner())
        await rig.until(lambda: "Provisioner/default" in rig.cluster.snapshot.pools)
        await rig.until(lambda: "AWSNodeTemplate/default" in rig.cluster.snapshot.node_classes)
        claim = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": "default-never",
                "labels": {"karpenter.sh/provisioner-name": "default"},
                "finalizers": ["karpenter.sh/termination"],
            },
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "AWSNodeTemplate", "name": "missing"},
                "requirements": [],
            },
        }
        await rig.create(claim)
        # Its class does not exist: the controller deletes it.
        await rig.event("default", "default-never", "NodeClassNotReady")
        await rig.until_gone(f"{CLAIMS}/default-never")
        assert cloud.asked == []

    scene(scenario, cloud=cloud)


def test_tm_02_ten_nodes_deleted_at_once_all_go(scene):
    names = [f"web-{number}" for number in range(10)]

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), *(a_pod(name, namespace, cpu="3") for name in names))
        claims = await rig.until(
            lambda: rig.api.list(CLAIMS),
            lambda seen: len(seen) == 10 and all(each.get("status", {}).get("nodeName") for each in seen),
            seconds=90,
        )
        nodes = [claim["status"]["nodeName"] for claim in claims]
        await asyncio.gather(*(asyncio.to_thread(rig.api.delete, f"{NODES}/{node}") for node in nodes))
        for claim in claims:
            await ended(rig, claim)
        old = {claim["status"]["providerID"].rpartition("/")[2] for claim in claims}
        assert not old & set(rig.network.instances())

    scene(scenario)
