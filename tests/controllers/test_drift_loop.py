"""Given nodes of pools that are there or gone, which does the loop look at for drift?"""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.controllers.disruption.drift import DriftLoop
from nodeless.kube.cluster import Cluster
from nodeless.launch.resolved import Image, ResolvedNodeClass
from nodeless.model import events
from nodeless.model.instructions import UpdateClaimStatus, UpdateNode
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, VOLUNTARY_DISRUPTION
from nodeless.model.pools import NodeClass
from nodeless.model.requirements import Requirement, Requirements
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import Timing
from tests.disruption.world import a_node_pool, a_provisioner, node_of
from tests.scheduling.factories import FAMILY, NOW

POOL = a_provisioner()


@pytest.mark.parametrize(("there", "marked"), [(True, ["drifted"]), (False, [])], ids=["there", "gone"])
def test_nd_09_a_node_whose_provisioner_is_gone_is_left_as_it_is(there, marked):
    cluster, done = Cluster(), []
    claim, node = node_of(POOL, "a", "large", created_at=NOW - 7200)
    told = [events.NodeClassSeen(NodeClass(POOL.node_class)), events.ClaimSeen(claim), events.NodeSeen(node)]
    for each in [events.PoolSeen(POOL), *told] if there else told:
        cluster.handle(each)

    async def answer(found):
        return found

    cloud = SimpleNamespace(
        # Its type is sold no more.
        billed_catalog=lambda *_: answer(FAMILY[:1]),
        resolve=lambda _: answer(ResolvedNodeClass((), (), (), "nodes")),
        instances=lambda: answer([]),
    )

    async def carry_out(instructions):
        done.extend(instructions)

    executor, settings = SimpleNamespace(carry_out=carry_out), GlobalSettings("demo", drift_enabled=True)
    loop = DriftLoop(cluster, cloud, executor, Metrics(), settings, Timing(wall_clock=lambda: NOW))
    asyncio.run(loop.reconcile_once())
    values = [each.annotations[VOLUNTARY_DISRUPTION] for each in done if isinstance(each, UpdateNode)]
    assert values == marked


@pytest.mark.parametrize(("first", "drifted"), [("ami-new", True), ("ami-old", False)])
def test_aws_9_1_a_node_drifts_once_its_type_boots_from_another_image(first, drifted):
    """Both images are selected, the second for the types that the first is not for."""
    pool, cluster, found = a_node_pool(), Cluster(), []
    claim, node = node_of(pool, "a", "large")
    claim = replace(claim, image_id="ami-old")
    special = Requirements([Requirement.of(INSTANCE_TYPE, "In", [claim.instance_type])])
    second = "ami-old" if drifted else "ami-new"
    images = (Image(first, special), Image(second))
    for each in (
        events.PoolSeen(pool),
        events.NodeClassSeen(NodeClass(pool.node_class)),
        events.ClaimSeen(claim),
        events.NodeSeen(node),
    ):
        cluster.handle(each)

    async def answer(given):
        return given

    async def carry_out(instructions):
        for each in instructions:
            if isinstance(each, UpdateClaimStatus):
                found.extend((one.status, one.reason) for one in each.conditions if one.type == "Drifted")

    cloud = SimpleNamespace(
        billed_catalog=lambda *_: answer(FAMILY),
        resolve=lambda _: answer(ResolvedNodeClass((), (), images, "nodes")),
        instances=lambda: answer([]),
    )
    loop = DriftLoop(cluster, cloud, SimpleNamespace(carry_out=carry_out), Metrics())
    asyncio.run(loop.reconcile_once())
    assert found == [("True", "AMIDrift")] * drifted


def test_a_node_that_leaves_its_reservation_is_looked_at_soon_and_drifts_where_its_pool_wants_reserved():
    pool = replace(
        a_node_pool(), requirements=Requirements([Requirement.of(CAPACITY_TYPE, "In", ["reserved"])])
    )
    claim, node = node_of(pool, "a", "large")
    claim = replace(claim, labels={**claim.labels, CAPACITY_TYPE: "reserved"})
    demoted = replace(claim, labels={**claim.labels, CAPACITY_TYPE: "on-demand"})
    cluster, found = Cluster(), []
    for each in (events.PoolSeen(pool), events.ClaimSeen(claim), events.NodeSeen(node)):
        cluster.handle(each)

    async def answer(given):
        return given

    drifted = asyncio.Event()

    async def carry_out(instructions):
        for each in instructions:
            if isinstance(each, UpdateClaimStatus):
                found.extend(condition for condition in each.conditions if condition.type == "Drifted")
        if found:
            drifted.set()

    class Cloud:
        looks = 0

        def catalog(self, *_):
            return answer(FAMILY)

        def instances(self):
            self.looks += 1
            if self.looks == 1:
                # After the first pass, which the next one would follow five minutes later.
                asyncio.get_running_loop().call_soon(cluster.handle, events.ClaimSeen(demoted))
            return answer([])

    async def scenario():
        loop = DriftLoop(cluster, Cloud(), SimpleNamespace(carry_out=carry_out), Metrics())
        running = asyncio.create_task(loop.run())
        async with asyncio.timeout(200):
            await drifted.wait()
        running.cancel()

    asyncio.run(scenario())
    assert (found[0].status, found[0].reason) == ("True", "RequirementsDrifted")
    assert "on-demand" in found[0].message
