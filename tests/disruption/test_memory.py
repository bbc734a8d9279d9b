"""Given commands that repeat, which pods are left in peace; and what does moving a pod count as?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.disruption import CommandHistory, disrupt
from nodeless.disruption.command_history import HOUR, MOST_EVICTIONS
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.model.disruption import Command, DisruptionReason
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, POD_DELETION_COST, POD_DISRUPTION_COST
from nodeless.model.pods import Owner
from nodeless.model.requirements import Requirements
from nodeless.state.disruption_cost import eviction_cost
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.factories import a_pod
from tests.scheduling.factories import FAMILY, NOW, needs

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
OWNER = (Owner("apps/v1", "StatefulSet", "db", controller=True),)
WASTEFUL = cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", cpu="500m", owners=OWNER))
MOVE = Command(DisruptionReason.UNDERUTILIZED, ("a",))


def after(commands, at=NOW):
    memory = CommandHistory()
    for _ in range(commands):
        memory = memory.with_executed(MOVE, WASTEFUL, at)
    return memory


def looked(memory, now=NOW, snapshot=WASTEFUL):
    return disrupt(snapshot, dict.fromkeys(snapshot.pools, FAMILY), DisruptionPolicy(), now, memory)


def test_a_workload_that_was_moved_again_and_again_rests_and_its_node_says_so():
    assert looked(after(MOST_EVICTIONS)).commands
    decisions = looked(after(MOST_EVICTIONS + 1))
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "Restless"
    assert (
        "default/db (StatefulSet) were moved 4.0 times each in the last hour"
        in decisions.verdicts["a"].message
    )


def test_it_rests_for_an_hour():
    memory = after(MOST_EVICTIONS + 1)
    assert not looked(memory, NOW + HOUR - 1).commands
    assert looked(memory, NOW + HOUR).commands
    assert memory.with_executed(MOVE, WASTEFUL, NOW + HOUR).evicted == after(1, NOW + HOUR).evicted


def test_many_pods_of_one_workload_may_each_be_moved():
    """A large Deployment is on many nodes: that each of them goes once is no repetition."""
    nodes = [[node_of(POOL, name, "2xlarge"), on(name, 1, cpu="500m", owners=OWNER)] for name in "abcdef"]
    seen = cluster(POOL, nodes)
    memory = CommandHistory()
    for name in "abcdef":
        memory = memory.with_executed(Command(DisruptionReason.UNDERUTILIZED, (name,)), seen, NOW)
    assert looked(memory, snapshot=seen).commands


def test_a_workload_that_was_scaled_down_does_not_rest_for_pods_that_are_gone():
    """Each of its six pods was moved once; the last one was said to have been moved six times."""
    nodes = [[node_of(POOL, name, "2xlarge"), on(name, 1, cpu="500m", owners=OWNER)] for name in "abcdef"]
    memory = CommandHistory()
    for name in "abcdef":
        move = Command(DisruptionReason.UNDERUTILIZED, (name,))
        memory = memory.with_executed(move, cluster(POOL, nodes), NOW)
    assert looked(memory).commands


def test_a_move_that_waits_is_not_found_twice_and_its_node_says_what_it_waits_for():
    found = only_command(decide(WASTEFUL))
    decisions = looked(CommandHistory().with_waiting(found, NOW))
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "Chosen"
    assert found.message in decisions.verdicts["a"].message


@given(st.lists(st.floats(0, 100), max_size=8), st.floats(0, 200))
def test_moves_come_due_in_the_order_in_which_they_were_found(times, now):
    memory = CommandHistory()
    for number, at in enumerate(sorted(times)):
        memory = memory.with_waiting(Command(DisruptionReason.UNDERUTILIZED, (f"n{number}",)), at)
    due = memory.due(now)
    assert due == tuple(command for command in memory.commands if command in due)
    for command in due:
        memory = memory.drop(command)
    assert not memory.due(now)


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({}, 1.0),
        ({"annotations": {POD_DELETION_COST: str(2**27)}}, 2.0),
        ({"annotations": {POD_DELETION_COST: str(-(2**27))}}, 0.0),
        ({"annotations": {POD_DELETION_COST: "dear"}}, 1.0),
        ({"annotations": {POD_DELETION_COST: str(2**31 - 1)}}, 10.0),
        ({"annotations": {POD_DELETION_COST: str(-(2**31))}}, -10.0),
        ({"priority": 2**25}, 2.0),
        ({"priority": -(2**25)}, 0.0),
        ({"priority": 2_000_001_000}, 10.0),
        ({"annotations": {POD_DELETION_COST: str(2**27), POD_DISRUPTION_COST: "0"}}, 1.0),
    ],
)
def test_co_22_a_pod_counts_as_one_more_with_deletion_cost_or_priority_and_never_beyond_ten(fields, cost):
    assert eviction_cost(replace(a_pod(), **fields)) == pytest.approx(cost)
