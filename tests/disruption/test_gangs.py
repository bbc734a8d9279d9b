"""Nodes that were launched for gangs: released when these cannot be had, kept until they are whole."""

import random
from dataclasses import replace

import pytest

from nodeless.disruption.gangs import ABSENCE, RELEASED, gang_steps
from nodeless.model import events
from nodeless.model.buffers import CapacityBuffer
from nodeless.model.instructions import AnnotateClaim, DeleteClaim
from nodeless.model.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    GANG_SIZE,
    LAUNCHED_FOR_GANG,
    ON_DEMAND,
    PAUSE,
    PLANNED_PODS,
)
from nodeless.model.pods import Owner
from nodeless.model.requirements import Requirements
from nodeless.state import apply
from nodeless.state.expected import uid_digest
from tests.disruption.world import (
    a_node_pool,
    a_provisioner,
    cluster,
    decide,
    node_of,
    on,
    only_command,
)
from tests.scheduling.factories import NOW, needs, pods

PATIENCE = 600.0
POOL = a_node_pool()


def members(number, size, name="train", **fields):
    job = (Owner("batch/v1", "Job", name, controller=True),)
    made = pods(number, "1", name=name)
    return [replace(pod, annotations={GANG_SIZE: str(size)}, owners=job, **fields) for pod in made]


def running(pod, on_claim):
    return replace(pod, node_name=f"node-{on_claim}", phase="Running", unschedulable=False)


def launched(name, *gangs, age=PATIENCE, annotations=None, **fields):
    """A node that was launched for gangs, and its claim."""
    marks = {LAUNCHED_FOR_GANG: ",".join(gangs), **(annotations or {})}
    return node_of(POOL, name, annotations=marks, created_at=NOW - age, **fields)


def steps(*things, absent=None, paused=(), now=NOW):
    snapshot = apply(cluster(POOL, *things), events.GangsPaused(dict.fromkeys(paused, "it waits")))
    return gang_steps(snapshot, now, PATIENCE, absent or {})


def ended(found):
    return {
        name
        for name, instructions in found.instructions.items()
        if any(isinstance(each, DeleteClaim) for each in instructions)
    }


def unmarked(found):
    return {
        name: each.annotations[LAUNCHED_FOR_GANG]
        for name, instructions in found.instructions.items()
        for each in instructions
        if isinstance(each, AnnotateClaim)
    }


GANG = "default/train"


@pytest.mark.parametrize("number", [1, 2, 9])
def test_the_empty_nodes_of_a_gang_that_is_not_whole_in_time_are_released(number):
    nodes = [launched(f"n{at}", GANG) for at in range(number)]
    found = steps(*nodes, members(number + 1, number + 1))
    assert ended(found) == {f"n{at}" for at in range(number)}
    assert set(found.released) == {GANG}
    event = found.instructions["n0"][0]
    assert (event.kind, event.name, event.type, event.reason) == ("NodeClaim", "n0", "Warning", RELEASED)
    assert event.message.startswith("released: gang default/train was not whole 10 min after its first node")
    assert f"0 of {number + 1} pods run" in event.message


def test_before_that_nothing_is_released_and_no_moment_is_lost_with_the_process():
    nodes = [launched("a", GANG, age=PATIENCE - 1), launched("b", GANG, age=5)]
    gang = members(3, 3)
    assert not steps(*nodes, gang).instructions
    # Nothing is remembered between two looks: the claims alone say when the time is up, for all of them.
    assert ended(steps(*nodes, gang, now=NOW + 1)) == {"a", "b"}


def test_nodes_on_which_room_is_kept_for_others_stay():
    nodes = [launched("a", GANG), launched("b", GANG)]
    buffer = events.CapacityBufferSeen(CapacityBuffer("default", "spare", replicas=1))
    seen = apply(cluster(POOL, *nodes, members(3, 3)), buffer)
    # A controller that begins anew does not know yet which nodes these are.
    assert not gang_steps(seen, NOW, PATIENCE, {}).instructions
    seen = apply(seen, events.BuffersPlaced(("node-a",)))
    assert ended(gang_steps(seen, NOW, PATIENCE, {})) == {"b"}


def test_nodes_on_which_pods_run_stay_and_are_ordinary_nodes_from_then_on():
    first, *others = members(4, 4)
    nodes = [launched("a", GANG), launched("b", GANG), launched("c", GANG)]
    found = steps(*nodes, running(first, "a"), on("b"), others)
    assert ended(found) == {"c"}
    assert unmarked(found) == {"a": None, "b": None}


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_gang_that_is_whole_has_nodes_like_any_other(phase):
    gang = [replace(running(pod, "a"), phase=phase) for pod in members(3, 3)]
    found = steps(launched("a", GANG), launched("b", GANG, age=1), gang)
    assert not ended(found)
    assert unmarked(found) == {"a": None, "b": None}


