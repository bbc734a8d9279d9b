"""How the instances of a claim end."""

import asyncio
from types import SimpleNamespace

from nodeless.controllers.executor.instances import Instances
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimSeen
from nodeless.model.instructions import TerminateInstance
from tests.factories import a_claim


class Cloud:
    """One claim has an instance that was never noted; the others never had any."""

    def __init__(self):
        self.living = {"i-1": "default-1"}

    async def instances_of(self, claim_name):
        found = (instance for instance, claim in self.living.items() if claim == claim_name)
        return tuple(SimpleNamespace(id=instance) for instance in found)

    async def find(self, instance_id):
        return self.living.get(instance_id)

    async def terminate(self, instance_id):
        del self.living[instance_id]
        return True


def test_a_claim_without_a_known_instance_ends_those_of_its_name_and_asks_for_no_others():
    async def scenario():
        cloud, cluster = Cloud(), Cluster()
        instances = Instances(cloud, cluster, lambda: None)
        names = ["default-1", "default-2"]
        for name in names:
            cluster.handle(ClaimSeen(a_claim(name, deletion_timestamp=1.0)))
        await asyncio.gather(*(instances.carry_out(TerminateInstance("c", name, "")) for name in names))
        assert instances.gone == set(names)
        assert not cloud.living

    asyncio.run(scenario())
