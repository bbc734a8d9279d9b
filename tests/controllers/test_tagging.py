"""Tags of an instance that only its node can tell, and what happens when somebody takes them off."""

import asyncio

import pytest

from nodeless.cloudprovider import CloudUnavailable
from nodeless.model.labels import CLUSTER_NAME_TAGGED, INSTANCE_TAGGED
from nodeless.operator.timing import Timing
from tests.api.manifests import ec2_node_class, node_pool, requirement
from tests.controllers.test_generation_one import clean  # noqa: F401 - an autouse fixture
from tests.controllers.world import CLAIMS, CLUSTER, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
NOTES = {INSTANCE_TAGGED: "true", CLUSTER_NAME_TAGGED: "true"}


def a_pool():
    entries = [requirement("node.kubernetes.io/instance-type", "In", "m5.large")]
    return node_pool(template={"requirements": entries})


def a_class(**spec):
    return ec2_node_class(amiSelectorTerms=[{"alias": "al2@latest"}], **spec)


def tags_of(rig):
    (instance,) = rig.network.instances().values()
    return {tag["Key"]: tag["Value"] for tag in instance["Tags"]}


def noted(claim):
    annotations = claim["metadata"].get("annotations", {})
    return {key: annotations[key] for key in NOTES if key in annotations} == NOTES


async def tagged(rig, claim):
    name = claim["metadata"]["name"]
    return await rig.until(lambda: rig.api.get(f"{CLAIMS}/{name}"), noted)


def tagging(rig):
    rig.tasks.append(asyncio.create_task(rig.tagging.run(), name="tagging"))


@pytest.mark.parametrize("own_name", [None, "mine"])
def test_an_instance_is_named_for_its_node_and_again_when_a_note_is_taken_off(scene, own_name):
    async def scenario(rig, namespace):
        tagging(rig)
        own = {"tags": {"Name": own_name}} if own_name else {}
        await rig.create(a_class(**own), a_pool(), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        claim = await tagged(rig, await rig.claim())
        name = claim["metadata"]["name"]
        wanted = {
            "Name": own_name or node,
            "karpenter.sh/nodeclaim": name,
            "eks:eks-cluster-name": CLUSTER,
        }
        assert wanted.items() <= tags_of(rig).items()
        (launched,) = rig.network.instances().values()
        profile = claim["metadata"]["annotations"]["karpenter.k8s.aws/instance-profile-name"]
        assert launched["IamInstanceProfile"]["Arn"].endswith(f"/{profile}")

        (instance,) = rig.network.instances()
        for note, tag in ((CLUSTER_NAME_TAGGED, "eks:eks-cluster-name"), (INSTANCE_TAGGED, "Name")):
            await asyncio.to_thread(rig.network.ec2.delete_tags, Resources=[instance], Tags=[{"Key": tag}])
            body = {"metadata": {"annotations": {note: None}}}
            await asyncio.to_thread(rig.api.patch, f"{CLAIMS}/{name}", body)
            await tagged(rig, claim)
            restored = {**wanted, "Name": node} if tag == "Name" else wanted
            assert restored.items() <= tags_of(rig).items()

    scene(scenario, timing=Timing(tagging=0.0))


def test_a_request_that_fails_is_made_again_and_holds_up_nothing(scene):
    async def scenario(rig, namespace):
        failures = []
        tag = rig.cloud.tag

        async def failing_once(claim):
            if not failures:
                failures.append(claim.name)
                raise CloudUnavailable("ec2", "the allowance of requests is used up")
            return await tag(claim)

        rig.cloud.tag = failing_once
        tagging(rig)
        await rig.create(a_class(), a_pool(), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        claim = await tagged(rig, await rig.claim())
        assert failures == [claim["metadata"]["name"]]
        assert tags_of(rig)["Name"] == node

    scene(scenario, timing=Timing(tagging=0.0))


def test_instances_of_provisioners_keep_the_tags_that_they_were_made_with(scene):
    async def scenario(rig, namespace):
        tagging(rig)
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        await rig.running(namespace, "web")
        claim = await rig.claim()
        assert not await rig.tagging.tag(claim["metadata"]["name"])
        assert tags_of(rig)["Name"] == "karpenter.sh/provisioner-name/default"
        found = rig.api.get(f"{CLAIMS}/{claim['metadata']['name']}")
        assert not NOTES.keys() & found["metadata"].get("annotations", {}).keys()

    scene(scenario, timing=Timing(tagging=0.0))
