"""Given a cluster whose pools consolidate, which nodes go, and what takes their place?"""

from dataclasses import replace

import pytest

from nodeless.api.times import format_time
from nodeless.model import events
from nodeless.model.instance_types import Offering
from nodeless.model.labels import (
    CAPACITY_TYPE,
    DISRUPTED_TAINT,
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    NOT_BEFORE,
    ON_DEMAND,
    SPOT,
    ZONE,
)
from nodeless.model.pods import Owner
from nodeless.model.pools import Budget
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling import Policy, solve
from nodeless.state import apply
from tests.disruption.world import (
    BORN,
    HOUR,
    a_budget,
    a_node_pool,
    a_provisioner,
    cluster,
    decide,
    node_of,
    on,
    only_command,
)
from tests.scheduling.factories import FAMILY, NOW, beside, instance_type, needs, pods, spread

ON_DEMAND_ONLY = Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])
POOL = a_provisioner(requirements=ON_DEMAND_ONLY)
BOTH = a_provisioner()


def verdict(decisions, name):
    return decisions.verdicts[name]


def types_of(command):
    return [{alternative.instance_type for alternative in node.alternatives} for node in command.replacements]


def test_co_01_a_dear_node_with_one_small_pod_is_replaced_by_a_cheaper_type():
    command = only_command(decide(cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", cpu="500m"))))
    assert command.claims == ("a",)
    assert command.action == "replace"
    (kinds,) = types_of(command)
    assert "2xlarge" not in kinds
    assert command.replacements[0].instance_type == "small"
    assert command.price_after < command.price_before


def test_co_02_of_two_nodes_whose_pods_fit_together_one_goes_and_none_is_launched():
    seen = cluster(POOL, node_of(POOL, "a"), on("a"), node_of(POOL, "b"), on("b"))
    command = only_command(decide(seen))
    assert command.action == "delete"
    assert len(command.claims) == 1
    assert command.evictions == 1


def test_co_03_a_node_whose_pod_a_budget_protects_stays_and_the_other_one_goes():
    seen = cluster(POOL, node_of(POOL, "a"), on("a", app="web"), node_of(POOL, "b"), on("b"), a_budget("web"))
    decisions = decide(seen)
    assert only_command(decisions).claims == ("b",)
    assert verdict(decisions, "a").code == "BudgetExhausted"
    assert "default/budget allows no eviction" in verdict(decisions, "a").message


def test_a_node_whose_pod_crashes_again_and_again_goes_where_its_budget_always_allows_that():
    budget = replace(a_budget("web"), always_evicts_unhealthy=True)
    others = node_of(POOL, "b"), on("b")
    seen = cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", app="web", ready=False), others, budget)
    assert only_command(decide(seen)).claims == ("a",)


@pytest.mark.parametrize(
    ("pool", "key", "goes"),
    [
        (POOL, "", True),
        (POOL, "node.kubernetes.io/unschedulable", True),
        (POOL, DISRUPTED_TAINT, False),
        (a_node_pool(), "", True),
        (a_node_pool(), "node.kubernetes.io/unschedulable", False),
        (a_node_pool(), DISRUPTED_TAINT, True),
    ],
)
def test_a_budget_on_daemons_keeps_their_node_only_where_its_drain_evicts_them(pool, key, goes):
    """A drain leaves pods alone that tolerate its mark: a cordon on a Provisioner's node, else a taint."""
    daemon = on(
        "a",
        app="agent",
        owners=(Owner("apps/v1", "DaemonSet", "agent", controller=True),),
        shape={"tolerations": (Toleration(key, "Exists"),)},
    )
    decisions = decide(cluster(pool, node_of(pool, "a"), daemon, a_budget("agent")))
    assert [command.claims for command in decisions.commands] == [("a",)] * goes
    if not goes:
        assert verdict(decisions, "a").code == "BudgetExhausted"


@pytest.mark.parametrize(("value", "commands"), [("true", 0), ("false", 1)])
def test_co_04_an_annotated_node_is_left_alone(value, commands):
    kept = {"annotations": {DO_NOT_CONSOLIDATE: value}}
    decisions = decide(cluster(POOL, node_of(POOL, "a", "2xlarge", node=kept), on("a")))
    assert len(decisions.commands) == commands
    if not commands:
        assert verdict(decisions, "a").code == "ConsolidationForbidden"


def test_co_05_a_pod_that_must_not_be_evicted_keeps_its_node():
    pod = on("a", annotations={DO_NOT_EVICT: "true"})
    decisions = decide(cluster(POOL, node_of(POOL, "a", "2xlarge"), pod))
    assert not decisions.commands
    assert verdict(decisions, "a").code == "PodProtected"


def test_co_06_a_pod_without_owner_does_not_block():
    (pod,) = on("a")
    assert not pod.owners
    assert decide(cluster(POOL, node_of(POOL, "a", "2xlarge"), pod)).commands


def test_co_07_a_type_whose_dearest_spot_zone_costs_more_than_the_node_is_no_replacement():
    own = instance_type("own", 4, 4, offerings=(Offering("z1", ON_DEMAND, 0.5),))
    new = instance_type(
        "new",
        4,
        4,
        offerings=(Offering("z1", SPOT, 0.2), Offering("z2", SPOT, 0.4), Offering("z3", SPOT, 1.0)),
    )
    seen = cluster(BOTH, node_of(BOTH, "a", "own", types={"own": own}), on("a"))
    decisions = decide(seen, (own, new))
    assert not decisions.commands
    assert "nothing cheaper holds its pods" in verdict(decisions, "a").message


def test_co_08_a_spot_node_is_not_replaced_by_a_spot_node():
    spot = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", SPOT)]))
    decisions = decide(cluster(spot, node_of(spot, "a", "2xlarge", capacity_type=SPOT), on("a")))
    assert not decisions.commands
    assert "spot node is not replaced by a spot node" in verdict(decisions, "a").message


def test_co_09_a_replacement_that_may_be_either_is_bound_to_spot():
    (node,) = only_command(decide(cluster(BOTH, node_of(BOTH, "a", "2xlarge"), on("a")))).replacements
    assert node.requirements[CAPACITY_TYPE].values == {SPOT}
    assert {alternative.offering.capacity_type for alternative in node.alternatives} == {SPOT}


def test_co_10_pods_are_not_moved_onto_a_node_that_is_not_initialized():
    claim, node = node_of(POOL, "b")
    booting = [
        replace(claim, conditions=claim.conditions[:2]),
        replace(node, labels={key: v for key, v in node.labels.items() if "initialized" not in key}),
    ]
    # A node as cheap as can be: it could only be deleted.
    seen = cluster(POOL, node_of(POOL, "a", "small"), on("a", cpu="500m"), booting)
    assert not decide(seen).commands


def test_co_11_three_nodes_are_merged_into_one_that_is_cheaper_in_one_move():
    big = instance_type("big", 12, 12, price=0.5)
    dear = instance_type("dear", 4, 4, price=0.4)
    types = (big, dear)
    named = {kind.name: kind for kind in types}
    nodes = [[node_of(POOL, name, "dear", types=named), on(name, 3)] for name in "abc"]
    command = only_command(decide(cluster(POOL, nodes), types))
    assert command.claims == ("a", "b", "c")
    assert types_of(command) == [{"big"}]
    assert command.saving == pytest.approx(0.7)


def test_co_12_a_node_of_a_spread_is_replaced_within_its_zone():
    rule = {"shape": {"spread": (spread(ZONE),)}, "app": "web"}
    nodes = [
        [node_of(POOL, name, kind, zone=zone), on(name, cpu="800m", **rule)]
        for name, zone, kind in (("a", "z1", "small"), ("b", "z2", "2xlarge"), ("c", "z3", "small"))
    ]
    command = only_command(decide(cluster(POOL, nodes)))
    assert command.claims == ("b",)
    assert command.replacements[0].requirements[ZONE].values == {"z2"}


def test_co_13_pods_that_repel_each_other_keep_their_nodes():
    rule = {"shape": {"anti_affinity": (beside("kubernetes.io/hostname"),)}, "app": "web"}
    nodes = [[node_of(POOL, name, "small"), on(name, cpu="100m", **rule)] for name in "abc"]
    assert not decide(cluster(POOL, nodes)).commands


def test_co_14_a_large_node_is_kept_while_a_large_pod_that_fits_there_is_pending():
    huge = instance_type("huge", 128, 128)
    types = (*FAMILY, huge)
    seen = cluster(
        POOL, node_of(POOL, "a", "huge", types={"huge": huge}), on("a"), pods(1, "125", name="large")
    )
    assert not decide(seen, types).commands
    assert decide(cluster(POOL, node_of(POOL, "a", "huge", types={"huge": huge}), on("a")), types).commands


def test_co_15_empty_nodes_go_all_in_one_move():
    command = only_command(decide(cluster(POOL, [node_of(POOL, name) for name in "abc"])))
    assert (command.reason, command.claims, command.replacements) == ("Empty", ("a", "b", "c"), ())


def test_co_20_a_pool_that_does_not_consolidate_says_so():
    still = a_provisioner(consolidation_enabled=False)
    decisions = decide(cluster(still, node_of(still, "a")))
    assert not decisions.commands
    assert verdict(decisions, "a").code == "ConsolidationDisabled"


def test_co_23_a_node_that_takes_the_place_of_another_is_left_alone():
    new = node_of(POOL, "new", annotations={"nodeless.dev/replaces": "old"})
    old = node_of(POOL, "old", deletion_timestamp=NOW)
    decisions = decide(cluster(POOL, new, old))
    assert not decisions.commands
    assert "takes the place of old" in verdict(decisions, "new").message


def test_co_23_a_pod_that_comes_while_a_node_is_replaced_is_planned_onto_the_replacement():
    claim, _ = node_of(POOL, "new", "large", annotations={"nodeless.dev/replaces": "old"})
    booting = replace(claim, conditions=claim.conditions[:1])
    old = node_of(POOL, "old", "small", node={"taints": (Taint(DISRUPTED_TAINT, "NoSchedule"),)})
    (late,) = pods(1, "1", name="late")
    seen = cluster(POOL, booting, old, on("old", cpu="800m"), late)
    plan = solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy())
    assert plan.new_nodes == ()
    assert plan.placements[late.key] == "new"


def test_co_24_a_node_for_pods_that_are_still_to_come_is_not_taken_away():
    old = node_of(POOL, "old", "small", deletion_timestamp=NOW)
    seen = cluster(POOL, old, on("old", cpu="800m"), node_of(POOL, "new", "small"))
    decisions = decide(seen)
    assert not decisions.commands
    assert verdict(decisions, "new").code == "Expecting"


def test_a_node_with_pods_to_which_others_are_to_come_says_so():
    decisions = decide(cluster(POOL, node_of(POOL, "a"), on("a", cpu="500m"), pods(1, "500m", "1Gi")))
    assert not decisions.commands
    assert verdict(decisions, "a").message == "1 pods are expected on it"


def test_co_25_a_node_whose_price_is_not_known_is_left_alone():
    decisions = decide(cluster(POOL, node_of(POOL, "a", "2xlarge", zone="z9"), on("a")))
    assert not decisions.commands
    assert verdict(decisions, "a").code == "PriceUnknown"


def test_a_daemons_pods_count_for_nothing():
    daemon = on("a", owners=(Owner("apps/v1", "DaemonSet", "log", controller=True),))
    assert only_command(decide(cluster(POOL, node_of(POOL, "a"), daemon))).reason == "Empty"


def test_dn_06_a_node_is_consolidated_once_it_has_been_quiet_for_long_enough():
    pool = a_node_pool(consolidate_after=30)
    for seconds, commands in ((10, 0), (31, 1)):
        seen = cluster(pool, node_of(pool, "a", last_pod_event=NOW - seconds))
        assert len(decide(seen).commands) == commands
    never = a_node_pool(consolidate_after=None)
    assert not decide(cluster(never, node_of(never, "a"))).commands


def test_dn_07_no_pod_is_moved_to_a_node_that_has_just_changed():
    pool = a_node_pool(consolidate_after=30, requirements=ON_DEMAND_ONLY)
    quiet = [node_of(pool, "a", "small"), on("a", cpu="300m")]
    seen = cluster(pool, quiet, node_of(pool, "b", "small", last_pod_event=NOW - 10), on("b", cpu="300m"))
    assert not decide(seen).commands
    assert decide(seen, now=NOW + 21).commands
    # Pods that wait for a place anyway may have it there.
    (waiting,) = pods(1, "300m", name="waiting")
    full = apply(seen, events.PodSeen(waiting))
    full = apply(full, events.NodeSeen(replace(full.nodes["node-a"], unschedulable=True)))
    plan = solve(full, dict.fromkeys(full.pools, FAMILY), Policy())
    assert plan.placements[waiting.key] == "node-b"


def test_dn_08_a_pod_that_nobody_can_place_blocks_no_move():
    hopeless = pods(1, "500", name="hopeless")
    seen = cluster(POOL, node_of(POOL, "a"), on("a"), node_of(POOL, "b"), on("b"), hopeless)
    assert only_command(decide(seen)).action == "delete"


def test_pods_that_have_a_place_on_a_cheaper_node_do_not_move_without_the_one_that_has_none():
    hopeless = on("a", app="hopeless", shape={"selector": {"disk": "nvme"}})
    decisions = decide(cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", 3), hopeless))
    assert not decisions.commands
    assert "hopeless" in verdict(decisions, "a").message


@pytest.mark.parametrize(("number", "launched"), [(14, 0), (15, 15), (20, 15)])
def test_dn_09_spot_to_spot_wants_fifteen_cheaper_types_and_takes_the_cheapest(number, launched):
    spot = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", SPOT)]))
    dear = instance_type("dear", 4, 4, price=2.0)
    cheap = tuple(instance_type(f"cheap-{i:02}", 4, 4, price=0.5 + i / 100) for i in range(number))
    seen = cluster(spot, node_of(spot, "a", "dear", capacity_type=SPOT, types={"dear": dear}), on("a"))
    decisions = decide(seen, (dear, *cheap), spot_to_spot=True)
    assert (
        sum(len(node.alternatives) for command in decisions.commands for node in command.replacements)
        == launched
    )
    if launched:
        names = {
            alternative.instance_type for alternative in only_command(decisions).replacements[0].alternatives
        }
        assert names == {kind.name for kind in cheap[:15]}


def test_dn_10_at_most_a_hundred_nodes_go_in_one_move():
    pool = a_provisioner(requirements=ON_DEMAND_ONLY)
    nodes = [
        [node_of(pool, f"n{i:03}", "small"), on(f"n{i:03}", cpu="50m", memory="10Mi")] for i in range(110)
    ]
    target = [node_of(pool, "target", "2xlarge"), on("target", cpu="9")]
    assert len(only_command(decide(cluster(pool, nodes, target))).claims) == 100


def test_dn_11_the_node_that_saves_more_for_each_disturbance_goes_first():
    pool = a_node_pool(budgets=(a_limit("1"),), requirements=ON_DEMAND_ONLY)
    seen = cluster(
        pool,
        node_of(pool, "busy", "large"),
        on("busy", 3, cpu="100m"),
        node_of(pool, "calm", "large"),
        on("calm", 1, cpu="100m"),
    )
    assert only_command(decide(seen)).claims == ("calm",)


def a_limit(nodes):
    return Budget(nodes)


def test_no_moves_while_capacity_for_waiting_pods_is_being_planned():
    waiting = [replace(pod, created_at=NOW - 5) for pod in pods(1, "15", name="new")]
    seen = cluster(POOL, node_of(POOL, "a"), on("a"), node_of(POOL, "b"), on("b"), waiting)
    decisions = decide(seen)
    assert not decisions.commands
    assert verdict(decisions, "a").code == "Planning"


def test_a_replacement_that_failed_is_not_tried_again_at_once():
    cooling = {"nodeless.dev/disruption-not-before": "2023-11-14T22:14:00Z"}
    seen = cluster(POOL, node_of(POOL, "a", "2xlarge", annotations=cooling), on("a"))
    assert verdict(decide(seen), "a").code == "CoolingDown"
    assert decide(seen, now=NOW + 60).commands


@pytest.mark.parametrize("where", ["node", "pool"])
def test_a_pause_holds_every_move(where):
    note = {"nodeless.dev/pause-disruption": "true"}
    pool = replace(POOL, own_annotations=note) if where == "pool" else POOL
    node = {"annotations": note} if where == "node" else {}
    decisions = decide(cluster(pool, node_of(pool, "a", node=node)))
    assert not decisions.commands
    assert verdict(decisions, "a").code == "Paused"


def test_every_claim_is_in_a_move_or_has_a_verdict():
    seen = cluster(POOL, node_of(POOL, "a"), on("a"), node_of(POOL, "b"), on("b"), node_of(POOL, "c"))
    decisions = decide(seen)
    chosen = {name for command in decisions.commands for name in command.claims}
    assert chosen | set(decisions.verdicts) >= {"c"}
    assert not chosen & set(decisions.verdicts)


def test_nothing_moves_while_a_stack_is_destroyed():
    seen = apply(cluster(POOL, node_of(POOL, "a")), events.GuardSeen(deleting=True))
    assert not decide(seen).commands


LEAVING = Taint(DISRUPTED_TAINT, "NoSchedule")
STAYS = {"annotations": {DO_NOT_CONSOLIDATE: "true"}}
TIGHT = [
    node_of(POOL, "leaves", "xlarge"),
    on("leaves", cpu="2800m", app="large"),
    on("leaves", number=2, cpu="1900m", app="small"),
    node_of(POOL, "half", "xlarge", node=STAYS),
    on("half", cpu="3900m"),
    node_of(POOL, "fuller", "xlarge", node=STAYS),
    on("fuller", cpu="4900m"),
]


def test_pods_that_fit_only_where_kube_scheduler_does_not_put_them_stay():
    """The large one fits beside 4900m, and the others beside 3900m; the scheduler puts it beside 3900m."""
    seen = cluster(POOL, *TIGHT)
    kept = decide(seen, types=FAMILY[3:4])
    assert not kept.commands
    assert "would have no place once kube-scheduler" in verdict(kept, "leaves").message
    planned = decide(seen, types=FAMILY[3:4], as_bound=False)
    assert only_command(planned).claims == ("leaves",)


def test_pods_that_fit_wherever_kube_scheduler_puts_them_move():
    roomy = [TIGHT[0], on("leaves", number=3, cpu="1900m"), *TIGHT[3:]]
    assert only_command(decide(cluster(POOL, *roomy), types=FAMILY[3:4])).claims == ("leaves",)


@pytest.mark.parametrize(("small", "spills"), [("1900m", True), ("300m", False)])
def test_what_is_left_over_is_looked_for_whichever_node_is_drained_first(small, spills):
    """Taken first, a large pod leaves room for two small ones; one small one before it takes its place."""
    seen = cluster(
        POOL,
        [node_of(POOL, name, "large", node={"taints": (LEAVING,)}) for name in ("small", "large")],
        on("small", number=2, cpu=small),
        on("large", cpu="2800m"),
        [node_of(POOL, "a", "xlarge"), on("a", cpu="4500m")],
        [node_of(POOL, "b", "2xlarge"), on("b", cpu="12")],
    )
    plan = solve(seen, {POOL.key: ()}, Policy(as_bound=True))
    assert len(plan.placements) == 3
    assert bool(plan.spill) == spills


def test_a_move_is_made_for_what_it_saves_once_the_pods_that_are_left_over_have_their_node():
    """Three nodes for one pod that then needs a small one."""
    small = FAMILY[1:]
    more = [[node_of(POOL, name, "2xlarge"), on(name, cpu="100m", app=name)] for name in ("x", "y")]
    command = only_command(decide(cluster(POOL, *TIGHT, *more), types=small))
    assert {"leaves", "x", "y"} <= {*command.claims}
    assert not command.replacements
    assert 0 < command.price_after < 0.5 * command.price_before


def test_a_node_is_replaced_by_several_that_cost_less_together():
    """Five pods of 1800m: 9 CPU of 16, and what holds them in one node is the node itself."""
    seen = cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", 5, cpu="1800m"))
    command = only_command(decide(seen))
    assert command.claims == ("a",)
    assert sorted(node.instance_type for node in command.replacements) == ["medium", "xlarge"]
    assert command.price_after < command.price_before


@pytest.mark.parametrize(("half", "launched"), [(0.47, 2), (0.484, 0)])
def test_each_node_more_than_end_must_save_another_percent(half, launched):
    """A node of 1 USD, two pods on it, becomes two parts only where these save 3.12 %, and 1 % more."""
    whole, part = instance_type("whole", 8, 8, price=1.0), instance_type("part", 4, 8, price=half)
    seen = cluster(POOL, node_of(POOL, "a", "whole", types={"whole": whole}), on("a", 2, cpu="3"))
    commands = decide(seen, (whole, part)).commands
    assert [len(command.replacements) for command in commands] == ([launched] if launched else [])


def half_left(*things):
    """A large node and a small one, both half empty, among others."""
    large = [node_of(POOL, "large", "2xlarge"), on("large", 3, cpu="2400m")]
    return cluster(POOL, large, [node_of(POOL, "other", "large"), on("other", cpu="100m")], *things)


def test_in_a_small_cluster_the_command_that_is_worth_more_goes_before_a_node_whose_pods_fit_elsewhere():
    """The pod of `other` fits on `large`, and would be evicted there a second time."""
    command = only_command(decide(half_left()))
    assert command.claims == ("large", "other")
    assert [node.instance_type for node in command.replacements] == ["xlarge"]
    assert command.evictions == 4


#: Seconds that the nodes of `half_left` have to run until their replacement repays, at 2/3 of what it saves.
HALF_REPAYS = 60.0


@pytest.mark.parametrize(
    ("seconds", "made"), [(HALF_REPAYS + 1, "large and other"), (HALF_REPAYS - 1, ""), (HALF_REPAYS - 29, "")]
)
def test_a_node_whose_pods_fit_elsewhere_waits_a_moment_for_a_command_that_is_worth_more(seconds, made):
    """The pod of `other` would be evicted twice, for less than a cent."""
    decisions = decide(half_left(), now=BORN + seconds, overlap=90.0)
    assert [" and ".join(command.claims) for command in decisions.commands] == ([made] if made else [])
    if not made:
        assert BORN + seconds < decisions.again_at < BORN + HALF_REPAYS + 1
        for name in ("large", "other"):
            assert verdict(decisions, name).code == "NotRepaid"
            assert "waits" in verdict(decisions, name).message


def test_every_node_has_its_reason_while_a_command_is_waited_for():
    """One without was said to stay because another command goes first, though none was made."""
    third = node_of(POOL, "third", "small"), on("third", cpu="800m", app="third")
    decisions = decide(half_left(*third), now=BORN + HALF_REPAYS - 1, overlap=90.0)
    assert not decisions.commands
    assert "waits" in verdict(decisions, "third").message


def test_a_replacement_does_not_wait_for_one_of_more_nodes():
    """Both nodes are replaced by smaller ones, each for itself: no pod would move twice."""
    types = [instance_type("seven", 7, 28, price=0.55), instance_type("ten", 10, 40, price=1.0)]
    ten = {"ten": types[1]}
    nodes = [
        node_of(POOL, name, "ten", types=ten, created_at=NOW - age) for name, age in (("a", 500), ("b", 90))
    ]
    seen = cluster(POOL, nodes, on("a", 2, cpu="3"), on("b", 2, cpu="3"))
    assert only_command(decide(seen, tuple(types), overlap=90.0)).claims == ("a",)


def test_nodes_wait_by_the_price_that_a_replacement_may_cost_and_not_by_the_expected_one():
    """By the price that is expected it repays at once, by the dearest that may be launched after minutes."""
    types = (
        instance_type("whole", 16, 64, offerings=(Offering("z1", ON_DEMAND, 1.0),)),
        instance_type("tiny", 2, 8, offerings=(Offering("z1", ON_DEMAND, 0.05),)),
        instance_type("half", 8, 32, offerings=(Offering("z1", SPOT, 0.4),)),
        instance_type("near", 12, 48, offerings=(Offering("z1", SPOT, 0.9),)),
    )
    by_name = {each.name: each for each in types}
    pool = a_node_pool()
    large = node_of(pool, "large", "whole", types=by_name), on("large", 3, cpu="2")
    other = node_of(pool, "other", "tiny", types=by_name), on("other", cpu="500m")
    seen = cluster(pool, large, other)
    assert not decide(seen, types, now=BORN + 225, overlap=90.0).commands
    assert only_command(decide(seen, types, now=BORN + 100, overlap=90.0)).claims == ("other",)


def test_nodes_whose_pods_fit_elsewhere_do_not_wait_for_long():
    command = only_command(decide(half_left(), now=BORN + HALF_REPAYS - 31, overlap=90.0))
    assert command.claims == ("other",)


def test_in_a_large_cluster_nodes_whose_pods_fit_elsewhere_go_first():
    kept = {"annotations": {DO_NOT_EVICT: "true"}}
    full = [[node_of(POOL, f"full-{n}", "small"), on(f"full-{n}", cpu="800m", **kept)] for n in range(19)]
    command = only_command(decide(half_left(full)))
    assert command.claims == ("other",)
    assert command.replacements == ()


def test_a_node_whose_pods_fit_elsewhere_says_that_a_command_goes_first_that_is_worth_more():
    """No command ends more than two nodes: the large one and one of the others are worth more than those."""
    third = [node_of(POOL, "third", "large"), on("third", cpu="100m")]
    decisions = decide(half_left(third), most_nodes=2)
    command = only_command(decisions)
    (left,) = {"other", "third"}.difference(command.claims)
    assert "large" in command.claims
    assert verdict(decisions, left).code == "NotReached"
    assert "worth more" in verdict(decisions, left).message


@pytest.mark.parametrize("since", [60.0, HOUR])
def test_where_a_replacement_failed_nodes_whose_pods_fit_elsewhere_go_first(since):
    """A quota or a broken image would fail it again, and nodes that can go without one would stay."""
    failed = {"annotations": {NOT_BEFORE: format_time(NOW - since)}}
    large = [node_of(POOL, "large", "2xlarge", **failed), on("large", 3, cpu="2400m")]
    other = [node_of(POOL, "other", "large", **failed), on("other", cpu="100m")]
    command = only_command(decide(cluster(POOL, large, other)))
    assert (command.claims, command.replacements) == (("other",), ())


def test_an_empty_node_goes_though_its_price_is_not_known():
    unpriced = Offering("z1", ON_DEMAND, 0.0, available=False)
    odd = instance_type("odd", 4, 16, offerings=(unpriced,))
    command = only_command(
        decide(cluster(POOL, node_of(POOL, "a", "odd", types={"odd": odd})), (*FAMILY, odd))
    )
    assert (command.reason, command.claims, command.saving) == ("Empty", ("a",), 0.0)


def test_nodes_that_cost_nothing_are_looked_at_like_others():
    paid = instance_type("paid", 8, 32, offerings=(Offering("z1", ON_DEMAND, 0.0),))
    nodes = [[node_of(POOL, name, "paid", types={"paid": paid}), on(name)] for name in "ab"]
    decisions = decide(cluster(POOL, nodes), (*FAMILY, paid))
    assert not decisions.faults
    assert only_command(decisions).replacements == ()


def test_pods_of_a_node_that_somebody_deletes_beside_its_claim_get_their_capacity_first():
    """`kubectl delete node`: nobody knows when its claim began to end, for it has not."""
    deleted = node_of(POOL, "a", "2xlarge", node={"deletion_timestamp": NOW - 5})
    seen = cluster(POOL, deleted, on("a", cpu="6"), node_of(POOL, "b"), on("b", cpu="100m"))
    decisions = decide(seen)
    assert not decisions.commands
    assert "1 waiting pods get their capacity first" in verdict(decisions, "b").message


@pytest.mark.parametrize(("protection", "ends"), [("true", True), ("10m", True), ("false", False)])
def test_an_empty_node_is_not_kept_for_a_pod_that_its_draining_node_does_not_let_go(protection, ends):
    pool = a_node_pool()
    leaving = {"deletion_timestamp": NOW - HOUR}
    protected = on("old", cpu="3", annotations={DO_NOT_DISRUPT: protection}, started_at=NOW - 60)
    old = node_of(pool, "old", deletion_timestamp=NOW - HOUR, node=leaving)
    decisions = decide(cluster(pool, old, protected, node_of(pool, "new")))
    assert [command.claims for command in decisions.commands] == ([("new",)] if ends else [])
