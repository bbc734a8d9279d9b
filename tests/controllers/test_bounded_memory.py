"""Thousands of hostile objects come and go; what a process keeps of them in memory ends within its bounds."""

import asyncio
import random
from collections import deque
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest

from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor import evictions
from nodeless.controllers.nodeclaim.pod_events import PodEvents
from nodeless.controllers.provisioning import suggestions
from nodeless.controllers.provisioning.batcher import Batcher
from nodeless.controllers.provisioning.deferred_pods import DeferredPods
from nodeless.controllers.provisioning.launch_backoff import LaunchBackoff
from nodeless.controllers.provisioning.suggestions import Advisor
from nodeless.controllers.unread_objects import UnreadObjects
from nodeless.explain.decisions import Situation
from nodeless.kube import cluster as cluster_module
from nodeless.kube import event_recorder
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.kube.workqueue import KeyedQueue
from nodeless.model import quarantine
from nodeless.model.events import ClaimGone, ClaimSeen, NodeGone, NodeSeen, PodGone, PodSeen
from nodeless.model.instructions import PublishEvent
from nodeless.model.plan import Plan, Refusal, RefusalCode
from nodeless.model.pools import Reference
from nodeless.model.snapshot import Snapshot
from nodeless.operator.metrics import Metrics
from nodeless.scheduling import Policy
from tests.factories import a_launched_claim, a_node
from tests.hostile_pods import hostile_pod, pending
from tests.scheduling.factories import FAMILY, plan, pods, pool, running, snapshot

MANY = 3000
#: Hostile pods, which take ten milliseconds each to make.
HOSTILE = 600
#: Bounds are made smaller here, so that the churn goes far beyond each.
BOUND = 100
SHELL = ("nodeless.controllers", "nodeless.kube.", "nodeless.manager", "nodeless.operator")
CONTAINERS = dict, set, list, deque
#: The time of pods' last events is noted of the claims of NodePools.
POOL = Reference("NodePool", "default")


def entries(thing, depth=3, known=None):
    """How many entries all containers hold that hang on an object of ours, and on what it keeps."""
    known = set() if known is None else known
    if id(thing) in known or depth < 0:
        return 0
    known.add(id(thing))
    if isinstance(thing, CONTAINERS):
        return len(thing)
    if isinstance(thing, quarantine.Quarantine):
        return len(thing.entries)
    if isinstance(thing, asyncio.Queue):
        return thing.qsize()
    if not type(thing).__module__.startswith(SHELL) or isinstance(thing, Metrics):
        return 0
    return sum(entries(each, depth - 1, known) for each in vars(thing).values())


@pytest.fixture(autouse=True)
def smaller_bounds(monkeypatch):
    for module, name in (
        (quarantine, "MOST_REMEMBERED"),
        (event_recorder, "_MOST_REMEMBERED"),
        (suggestions, "_REMEMBERED"),
        (evictions, "_MOST_REMEMBERED"),
        (cluster_module, "_REMEMBERED_UIDS"),
    ):
        monkeypatch.setattr(module, name, BOUND)


@cache
def hostile(number, seed=0):
    chance = random.Random(seed)
    made = (pending(hostile_pod(chance, f"h-{each}")) for each in range(number))
    return tuple(replace(pod, namespace=f"ns-{each}") for each, pod in enumerate(made))


def a_recorder():
    return Recorder(SimpleNamespace(), "host")


def test_units_that_fail_and_never_come_back_are_forgotten_but_for_the_newest():
    boundary = ErrorBoundary("claim", Metrics(), a_recorder())
    unread = UnreadObjects(boundary)
    for each in range(MANY):
        unread.record_unread(
            "pods", {"name": f"p-{each}", "namespace": "x"}, ValueError(f"cannot be read {each}")
        )
        assert entries(boundary._quarantine) <= BOUND
    for each in range(MANY):
        unread.record_read("pods", {"name": f"p-{each}", "namespace": "x"})
    assert entries(boundary._quarantine) == 0


def test_classes_of_pods_that_took_too_long_are_forgotten_once_their_pods_are_gone(monkeypatch):
    moment = [0.0]
    monkeypatch.setattr("nodeless.controllers.error_boundary.time.monotonic", lambda: moment[0])
    resting = DeferredPods(Metrics(), SimpleNamespace(publish=lambda _event: True))
    at_first = entries(resting)
    for start in range(0, HOSTILE, 60):
        some = [*hostile(60, seed=start)]
        seen = snapshot(some, pool())
        resting.turns(seen, 0.0)
        slow = Plan(
            refusals=tuple(
                Refusal(pod.key, RefusalCode.PLANNING_TOOK_TOO_LONG, (), "took long") for pod in some
            )
        )
        resting.note(slow, seen, ())
        # A class that rests yet is remembered: its pods may be made anew in order to come first.
        assert entries(resting) <= 2 * BOUND
        moment[0] += 120.0
    resting.turns(snapshot(pool()), 0.0)
    assert entries(resting) == at_first


