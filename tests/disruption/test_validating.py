"""Given commands that were found together: which of them does validation keep, and why not the others?"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.disruption import CommandHistory, DisruptionPolicy, disrupt, validate, what_changed
from nodeless.model import events
from nodeless.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, ON_DEMAND, SPOT
from nodeless.model.pools import Budget
from nodeless.model.requirements import Requirements
from nodeless.scheduling import FEWEST_NODES, Policy
from nodeless.state import apply
from tests.disruption.drawn_clusters import NAMED, TYPES
from tests.disruption.world import a_budget, a_node_pool, a_provisioner, cluster, node_of, on
from tests.scheduling.factories import NOW, needs, pods

ON_DEMAND_ONLY = Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])
POOL = a_provisioner(requirements=ON_DEMAND_ONLY)
#: A pod's processors as a part of its node's; a node's pods fill it to 100 at most.
PARTS = st.lists(st.integers(1, 70), max_size=7)
KINDS = st.sampled_from([kind.name for kind in TYPES if kind.name[0] in "abd"])
NODES = st.lists(st.tuples(KINDS, PARTS, st.sampled_from(["z1", "z2"])), min_size=2, max_size=14)
POOLS = st.lists(st.sampled_from(["1", "3", "10%", "50%", "100%"]), min_size=1, max_size=2).map(
    lambda budgets: [
        a_node_pool(f"pool{number}", requirements=ON_DEMAND_ONLY, budgets=(Budget(budget),))
        for number, budget in enumerate(budgets)
    ]
)


def a_cluster(pools, nodes, extra=()):
    things = [*pools, *extra]
    for number, (kind, parts, zone) in enumerate(nodes):
        name, left = f"n{number:02}", 95
        things.append(node_of(pools[number % len(pools)], name, kind, zone=zone, types=NAMED))
        whole = NAMED[kind].allocatable["cpu"]
        for place, part in enumerate(parts):
            if part <= left:
                left -= part
                milli = whole * part // 100
                things.append(on(name, cpu=f"{milli}m", memory=f"{2 * milli}Mi", app=f"app{place}"))
    return cluster(things)


def a_command(snapshot, policy, now=NOW, most=20):
    """What a search finds, one command after the other, until there are no more."""
    memory, catalog = CommandHistory(), dict.fromkeys(snapshot.pools, TYPES)
    for _ in range(most):
        decisions = disrupt(snapshot, catalog, policy, now, memory)
        if not decisions.commands:
            break
        for command in decisions.commands:
            memory = memory.with_waiting(command, now, snapshot)
    return memory


def revalidated(snapshot, command, policy=None, memory=None, now=NOW + 15):
    catalog = dict.fromkeys(snapshot.pools, TYPES)
    return validate(command, snapshot, catalog, policy or DisruptionPolicy(), now, memory or CommandHistory())


@settings(max_examples=30, deadline=None)
@given(POOLS, NODES, st.sampled_from([Policy(time_box=0.0), Policy(FEWEST_NODES, time_box=0.0)]), st.data())
def test_in_a_cluster_where_nothing_changed_every_move_is_still_what_it_was(pools, nodes, solving, data):
    seen, policy = a_cluster(pools, nodes), DisruptionPolicy(solving=solving)
    memory = a_command(seen, policy)
    validations = revalidated(seen, memory.commands, policy, memory)
    assert [validation.dropped for validation in validations] == [None] * len(memory.commands)
    assert tuple(validation.command for validation in validations) == memory.commands
    # What was found by other looks later on and only waits stops none of them.
    waiting = data.draw(st.permutations(memory.commands))
    assert revalidated(seen, memory.commands, policy, memory.with_only_waiting(waiting, NOW)) == validations


@settings(max_examples=20, deadline=None)
@given(POOLS, NODES, st.data())
def test_what_is_dropped_is_told_with_an_object_that_changed(pools, nodes, data):
    seen = a_cluster(pools, nodes)
    memory = a_command(seen, DisruptionPolicy())
    name = data.draw(st.sampled_from(sorted(seen.claims)))
    (pod,) = on(name, cpu="3", app="late", annotations={DO_NOT_DISRUPT: "true"})
    later = apply(seen, events.PodSeen(pod))
    for validation in revalidated(later, memory.commands):
        if validation.dropped is None:
            assert name not in validation.command.claims
        else:
            reported = what_changed(seen, later, validation.found)
            assert reported == f"pod {pod.key} came, on node node-{name}"


def wasteful(name, **fields):
    return [node_of(POOL, name, "a.4xlarge", types=NAMED, **fields), on(name, cpu="500m", app=name)]


def test_a_move_that_only_waits_does_not_take_the_room_of_another():
    """Two nodes whose pods each fit on the other one: they were found by two looks, and one of them goes."""
    tight = node_of(POOL, "c", "a.large", types=NAMED), on("c", cpu="1500m", app="c")
    seen = cluster(POOL, wasteful("a"), wasteful("b"), tight)
    first = a_command(seen, DisruptionPolicy(), most=1).commands
    (validation,) = revalidated(seen, first, memory=a_command(seen, DisruptionPolicy()))
    assert (validation.command,) == first


def test_of_moves_found_together_the_ones_that_are_still_right_are_made():
    seen, policy = cluster(POOL, *map(wasteful, "abcd")), DisruptionPolicy(most_nodes=2)
    commands = a_command(seen, policy).commands
    (pod,) = on(commands[0].claims[0], cpu="500m", app="late", annotations={DO_NOT_DISRUPT: "true"})
    later = apply(seen, events.PodSeen(pod))
    made = [each.command for each in revalidated(later, commands, policy) if each.command is not None]
    assert made
    assert all(commands[0].claims[0] not in command.claims for command in made)


def test_co_16_a_node_that_is_not_empty_any_more_stays_and_the_reason_has_its_name():
    seen = cluster(POOL, node_of(POOL, "a", "a.large", types=NAMED))
    later = apply(seen, events.PodSeen(on("a")[0]))
    (validation,) = revalidated(later, a_command(seen, DisruptionPolicy()).commands)
    assert validation.dropped.code == "Occupied"
    assert "node-a is not empty any more: 1 pods" in validation.dropped.message


def test_a_budget_that_was_spent_meanwhile_holds_a_move():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY, budgets=(Budget("1"),))
    nodes = [node_of(pool, name, "a.large", types=NAMED) for name in "ab"]
    seen = cluster(pool, *nodes)
    (command,) = a_command(seen, DisruptionPolicy()).commands
    spent = apply(seen, events.NodeSeen(replace(seen.nodes["node-b"], ready=False)))
    (validation,) = revalidated(spent, (command,))
    assert (validation.command, validation.dropped.code) == (None, "Budget")
    assert what_changed(seen, spent, command) == "node node-b is not Ready"


SPOT_NODE = node_of(a_provisioner(), "s", "a.large", types=NAMED, capacity_type=SPOT)
CHANGES = [
    (events.PodSeen(pods(1, name="new")[0]), "pod default/new-0 came, without a node"),
    (events.PodGone("default/a-0-a"), "pod default/a-0-a has left node-a"),
    (events.NodeGone("node-b"), "node node-b is gone"),
    (events.ClaimGone("a"), "claim a is gone"),
    (events.PoolSeen(replace(POOL, weight=7)), "pool Provisioner/default was changed"),
    (
        events.PodDisruptionBudgetSeen(a_budget("web")),
        "PodDisruptionBudget default/budget is new",
    ),
    (events.Nominated("node-a", NOW + 60), "no object of the cluster: prices, stock or the time"),
    (events.NodeSeen(SPOT_NODE[1]), "node node-s is new"),
]


@pytest.mark.parametrize(("event", "reported"), CHANGES, ids=[type(change[0]).__name__ for change in CHANGES])
def test_what_changed_is_told_by_the_name_of_the_object(event, reported):
    seen = cluster(POOL, wasteful("a"), wasteful("b"))
    (command, *_) = a_command(seen, DisruptionPolicy()).commands
    assert what_changed(seen, apply(seen, event), command) == reported


def test_what_happens_to_the_nodes_of_the_move_is_told_before_what_happens_elsewhere():
    seen = cluster(POOL, wasteful("a"), wasteful("b"), pods(1, name="waits"))
    (command, *_) = a_command(seen, DisruptionPolicy()).commands
    mine, other = (command.claims[0], "b" if command.claims[0] == "a" else "a")
    later = apply(seen, events.PodGone("default/waits-0"))
    later = apply(later, events.PodSeen(on(other, app="aaa")[0]))
    later = apply(later, events.PodSeen(on(mine, app="zzz")[0]))
    assert what_changed(seen, later, replace(command, claims=(mine,))).startswith("pod default/zzz-0")
