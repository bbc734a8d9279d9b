"""Given a cluster in which a pass finds nothing, when must the next pass be made though nothing changes?"""

import math
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from nodeless.api.times import format_time
from nodeless.disruption import CommandHistory, DisruptionPolicy, disrupt, is_consolidated
from nodeless.disruption.command_history import HOUR, MOST_EVICTIONS, NOTHING_REMEMBERED
from nodeless.disruption.requeue import next_requeue_at
from nodeless.model import events
from nodeless.model.conditions import Condition
from nodeless.model.disruption import Command, Decisions, DisruptionReason
from nodeless.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, NOT_BEFORE, ON_DEMAND, REBOOTS
from nodeless.model.pods import Owner
from nodeless.model.pools import Budget
from nodeless.model.requirements import Requirements
from nodeless.state import apply
from tests.disruption.world import BORN, a_node_pool, a_provisioner, cluster, node_of, on
from tests.scheduling.factories import FAMILY, NOW, needs, pods

DAY = 24 * HOUR
MIDNIGHT = NOW - NOW % DAY + DAY
ON_DEMAND_ONLY = Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])
OWNER = (Owner("apps/v1", "StatefulSet", "db", controller=True),)
REPAIRING = DisruptionPolicy(node_repair=True)


def wasteful(name="a", pool=None, *, pod=None, kind="2xlarge", **fields):
    """A node far too large for its one pod."""
    return [
        node_of(pool or a_pool(), name, kind, **fields),
        on(name, cpu="500m", owners=OWNER, **(pod or {})),
    ]


def a_pool(**fields):
    return a_node_pool(requirements=ON_DEMAND_ONLY, **fields)


def found(snapshot, now, memory=NOTHING_REMEMBERED):
    return disrupt(snapshot, dict.fromkeys(snapshot.pools, FAMILY), REPAIRING, now, memory).commands


def protected(seconds):
    """Its pod asked not to be disturbed for so long after its start, which was an hour ago."""
    annotations = {DO_NOT_DISRUPT: f"{int(NOW - BORN + seconds)}s"}
    return cluster(a_pool(), wasteful(pod={"annotations": annotations})), CommandHistory()


def nominated(seconds):
    return apply(cluster(a_pool(), wasteful()), events.Nominated("node-a", NOW + seconds)), CommandHistory()


def resting(seconds):
    """A replacement of it failed."""
    until = {NOT_BEFORE: format_time(NOW + seconds)}
    return cluster(a_pool(), wasteful(annotations=until)), CommandHistory()


def restless(seconds):
    """Its pods were moved again and again, almost an hour ago."""
    seen = cluster(a_pool(), wasteful())
    memory = CommandHistory()
    for _ in range(MOST_EVICTIONS + 1):
        memory = memory.with_executed(
            Command(DisruptionReason.UNDERUTILIZED, ("a",)), seen, NOW - HOUR + seconds
        )
    return seen, memory


def not_quiet(seconds):
    pool = a_pool(consolidate_after=600)
    return cluster(pool, wasteful(pool=pool, last_pod_event=NOW - 600 + seconds)), CommandHistory()


def nowhere_to_go(seconds):
    """Its pod would have room on a node that changed a short while ago."""
    guarded, busy = a_pool(), a_pool(name="busy", consolidate_after=600)
    return cluster(
        guarded,
        busy,
        node_of(guarded, "a", "small"),
        on("a", cpu="800m"),
        node_of(busy, "b", "large", last_pod_event=NOW - 600 + seconds),
        on("b", cpu="2700m", annotations={DO_NOT_DISRUPT: "true"}),
    ), CommandHistory()


def window_closing(seconds):
    """No node may be disrupted for so long after the last strike, which was at 21:00."""
    strike = NOW - NOW % HOUR - HOUR
    budget = Budget("0", schedule="0 21 * * *", duration=int(NOW - strike + seconds))
    pool = a_pool(budgets=(budget,))
    return cluster(pool, wasteful(pool=pool)), CommandHistory()


def planning(seconds):
    """Capacity for a pod is being planned, and consolidation waits for that."""
    (waiting,) = pods(1, "15600m", name="new")
    waits = replace(waiting, created_at=NOW - 120 + seconds)
    return cluster(a_pool(), wasteful(), waits), CommandHistory()