def test_events_are_remembered_and_queued_up_to_a_bound():
    told = a_recorder()
    for each in range(3 * MANY):
        told.publish(PublishEvent("t", "Pod", f"p-{each}", "Warning", "FailedScheduling", f"no {each}", "x"))
    assert entries(told) <= BOUND + told._queue.maxsize


def test_advice_is_remembered_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(suggestions, "_remedies", lambda _situation, _refusals: ("ask for less",))
    monkeypatch.setattr(suggestions, "_NEW_IN_A_PASS", 10_000)
    advisor = Advisor()
    some = [*hostile(HOSTILE)]
    situation = Situation(snapshot(some, pool()), {}, Policy(), 0.0)
    for start in range(0, HOSTILE, 60):
        refused = Plan(refusals=tuple(Refusal(pod.key, "X", (), pod.key) for pod in some[start : start + 60]))
        advisor.ask(situation, refused, 0.0)
        asyncio.run(advisor.lines(situation, refused, 0.0))
    assert entries(advisor) <= BOUND + suggestions._WAITING


def test_a_batch_window_that_has_closed_leaves_nothing():
    async def scenario():
        batcher = Batcher(0.0, 0.0)
        for each in range(MANY):
            batcher.trigger(f"uid-{each}", f"tenant-{each}")
        assert await batcher.wait() == MANY
        return entries(batcher)

    assert asyncio.run(scenario()) == 0


def test_a_queue_keeps_no_key_that_is_done():
    async def scenario():
        queue = KeyedQueue()
        for each in range(MANY):
            queue.add(f"claim-{each}")
            queue.add_in(f"claim-{each}", 0.0)
        while queue.length or queue._due:
            queue.done(await queue.get())
        return entries(queue)

    assert asyncio.run(scenario()) <= 64


def test_a_pod_that_is_gone_is_no_more_in_the_relaunch_guard():
    guard = LaunchBackoff()
    some = pods(1, "1", name="web")
    (node,) = plan(some, types=FAMILY).new_nodes
    for each in range(MANY):
        fresh = replace(some[0], uid=f"uid-{each}")
        guard.note_launch(f"claim-{each}", node, snapshot([fresh], pool()), float(each))
        guard.forget(fresh.uid)
    assert entries(guard) == 0


def test_the_cluster_forgets_what_has_gone_and_listeners_with_it():
    faults, noted, events = [], [], PodEvents()
    cluster = Cluster(lambda loop, error: faults.append((loop, error)))

    def listen(event, before, after):
        match event:
            case PodSeen(pod):
                events.observe(pod, before.pods.get(pod.key), after)
                noted.append(entries(events))
            case PodGone(key) if key in before.pods:
                events.note_gone(before.pods[key], after)
            case ClaimGone(name):
                events.forget(name)

    cluster.listen(listen)
    for each in range(MANY):
        waiting, name = replace(hostile(HOSTILE)[each % HOSTILE], uid=f"pod-{each}"), f"c-{each}"
        claim = a_launched_claim(name, uid=f"claim-{each}", pool=POOL)
        node = a_node(name, uid=f"node-{each}")
        bound = running(waiting, node.name)
        for event in (ClaimSeen(claim), NodeSeen(node), PodSeen(waiting), PodSeen(bound)):
            cluster.handle(event)
        cluster.handle(NodeSeen(replace(node, resource_version=f"{each + 5}")))
        for event in (PodGone(bound.key), NodeGone(node.name), ClaimGone(name)):
            cluster.handle(event)
    kept = cluster.snapshot
    left = {
        name: len(getattr(kept, name)) for name in kept.__slots__ if hasattr(getattr(kept, name), "__len__")
    }
    empty = {name: len(getattr(Snapshot(), name)) for name in left}
    assert left == empty
    assert not faults
    assert max(noted) == 1
    assert entries(events) == 0
    # The uids of what is gone are told apart from newcomers, up to a bound; and there is the listener.
    assert entries(cluster) <= 2 * BOUND + 1
    assert not cluster._versions
