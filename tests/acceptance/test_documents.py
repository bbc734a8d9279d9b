"""Rows of what upstream documents and articles say otherwise than the code does: what happens here."""

import asyncio
import time

import pytest

from tests.controllers.world import CLAIMS, NODES, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster


def without_requests(name, namespace):
    """A pod of `kubectl create deployment`: nothing is said of resources."""
    pod = a_pod(name, namespace)
    del pod["spec"]["containers"][0]["resources"]
    return pod


def test_8_2_ten_replicas_without_requests_need_no_more_than_one_node(scene):
    names = [f"web-{number}" for number in range(10)]

    async def scenario(rig, namespace):
        pods = [without_requests(name, namespace) for name in names]
        await rig.create(a_template(), a_provisioner(), *pods)
        node = await rig.running(namespace, *names)

        assert len(await asyncio.to_thread(rig.api.list, CLAIMS)) == 1
        assert [each["metadata"]["name"] for each in await asyncio.to_thread(rig.api.list, NODES)] == [node]

    scene(scenario)


def metadata_options(network):
    """What each launch template says about instance metadata, by its hop limit's presence."""
    found = network.ec2.describe_launch_template_versions(Versions=["$Latest"])["LaunchTemplateVersions"]
    return [version["LaunchTemplateData"].get("MetadataOptions", {}) for version in found]


@pytest.mark.parametrize(
    ("given", "hops", "tokens"),
    [(None, 2, "required"), ({"httpEndpoint": "enabled"}, None, None)],
    ids=["8.4 block absent", "8.4 block given"],
)
def test_the_hop_limit_is_two_only_when_the_whole_block_is_absent(scene, given, hops, tokens):
    async def scenario(rig, namespace):
        template = a_template(**({"metadataOptions": given} if given else {}))
        await rig.create(template, a_provisioner(), a_pod("web", namespace))
        await rig.claim("Launched")

        (options,) = await asyncio.to_thread(metadata_options, rig.network)
        assert (options.get("HttpPutResponseHopLimit"), options.get("HttpTokens")) == (hops, tokens)
        assert options["HttpEndpoint"] == "enabled"

    scene(scenario)


def test_8_4_a_users_own_mark_of_drift_ends_no_node(scene):
    """v0.27.3 takes it off again; here it means nothing, whatever drift is set to."""

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        node = f"{NODES}/{await rig.running(namespace, 'web')}"
        claim = await rig.claim()
        mark = {"karpenter.sh/voluntary-disruption": "drifted"}
        await asyncio.to_thread(rig.api.patch, node, {"metadata": {"annotations": mark}})
        await rig.drift.reconcile_once()
        await rig.disruption.reconcile_once()

        (after,) = await asyncio.to_thread(rig.api.list, CLAIMS)
        assert after["metadata"]["uid"] == claim["metadata"]["uid"]
        assert "deletionTimestamp" not in after["metadata"]
        assert "taints" not in (await asyncio.to_thread(rig.api.get, node))["spec"]

    scene(scenario)


def test_8_4_an_offering_that_ran_dry_is_left_alone_for_three_minutes(scene, aws):
    now = [time.time()]
    large = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
    spot = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    aws.set_faults(capacity=[{"instanceType": "m5.large"}])

    def fleets():
        return [call for call in aws.calls() if call["action"] == "CreateFleet"]

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(requirements=[large, spot]), a_pod("web", namespace))
        await rig.event(namespace, "web", "InsufficientCapacity")
        await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: not claims)
        asked = len(await asyncio.to_thread(fleets))
        aws.set_faults()

        now[0] += 179
        plan = await rig.provisioning.plan_once()
        assert [refusal.pod for refusal in plan.refusals] == [f"{namespace}/web"]
        assert len(await asyncio.to_thread(fleets)) == asked

        now[0] += 2
        await rig.running(namespace, "web")

    scene(scenario, clock=lambda: now[0])
