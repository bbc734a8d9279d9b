"""Given nodes that are expired or drifted, which one is replaced, and by what?"""

from dataclasses import replace

import pytest

from nodeless.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, ON_DEMAND, REPLACES, VOLUNTARY_DISRUPTION
from nodeless.model.nodes import DISRUPTION_REASON, DRIFTED, INSTANCE_TERMINATING, Condition
from nodeless.model.pods import Owner
from nodeless.model.pools import Budget
from nodeless.model.requirements import Requirements
from nodeless.scheduling import Policy, PriceAdjustment
from tests.disruption.world import (
    a_budget,
    a_node_pool,
    a_provisioner,
    cluster,
    decide,
    node_of,
    on,
    only_command,
)
from tests.scheduling.factories import NOW, needs

ON_DEMAND_ONLY = Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])
POOL = a_provisioner(consolidation_enabled=False, ttl_seconds_until_expired=60, requirements=ON_DEMAND_ONLY)
NODE_POOL = a_node_pool(consolidation_enabled=False, consolidate_after=None, requirements=ON_DEMAND_ONLY)


def expired(name, born=NOW - 100, value="expired", kind="small"):
    return node_of(POOL, name, kind, node={"annotations": {VOLUNTARY_DISRUPTION: value}, "created_at": born})


def drifted(pool, name, since=NOW - 100, kind="small", **claim):
    made, node = node_of(pool, name, kind, **claim)
    condition = Condition(DRIFTED, "True", "AMIDrift", "image ami-1 is not selected", since)
    return [replace(made, conditions=(*made.conditions, condition)), node]


def test_ex_01_a_node_without_the_mark_or_with_another_one_stays():
    assert not decide(cluster(POOL, expired("a", value="drifted"), node_of(POOL, "b"))).commands


def test_ex_02_an_expired_empty_node_ends_and_nothing_is_launched():
    command = only_command(decide(cluster(POOL, expired("a"))))
    assert (command.reason, command.claims, command.replacements) == ("Expired", ("a",), ())


def test_ex_03_of_two_expired_nodes_the_older_one_goes():
    command = only_command(decide(cluster(POOL, expired("a", NOW - 200), expired("b", NOW - 300))))
    assert command.claims == ("b",)


def test_ex_04_an_expired_node_with_a_pod_is_replaced():
    command = only_command(decide(cluster(POOL, expired("a"), on("a", cpu="500m"))))
    assert [node.instance_type for node in command.replacements] == ["small"]


def test_a_replacement_costs_the_fee_of_a_node_once():
    seen = cluster(POOL, expired("a"), on("a", cpu="500m"))
    (plain,) = only_command(decide(seen)).replacements
    solving = Policy(time_box=0.0, node_fee=0.01, price_adjustments=(PriceAdjustment(dollars=0.5),))
    (paid,) = only_command(decide(seen, solving=solving)).replacements
    assert paid.price == pytest.approx(plain.price + 0.51)


def test_ex_06_an_expired_node_whose_pod_fits_nowhere_still_goes():
    seen = cluster(replace(POOL, limits={"cpu": 0}), expired("a"), on("a", cpu="500m"))
    assert only_command(decide(seen)).replacements == ()


@pytest.mark.parametrize("reason", ["Expired", "Drifted"])
def test_ex_06_the_pods_that_have_a_place_get_it_though_another_one_has_none(reason):
    node = expired("a", kind="2xlarge") if reason == "Expired" else drifted(POOL, "a", kind="2xlarge")
    hopeless = on("a", app="hopeless", shape={"selector": {"disk": "nvme"}})
    command = only_command(decide(cluster(POOL, node, on("a", 3), hopeless), drift_of_provisioners=True))
    assert (command.reason, command.evictions) == (reason, 4)
    assert [new.instance_type for new in command.replacements] == ["large"]


@pytest.mark.parametrize(
    "pool",
    [replace(POOL, ttl_seconds_until_expired=None), replace(NODE_POOL, ttl_seconds_until_expired=60)],
    ids=["without a TTL", "of a NodePool"],
)
def test_a_mark_of_expiry_where_none_is_due_ends_no_node(pool):
    marked = {"annotations": {VOLUNTARY_DISRUPTION: "expired"}}
    assert not decide(cluster(pool, node_of(pool, "a", "small", node=marked))).commands


@pytest.mark.parametrize(
    ("value", "commands"), [(None, 1), ("drifted", 1), ("decommission", 0), ("expired", 0)], ids=str
)
def test_a_drifted_node_whose_mark_is_somebody_elses_is_left_alone(value, commands):
    pool = replace(POOL, ttl_seconds_until_expired=None)
    claim, node = drifted(pool, "a")
    marked = replace(node, annotations={VOLUNTARY_DISRUPTION: value} if value else {})
    assert len(decide(cluster(pool, claim, marked), drift_of_provisioners=True).commands) == commands