def test_a_node_for_several_gangs_stays_as_long_as_one_of_them_may_be_whole():
    late = members(2, 2, "late")
    both = launched("both", GANG, "default/late")
    assert ended(steps(both, members(3, 4), late)) == {"both"}
    whole = [running(pod, "other") for pod in late]
    found = steps(both, launched("other", "default/late"), members(3, 4), whole)
    assert ended(found) == {"both"}
    young = steps(launched("both", GANG, "default/late", age=9), members(3, 4), whole, launched("other"))
    assert unmarked(young)["both"] == GANG


def test_a_node_on_which_other_pods_are_expected_stays():
    (other,) = pods(1, "1", name="web")
    note = {PLANNED_PODS: uid_digest(other.uid)}
    found = steps(launched("a", GANG, annotations=note), launched("b", GANG), members(3, 4), other)
    assert ended(found) == {"b"}


@pytest.mark.parametrize("annotation", [PAUSE, DO_NOT_DISRUPT])
def test_a_node_that_is_protected_is_not_released(annotation):
    guarded = launched("a", GANG, node={"annotations": {annotation: "true"}})
    assert ended(steps(guarded, launched("b", GANG), members(3, 4))) == {"b"}


def test_nodes_of_a_gang_that_is_gone_are_released_after_a_minute():
    node = launched("a", GANG, age=90)
    assert not steps(node).instructions
    assert not steps(node, absent={GANG: NOW - ABSENCE + 1}).instructions
    found = steps(node, absent={GANG: NOW - ABSENCE})
    assert ended(found) == {"a"}
    assert "has no pods any more" in found.instructions["a"][0].message


def test_what_a_pass_under_way_launches_for_a_gang_that_waits_is_released_at_once():
    assert ended(steps(launched("a", GANG, age=1), members(3, 4), paused=[GANG])) == {"a"}


def test_nodes_of_no_gang_and_those_that_end_already_are_left_alone():
    leaving = launched("a", GANG, deletion_timestamp=NOW)
    assert not steps(leaving, node_of(POOL, "b", created_at=NOW - 9e9), members(3, 4)).instructions


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_gangs_are_nobody_is_evicted_and_no_empty_node_outlives_the_time(seed):
    chance = random.Random(seed)
    things, occupied, old = [], set(), set()
    for gang in range(4):
        size = chance.randint(2, 6)
        made = members(size, size, f"job-{gang}")
        for at in range(chance.randint(1, size - 1)):
            name, age = f"{gang}-{at}", chance.choice([1.0, PATIENCE, 2 * PATIENCE])
            things.append(launched(name, f"default/job-{gang}", age=age))
            if chance.random() < 0.4:
                made[at] = running(made[at], name)
                occupied.add(name)
            elif age >= PATIENCE:
                old.add(name)
        things.append(made)
    chance.shuffle(things)
    gone = ended(steps(*things))
    assert not gone & occupied
    assert old <= gone


@pytest.mark.parametrize("pool", [a_node_pool(), a_provisioner()])
def test_nodes_of_a_gang_that_is_being_assembled_are_not_consolidated(pool):
    gang = members(3, 3)
    marks = {LAUNCHED_FOR_GANG: GANG}
    empty, used = node_of(pool, "empty", annotations=marks), node_of(pool, "used", annotations=marks)
    snapshot = cluster(pool, empty, used, on("used", cpu="100m"), running(gang[0], "used"))
    found = decide(snapshot)
    assert not found.commands
    for name in ("empty", "used"):
        assert found.verdicts[name].code == "GangIncomplete"
        assert "launched for gang default/train, which is not whole yet" in found.verdicts[name].message
    unmarked = cluster(pool, node_of(pool, "empty"), node_of(pool, "used"), running(gang[0], "used"))
    assert only_command(decide(unmarked)).claims == ("empty",)


def kept(pool, name, *things):
    """A node that must not be disrupted."""
    return [node_of(pool, name, "2xlarge", node={"annotations": {DO_NOT_DISRUPT: "true"}}), *things]


def a_gang_with_one_member_apart(pool, number, size):
    """Its other members run on a node that stays."""
    first, *others = [replace(pod, shape=pods(1, "100m")[0].shape) for pod in members(number, size)]
    apart = [node_of(pool, "apart", "2xlarge"), running(first, "apart")]
    return cluster(pool, apart, kept(pool, "k", [running(pod, "k") for pod in others]), kept(pool, "spare"))


@pytest.mark.parametrize(("number", "moved"), [(1, True), (30, False)])
def test_the_end_of_a_node_with_one_member_disturbs_as_much_as_the_move_of_the_whole_gang(number, moved):
    ordinary = Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])
    pool = a_node_pool(balanced=True, requirements=ordinary)
    decisions = decide(a_gang_with_one_member_apart(pool, number, number))
    assert bool(decisions.commands) == moved
    if not moved:
        assert decisions.verdicts["apart"].code == "Unbalanced"


def test_an_eviction_price_counts_for_every_member_of_a_gang():
    pool = a_node_pool(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
    assert decide(a_gang_with_one_member_apart(pool, 1, 1), eviction_price=0.2).commands
    found = decide(a_gang_with_one_member_apart(pool, 90, 90), eviction_price=0.2)
    assert not found.commands
    assert "(90.0 at 0.2 USD)" in found.verdicts["apart"].message
