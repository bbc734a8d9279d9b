"""Reserved Instances on a real API server: they are used first, and what they pay for stays."""

import asyncio

import pytest

from nodeless.model.commitments import Commitment
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from tests.controllers.world import NODES, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster

EITHER = {"key": CAPACITY_TYPE, "operator": "In", "values": [SPOT, ON_DEMAND]}
LARGE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
RESERVED = Commitment("reserved", instance_types=("m5.large",), instances=1)


def test_as_many_nodes_are_launched_on_demand_as_are_reserved(scene):
    """The second pass sees the node of the first, and knows that the commitment is used up."""

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(requirements=[EITHER, LARGE]))
        capacity_types = []
        for name in ("first", "second"):
            await rig.create(a_pod(name, namespace, cpu="1500m"))
            node = await rig.running(namespace, name)
            found = await asyncio.to_thread(rig.api.get, f"{NODES}/{node}")
            capacity_types.append(found["metadata"]["labels"][CAPACITY_TYPE])
        assert capacity_types == [ON_DEMAND, SPOT]

    scene(scenario, settings={"commitments": (RESERVED,)})
