"""A node whose machine is in trouble is replaced, also without a queue that tells of it."""

import asyncio

import pytest

from nodeless.controllers.interruption.instance_status import InstanceStatusController
from nodeless.operator.metrics import Metrics
from tests.controllers.world import CLAIMS, a_budget, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster


def test_an_instance_that_fails_its_checks_is_ended_whatever_a_budget_says(scene, aws):
    async def scenario(rig, namespace):
        # The budget would hold a drain for ever.
        await rig.create(
            a_budget("web", namespace, "web"), a_template(), a_provisioner(), a_pod("web", namespace)
        )
        node = await rig.running(namespace, "web")
        claim = await rig.claim()
        (instance,) = await asyncio.to_thread(rig.network.instances)
        loop = InstanceStatusController(rig.cluster, rig.cloud, rig.executor, Metrics())
        await loop.reconcile_once()
        assert (
            rig.api.get(f"{CLAIMS}/{claim['metadata']['name']}")["metadata"].get("deletionTimestamp") is None
        )
        aws.set_faults(impaired={instance: 600})
        await loop.reconcile_once()
        assert await rig.event("default", node, "InstanceUnhealthy", about=instance)
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")
        assert instance not in await asyncio.to_thread(rig.network.instances)

    scene(scenario)
