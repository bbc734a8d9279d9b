"""A NodeClaim that a user makes without a pool is launched as it stands, and ends with its instance."""

import asyncio

import pytest

from nodeless.api.kinds import EC2_NODE_CLASS, NODE_CLAIM
from tests.api.manifests import ec2_node_class, requirement
from tests.controllers.world import NODES

pytestmark = pytest.mark.cluster

CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
#: Longer than a label's value may be: as a name it is a good one.
LONG = "by-hand-" + "x" * 60


@pytest.fixture(autouse=True)
def clean(api, definitions):
    yield
    for kind in (NODE_CLAIM, EC2_NODE_CLASS):
        for found in api.list(kind.path()):
            path = kind.path(found["metadata"]["name"])
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path, missing_ok=True)
            api.wait_gone(path)


def a_claim(name, *requirements, **spec):
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"team": "search"}},
        "spec": {"nodeClassRef": CLASS, "requirements": [*requirements], **spec},
    }


@pytest.mark.parametrize("name", ["by-hand", LONG])
def test_a_claim_without_a_pool_becomes_a_node_of_what_it_asks_for_and_ends_with_its_instance(scene, name):
    family = requirement("karpenter.k8s.aws/instance-family", "In", "m5")
    on_demand = requirement("karpenter.sh/capacity-type", "In", "on-demand")
    taint = {"key": "team", "value": "search", "effect": "NoSchedule"}

    async def scenario(rig, namespace):
        await rig.create(ec2_node_class(amiSelectorTerms=[{"alias": "al2@latest"}]))
        await rig.until(lambda: rig.cluster.snapshot.node_classes)
        await rig.create(
            a_claim(name, family, on_demand, taints=[taint], resources={"requests": {"cpu": "3"}})
        )
        path = NODE_CLAIM.path(name)

        claim = await rig.claim()
        labels = claim["metadata"]["labels"]
        assert labels["node.kubernetes.io/instance-type"] == "m5.xlarge"
        assert "karpenter.sh/termination" in claim["metadata"]["finalizers"]
        node = await asyncio.to_thread(rig.api.get, f"{NODES}/{claim['status']['nodeName']}")
        assert node["metadata"]["labels"]["team"] == "search"
        assert taint in node["spec"]["taints"]

        await asyncio.to_thread(rig.api.delete, path)
        await rig.until_gone(path)
        await rig.until_gone(f"{NODES}/{claim['status']['nodeName']}", of=claim)
        assert not await asyncio.to_thread(rig.network.instances)

    scene(scenario)


def test_a_claim_without_a_pool_whose_class_does_not_exist_is_deleted_and_says_why(scene):
    async def scenario(rig, namespace):
        await rig.create(a_claim("by-hand"))
        event = await rig.event("default", "by-hand", "NodeClassNotReady")
        assert "EC2NodeClass/default does not exist" in event["message"]
        await rig.until_gone(NODE_CLAIM.path("by-hand"))

    scene(scenario)