def broken(seconds, **fields):
    condition = Condition("KernelReady", "False", "", "", NOW - 1800 + seconds)
    pool = a_pool(consolidation_enabled=False, consolidate_after=None)
    node = node_of(pool, "a", "small", node={"conditions": (condition,)}, **fields)
    return cluster(pool, node, [node_of(pool, f"h{each}", "small") for each in range(4)]), CommandHistory()


def rebooted_too_often(seconds):
    """What a reboot would mend was mended twice today, and no node could take its place."""
    ailing = Condition("AcceleratedHardwareReady", "False", "NvidiaXID63Error", "", NOW - 7200)
    pool = a_pool(consolidation_enabled=False, consolidate_after=None)
    asked = ",".join(format_time(at) for at in (NOW - DAY + seconds, NOW - 4000))
    node = {"conditions": (ailing,), "boot_id": "first"}
    nowhere_else = {"selector": {"rack": "seven"}}
    return cluster(
        pool,
        node_of(pool, "a", "small", node=node, annotations={REBOOTS: asked}),
        on("a", cpu="500m", shape=nowhere_else),
        [node_of(pool, f"h{each}", "small") for each in range(4)],
    ), CommandHistory()


KINDS = (
    protected,
    nominated,
    resting,
    restless,
    not_quiet,
    nowhere_to_go,
    window_closing,
    planning,
    broken,
    rebooted_too_often,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_time_alone_changes_is_found_at_the_next_moment_and_not_a_second_sooner(kind):
    seen, memory = kind(50)
    moment = next_requeue_at(seen, REPAIRING, NOW, memory)
    assert moment == NOW + 50
    assert not found(seen, NOW, memory)
    assert not found(seen, moment - 1, memory)
    assert found(seen, moment, memory)


def test_a_window_that_opens_is_a_moment():
    pool = a_pool(budgets=(Budget("0", schedule="@daily", duration=600),))
    seen = cluster(pool, wasteful(pool=pool))
    assert next_requeue_at(seen, REPAIRING, NOW) == MIDNIGHT
    assert next_requeue_at(seen, REPAIRING, MIDNIGHT) == MIDNIGHT + 600
    assert not found(seen, MIDNIGHT + 599)
    assert found(seen, MIDNIGHT + 600)


@pytest.mark.parametrize(
    "budget",
    [
        Budget("0", schedule="0 0 31 2 *", duration=60),
        Budget("0", schedule="whenever", duration=60),
        Budget("0"),
    ],
    ids=["never", "not a schedule", "always"],
)
def test_what_no_time_changes_has_no_next_moment(budget):
    pool = a_pool(budgets=(budget,))
    forever = {"annotations": {DO_NOT_DISRUPT: "true"}}
    seen = cluster(pool, wasteful(pool=pool, pod=forever, annotations={NOT_BEFORE: "soon"}))
    assert next_requeue_at(seen, REPAIRING, NOW) == math.inf


#: What may hold a node: most of it ends by itself, at different times.
HOLDS = st.sampled_from(["nothing", "span", "true", "malformed", "rest", "nomination", "events", "broken"])
NODES = st.lists(
    st.tuples(
        st.sampled_from(["small", "large", "2xlarge"]),
        st.sampled_from(["p", "q"]),
        st.lists(st.sampled_from(["300m", "900m"]), max_size=2),
        HOLDS,
        st.integers(1, 400),
    ),
    min_size=1,
    max_size=4,
)
BUDGETS = st.sampled_from(
    [
        (),
        (Budget("0", schedule="15 22 * * *", duration=120),),
        (Budget("0", schedule="0 22 * * *", duration=900),),
        (Budget("1"), Budget("0", schedule="*/7 * * * *", duration=60)),
    ]
)


@st.composite
def held_clusters(draw):
    """A cluster, what is remembered of it, and a time until which it may be looked at again."""
    pools = {
        "p": a_pool(name="p", consolidate_after=draw(st.sampled_from([0, 300])), budgets=draw(BUDGETS)),
        "q": a_provisioner("q", requirements=ON_DEMAND_ONLY),
    }
    things, nominations, memory = [list(pools.values())], [], CommandHistory()
    for number, (kind, pool, requests, hold, seconds) in enumerate(draw(NODES)):
        name = f"n{number}"
        claim = {"rest": {"annotations": {NOT_BEFORE: format_time(NOW + seconds)}}}.get(hold, {})
        if hold == "events":
            claim = {"last_pod_event": NOW - 300 + seconds}
        ailing = Condition("StorageReady", "False", "", "", NOW - 1800 + seconds)
        node = {"conditions": (ailing,)} if hold == "broken" else {}
        value = {"span": f"{3600 + seconds}s", "true": "true", "malformed": "a while"}.get(hold)
        annotations = {} if value is None else {DO_NOT_DISRUPT: value}
        things.append(node_of(pools[pool], name, kind, node=node, **claim))
        for place, cpu in enumerate(requests):
            made = on(name, cpu=cpu, memory="10Mi", app=f"app{place}", annotations=annotations)
            things.append([replace(pod, owners=OWNER) for pod in made])
        if hold == "nomination":
            nominations.append(events.Nominated(f"node-{name}", NOW + seconds))
    if draw(st.booleans()):
        (waiting,) = pods(1, "3", name="new")
        things.append(replace(waiting, created_at=NOW - draw(st.integers(0, 200))))
    seen = cluster(things)
    for nomination in nominations:
        seen = apply(seen, nomination)
    for _ in range(draw(st.sampled_from([0, 0, 20]))):
        ago = HOUR - draw(st.integers(1, 400))
        memory = memory.with_executed(
            Command(DisruptionReason.UNDERUTILIZED, tuple(seen.claims)), seen, NOW - ago
        )
    return seen, memory


@settings(max_examples=60, deadline=None)
@given(held_clusters(), st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=3))
def test_a_look_that_found_nothing_finds_nothing_at_any_time_before_the_next_moment(held, shares):
    seen, memory = held
    now = NOW
    for _ in range(8):
        if now == math.inf or not found(seen, now, memory):
            break
        now = next_requeue_at(seen, REPAIRING, now, memory)
    if now == math.inf or found(seen, now, memory):
        event("a command is always found")
        return
    moment = min(next_requeue_at(seen, REPAIRING, now, memory), now + HOUR)
    event("found nothing")
    assert moment > now
    for time in sorted({*(now + int(share * (moment - now)) for share in shares), moment - 1}):
        if time >= now:
            assert not found(seen, time, memory), time - now


