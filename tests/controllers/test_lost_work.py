"""Pods that say what an interruption loses, on a real API server: where they run, and what they are told."""

import asyncio

import pytest

from nodeless.model.labels import CAPACITY_TYPE, LOST_WORK, ON_DEMAND, SPOT
from nodeless.model.lost_work import InterruptionRate
from tests.controllers.world import NODES, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster

EITHER = {"key": CAPACITY_TYPE, "operator": "In", "values": [SPOT, ON_DEMAND]}
LARGE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}


def a_job(name, namespace, lost=None):
    pod = a_pod(name, namespace, cpu="1500m")
    if lost is not None:
        pod["metadata"]["annotations"] = {LOST_WORK: lost}
    return pod


def test_a_pod_runs_on_demand_where_an_interruption_loses_too_much(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(requirements=[EITHER, LARGE]))
        capacity = {}
        # One after the other: on a busy machine kube-scheduler may exchange pods of the same size.
        for pod, lost in (("train", "10h"), ("web", None), ("odd", "banana")):
            await rig.create(a_job(pod, namespace, lost))
            node = await rig.running(namespace, pod)
            found = await asyncio.to_thread(rig.api.get, f"{NODES}/{node}")
            capacity[pod] = found["metadata"]["labels"][CAPACITY_TYPE]
        assert capacity == {"train": ON_DEMAND, "web": SPOT, "odd": SPOT}
        event = await rig.event(namespace, "odd", "InvalidLostWork")
        assert event["type"] == "Warning"
        assert "'banana' is ignored; hint: write hours of work" in event["message"]

    scene(scenario, settings={"spot_interruptions": (InterruptionRate(per_month=1000.0),)})
