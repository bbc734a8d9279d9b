"""Given a change in the cluster, which claims look at themselves?

The cluster's state is given by events; no step is taken, only what waits for one is counted.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.controllers.nodeclaim.controller import ClaimLoop
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.conditions import Condition
from nodeless.operator.metrics import Metrics
from tests.disruption.world import a_provisioner, node_of

POOL = a_provisioner()
OTHER = a_provisioner("other")
HELD = {"cpu": 8_000}


@pytest.fixture
def waiting():
    """Gives the claims that wait for a step after the pool was seen as it is given."""
    cluster = Cluster()
    cluster.handle(events.PoolSeen(POOL))
    for name, pool in (("a", POOL), ("b", POOL), ("c", OTHER)):
        claim, node = node_of(pool, name, "small")
        cluster.handle(events.ClaimSeen(claim))
        cluster.handle(events.NodeSeen(node))
    executor = SimpleNamespace(instances=SimpleNamespace(gone=set()))
    loop = ClaimLoop(cluster, executor, SimpleNamespace(), Metrics())

    def after(pool):
        cluster.handle(events.PoolSeen(pool))
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