@settings(max_examples=30, deadline=None)
@given(NODES, st.integers(0, 300))
def test_looks_that_try_a_few_nodes_each_find_what_one_look_at_all_of_them_finds(nodes, seconds):
    pool, names = a_pool(), [f"n{number}" for number in range(len(nodes))]
    things = [
        [
            node_of(pool, name, kind),
            [on(name, cpu=cpu, memory="10Mi", app=f"app{place}") for place, cpu in enumerate(requests)],
        ]
        for name, (kind, _, requests, _, _) in zip(names, nodes, strict=True)
    ]
    seen, memory = cluster(pool, things), CommandHistory()
    whole = found(seen, NOW + seconds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nodeless.disruption.consolidation._MOST_SINGLES", 1)
        for _ in names:
            decisions = disrupt(seen, {pool.key: FAMILY}, REPAIRING, NOW + seconds, memory)
            memory = memory.after_search(decisions)
            if decisions.commands or not memory.tried:
                break
            assert not is_consolidated(decisions)
    assert bool(decisions.commands) == bool(whole)
    assert bool(whole) or is_consolidated(decisions)


def test_a_node_that_one_look_did_not_come_to_has_its_turn_in_the_next(monkeypatch):
    monkeypatch.setattr("nodeless.disruption.consolidation._MOST_SINGLES", 1)
    pool = a_pool()
    # One of the two can be replaced; the turn of ten seconds begins with the other.
    full = [node_of(pool, "full", "large"), on("full", 3, cpu="1100m", memory="4Gi")]
    half = [node_of(pool, "half", "medium"), on("half", cpu="800m")]
    seen = cluster(pool, full, half)
    first = disrupt(seen, {pool.key: FAMILY}, DisruptionPolicy(), NOW)
    assert not first.commands
    assert sorted(verdict.code for verdict in first.verdicts.values()) == ["NotReached", "Unconsolidatable"]
    memory = CommandHistory().after_search(first)
    assert memory.tried == {"full"}
    assert [command.claims for command in found(seen, NOW, memory)] == [("half",)]
    assert not memory.after_search(Decisions()).tried
