"""Weaknesses that Karpenter's disruption is known for (docs/acceptance/lifecycle.md): none is ours.

A pending pod that blocks all, no budgets, one eviction at a time and a stale list of empty nodes have their
tests as DN-08, DN-01, in `tests/controllers/test_drains` and as CO-16.
"""

from dataclasses import replace

from nodeless.disruption import begin
from nodeless.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, ON_DEMAND
from nodeless.model.nodes import DRIFTED, Condition
from nodeless.model.pools import Budget
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Taint, Toleration
from tests.disruption.test_commands import carried_out
from tests.disruption.world import a_node_pool, a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import NOW, instance_type, needs

ON_DEMAND_ONLY = Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])
POOL = a_provisioner(requirements=ON_DEMAND_ONLY)


def test_wk_01_wk_02_while_a_replacement_starts_the_nodes_of_another_pool_are_decided_on():
    dedicated = Taint("dedicated", "NoSchedule", "b")
    other = a_provisioner("other", requirements=ON_DEMAND_ONLY, taints=(dedicated,))
    tolerant = {"tolerations": (Toleration(key="dedicated", operator="Exists"),)}
    seen = cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", cpu="500m"))
    begun = carried_out(seen, begin(only_command(decide(seen)), seen, dict(seen.pools), NOW))
    things = [
        *begun.claims.values(),
        *begun.nodes.values(),
        *begun.pods.values(),
        node_of(other, "b", "2xlarge", node={"taints": (dedicated,)}),
        on("b", cpu="500m", shape=tolerant),
    ]
    assert only_command(decide(cluster(POOL, other, things))).claims == ("b",)


def test_wk_03_a_node_that_must_stay_does_not_end_the_search_among_those_that_cost_more():
    """By disruption cost it comes between the others: no prefix holds both of them and not it."""
    guarded = on("kept", 2, cpu="100m", annotations={DO_NOT_DISRUPT: "true"})
    seen = cluster(
        POOL,
        [node_of(POOL, "one", "large"), on("one", 1, cpu="100m")],
        [node_of(POOL, "kept", "large"), guarded],
        [node_of(POOL, "three", "large"), on("three", 3, cpu="100m")],
    )
    assert set(only_command(decide(seen)).claims) == {"one", "three"}


def test_wk_03_several_nodes_are_replaced_by_several_where_these_are_cheaper():
    old = instance_type("old", 8, 8, price=1.0)
    new = instance_type("new", 8, 8, price=0.5)
    named = {"old": old}
    nodes = [[node_of(POOL, name, "old", types=named), on(name, cpu="5")] for name in "ab"]
    command = only_command(decide(cluster(POOL, nodes), (old, new)))
    assert len(command.replacements) == len(command.claims)
    assert all(node.instance_type == "new" for node in command.replacements)


def test_wk_06_a_saving_of_two_percent_moves_nothing():
    own = instance_type("own", 4, 4, price=1.0)
    seen = cluster(POOL, node_of(POOL, "a", "own", types={"own": own}), on("a"))
    assert not decide(seen, (own, instance_type("near", 4, 4, price=0.98))).commands
    assert decide(seen, (own, instance_type("far", 4, 4, price=0.9))).commands


def test_wk_09_drifted_nodes_are_replaced_side_by_side_within_the_budget():
    pool = a_node_pool(
        consolidation_enabled=False,
        consolidate_after=None,
        budgets=(Budget("2"),),
        requirements=ON_DEMAND_ONLY,
    )
    seen = cluster(
        pool, *([_drifted(pool, name), on(name, cpu="800m", app=name)] for name in ("a", "b", "c"))
    )
    gone = []
    for _ in range(3):
        decisions = decide(seen)
        gone += [name for command in decisions.commands for name in command.claims]
        for command in decisions.commands:
            seen = carried_out(seen, begin(command, seen, dict(seen.pools), NOW))
    assert gone == ["a", "b"]
    assert decide(seen).verdicts["c"].code == "Budget"


def _drifted(pool, name):
    claim, node = node_of(pool, name, "small")
    condition = Condition(DRIFTED, "True", "AMIDrift", "image ami-1 is not selected", NOW - 100)
    return [replace(claim, conditions=(*claim.conditions, condition)), node]
