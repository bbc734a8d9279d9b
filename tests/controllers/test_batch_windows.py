"""When passes start: rows PE-15 to PE-18, on a clock that jumps."""

import asyncio
import math
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from nodeless.controllers.provisioning.batcher import Batcher
from nodeless.controllers.provisioning.controller import Provisioning
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.labels import DO_NOT_DISRUPT, NODE_POOL
from nodeless.model.plan import Plan, Refusal
from nodeless.operator.clock import wall_clock
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.scheduling import pods_to_place
from tests.controllers.test_metrics import collected
from tests.factories import a_node, a_pending_pod, a_pod
from tests.virtual_time import run_in_virtual_time


def window(triggers):
    """When the first window closes."""
    return windows(1, triggers)[0]


def windows(number, triggers):
    """When windows of one second of silence, ten at most, close; `triggers` are (time, uid, tenant)."""

    async def scenario():
        batcher = Batcher(idle_seconds=1.0, max_seconds=10.0)
        loop = asyncio.get_running_loop()
        for at, *trigger in triggers:
            loop.call_at(at, batcher.trigger, *trigger)
        closed = []
        for _ in range(number):
            await batcher.wait()
            closed.append(round(loop.time(), 3))
        return closed

    return run_in_virtual_time(scenario())


def test_pe_15_one_trigger_starts_a_pass_a_second_later():
    assert window([(0.0, "one")]) == 1.0


def test_pe_15_triggers_without_end_start_a_pass_after_ten_seconds():
    assert window([(0.5 * i, f"pod-{i}") for i in range(100)]) == 10.0


def test_pe_18_a_pod_seen_again_does_not_extend_the_window_and_a_new_one_does():
    assert window([(0.0, "one"), (0.5, "one"), (0.9, "one")]) == 1.0
    assert window([(0.0, "one"), (0.5, "one"), (0.9, "two")]) == 1.9


@pytest.mark.parametrize("every", [0.1, 0.25, 0.9])
@pytest.mark.parametrize("tenants", [1, 3, 50])
def test_a_stream_of_other_tenants_pods_keeps_nobody_waiting_longer_than_three_silences(every, tenants):
    stream = [(every * i, f"noise-{i}", f"noisy-{i % tenants}") for i in range(100)]
    ended = window([*stream, (1.35, "web-1", "shop"), (1.75, "web-2", "shop")])
    assert 1.75 + 1.0 <= ended <= 1.75 + 3.0


@pytest.mark.parametrize("every", [0.1, 0.25, 0.9])
def test_a_stream_that_flows_on_from_the_window_before_keeps_a_newcomer_waiting_no_longer(every):
    stream = [(every * i, f"noise-{i}", f"noisy-{i % 3}") for i in range(500)]
    closed = windows(3, [*stream, (10.35, "web-1", "shop"), (11.2, "web-2", "shop")])
    assert 12.2 in closed


def test_the_tenants_of_a_window_long_ago_are_newcomers_again():
    together = [(30.0 + 0.6 * i, f"late-{i}", f"namespace-{i}") for i in range(4)]
    assert windows(2, [(0.0, "early", "namespace-0"), *together]) == [1.0, 32.8]


def test_workloads_deployed_together_to_several_namespaces_are_planned_together():
    assert window([(0.6 * i, f"pod-{i}", f"namespace-{i}") for i in range(4)]) == 2.8


class Passes(Provisioning):
    """The loop of passes, with the times at which they start instead of plans."""

    def __init__(self, cluster):
        nothing = None
        super().__init__(cluster, nothing, nothing, nothing, Metrics(), GlobalSettings("demo"))
        self.started = []

    async def plan_once(self):
        self.started.append(round(asyncio.get_running_loop().time()))


def passes(seconds, scenario, loops=Passes):
    async def watched():
        cluster = Cluster()
        loop = loops(cluster)
        running = asyncio.create_task(loop.run())
        await scenario(cluster)
        await asyncio.sleep(seconds)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return loop.started

    return run_in_virtual_time(watched())


def test_pe_17_a_pod_that_stays_pending_is_planned_every_ten_seconds():
    async def one_pod(cluster):
        cluster.handle(events.PodSeen(a_pending_pod()))

    assert passes(35, one_pod) == [1, 11, 21, 31]


def test_pe_17_a_pod_that_found_its_place_is_planned_no_more():
    async def bound_soon(cluster):
        cluster.handle(events.PodSeen(a_pending_pod()))
        await asyncio.sleep(5)
        cluster.handle(events.PodSeen(a_pending_pod(node_name="there")))

    assert passes(35, bound_soon) == [1]


@pytest.mark.parametrize("change", ["nothing", "expected_node_name", "started_at"])
def test_what_the_scheduler_writes_to_pods_that_wait_starts_no_pass_and_keeps_no_window_open(change):
    async def tried_again_and_again(cluster):
        pods = [a_pending_pod(f"web-{number}") for number in range(40)]
        for pod in pods:
            cluster.handle(events.PodSeen(pod))
        for turn in range(30):
            await asyncio.sleep(0.3)
            told = {"expected_node_name": f"n{turn}", "started_at": float(turn)}
            for pod in pods:
                cluster.handle(events.PodSeen(replace(pod, **{k: v for k, v in told.items() if k == change})))

    assert passes(5, tried_again_and_again) == [1, 11]


