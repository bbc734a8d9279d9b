"""A static pool lacks nodes until it has its replicas, and pods never cause one."""

from dataclasses import replace

import pytest

from nodeless.launch.claims import claims_for
from nodeless.model.labels import REPLACES, ZONE
from nodeless.model.taints import Taint
from nodeless.scheduling import Policy, static_shortage
from tests.scheduling.factories import (
    DEFAULT,
    FAMILY,
    NOW,
    claim,
    codes,
    daemon,
    needs,
    new_types,
    node,
    plan,
    pods,
    pool,
    snapshot,
)

THREE = pool("default", needs(ZONE, "In", "z1"), replicas=3)


def test_a_static_pool_gets_its_nodes_without_any_pod():
    result = plan(THREE)
    assert new_types(result) == ["small"] * 3
    assert all(new.pods == () for new in result.new_nodes)
    claims = [create.claim for create in claims_for(result, {DEFAULT: THREE}, NOW)]
    assert len({made.name for made in claims}) == 3
    assert all(made.requirements[ZONE].values == {"z1"} for made in claims)


def test_its_nodes_hold_its_daemons():
    assert new_types(plan(THREE, daemon("agent", "3"))) == ["large"] * 3


def test_what_it_has_is_not_made_again_and_what_is_leaving_is_replaced():
    here = [claim("a"), claim("b", deletion_timestamp=NOW)]
    assert static_shortage(snapshot(THREE, here)) == {DEFAULT: 2}


def test_a_limit_of_nodes_counts_what_is_leaving():
    limited = pool("default", limits={"nodes": "3"}, replicas=3)
    here = [claim("a"), claim("b", deletion_timestamp=NOW)]
    assert static_shortage(snapshot(limited, here)) == {DEFAULT: 1}


def test_a_node_that_is_being_replaced_counts_once_with_its_replacement():
    here = [claim("a"), claim("b", annotations={REPLACES: "a"})]
    assert static_shortage(snapshot(THREE, here)) == {DEFAULT: 2}


@pytest.mark.parametrize("change", [{"deletion_timestamp": NOW}, {"invalid": "a fault"}, {"replicas": 0}])
def test_a_pool_that_is_leaving_or_invalid_or_wants_none_lacks_nothing(change):
    assert static_shortage(snapshot(replace(THREE, **change))) == {}


def test_pods_use_its_nodes_but_cause_none():
    full = replace(THREE, replicas=0)
    assert codes(plan(full, pods(1))) == ["NoPools"]
    assert plan(full, node("one"), pods(1)).placements == {"default/web-0": "one"}
    result = plan([full, pool("other")], pods(1))
    assert [new.pool.name for new in result.new_nodes] == ["other"]


def test_a_static_pool_with_a_problem_or_without_types_waits():
    assert not plan(THREE, policy=Policy(pool_problems={DEFAULT: "no subnet"})).new_nodes
    assert not plan(THREE, types=()).new_nodes
    assert plan(THREE, types=FAMILY).new_nodes


@pytest.mark.parametrize("replicas", [1_001, 2**63 - 1])
def test_a_pass_makes_a_part_of_very_many(replicas):
    assert static_shortage(snapshot(replace(THREE, replicas=replicas))) == {DEFAULT: 1_000}


def pods_by_pool(result):
    return sorted((new.pool.name, len(new.pods)) for new in result.new_nodes)


def test_pods_are_planned_on_the_nodes_that_are_made_for_the_pool_in_the_same_pass():
    result = plan([THREE, pool("other")], pods(4, "700m"))
    assert pods_by_pool(result) == [("default", 1), ("default", 1), ("default", 1), ("other", 1)]
    assert not result.placements


def test_pods_that_do_not_fit_these_nodes_get_their_own():
    tainted = replace(THREE, taints=(Taint("only", "NoSchedule"),))
    result = plan([tainted, pool("other")], pods(1))
    assert pods_by_pool(result) == [("default", 0), ("default", 0), ("default", 0), ("other", 1)]
