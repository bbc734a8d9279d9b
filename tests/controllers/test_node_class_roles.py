"""A node class that names a role: its instance profile from the first pass to the end."""

import asyncio

import pytest

from nodeless.api.kinds import EC2_NODE_CLASS, NODE_CLAIM, NODE_POOL
from nodeless.controllers.executor.teardown_guard import GUARD_NAME
from nodeless.controllers.nodeclass.instance_profiles import ProfileLoop
from tests.api.manifests import ec2_node_class, node_pool, requirement
from tests.controllers.test_endings import a_guard
from tests.controllers.test_generation_one import clean  # noqa: F401 - an autouse fixture
from tests.controllers.world import a_pod

pytestmark = pytest.mark.cluster

CLASS, POOL = EC2_NODE_CLASS.path("default"), NODE_POOL.path("default")
FINALIZER = "karpenter.k8s.aws/termination"
TRUST = '{"Version": "2012-10-17", "Statement": []}'


@pytest.fixture
def iam(aws, network):
    iam = aws.client("iam")
    for role in ("nodes", "others"):
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=TRUST)
    return iam


def of_role(role="nodes"):
    document = ec2_node_class(amiSelectorTerms=[{"alias": "al2@latest"}])
    document["spec"] |= {"role": role}
    document["spec"].pop("instanceProfile", None)
    return document


def a_pool():
    entries = [
        requirement("kubernetes.io/arch", "In", "amd64"),
        requirement("karpenter.sh/capacity-type", "In", "on-demand"),
        requirement("node.kubernetes.io/instance-type", "In", "m5.large"),
    ]
    return node_pool(template={"requirements": entries})


def roles(iam):
    """Roles by profile, of those made for node classes."""
    found = iam.list_instance_profiles(PathPrefix="/karpenter/us-east-1/demo/")["InstanceProfiles"]
    return {each["InstanceProfileName"]: [role["RoleName"] for role in each["Roles"]] for each in found}


def condition(found, type_="InstanceProfileReady"):
    conditions = {each["type"]: each for each in (found.get("status") or {}).get("conditions") or ()}
    return conditions.get(type_, {})


async def ready(rig, role):
    """Wait until the class has a profile of the role; its name."""

    def made(found):
        name = (found.get("status") or {}).get("instanceProfile", "")
        return condition(found).get("status") == "True" and roles(rig.iam).get(name) == [role]

    return (await rig.until(lambda: rig.api.get(CLASS), made))["status"]["instanceProfile"]


def test_a_role_becomes_a_profile_that_lives_as_long_as_its_class(scene, eks, iam):
    async def scenario(rig, namespace):
        rig.iam = iam
        await rig.create(of_role(), a_pool(), a_pod("web", namespace))
        await rig.running(namespace, "web")
        old = await ready(rig, "nodes")
        found = rig.api.get(CLASS)
        assert FINALIZER in found["metadata"]["finalizers"]
        (instance,) = rig.network.instances().values()
        assert instance["IamInstanceProfile"]["Arn"].endswith(
            f":instance-profile/karpenter/us-east-1/demo/{found['metadata']['uid']}/{old}"
        )

        # Another role: another profile at once; the node that bears the old one has drifted, and keeps it.
        await asyncio.to_thread(rig.api.patch, POOL, {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}})
        await asyncio.to_thread(rig.api.patch, CLASS, {"spec": {"role": "others"}})
        new = await ready(rig, "others")
        claim = await rig.claim("Drifted")
        assert condition(claim, "Drifted")["reason"] == "NodeClassDrift"
        sweeps = ProfileLoop(rig.cluster, rig.cloud, rig.executor)
        for _ in range(3):
            await sweeps.sweep_once()
        assert roles(iam) == {old: ["nodes"], new: ["others"]}

        # The class waits for its claims; then nothing of it is left.
        await asyncio.to_thread(rig.api.delete, CLASS)
        await rig.event("default", "default", "WaitingOnNodeClaimTermination", claim["metadata"]["name"])
        await asyncio.to_thread(rig.api.delete, POOL)
        await rig.until_gone(CLASS)
        assert roles(iam) == {}
        assert rig.api.list(NODE_CLAIM.path()) == []

    scene(scenario)


def test_what_keeps_a_profile_from_being_made_stands_on_the_class(scene, eks, iam, aws):
    async def scenario(rig, namespace):
        rig.iam = iam
        refused = {"code": "AccessDenied", "message": "not authorized", "status": 403}
        aws.set_faults(errors={"CreateInstanceProfile": refused})
        await rig.create(of_role(), a_pool(), a_pod("web", namespace))
        found = await rig.until(
            lambda: rig.api.get(CLASS), lambda seen: condition(seen).get("status") == "False"
        )
        assert condition(found)["reason"] == "Unauthorized"
        assert "hint: allow iam:CreateInstanceProfile" in condition(found)["message"]
        assert condition(found, "SubnetsReady")["status"] == "True"
        await rig.until(
            lambda: rig.api.get(POOL), lambda seen: condition(seen, "NodeClassReady").get("status") == "False"
        )
        await rig.event(namespace, "web", "FailedScheduling", "iam:CreateInstanceProfile")

        # Once it may: the profile is made, EC2 does not know it for a while, and the pod waits and is told.
        aws.set_faults(profiles=3600)
        await ready(rig, "nodes")
        await rig.event(namespace, "web", "FailedLaunch", "Invalid IAM Instance Profile name")
        aws.set_faults()
        await rig.running(namespace, "web")

        # Teardown leaves no profile behind, and no class that nobody would let go.
        guard = f"/api/v1/namespaces/{namespace}/configmaps/{GUARD_NAME}"
        await rig.create(a_guard(namespace))
        await asyncio.to_thread(rig.api.delete, guard)
        await rig.until_gone(guard)
        assert roles(iam) == {}
        assert not rig.api.get(CLASS)["metadata"].get("finalizers")

    scene(scenario)