def test_pods_that_come_while_advice_is_looked_for_are_planned_without_waiting_for_it():
    class Slow(Passes):
        async def plan_once(self):
            await super().plan_once()
            plan = Plan(refusals=(Refusal("default/web", "NoPool", (), "no pool"),))
            self._advisor.ask(None, plan, 0.0)

        def __init__(self, cluster):
            super().__init__(cluster)
            self._advisor.lines = self._forever

        async def _forever(self, *_):
            await asyncio.sleep(100)

    async def one_and_another(cluster):
        cluster.handle(events.PodSeen(a_pending_pod("web")))
        await asyncio.sleep(3)
        cluster.handle(events.PodSeen(a_pending_pod("honest")))

    assert passes(5, one_and_another, Slow) == [1, 4]


def test_a_pod_that_asks_for_something_else_or_for_the_first_time_is_news():
    async def resized(cluster):
        cluster.handle(events.PodSeen(a_pod("late")))
        cluster.handle(events.PodSeen(a_pending_pod("web")))
        await asyncio.sleep(3)
        cluster.handle(events.PodSeen(a_pending_pod("web", requests={"cpu": 4000})))
        await asyncio.sleep(3)
        cluster.handle(events.PodSeen(a_pending_pod("late")))

    assert passes(3, resized) == [1, 4, 7]


def test_a_cluster_in_which_nothing_waits_is_searched_for_pods_once(monkeypatch):
    searched = []

    def counted(snapshot, now):
        searched.append(snapshot)
        return pods_to_place(snapshot, now)

    monkeypatch.setattr("nodeless.controllers.provisioning.controller.pods_to_place", counted)

    async def an_hour(cluster):
        cluster.handle(events.PodSeen(a_pending_pod("bound", node_name="a")))
        await asyncio.sleep(3600)

    assert passes(3600, an_hour) == []
    assert len(searched) == 1


def test_a_pod_on_a_draining_node_is_planned_when_its_protection_ends_though_nothing_else_changes():
    leaving = a_node(name="a", labels={NODE_POOL: "default"}, deletion_timestamp=1.0)

    async def protected_for_a_second(cluster):
        pod = a_pod("web", node_name="a", phase="Running", annotations={DO_NOT_DISRUPT: "1s"})
        cluster.handle(events.NodeSeen(leaving))
        cluster.handle(events.PodSeen(replace(pod, started_at=wall_clock() - 0.9)))
        await asyncio.sleep(15)
        time.sleep(0.15)  # noqa: ASYNC251 - protections end by the clock of the machine

    assert passes(10, protected_for_a_second) == [1, 21]


def test_pods_without_capacity_that_are_deleted_are_counted_no_more():
    class Refusing(Passes):
        async def plan_once(self):
            self._metrics.pending_pods.set(1)

        @property
        def shown(self):
            return collected(self._metrics)["nodeless_pods_without_capacity"]

    async def watched():
        cluster = Cluster()
        loop = Refusing(cluster)
        running = asyncio.create_task(loop.run())
        pod = a_pending_pod("web")
        cluster.handle(events.PodSeen(pod))
        await asyncio.sleep(15)
        before = loop.shown
        cluster.handle(events.PodGone(pod.key))
        await asyncio.sleep(15)
        running.cancel()
        return before, loop.shown

    assert run_in_virtual_time(watched()) == (1, 0)


def test_what_a_plan_came_to_is_not_shown_for_ever():
    """Its alert asks for an hour of such plans: the last one of a day must not count until the next."""

    class OneBadPlan:
        ratios = (0.7,)

        def measure(self, _snapshot, _now):
            found, self.ratios = self.ratios, ()
            return self, found

    class Realized(Passes):
        def __init__(self, cluster):
            super().__init__(cluster)
            self._realizing = OneBadPlan()

        @property
        def shown(self):
            return collected(self._metrics)["nodeless_plan_realized_ratio"]

    async def watched():
        loop = Realized(Cluster())
        running = asyncio.create_task(loop.run())
        await asyncio.sleep(1800)
        before = loop.shown
        await asyncio.sleep(1800)
        running.cancel()
        return before, loop.shown

    before, after = run_in_virtual_time(watched())
    assert before == 0.7
    assert math.isnan(after)


def test_pe_16_and_st_11_nothing_is_planned_before_every_kind_has_been_listed():
    """`Controller` starts the loop of passes once this wait is over."""

    class Listing:
        def __init__(self):
            self.synced = asyncio.Event()

    async def scenario():
        cluster = Cluster()
        cluster._reflectors = [Listing(), Listing()]
        cluster._started.set()
        waiting = asyncio.create_task(cluster.wait_for_sync())
        cluster._reflectors[0].synced.set()
        await asyncio.sleep(60)
        early = waiting.done()
        cluster._reflectors[1].synced.set()
        await waiting
        return early

    assert run_in_virtual_time(scenario()) is False
