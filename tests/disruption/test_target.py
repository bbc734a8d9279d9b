"""Given a cluster, what does consolidation walk to, and by which commands?"""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings

from nodeless.disruption import DisruptionPolicy, path, target
from nodeless.disruption.sets import price_shares
from nodeless.explain.decisions import Situation, write
from nodeless.explain.walking import consolidation_path
from nodeless.model.labels import DO_NOT_DISRUPT
from nodeless.model.pools import Budget
from nodeless.scheduling import Policy
from tests.controllers.planning import nodeless
from tests.disruption.drawn_clusters import NAMED, TYPES
from tests.disruption.replay import price_of
from tests.disruption.test_validating import NODES, ON_DEMAND_ONLY, POOLS, a_cluster
from tests.disruption.world import a_node_pool, cluster, node_of, on
from tests.scheduling.factories import NOW, pods

POOL = a_node_pool(requirements=ON_DEMAND_ONLY)


def given_to(snapshot):
    return snapshot, dict.fromkeys(snapshot.pools, TYPES), DisruptionPolicy(), NOW


def wasteful(names, pool=POOL, **pod):
    return [
        [node_of(pool, name, "c.4xlarge", types=NAMED), on(name, cpu="900m", memory="1Gi", **pod)]
        for name in names
    ]


@settings(max_examples=15, deadline=None)
@given(POOLS, NODES)
def test_every_step_saves_at_least_what_it_says(pools, nodes):
    seen = a_cluster(pools, nodes)
    whole = target(*given_to(seen))
    assert whole.price == pytest.approx(price_of(seen, TYPES))
    assert 0 <= whole.distance <= whole.price + 1e-9
    before = whole.price
    for step in path(*given_to(seen)):
        # A replacement may be cheaper than the dearest of its types.
        assert step.price <= before - step.command.saving + 1e-9
        before = step.price


def test_the_target_of_a_cluster_that_wastes_is_one_node_and_its_path_leads_there():
    walked = consolidation_path(Situation(*_saved(cluster(POOL, wasteful("abc")))))
    assert sorted(walked.target.ending) == ["a", "b", "c"]
    assert walked.target.whole == pytest.approx(NAMED["a.xlarge"].offerings[-1].price)
    assert walked.reached == pytest.approx(walked.target.whole)


def test_what_must_stay_is_no_part_of_the_target():
    kept = {"annotations": {DO_NOT_DISRUPT: "true"}}
    assert target(*given_to(cluster(POOL, wasteful("abc", **kept)))).distance == 0


def test_each_node_of_the_target_pays_its_fee_once():
    snapshot, catalog, policy, now = given_to(cluster(POOL, wasteful("abc")))
    solving = replace(policy.solving, node_fee=0.01)
    plain, paid = (
        target(snapshot, catalog, replace(policy, solving=each), now) for each in (policy.solving, solving)
    )
    assert paid.price == pytest.approx(plain.price + 0.03)
    assert paid.whole == pytest.approx(plain.whole + 0.01 * len(paid.launches))


def test_a_path_keeps_to_the_budgets():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY, budgets=(Budget("1"),))
    steps = path(*given_to(cluster(pool, wasteful("abcd", pool))))
    assert len(steps) >= 4
    assert all(len(step.command.claims) == 1 for step in steps)


def test_the_command_shows_target_path_evictions_and_savings(tmp_path):
    file = tmp_path / "cluster.json"
    seen = cluster(POOL, wasteful("abc"))
    file.write_bytes(write(Situation(*_saved(seen)), "test"))
    result = nodeless("--snapshot", file, "--target")
    assert result.exit_code == 0, result.output
    assert "target 0.2000 USD/h" in result.stdout
    assert "1. end " in result.stdout
    found = json.loads(nodeless("--snapshot", file, "--target", "--json").stdout)["target"]
    assert found["target"] == pytest.approx(0.2)
    assert found["distance"] == pytest.approx(found["price"] - found["target"])
    assert found["evictions"] == sum(step["evictions"] for step in found["path"])
    assert found["path"][-1]["price"] == found["reached"]
    assert "target" not in json.loads(nodeless("--snapshot", file, "--json").stdout)


def _saved(seen):
    return seen, dict.fromkeys(seen.pools, TYPES), Policy(), NOW


def test_the_price_of_a_planned_node_is_shared_by_the_processors_and_memory_that_its_pods_request():
    [both] = pods(1, "1", "4Gi", name="both")
    bare = replace(both, name="bare", shape=replace(both.shape, requests=(("cpu", 1000),)))
    idle = replace(both, name="idle", shape=replace(both.shape, requests=()))
    moving = [SimpleNamespace(pods=(both, bare)), SimpleNamespace(pods=(idle,))]
    bought = [
        SimpleNamespace(price=2.0, pods=(both.key, bare.key, "default/waits")),
        SimpleNamespace(price=0.5, pods=(idle.key,)),
    ]
    assert price_shares(bought, moving) == {both.key: 1.5, bare.key: 0.5, idle.key: 0.5}
