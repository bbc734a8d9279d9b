"""Many nodes of one shape are asked for together; whoever leads next finds each of them."""

import asyncio
from collections import Counter

import pytest

from tests.controllers.world import CLAIMS, NODES, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
LARGE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
GROUP = "nodeless.dev/launch-group"
PODS = [f"web-{number}" for number in range(5)]


def fleets(aws):
    return [capacity(call) for call in fleet_calls(aws)]


def capacity_by_group(aws):
    """How many instances were asked for, by the group that the request names; None: by none."""
    found = Counter()
    for call in fleet_calls(aws):
        tags = {tag["Key"]: tag["Value"] for tag in call["parameters"]["TagSpecifications"][0]["Tags"]}
        found[tags.get(GROUP)] += capacity(call)
    return found


def fleet_calls(aws):
    return [call for call in aws.calls() if call["action"] == "CreateFleet"]


def capacity(call):
    return int(call["parameters"]["TargetCapacitySpecification"]["TotalTargetCapacity"])


def test_five_equal_nodes_are_one_fleet_request_and_each_pod_runs(scene, aws):
    async def scenario(rig, namespace):
        await rig.create(*(a_pod(name, namespace, cpu="1500m") for name in PODS))
        aws.forget_calls()
        await rig.create(a_template(), a_provisioner(requirements=[LARGE]))
        # One pass for all of them, however slowly they were written.
        await rig.until(lambda: rig.cluster.snapshot, lambda seen: seen.pools and len(seen.pods) >= len(PODS))
        rig.provisioning._trigger_pending()
        await rig.running(namespace, *PODS)
        # One, unless writing the claims takes longer than a window is open.
        assert sum(fleets(aws)) == 5
        assert len(fleets(aws)) <= 2
        claims = await asyncio.to_thread(rig.api.list, CLAIMS)
        owners = {claim["status"]["providerID"] for claim in claims}
        assert len(owners) == 5
        annotations = [claim["metadata"]["annotations"] for claim in claims]
        groups = Counter(own.get(GROUP) for own in annotations)
        assert groups == capacity_by_group(aws)
        # A pod that kube-scheduler refused too late for the window gets a node by itself, without a group.
        assert groups[None] <= 1
        # Instances of a group are nobody's stray, and nothing of the group is shown on nodes.
        await rig.collector.collect_once()
        assert len(rig.network.instances("running")) == 5
        nodes = await asyncio.to_thread(rig.api.list, NODES)
        assert not any("launch-group" in key for n in nodes for key in n["metadata"].get("annotations", {}))

    scene(scenario)
