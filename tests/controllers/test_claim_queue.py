"""Given a change in the cluster, which claims look at themselves?

The cluster's state is given by events; no step is taken, only what waits for one is counted.
"""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.controllers.nodeclaim.controller import WORKERS, ClaimLoop
from nodeless.kube import ApiError
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.conditions import Condition
from nodeless.model.pools import NodeClass, Reference
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import Timing
from tests.disruption.world import a_provisioner, node_of
from tests.factories import NOW, a_launched_claim, a_node, a_pod, an_initialized_claim

POOL = a_provisioner()
NOT_READY = Condition("Ready", "False", "NoSubnets", "", 0.0)
CLASS = NodeClass(POOL.node_class, generation=1, conditions=(NOT_READY,))
OTHER = a_provisioner("other")
HELD = {"cpu": 8_000}
#: Seconds after which a scenario counts as stuck.
SLOW = 20.0


@pytest.fixture
def waiting():
    """Gives the claims that wait for a step after the pool or the node class was seen as it is given."""
    cluster = Cluster()
    cluster.handle(events.PoolSeen(POOL))
    cluster.handle(events.NodeClassSeen(CLASS))
    for name, pool in (("a", POOL), ("b", POOL), ("c", OTHER)):
        claim, node = node_of(pool, name, "small")
        cluster.handle(events.ClaimSeen(claim))
        cluster.handle(events.NodeSeen(node))
    evictions = SimpleNamespace(is_refused=lambda _uid: False)
    executor = SimpleNamespace(instances=SimpleNamespace(gone=set()), evictions=evictions)
    loop = ClaimLoop(cluster, executor, SimpleNamespace(), Metrics())

    def after(seen):
        is_class = isinstance(seen, NodeClass)
        cluster.handle(events.NodeClassSeen(seen) if is_class else events.PoolSeen(seen))
        return set(loop._queue._ready)

    return after


def test_a_pool_that_only_reports_what_its_nodes_hold_has_none_of_them_look(waiting):
    reported = Condition("Ready", "True", "Ready", "", 0.0)
    assert waiting(replace(POOL, status_resources=HELD, status_nodes=2, conditions=(reported,))) == set()


@pytest.mark.parametrize(
    "change",
    [
        {"annotations": {"team": "web"}},
        {"own_annotations": {"nodeless.dev/pause": "true"}},
        {"deletion_timestamp": 1.0},
        {"ttl_seconds_until_expired": 60},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_pool_that_wants_something_else_has_all_of_its_claims_look(waiting, change):
    assert waiting(replace(POOL, status_resources=HELD, **change)) == {"a", "b"}


def test_a_node_class_that_is_seen_again_as_it_was_has_none_of_them_look(waiting):
    """Its status lists subnets by their free addresses: that order changes with each launch."""
    assert waiting(replace(CLASS)) == set()


@pytest.mark.parametrize(
    "change",
    [
        {"conditions": (Condition("Ready", "True", "Ready", "", 0.0),)},
        {"user_data": "echo hello", "generation": 2},
        {"invalid": "amiFamily: unknown"},
        {"deletion_timestamp": 1.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_node_class_that_has_changed_has_all_claims_look_that_use_it(waiting, change):
    """What it selects or says now may be what made their launches fail."""
    assert waiting(replace(CLASS, **change)) == {"a", "b", "c"}


def test_a_node_class_that_no_claim_uses_has_none_of_them_look(waiting):
    assert waiting(NodeClass(replace(POOL.node_class, name="another"))) == set()


def test_a_node_is_missed_from_when_it_is_found_gone_until_it_is_back():
    cluster, clock = Cluster(), [1_000.0]
    executor = SimpleNamespace(
        instances=SimpleNamespace(gone=set()), evictions=SimpleNamespace(is_refused=lambda _uid: False)
    )
    timing = Timing(wall_clock=lambda: clock[0])
    loop = ClaimLoop(cluster, executor, SimpleNamespace(), Metrics(), timing=timing)
    claim, node = node_of(POOL, "a", "small")

    def missed_since(seconds, *seen):
        clock[0] += seconds
        for each in seen:
            cluster.handle(each)
        return loop._view(cluster.snapshot, claim).missed_since

    assert missed_since(0, events.ClaimSeen(claim), events.NodeSeen(node)) is None
    assert missed_since(600, events.NodeGone(node.name)) == 1_600
    assert missed_since(10) == 1_600
    assert missed_since(10, events.NodeSeen(replace(node, uid="again", resource_version="2"))) is None
    assert missed_since(10, events.NodeGone(node.name)) == 1_630
    cluster.handle(events.ClaimGone(claim.name))
    assert not loop._missed


class Unanswered:
    """An API server that answers no eviction, and a cloud that answers nothing; what is patched is gone."""

    def __init__(self, enough, path):
        self.path, self._left = path, enough
        self.enough, self.written = asyncio.Event(), asyncio.Event()

    async def create(self, _path, _body):
        await self._never()

    async def find(self, _instance_id):
        await self._never()

    async def patch(self, path, _body, **_options):
        if path == self.path:
            self.written.set()
        raise ApiError(404, "NotFound", path)

    async def _never(self):
        self._left -= 1
        if not self._left:
            self.enough.set()
        await asyncio.Event().wait()


def draining(name, **node):
    pool, gone = Reference("NodePool", "default", "uid"), {"deletion_timestamp": NOW}
    claim = an_initialized_claim(name, pool=pool, **gone)
    return claim, a_node(name, **gone, **node)


def claim_loop(cluster, server):
    recorder = SimpleNamespace(publish=lambda _event: True)
    executor = InstructionExecutor(server, server, cluster, None, recorder, Metrics(), "karpenter")
    timing = Timing(wall_clock=lambda: NOW + 1)
    return ClaimLoop(cluster, executor, SimpleNamespace(), Metrics(), timing=timing)


async def run_until_a_node_joins(loop, cluster, server, before=None):
    """Run the loop until it writes a node that comes once what is waited for before has happened."""
    running = asyncio.create_task(loop.run())
    try:
        async with asyncio.timeout(SLOW):
            if before is not None:
                await before.wait()
            cluster.handle(events.ClaimSeen(a_launched_claim("new")))
            cluster.handle(events.NodeSeen(a_node("new", labels={}, finalizers=(), owners=())))
            await server.written.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("node", [{}, {"ready": False}], ids=["evictions", "cloud"])
def test_a_node_joins_while_evictions_or_the_cloud_keep_more_drains_waiting_than_are_worked_on(node):
    """As where a webhook on evictions does not answer: each takes as long as the webhook may."""
    cluster, server = Cluster(), Unanswered(WORKERS, "/api/v1/nodes/node-new")
    loop = claim_loop(cluster, server)
    for number in range(WORKERS):
        claim, leaving = draining(f"c{number}", **node)
        cluster.handle(events.ClaimSeen(claim))
        cluster.handle(events.NodeSeen(leaving))
        if not node:
            cluster.handle(events.PodSeen(a_pod(f"p{number}", node_name=leaving.name)))
    asyncio.run(run_until_a_node_joins(loop, cluster, server, before=server.enough))


def test_a_loop_that_was_started_again_more_often_than_it_has_workers_goes_on():
    """As after errors that nobody foresaw: the process starts the loop again."""
    cluster, server = Cluster(), Unanswered(WORKERS, "/api/v1/nodes/node-new")
    loop = claim_loop(cluster, server)

    async def scenario():
        for _ in range(WORKERS + 1):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await loop.run()
        await run_until_a_node_joins(loop, cluster, server)

    asyncio.run(scenario())
