"""Each loop has one thing that makes it fail among those that are in order: the others are handled.

What would be done to cluster and cloud is noted instead of done.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.api.times import LONGEST_SPAN
from nodeless.controllers.error_boundary import ErrorBoundary, ProcessMustEnd, kept_running
from nodeless.controllers.executor.teardown_guard import GUARD_NAME, guard_manifest
from nodeless.controllers.interruption.controller import InterruptionLoop
from nodeless.controllers.nodeclaim.controller import ClaimLoop
from nodeless.controllers.nodeclaim.garbage_collection import Collector
from nodeless.controllers.unread_objects import UnreadObjects
from nodeless.kube import ApiError
from nodeless.kube.buffers import watched_buffers
from nodeless.kube.cluster import Cluster, MemoryUntrusted
from nodeless.kube.kinds import watched_guard, watched_kinds
from nodeless.model import events
from nodeless.model.interruptions import Interruption, InterruptionKind
from nodeless.model.labels import TEARDOWN_DRAIN, TERMINATION_FINALIZER
from nodeless.model.nodes import Instance
from nodeless.operator.event_reasons import undeclared_reason
from nodeless.operator.metrics import Metrics
from tests.disruption.world import a_provisioner, node_of

POOL = a_provisioner()
FAULTS = [
    KeyError("spec"),
    OverflowError("year 11415 is out of range"),
    ApiError(422, "Invalid", "no label value"),
]


class RecordingExecutor:
    """Carries out whatever is asked; for the poisoned names it raises."""

    def __init__(self, error, *poisoned):
        self.error, self.poisoned, self.done, self.conditions = error, poisoned, [], {}
        self.instances = SimpleNamespace(gone=set())
        self.surges = SimpleNamespace(refused=set())
        self.checkpoints = SimpleNamespace(refused=set())
        self.evictions = SimpleNamespace(is_refused=lambda _uid: False)
        self.claims = self
        self.changed = asyncio.Event()

    async def carry_out(self, instructions):
        for each in instructions:
            if any(name in str(each) for name in self.poisoned):
                raise self.error
            self.done.append(each)
            self.changed.set()

    async def list_claims(self):
        return []

    async def show_conditions(self, claim, conditions):
        self.conditions[claim.name] = {each.type: each for each in conditions}
        self.changed.set()

    def done_for(self, name):
        return [each for each in self.done if name in str(each)]


async def until(executor, condition):
    while not condition():
        executor.changed.clear()
        await asyncio.wait_for(executor.changed.wait(), 30)


async def stopped(task):
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def deleted(name):
    claim, node = node_of(POOL, name, "small")
    leaving = replace(claim, deletion_timestamp=1.0, finalizers=(TERMINATION_FINALIZER,), uid=f"uid-{name}")
    return leaving, node


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_a_claim_whose_step_fails_rests_with_a_condition_and_the_others_end(error):
    published = []

    async def scenario():
        cluster, executor = Cluster(), RecordingExecutor(error, "poison")
        recorder = SimpleNamespace(publish=published.append)
        loop = ClaimLoop(cluster, executor, SimpleNamespace(), Metrics(), recorder)
        cluster.handle(events.PoolSeen(POOL))
        task = asyncio.create_task(loop.run())
        for name in ("poison", "a", "b"):
            for event in zip((events.NodeSeen, events.ClaimSeen), reversed(deleted(name)), strict=True):
                cluster.handle(event[0](event[1]))
        await until(
            executor, lambda: executor.done_for("a") and executor.done_for("b") and executor.conditions
        )
        assert not task.done()
        assert executor.conditions["poison"]["Quarantined"].status == "True"
        # What held it is gone, and the object changes: it is looked at at once.
        executor.poisoned = ()
        claim = cluster.snapshot.claims["poison"]
        cluster.handle(events.ClaimSeen(replace(claim, resource_version="99", annotations={"a": "b"})))
        await until(executor, lambda: executor.done_for("poison"))
        await stopped(task)

    asyncio.run(scenario())
    assert {(event.kind, event.name) for event in published} == {("NodeClaim", "poison")}


def test_an_instance_that_cannot_be_collected_does_not_keep_the_others():
    async def scenario():
        instances = [
            Instance(f"i-{name}", f"aws:///z1/i-{name}", "m5.large", "z1", "spot", "running", 0.0)
            for name in ("a", "poison", "z")
        ]

        async def listed():
            return instances

        executor = RecordingExecutor(TypeError("a field of AWS is null"), "i-poison")
        collector = Collector(Cluster(), SimpleNamespace(instances=listed), executor, Metrics())
        await collector.collect_once()
        assert executor.done_for("i-a")
        assert executor.done_for("i-z")

    asyncio.run(scenario())


def test_a_message_that_cannot_be_handled_does_not_keep_the_others():
    async def scenario():
        cluster, handled = Cluster(), []
        messages = [
            Interruption(InterruptionKind.SPOT_INTERRUPTION, (f"i-{name}",), handle=name)
            for name in ("a", "poison", "b")
        ]
        for name in ("a", "poison", "b"):
            claim, node = node_of(POOL, name, "small")
            cluster.handle(events.ClaimSeen(replace(claim, provider_id=f"aws:///z1/i-{name}")))
            cluster.handle(events.NodeSeen(replace(node, provider_id=f"aws:///z1/i-{name}")))

        async def waiting():
            return messages

        async def forget(done):
            handled.extend(each.handle for each in done)
            return len(done)

        cloud = SimpleNamespace(
            has_interruption_queue=True,
            interruptions=waiting,
            forget_interruptions=forget,
            mark_unavailable=lambda _offerings, _reservations: None,
        )
        await InterruptionLoop(
            cluster, cloud, RecordingExecutor(KeyError("detail"), "i-poison"), Metrics()
        ).handle_once()
        assert handled == ["a", "b"]

    asyncio.run(scenario())


def test_a_loop_that_dies_of_a_defect_begins_anew_and_one_that_lost_the_lease_does_not():
    runs = []

    async def run():
        runs.append(len(runs))
        if len(runs) == 1:
            raise KeyError("a defect")
        async with asyncio.TaskGroup() as group:
            group.create_task(lost())

    async def lost():
        raise ProcessMustEnd

    with pytest.raises(BaseExceptionGroup):
        asyncio.run(kept_running("loop", run, ErrorBoundary("loop", Metrics())))
    assert runs == [0, 1]


def test_a_listener_that_fails_keeps_neither_the_state_nor_the_others_from_an_event():
    failed, heard = [], []
    cluster = Cluster(lambda key, error: failed.append((key, type(error))))

    def broken(*_event):
        raise KeyError("x")

    cluster.listen(broken)
    cluster.listen(lambda event, before, after: heard.append(after))
    claim, _ = node_of(POOL, "a", "small")
    cluster.handle(events.ClaimSeen(claim))
    assert "a" in cluster.snapshot.claims
    assert heard == [cluster.snapshot]
    assert [kind for _, kind in failed] == [KeyError]


def test_what_is_gone_and_cannot_be_taken_out_ends_the_process(monkeypatch):
    cluster = Cluster()
    claim, _ = node_of(POOL, "a", "small")
    cluster.handle(events.ClaimSeen(claim))

    def broken(_snapshot, _event):
        raise KeyError("x")

    monkeypatch.setattr("nodeless.kube.cluster.apply", broken)
    with pytest.raises(KeyError):
        cluster.handle(events.ClaimSeen(replace(claim, resource_version="2")))
    assert cluster.snapshot.claims["a"] == claim
    with pytest.raises(MemoryUntrusted):
        cluster.handle(events.ClaimGone("a"))


def test_an_object_that_cannot_be_read_has_an_event_once_and_rests_until_it_can():
    published, metrics = [], Metrics()
    recorder = SimpleNamespace(publish=published.append)
    unread = UnreadObjects(ErrorBoundary("object", metrics, recorder))
    metadata = {"name": "web", "namespace": "team-a", "uid": "u", "resourceVersion": "7"}
    unread.record_unread("pods", metadata, ValueError("too large"))
    unread.record_unread("unheard of", {}, ValueError("no name"))
    (event,) = published
    assert (event.kind, event.namespace, event.name, event.uid) == ("Pod", "team-a", "web", "u")
    assert 'nodeless_quarantined_units{unit="object"} 2.0' in metrics.render().decode()
    unread.record_read("pods", {"name": "web", "namespace": "team-a"})
    assert 'nodeless_quarantined_units{unit="object"} 1.0' in metrics.render().decode()


WATCHED = (*watched_kinds(print), *watched_buffers(), watched_guard("ns", GUARD_NAME))


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.name)
def test_an_object_of_every_watched_kind_can_have_its_event(kind):
    published = []
    recorder = SimpleNamespace(publish=published.append)
    unread = UnreadObjects(ErrorBoundary("object", Metrics(), recorder))
    unread.record_unread(kind.name, {"name": "a", "namespace": "ns"}, ValueError("no"))
    (event,) = published
    assert not undeclared_reason(event)


@pytest.mark.parametrize("drain", [0, 1, 59, 3600, 999_999, 1_000_000, 1_234_567, LONGEST_SPAN, None])
def test_a_guard_that_was_made_again_says_the_same_of_drains(drain):
    manifest = guard_manifest("ns", drain)
    _, (seen,) = watched_guard("ns", GUARD_NAME).decode(json.dumps(manifest).encode())
    assert (seen.deleting, seen.drain) == (False, drain)


@pytest.mark.parametrize(
    "drain", ["", " ", "soon", "-1s", "99999999h", "9" * 5000 + "h", "Never", "\u202e", "1e9s"]
)
@pytest.mark.parametrize("older", [True, False])
def test_a_garbled_guard_is_a_guard(drain, older):
    manifest = guard_manifest("ns", None)
    if older:
        manifest["data"] = {"drainTimeout": drain}
    else:
        manifest["metadata"]["annotations"] = {TEARDOWN_DRAIN: drain}
    _, (seen,) = watched_guard("ns", GUARD_NAME).decode(json.dumps(manifest).encode())
    assert not seen.deleting
    assert seen.drain is None or 0 <= seen.drain <= LONGEST_SPAN