def test_an_expired_node_waits_while_another_one_of_its_pool_is_being_replaced():
    new = node_of(POOL, "new", annotations={"nodeless.dev/replaces": "old"}, conditions=())
    old = node_of(POOL, "old", node={"taints": ()})
    decisions = decide(cluster(POOL, expired("a"), new, old))
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "Waiting"


def test_co_19_the_next_one_waits_until_the_old_node_is_gone_from_the_cluster():
    """Its replacement is ready and its claim deleted: a drain may still take long."""
    new = node_of(POOL, "new", annotations={"nodeless.dev/replaces": "old"})
    old = node_of(POOL, "old", deletion_timestamp=NOW)
    waiting = decide(cluster(POOL, expired("a"), new, old))
    assert not waiting.commands
    assert waiting.verdicts["a"].code == "Waiting"
    assert only_command(decide(cluster(POOL, expired("a"), new))).claims == ("a",)


@pytest.mark.parametrize(("seconds", "commands"), [(569, 0), (570, 1)])
def test_co_19_a_drain_that_is_stuck_holds_the_next_node_of_a_provisioner_for_nine_and_a_half_minutes(
    seconds, commands
):
    """As long as v0.27 waits: behind one pod that may not be evicted, no other node expired or drifted."""
    new = node_of(POOL, "new", annotations={"nodeless.dev/replaces": "old"})
    old = node_of(POOL, "old", deletion_timestamp=NOW - seconds)
    stuck = cluster(POOL, expired("a"), on("a"), new, old, on("old", app="web"), a_budget("web"))
    assert len(decide(stuck).commands) == commands


@pytest.mark.parametrize("reason", ["Expired", "Drifted"])
def test_co_19_the_next_one_waits_also_for_a_node_that_needed_no_replacement(reason):
    """All expired nodes drained at once, as far as their pods had room elsewhere."""
    why = Condition(DISRUPTION_REASON, "True", reason, "", NOW - 5)
    claim, node = node_of(POOL, "old", deletion_timestamp=NOW - 5)
    old = [replace(claim, conditions=(*claim.conditions, why)), node]
    waiting = decide(cluster(POOL, expired("a"), on("a"), old, on("old"), node_of(POOL, "free", "2xlarge")))
    assert not waiting.commands
    assert waiting.verdicts["a"].code == "Waiting"
    later = decide(cluster(POOL, expired("a"), on("a"), node_of(POOL, "free", "2xlarge")))
    assert only_command(later).claims == ("a",)


def test_dr_01_drifted_nodes_of_a_provisioner_stay_while_the_gate_is_closed():
    seen = cluster(POOL, drifted(POOL, "a"))
    assert not decide(seen).commands
    assert only_command(decide(seen, drift_of_provisioners=True)).reason == "Drifted"


def test_dr_02_a_drifted_node_with_pods_is_replaced_and_one_a_round():
    seen = cluster(POOL, drifted(POOL, "a"), on("a", cpu="500m"), drifted(POOL, "b", NOW - 200), on("b"))
    command = only_command(decide(seen, drift_of_provisioners=True))
    assert command.claims == ("b",)
    assert len(command.replacements) == 1
    empty = cluster(POOL, drifted(POOL, "a"), on("a", cpu="500m"), drifted(POOL, "c"))
    ended = only_command(decide(empty, drift_of_provisioners=True))
    assert (ended.claims, ended.replacements, ended.action) == (("c",), (), "delete")


@pytest.mark.parametrize(("ready", "commands"), [(False, 1), (True, 0)])
def test_a_drifted_node_goes_whose_budget_always_allows_pods_to_leave_that_are_not_ready(ready, commands):
    budget = replace(a_budget("web"), always_evicts_unhealthy=True)
    pod = on("a", cpu="500m", app="web", ready=ready)
    decisions = decide(cluster(NODE_POOL, drifted(NODE_POOL, "a"), pod, budget))
    assert len(decisions.commands) == commands


def test_dn_12_a_drifted_node_whose_pods_have_no_place_is_skipped_for_the_next_one():
    seen = cluster(
        NODE_POOL,
        drifted(NODE_POOL, "a", NOW - 200, kind="2xlarge"),
        on("a", cpu="15", shape={"selector": {"disk": "nvme"}}),
        drifted(NODE_POOL, "b"),
        on("b", cpu="500m"),
    )
    decisions = decide(seen)
    assert only_command(decisions).claims == ("b",)
    assert decisions.verdicts["a"].code == "NoReplacement"


