"""Large pods leave the nodes that drain first, whichever these are, and small ones when they have a place."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.controllers.nodeclaim.eviction_order import EvictionOrder
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.labels import DO_NOT_DISRUPT
from nodeless.model.pods import Owner
from nodeless.model.pools import Reference
from nodeless.operator.timing import Timing
from tests.factories import DAEMON, NOW, a_node, a_pod, an_initialized_claim

WEB = (Owner("apps/v1", "ReplicaSet", "web-1", "web", controller=True),)
JOB = (Owner("batch/v1", "Job", "work", "work", controller=True),)


class World:
    """Two nodes that drain and one that stays, without an API server; time is ours."""

    def __init__(self, **clocks):
        self.time = 0.0
        self.refused = set()
        self.cluster = Cluster()
        clocks = clocks or {"wall_clock": lambda: NOW + self.time, "steady_clock": lambda: self.time}
        self.order = EvictionOrder(self.cluster, self.refused.__contains__, Timing(**clocks))
        for name in ("a", "b", "stays"):
            deleted = NOW if name != "stays" else None
            claim = an_initialized_claim(
                name,
                deletion_timestamp=deleted,
                provider_id=f"aws:///z/i-{name}",
                pool=Reference("NodePool", "default", "pool-uid"),
            )
            self.cluster.handle(events.ClaimSeen(claim))
            node = a_node(
                name, name=f"node-{name}", provider_id=f"aws:///z/i-{name}", deletion_timestamp=deleted
            )
            self.cluster.handle(events.NodeSeen(node))

    def see(self, name, node="", cores=1, **fields):
        """A pod is seen for the first time."""
        node = f"node-{node}" if node else ""
        pod = a_pod(name, requests={"cpu": 1000 * cores}, node_name=node, **{"owners": WEB, **fields})
        self.cluster.handle(events.PodSeen(pod))
        return pod

    def change(self, name, **fields):
        pod = self.cluster.snapshot.pods[f"default/{name}"]
        self.cluster.handle(events.PodSeen(replace(pod, **fields)))

    def evict(self, name):
        self.change(name, deletion_timestamp=NOW + self.time + 30)

    def first_bulk(self):
        """As it is once it is computed anew."""
        self.time += 0.11
        return self.order.first_bulk()


@pytest.fixture
def world():
    return World()


def test_the_largest_pod_of_all_nodes_that_drain_goes_first(world):
    world.see("small", "a", 1)
    world.see("large", "b", 4)
    world.see("larger", "stays", 8)
    assert world.first_bulk() == 4
    world.see("waits", cores=16)
    assert world.first_bulk() == 4


def test_nothing_goes_first_where_nothing_drains(world):
    world.see("large", "b", 4)
    for name in ("a", "b"):
        world.cluster.handle(events.ClaimGone(name))
    assert world.order.first_bulk() == 0


def test_a_claim_that_begins_to_drain_counts_at_once(world):
    world.see("small", "a", 1)
    world.see("large", "stays", 4)
    assert world.order.first_bulk() == 1
    claim = replace(world.cluster.snapshot.claims["stays"], deletion_timestamp=NOW)
    world.cluster.handle(events.ClaimSeen(claim))
    assert world.order.first_bulk() == 4


def test_successors_of_large_pods_are_waited_for_until_they_are_bound(world):
    world.see("small", "a", 1)
    for name in ("one", "two"):
        world.see(name, "b", 4)
        world.evict(name)
    assert world.first_bulk() == 4, "no successor is there yet"
    world.see("three")
    world.see("four", "stays")
    assert world.first_bulk() == 4, "one of them is not bound"
    world.change("three", node_name="node-stays")
    assert world.first_bulk() == 1


def test_one_that_is_gone_without_having_been_seen_to_leave_has_a_successor_too(world):
    world.see("small", "a", 1)
    world.see("large", "b", 4)
    world.cluster.handle(events.PodGone("default/large"))
    assert world.first_bulk() == 4
    world.see("next", "stays", 4)
    assert world.first_bulk() == 1


@pytest.mark.parametrize("how", ["no room", "never comes", "deleted as it is scaled down"])
def test_no_successor_is_waited_for_in_vain(world, how):
    world.see("small", "a", 1)
    world.see("large", "b", 4)
    world.evict("large")
    if how == "no room":
        world.see("next", cores=4, unschedulable=True)
        assert world.first_bulk() == 0, "nobody else has to wait for a node that must be launched"
    else:
        assert world.first_bulk() == 4
        world.time += 2
        assert world.first_bulk() == 1


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("alone", {"owners": ()}),
        ("of a Job", {"owners": JOB}),
    ],
)
def test_who_has_no_successor_at_once_is_waited_for_only_until_it_leaves(world, name, fields):
    world.see("small", "a", 1)
    world.see("large", "b", 4, **fields)
    assert world.first_bulk() == 4
    world.evict("large")
    assert world.first_bulk() == 1, name


@pytest.mark.parametrize(
    ("why", "fields"),
    [
        ("daemon", {"owners": DAEMON}),
        ("static", {"mirror": True}),
        ("finished", {"phase": "Succeeded"}),
        ("protected", {"annotations": {DO_NOT_DISRUPT: "true"}}),
        ("critical, so that it leaves last", {"priority_class": "system-cluster-critical"}),
        ("saves its work", {"annotations": {"nodeless.dev/checkpoint-grace": "2m"}}),
    ],
)
def test_who_does_not_leave_with_the_others_goes_before_nobody(world, why, fields):
    world.see("small", "a", 1)
    world.see("large", "b", 4, **fields)
    assert world.first_bulk() == 1, why


def test_who_is_held_by_a_budget_goes_before_nobody(world):
    world.see("small", "a", 1)
    pod = world.see("large", "b", 4)
    world.refused.add(pod.uid)
    assert world.first_bulk() == 1


def test_ten_seconds_after_it_began_a_drain_is_in_no_order(world):
    world.see("small", "a", 1)
    world.see("large", "b", 4)
    assert world.first_bulk() == 4
    world.time = 10.0
    assert world.first_bulk() == 0


def test_claims_that_drain_are_named_when_smaller_pods_may_leave():
    async def scenario():
        world, told = World(wall_clock=lambda: NOW), []
        work = asyncio.create_task(world.order.run(told.append))
        world.see("small", "a", 1, owners=())
        world.see("large", "b", 4, owners=())
        await asyncio.sleep(0)
        assert world.order.first_bulk() == 4
        assert told == []
        world.evict("large")
        async with asyncio.timeout(200):
            while set(told) != {"a", "b"}:  # noqa: ASYNC110 - a condition is waited for
                await asyncio.sleep(0.01)
        assert world.order.first_bulk() == 1
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    asyncio.run(scenario())


def test_pods_that_leave_a_node_which_does_not_drain_have_no_part_in_it(world):
    world.see("small", "a", 1)
    world.see("large", "stays", 4)
    world.evict("large")
    assert world.first_bulk() == 1
