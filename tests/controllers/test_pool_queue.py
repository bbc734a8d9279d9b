"""Given a change of a pool, how soon is it looked at?

The cluster's state is given by events; no step is taken, only what waits for one is counted.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.controllers.nodepool.controller import PoolLoop
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.conditions import Condition
from nodeless.model.pools import NodeClass
from nodeless.operator.metrics import Metrics
from tests.disruption.world import a_provisioner

POOL = a_provisioner()
REPORTED = {
    "status_resources": {"cpu": 8_000},
    "status_nodes": 2,
    "status_node_class_generation": 3,
    "conditions": (Condition("Ready", "True", "Ready", "", 0.0),),
}


class Cloud:
    """Forgets pools that are gone."""

    def forget(self, pool):
        pass


class Pools:
    """A loop over pools that takes no step, and what waits for one."""

    def __init__(self):
        self.cluster, self.metrics = Cluster(), Metrics()
        self._loop = PoolLoop(
            SimpleNamespace(), self.cluster, Cloud(), SimpleNamespace(), SimpleNamespace(), self.metrics
        )

    def see(self, pool):
        self.cluster.handle(events.PoolSeen(pool))

    def take_all(self):
        self._loop._queue._ready.clear()

    @property
    def now(self):
        return set(self._loop._queue._ready)

    @property
    def later(self):
        return set(self._loop._queue._due)


@pytest.fixture
def pools():
    """The pool and its class are known, and were looked at."""
    pools = Pools()
    pools.cluster.handle(events.NodeClassSeen(NodeClass(POOL.node_class)))
    pools.see(POOL)
    assert POOL.key in pools.now
    pools.take_all()
    return pools


@pytest.mark.parametrize("member", REPORTED)
def test_a_status_that_comes_back_is_looked_at_a_moment_later(pools, member):
    """It is our own, most often, and each claim that changes writes one; somebody else's is corrected."""
    pools.see(replace(POOL, **{member: REPORTED[member]}))
    assert pools.now == set()
    assert pools.later == {POOL.key}


@pytest.mark.parametrize(
    "change",
    [
        {"generation": 7},
        {"limits": {"cpu": 1_000}},
        {"finalizers": ("example.com/wait",)},
        {"deletion_timestamp": 1.0},
        {"own_annotations": {"nodeless.dev/pause": "true"}},
        {"invalid": "spec.requirements: what is this?"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_pool_that_somebody_changed_is_looked_at_at_once(pools, change):
    pools.see(replace(POOL, **REPORTED, **change))
    assert POOL.key in pools.now


def test_a_pool_that_comes_again_is_looked_at_at_once(pools):
    pools.cluster.handle(events.PoolGone(POOL.key))
    pools.take_all()
    pools.see(POOL)
    assert POOL.key in pools.now


@pytest.mark.parametrize("back", [events.GuardSeen(deleting=False), events.GuardGone("karpenter/guard")])
def test_pools_and_classes_are_looked_at_again_once_a_teardown_is_called_off(pools, back):
    """Meanwhile they are left alone, and what was due then would not be due again."""
    pools.cluster.handle(events.GuardSeen(deleting=True))
    pools.take_all()
    pools.cluster.handle(back)
    assert {POOL.key, str(POOL.node_class)} <= pools.now


def test_the_usage_and_limits_of_a_pool_go_with_it_though_it_was_the_last(pools):
    pool = a_provisioner(limits={"cpu": 8_000})
    pools.see(pool)
    pools.metrics.show_pools(pools.cluster.snapshot, pool.name)
    assert b"karpenter_provisioner_limit{" in pools.metrics.render()
    pools.cluster.handle(events.PoolGone(pool.key))
    assert b"karpenter_provisioner_limit{" not in pools.metrics.render()