def two_pools_drift(kind_of_b="small"):
    a, b = (replace(NODE_POOL, reference=replace(NODE_POOL.reference, name=name)) for name in "ab")
    return a, [
        a,
        b,
        drifted(a, "a"),
        on("a", cpu="500m"),
        drifted(b, "b", kind=kind_of_b),
        on("b", cpu="500m"),
    ]


def test_nodes_of_two_pools_that_go_together_do_not_count_on_the_same_room():
    a, things = two_pools_drift()
    commands = decide(cluster(*things, node_of(a, "free", "small"))).commands
    assert [command.claims for command in commands] == [("a",), ("b",)]
    assert [[new.instance_type for new in command.replacements] for command in commands] == [[], ["small"]]


def test_a_node_to_which_pods_of_another_one_come_stays_for_that_look():
    _, things = two_pools_drift(kind_of_b="large")
    decisions = decide(cluster(*things))
    command = only_command(decisions)
    assert (command.claims, command.replacements) == (("a",), ())
    assert decisions.verdicts["b"].code == "Expecting"


def test_empty_nodes_of_a_node_pool_go_before_its_drifted_ones_and_after_those_of_a_provisioner():
    """The orders of v1 and of v0.27."""
    for pool, reason in ((a_node_pool(), "Empty"), (a_provisioner(), "Drifted")):
        seen = cluster(pool, drifted(pool, "a"), on("a", cpu="500m"), node_of(pool, "b"))
        assert only_command(decide(seen, drift_of_provisioners=True)).reason == reason


@pytest.mark.parametrize(
    ("kind", "api", "empty"),
    [("StatefulSet", "apps/v1", False), ("ReplicaSet", "apps/v1", True), ("StatefulSet", "other/v1", True)],
)
def test_a_terminating_member_of_a_stateful_set_keeps_its_node_from_being_empty(kind, api, empty):
    """Its successor comes only once it is gone, and finds its place where it was."""
    owner = (Owner(api, kind, "db", controller=True),)
    leaving = on("a", cpu="500m", owners=owner, deletion_timestamp=NOW + 30)
    seen = cluster(a_node_pool(), node_of(a_node_pool(), "a", "small"), leaving)
    assert any(command.reason == "Empty" for command in decide(seen).commands) is empty


STATIC = replace(NODE_POOL, replicas=2)


@pytest.mark.parametrize("limits", [None, {"nodes": 3}])
def test_a_drifted_node_of_a_static_pool_is_replaced_one_for_one_whatever_its_pods(limits):
    pool = replace(STATIC, limits=limits)
    seen = cluster(pool, drifted(pool, "a"), on("a", cpu="15"), node_of(pool, "b"))
    command = only_command(decide(seen))
    assert (command.reason, command.claims, len(command.replacements)) == ("Drifted", ("a",), 1)


def test_where_the_limit_of_a_static_pool_leaves_no_slot_the_drifted_node_goes_first():
    pool = replace(STATIC, limits={"nodes": 2})
    command = only_command(decide(cluster(pool, drifted(pool, "a"), node_of(pool, "b"))))
    assert (command.claims, command.replacements) == (("a",), ())


@pytest.mark.parametrize(
    ("state", "budget", "goes"),
    [
        ("starts", "1", False),
        ("starts", "2", True),
        ("leaves", "1", False),
        ("is up", "1", True),
    ],
)
def test_nodes_of_a_static_pool_at_its_limit_go_one_after_the_other(state, budget, goes):
    """While the replacement of the first one started, the next one ended, and soon the whole pool."""
    pool = replace(STATIC, replicas=3, limits={"nodes": 3}, budgets=(Budget(budget),))
    starting = {"conditions": (), "node": {"labels": {}}}
    ending = {
        "deletion_timestamp": NOW,
        "conditions": (Condition(INSTANCE_TERMINATING, "True", "", "", NOW),),
    }
    new = node_of(pool, "new", "large", **{"starts": starting, "leaves": ending, "is up": {}}[state])
    decisions = decide(cluster(pool, new, drifted(pool, "b", kind="large"), drifted(pool, "c", kind="large")))
    assert [command.claims for command in decisions.commands] == ([("b",)] if goes else [])
    assert goes or "waits for its turn" in decisions.verdicts["b"].message


