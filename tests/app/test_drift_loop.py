"""Given nodes of pools that are there or gone, which does the loop look at for drift?"""

import asyncio
from types import SimpleNamespace

import pytest

from nodeless.app.cluster import Cluster
from nodeless.app.drift_loop import DriftLoop
from nodeless.app.metrics import Metrics
from nodeless.app.settings import GlobalSettings
from nodeless.launch.resolved import ResolvedNodeClass
from nodeless.model import events
from nodeless.model.instructions import UpdateNode
from nodeless.model.labels import VOLUNTARY_DISRUPTION
from nodeless.model.pools import NodeClass
from tests.disruption.world import a_provisioner, node_of
from tests.solve.factories import FAMILY, NOW

POOL = a_provisioner()


@pytest.mark.parametrize(("there", "marked"), [(True, ["drifted"]), (False, [])], ids=["there", "gone"])
def test_nd_09_a_node_whose_provisioner_is_gone_is_left_as_it_is(there, marked, monkeypatch):
    monkeypatch.setattr("nodeless.app.drift_loop.wall_clock", lambda: NOW)
    cluster, done = Cluster(), []
    claim, node = node_of(POOL, "a", "large", created_at=NOW - 7200)
    told = [events.NodeClassSeen(NodeClass(POOL.node_class)), events.ClaimSeen(claim), events.NodeSeen(node)]
    for each in [events.PoolSeen(POOL), *told] if there else told:
        cluster.handle(each)

    async def answer(found):
        return found

    cloud = SimpleNamespace(
        # Its type is sold no more.
        catalog=lambda *_: answer(FAMILY[:1]),
        resolve=lambda _: answer(ResolvedNodeClass((), (), (), "nodes")),
        instances=lambda: answer([]),
    )

    async def carry_out(instructions):
        done.extend(instructions)

    hands, settings = SimpleNamespace(carry_out=carry_out), GlobalSettings("demo", drift_enabled=True)
    loop = DriftLoop(cluster, cloud, hands, Metrics(), settings)
    asyncio.run(loop.look_once())
    values = [each.annotations[VOLUNTARY_DISRUPTION] for each in done if isinstance(each, UpdateNode)]
    assert values == marked
