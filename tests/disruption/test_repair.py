"""Given nodes that say that they are broken, which one is rebooted or replaced, and when is none?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import format_time
from nodeless.disruption import DisruptionPolicy, advance, begin
from nodeless.disruption.consolidation_state import ConsolidationState
from nodeless.disruption.repair_controller import next_repair
from nodeless.disruption.repair_policy import (
    POLICIES,
    REBOOT,
    RepairPolicy,
    ailment,
    breaker,
    in_order,
    misfits,
)
from nodeless.model.conditions import Condition
from nodeless.model.instructions import AnnotateClaim, CreateClaim, DeleteClaim, UpdateNode
from nodeless.model.labels import (
    CAPACITY_TYPE,
    DISRUPTED_TAINT,
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    DRAIN_GRACE,
    NOT_BEFORE,
    ON_DEMAND,
    REBOOTED_FROM,
    REBOOTING_TAINT,
    REBOOTS,
    REPLACES,
)
from nodeless.model.nodes import REBOOTING
from nodeless.model.pools import Budget
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Toleration
from tests.disruption.test_commands import carried_out, replacement_of
from tests.disruption.world import a_budget, a_node_pool, cluster, decide, node_of, on, only_command
from tests.factories import a_node
from tests.scheduling.factories import NOW, needs

MINUTE = 60.0
POOL = a_node_pool(
    consolidation_enabled=False,
    consolidate_after=None,
    requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]),
)


def broken(name, minutes=31, *, kind="small", type_="Ready", status="False", pool=POOL, reason="", **fields):
    condition = Condition(type_, status, reason, "", NOW - minutes * MINUTE)
    node = {"conditions": (condition,), "ready": type_ != "Ready", **fields.pop("node", {})}
    return node_of(pool, name, kind, node=node, **fields)


def healthy(number, pool=POOL):
    return [node_of(pool, f"h{each}", "small") for each in range(number)]


def look(*things, **policy):
    return decide(cluster(*things), **{"node_repair": True, **policy})


def test_dn_24_a_node_that_is_broken_for_too_long_is_replaced_before_it_ends():
    things = (POOL, broken("a"), on("a", cpu="500m"), healthy(9))
    seen = cluster(*things, [on(f"h{each}", cpu="700m") for each in range(9)])
    command = only_command(decide(seen, node_repair=True))
    assert (command.reason, command.claims) == ("Unhealthy", ("a",))
    assert len(command.replacements) == 1
    assert "Ready=False for more than 1800 s" in command.message


def test_dn_24_three_broken_nodes_of_ten_stop_all_repair():
    assert only_command(look(POOL, broken("a"), broken("b"), healthy(8))).reason == "Unhealthy"
    decisions = look(POOL, broken("a"), broken("b"), broken("c", 1), healthy(7))
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "Breaker"
    assert "3 of 10 nodes" in decisions.verdicts["a"].message


@pytest.mark.parametrize(("nodes", "most"), [(1, 1), (4, 1), (5, 1), (6, 2), (10, 2), (11, 3)])
def test_a_fifth_rounded_up_may_be_broken(nodes, most):
    assert not breaker(nodes, most)
    assert breaker(nodes, most + 1)


def test_nothing_is_repaired_while_the_gate_is_closed_or_the_time_is_not_over():
    assert not look(POOL, broken("a"), healthy(9), node_repair=False).commands
    assert not look(POOL, broken("a", 29), healthy(9)).commands


@pytest.mark.parametrize(
    ("condition", "status", "minutes"),
    [
        ("Ready", "False", 30),
        ("Ready", "Unknown", 30),
        ("AcceleratedHardwareReady", "False", 30),
        ("StorageReady", "False", 30),
        ("NetworkingReady", "False", 30),
        ("KernelReady", "False", 30),
        ("ContainerRuntimeReady", "False", 30),
    ],
)
def test_aws_9_5_each_condition_is_tolerated_for_its_time(condition, status, minutes):
    young = broken("a", minutes - 1, type_=condition, status=status)
    assert not look(POOL, young, healthy(9)).commands
    overdue = broken("a", minutes + 1, type_=condition, status=status)
    assert only_command(look(POOL, overdue, healthy(9))).claims == ("a",)


@pytest.mark.parametrize(
    ("condition", "status"),
    [("StorageReady", "Unknown"), ("AcceleratedHardwareReady", "Unknown"), ("MemoryPressure", "True")],
)
def test_aws_9_5_what_no_policy_names_is_tolerated_for_ever(condition, status):
    assert not look(POOL, broken("a", 600, type_=condition, status=status), healthy(9)).commands


def test_one_node_a_round_the_most_urgent_first():
    gpu = xid("gpu", code=79)
    assert only_command(look(POOL, broken("a", 40), gpu, healthy(9))).claims == ("gpu",)
    # Being overdue for an hour outweighs one rank of priority.
    assert only_command(look(POOL, broken("a", 95, node={"created_at": 0.0}), gpu, healthy(9))).claims == (
        "a",
    )


@pytest.mark.parametrize(("grace", "commands"), [(None, 0), (300, 1)])
def test_a_pod_that_blocks_is_passed_over_only_where_the_drain_is_bounded(grace, commands):
    pod = on("a", cpu="500m", annotations={DO_NOT_DISRUPT: "true"})
    unbounded = (RepairPolicy("Ready", "False", 1800.0),)
    ill = broken("a", termination_grace_period=grace)
    decisions = look(POOL, ill, pod, healthy(9), repair_policies=unbounded)
    assert len(decisions.commands) == commands
    if not commands:
        assert decisions.verdicts["a"].code == "RepairBlocked"


@pytest.mark.parametrize(
    ("key", "boot_id", "action"),
    [
        (REBOOTING_TAINT, "one", "reboot"),
        (DISRUPTED_TAINT, "one", None),
        (REBOOTING_TAINT, "", None),
        (DISRUPTED_TAINT, "", "replace"),
    ],
)
def test_a_budget_counts_for_pods_that_the_drain_of_this_repair_evicts(key, boot_id, action):
    """Without a boot id the node is replaced, and drained behind another taint."""
    ill = xid("a", node={"boot_id": boot_id})
    pod = on("a", cpu="500m", app="web", shape={"tolerations": (Toleration(key, "Exists"),)})
    busy = [on(f"h{each}", cpu="700m") for each in range(9)]
    reboots = RepairPolicy("AcceleratedHardwareReady", "False", 60.0, reason=".*XID48.*", action=REBOOT)
    policies = (reboots, RepairPolicy("AcceleratedHardwareReady", "False", 60.0))
    decisions = look(POOL, ill, pod, healthy(9), busy, a_budget("web"), repair_policies=policies)
    assert [command.action for command in decisions.commands] == ([action] if action else [])
    if not action:
        assert decisions.verdicts["a"].code == "RepairBlocked"


def test_an_annotation_forbids_it_and_do_not_disrupt_does_not():
    vetoed = broken("a", node={"annotations": {DO_NOT_REPAIR: "true"}})
    assert look(POOL, vetoed, healthy(9)).verdicts["a"].code == "RepairBlocked"
    assert look(POOL, broken("a", node={"annotations": {DO_NOT_DISRUPT: "true"}}), healthy(9)).commands


def test_the_budget_for_unhealthy_nodes_holds_and_is_not_used_up_by_the_node_itself():
    closed = replace(POOL, budgets=(Budget("0", reasons=("Unhealthy",)),))
    assert look(closed, broken("a", pool=closed), healthy(9, closed)).verdicts["a"].code == "Budget"
    one = replace(POOL, budgets=(Budget("1"),))
    assert look(one, broken("a", pool=one), healthy(9, one)).commands


def test_a_node_that_was_never_initialized_needs_no_budget():
    closed = replace(POOL, budgets=(Budget("0"),))
    never = broken("a", pool=closed, node={"labels": {}}, conditions=())
    assert look(closed, never, healthy(9, closed)).commands


@pytest.mark.parametrize(("limits", "replacements"), [(None, 1), ({"nodes": 3}, 1), ({"nodes": 2}, 0)])
def test_a_broken_node_of_a_static_pool_is_replaced_one_for_one_whatever_its_pods(limits, replacements):
    pool = replace(POOL, replicas=2, limits=limits)
    command = only_command(look(pool, broken("a", pool=pool), on("a", cpu="1"), healthy(1, pool)))
    assert (command.reason, command.claims, len(command.replacements)) == ("Unhealthy", ("a",), replacements)


def test_a_broken_node_of_a_static_pool_that_can_make_none_stays():
    nowhere = Requirements([needs(CAPACITY_TYPE, "In", "lunar")])
    pool = replace(POOL, replicas=1, requirements=nowhere)
    assert look(pool, broken("a", pool=pool), on("a")).verdicts["a"].code == "NoReplacement"


def legacy(*things):
    return look(*things, legacy_repair=True)


def test_by_the_legacy_rules_every_broken_node_ends_at_once_and_nothing_is_launched_first():
    """Whatever budgets say, and whatever its pods ask for: they are deleted, not evicted."""
    pool = replace(POOL, budgets=(Budget("0"),))
    guarded = on("a", cpu="500m", annotations={DO_NOT_DISRUPT: "true"})
    things = (pool, broken("a", pool=pool), guarded, broken("b", pool=pool), healthy(8, pool))
    commands = legacy(*things).commands
    assert [(command.reason, command.claims, command.action) for command in commands] == [
        ("Unhealthy", ("a",), "delete"),
        ("Unhealthy", ("b",), "delete"),
    ]
    done = begin(commands[0], cluster(*things), {}, NOW)
    assert [each.annotations for each in done if isinstance(each, AnnotateClaim)] == [{DRAIN_GRACE: "0"}]
    assert [each.name for each in done if isinstance(each, DeleteClaim)] == ["a"]
    assert not [each for each in done if isinstance(each, CreateClaim)]


def bounds(things, **policy):
    """What is written onto claims by the one command of a look, and whether another look has one."""
    seen = cluster(*things)
    done = begin(only_command(decide(seen, node_repair=True, **policy)), seen, {}, NOW)
    assert not [each for each in done if isinstance(each, DeleteClaim | CreateClaim | UpdateNode)]
    again = decide(carried_out(seen, done), node_repair=True, **policy)
    return {each.name: each.annotations for each in done if isinstance(each, AnnotateClaim)}, again.commands


@pytest.mark.parametrize(("rules", "seconds"), [({}, "600"), ({"legacy_repair": True}, "0")])
def test_the_drain_of_a_node_that_breaks_meanwhile_is_bounded(rules, seconds):
    """A budget, or a pod that nobody on the machine ends any more, would hold it for ever."""
    pool = replace(POOL, budgets=(Budget("0"),))
    guarded = on("a", annotations={DO_NOT_DISRUPT: "true"})
    things = (pool, broken("a", pool=pool, deletion_timestamp=NOW - 3600), guarded, healthy(9, pool))
    assert bounds(things, **rules) == ({"a": {DRAIN_GRACE: seconds}}, ())
    assert not look(*things, **rules, node_repair=False).commands
    vetoed = broken("a", deletion_timestamp=NOW, node={"annotations": {DO_NOT_REPAIR: "true"}})
    assert not look(POOL, vetoed, healthy(9), **rules).commands
    bounded = broken("a", deletion_timestamp=NOW, annotations={DRAIN_GRACE: seconds})
    assert not look(POOL, bounded, healthy(9), **rules).commands


def test_by_the_legacy_rules_a_node_is_ended_after_its_toleration_and_with_the_gate_open_alone():
    assert not legacy(POOL, broken("a", 29), healthy(9)).commands
    assert only_command(legacy(POOL, broken("a", 30), healthy(9))).claims == ("a",)
    assert not look(POOL, broken("a"), healthy(9), legacy_repair=True, node_repair=False).commands


def test_by_the_legacy_rules_too_many_broken_nodes_of_a_pool_and_annotations_stop_it():
    decisions = legacy(POOL, broken("a"), broken("b"), broken("c", 1), healthy(7))
    assert not decisions.commands
    assert {decisions.verdicts[name].code for name in "ab"} == {"Breaker"}
    vetoed = broken("a", node={"annotations": {DO_NOT_REPAIR: "true"}})
    assert legacy(POOL, vetoed, healthy(9)).verdicts["a"].code == "RepairBlocked"


def test_the_legacy_rules_know_no_reasons_and_so_no_reboots():
    gpu = xid()
    assert only_command(look(POOL, gpu, healthy(9))).action == "reboot"
    assert only_command(legacy(POOL, gpu, healthy(9))).action == "delete"


def test_while_a_specific_policy_still_tolerates_the_fallback_is_silent():
    policies = (
        RepairPolicy("Disk", "False", 3600.0, reason="Resizing.*"),
        RepairPolicy("Disk", "False", 60.0),
    )

    def found(reason, minutes):
        node = a_node(conditions=(Condition("Disk", "False", reason, "", NOW),))
        return ailment(node, NOW + minutes * MINUTE, policies)

    assert found("Resizing-ext4", 2) is None
    assert found("Resizing-ext4", 61).policy == policies[0]
    assert found("Broken", 2).policy == policies[1]


def test_a_condition_is_as_old_as_it_says_also_on_a_younger_node():
    """Who writes an old condition to a new node wants it mended now, as with Karpenter v1."""
    young = a_node(created_at=NOW, conditions=(Condition("Ready", "False", "", "", NOW - 31 * MINUTE),))
    assert ailment(young, NOW).since == NOW - MINUTE
    assert ailment(young, NOW, rebooted_at=NOW - MINUTE) is None


def test_a_condition_that_does_not_say_since_when_is_as_old_as_its_node():
    young = a_node(created_at=NOW, conditions=(Condition("Ready", "False"),))
    assert ailment(young, NOW + 29 * MINUTE) is None
    assert ailment(young, NOW + 30 * MINUTE).since == NOW + 30 * MINUTE


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), st.integers(31, 500), max_size=6))
def test_among_equals_the_one_that_has_waited_longest_goes_first(minutes):
    due = [
        (
            name,
            ailment(
                a_node(
                    conditions=(Condition("Ready", "False", "", "", NOW - minute * MINUTE),), created_at=0.0
                ),
                NOW,
            ),
        )
        for name, minute in minutes.items()
    ]
    assert in_order(due, NOW) == sorted(minutes, key=lambda name: (-minutes[name], name))


@pytest.mark.parametrize(("deleted", "repaired"), [({}, False), ({"deletion_timestamp": NOW - 7200}, True)])
def test_a_replacement_that_is_broken_is_replaced_though_its_old_node_still_drains(deleted, repaired):
    old = node_of(POOL, "old", "small", **deleted)
    new = broken("new", annotations={REPLACES: "old"})
    decisions = look(POOL, old, on("old", cpu="500m"), new, on("new", cpu="500m"), healthy(9))
    assert [command.claims for command in decisions.commands] == ([("new",)] if repaired else [])


def test_the_broken_node_is_marked_while_its_replacement_comes():
    seen = cluster(
        POOL, broken("a"), on("a", cpu="500m"), healthy(9), [on(f"h{i}", cpu="700m") for i in range(9)]
    )
    command = only_command(decide(seen, node_repair=True))
    after = carried_out(seen, begin(command, seen, dict(seen.pools), NOW))
    assert replacement_of(after).annotations["nodeless.dev/replaces"] == "a"
    assert any(taint.key == "karpenter.sh/disrupted" for taint in after.nodes["node-a"].taints)


def xid(name="a", code=48, minutes=11, *, node=None, **fields):
    """A node whose GPU reports an error of the driver."""
    node = {"boot_id": "one", **(node or {})}
    reason = f"NvidiaXID{code}Error"
    return broken(name, minutes, type_="AcceleratedHardwareReady", reason=reason, node=node, **fields)


#: By the AWS provider of Karpenter 1.15; of the others (142 is one, as are 460 and 4) it is not known.
OF_A_REBOOT = (46, 48, 54, 62, 63, 95, 109, 110, 136, 140, 143, 155, 156, 158)
FATAL = (64, 74, 79, 119, 120)


@pytest.mark.parametrize("code", [*OF_A_REBOOT, *FATAL, 142, 13, 460, 4])
def test_an_error_that_a_reboot_clears_is_mended_so_and_one_of_which_it_is_not_known_is_tolerated(code):
    busy = [on(f"h{each}", cpu="700m") for each in range(9)]

    def mended(minutes):
        ill = xid(code=code, minutes=minutes)
        return look(POOL, ill, on("a", cpu="500m"), healthy(9), busy).commands

    known = code in (*OF_A_REBOOT, *FATAL)
    assert not mended(9 if known else 29)
    (command,) = mended(11 if known else 31)
    assert command.action == ("reboot" if code in OF_A_REBOOT else "replace")
    assert command.claims == ("a",)


@pytest.mark.parametrize(("code", "seconds"), [(48, 300), (79, 300), (142, 600)])
def test_the_drain_before_a_repair_is_bounded(code, seconds):
    assert ailment(xid(code=code, minutes=60)[1], NOW).grace == seconds
    assert ailment(broken("b", 60)[1], NOW).grace == 600


@pytest.mark.parametrize("kind", ["no boot id", "two reboots today"])
def test_where_a_reboot_would_not_do_the_node_is_replaced(kind):
    asked = ",".join(format_time(NOW - hours * 3600) for hours in (2, 23))
    things = {
        "no boot id": xid(node={"boot_id": ""}),
        "two reboots today": xid(annotations={REBOOTS: asked}),
    }
    assert only_command(look(POOL, things[kind], healthy(9))).action == "delete"


def test_reboots_of_the_day_before_do_not_count():
    asked = ",".join(format_time(NOW - hours * 3600) for hours in (2, 25))
    assert only_command(look(POOL, xid(annotations={REBOOTS: asked}), healthy(9))).action == "reboot"


def test_after_a_reboot_the_machine_is_given_the_whole_time_again():
    over = Condition(REBOOTING, "False", "RebootSucceeded", "", NOW - 9 * MINUTE)
    initialized = node_of(POOL, "x", "small")[0].conditions
    rested = xid(minutes=50, conditions=(*initialized, over))
    assert not look(POOL, rested, healthy(9)).commands
    longer = replace(over, last_transition_time=NOW - 10 * MINUTE)
    assert look(POOL, xid(minutes=50, conditions=(*initialized, longer)), healthy(9)).commands


def test_a_reboot_is_begun_by_a_note_and_a_condition_alone():
    seen = cluster(POOL, xid(), on("a", cpu="500m"), healthy(9))
    command = only_command(decide(seen, node_repair=True))
    after = carried_out(seen, begin(command, seen, dict(seen.pools), NOW))
    claim = after.claims["a"]
    assert len(after.claims) == len(seen.claims)
    assert claim.deletion_timestamp is None
    assert claim.is_true(REBOOTING)
    assert claim.annotations[REBOOTED_FROM] == "one"
    assert not advance(after, NOW)


def test_a_node_that_is_being_rebooted_is_left_alone_and_counts_against_every_budget():
    condition = Condition(REBOOTING, "True", "RebootIssued", "", NOW)
    one = replace(POOL, budgets=(Budget("1"),))
    initialized = node_of(one, "x", "small")[0].conditions
    going = xid("a", pool=one, conditions=(*initialized, condition))
    decisions = look(one, going, xid("b", pool=one), healthy(9, one))
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "Rebooting"
    assert decisions.verdicts["b"].code == "Budget"


def test_policies_that_are_overdue_together_are_merged():
    """The most disruptive action, the highest priority of those, the longest wait, the shortest bound."""
    policies = (
        RepairPolicy("Disk", "False", 60.0, grace=600),
        RepairPolicy("Disk", "False", 60.0, reason="Slow.*", action=REBOOT, priority=90, grace=30),
        RepairPolicy("Disk", "False", 60.0, reason=".*Sector", priority=5),
        RepairPolicy("Disk", "False", 60.0, reason="SlowSec.*", priority=7, grace=300),
    )
    assert not misfits(policies)

    def found(reason):
        return ailment(a_node(conditions=(Condition("Disk", "False", reason, "", NOW),)), NOW + 61, policies)

    assert (found("SlowHead").action, found("SlowHead").grace) == (REBOOT, 30)
    assert (found("BadSector").action, found("BadSector").grace) == ("replace", None)
    assert (found("SlowSector").policy.priority, found("SlowSector").grace) == (7, 30)
    assert found("Odd").policy == policies[0]


def test_the_bound_that_a_policy_sets_to_the_drain_goes_onto_the_claim_and_lets_it_pass_what_blocks():
    policies = (RepairPolicy("Ready", "False", 60.0, grace=120),)
    pod = on("a", cpu="500m", annotations={DO_NOT_DISRUPT: "true"})
    seen = cluster(POOL, broken("a"), pod, healthy(9))
    command = only_command(decide(seen, node_repair=True, repair_policies=policies))
    after = carried_out(seen, begin(command, seen, dict(seen.pools), NOW))
    assert after.claims["a"].annotations[DRAIN_GRACE] == "120"
    stale = cluster(POOL, node_of(POOL, "b", annotations={DRAIN_GRACE: "120"}))
    assert DRAIN_GRACE not in carried_out(stale, advance(stale, NOW)).claims["b"].annotations


def test_a_repair_whose_replacement_failed_rests_as_any_move():
    later = {NOT_BEFORE: format_time(NOW + 60)}
    verdict = look(POOL, broken("a", annotations=later), healthy(9)).verdicts["a"]
    assert verdict.code == "CoolingDown"


def test_the_policies_of_the_provider_fit_together():
    assert misfits(POLICIES) == ()


@pytest.mark.parametrize(
    ("policies", "fault"),
    [
        ((RepairPolicy("Disk", "False", 1.0, reason="x"),), "has 0 policies without a reason"),
        ((RepairPolicy("Disk", "False", 1.0), RepairPolicy("Disk", "False", 2.0)), "has 2 policies"),
        ((RepairPolicy("Disk", "False", 1.0, action=REBOOT),), "must replace"),
        ((RepairPolicy("Disk", "False", 1.0, priority=101),), "not from 0 to 100"),
        ((RepairPolicy("Disk", "False", 1.0, action="pray"),), "neither replace nor reboot"),
        ((RepairPolicy("Disk", "False", 1.0, grace=-1),), "cannot end after -1 s"),
        (
            (RepairPolicy("Disk", "False", 1.0), RepairPolicy("Disk", "False", 1.0, reason="(")),
            "no regular expression",
        ),
    ],
)
def test_what_is_wrong_with_policies_is_said(policies, fault):
    assert any(fault in misfit for misfit in misfits(policies))


def test_a_still_cluster_is_looked_at_when_the_next_node_is_due():
    seen = cluster(POOL, broken("a", 29), broken("b", 28), broken("c", 40), healthy(9))
    due = next_repair(seen, DisruptionPolicy(node_repair=True), NOW)
    assert due == NOW + MINUTE
    assert next_repair(seen, DisruptionPolicy(), NOW) is None
    still = ConsolidationState(seen, 0.0, due - NOW)
    assert still.holds(seen, 59.0)
    assert not still.holds(seen, 61.0)