@pytest.mark.parametrize("budget", ["100%", "5", "3", "60%"])
@pytest.mark.parametrize("spare", [1, 2])
def test_drifted_nodes_of_a_static_pool_take_turns_on_the_slots_that_its_limit_spares(budget, spare):
    """No node ends without a replacement while others are being replaced."""
    pool = replace(STATIC, replicas=5, limits={"nodes": 5 + spare}, budgets=(Budget(budget),))
    olds = [drifted(pool, name, kind="large") for name in "abcde"]
    news = [node_of(pool, f"new-{old}", "large", annotations={REPLACES: old}) for old in "abcde"[:spare]]
    decisions = decide(cluster(pool, *olds, *news))
    assert not decisions.commands
    assert "waits for its turn" in decisions.verdicts["e"].message


def test_a_slot_that_is_free_again_is_the_next_ones():
    pool = replace(STATIC, replicas=5, limits={"nodes": 6}, budgets=(Budget("100%"),))
    olds = [drifted(pool, name, kind="large") for name in "bcde"]
    seen = cluster(pool, *olds, node_of(pool, "new-a", "large", annotations={REPLACES: "a"}))
    assert len(only_command(decide(seen)).replacements) == 1


def test_a_drifted_node_of_a_static_pool_that_can_make_none_stays():
    pool = replace(STATIC, requirements=Requirements([needs(CAPACITY_TYPE, "In", "lunar")]))
    decisions = decide(cluster(pool, drifted(pool, "a")))
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "NoReplacement"


@pytest.mark.parametrize(("grace", "commands"), [(None, 0), (300, 1)])
def test_dn_13_a_protected_pod_holds_a_drifted_node_unless_its_drain_is_bounded(grace, commands):
    pod = on("a", cpu="500m", annotations={DO_NOT_DISRUPT: "true"})
    seen = cluster(NODE_POOL, drifted(NODE_POOL, "a", termination_grace_period=grace), pod)
    assert len(decide(seen).commands) == commands


def test_dn_13_consolidation_respects_it_all_the_same():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    pod = on("a", cpu="500m", annotations={DO_NOT_DISRUPT: "true"})
    seen = cluster(pool, node_of(pool, "a", "2xlarge", termination_grace_period=300), pod)
    assert not decide(seen).commands


def test_a_disruption_budget_without_an_eviction_left_holds_a_drifted_node():
    seen = cluster(NODE_POOL, drifted(NODE_POOL, "a"), on("a", cpu="500m", app="web"), a_budget("web"))
    assert decide(seen).verdicts["a"].code == "BudgetExhausted"


def test_drift_keeps_to_the_pools_budget():
    pool = replace(NODE_POOL, budgets=(Budget("0", reasons=("Drifted",)),))
    decisions = decide(cluster(pool, drifted(pool, "a")))
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "Budget"


def test_nodes_of_a_node_pool_without_budgets_drift_beside_one_whose_drain_is_stuck():
    """Karpenter's budgets alone decide: `nodes: 100%` is none that counts."""
    new = node_of(NODE_POOL, "new", annotations={REPLACES: "old"})
    old = node_of(NODE_POOL, "old", deletion_timestamp=NOW - 7200)
    seen = cluster(NODE_POOL, new, on("new", cpu="500m"), old, drifted(NODE_POOL, "a"), on("a", cpu="500m"))
    assert only_command(decide(seen)).claims == ("a",)


@pytest.mark.parametrize("reason", ["Empty", "Drifted"])
def test_a_replacement_is_a_node_like_any_other_once_what_it_replaced_has_drained_for_long(reason):
    """A protected pod may hold a drain for days, and the replacement cost money as long."""
    pool = replace(NODE_POOL, consolidation_enabled=True, consolidate_after=0)
    new = node_of(pool, "new", annotations={REPLACES: "old"})
    if reason == "Drifted":
        new = [*drifted(pool, "new", annotations={REPLACES: "old"}), on("new", cpu="500m")]
    old = node_of(pool, "old", deletion_timestamp=NOW - 600, termination_grace_period=3 * 86_400)
    command = only_command(decide(cluster(pool, new, old, on("old", annotations={DO_NOT_DISRUPT: "true"}))))
    assert (command.reason, command.claims) == (reason, ("new",))
    waiting = decide(cluster(pool, new, old, on("old", cpu="100m")))
    assert reason == "Drifted" or waiting.verdicts["new"].code == "Expecting"


def test_a_node_whose_replacement_is_there_gets_no_second_one():
    """The leader died, or met a conflict, after it wrote the replacement and before it marked the node."""
    new = node_of(NODE_POOL, "new", annotations={REPLACES: "a"}, conditions=())
    pool = replace(NODE_POOL, budgets=(Budget("10"),))
    decisions = decide(cluster(pool, new, drifted(pool, "a"), on("a", cpu="500m")))
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "Replacing"
    assert "new takes its place" in decisions.verdicts["a"].message
