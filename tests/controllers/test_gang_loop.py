"""Gangs that cannot be had: when their nodes go, what their pods are told, how long they wait."""

import asyncio

import pytest

from nodeless.controllers.disruption.gang_pauses import MOST_KEPT, read_pauses, write_pauses
from nodeless.controllers.disruption.gangs import GangLoop
from nodeless.controllers.provisioning.controller import Provisioning
from nodeless.kube import ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.instructions import DeleteClaim
from nodeless.model.nodes import NodeClaim
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import Timing
from tests.controllers.living import Living
from tests.disruption.test_gangs import GANG, POOL, launched, members, running
from tests.scheduling.factories import FAMILY, NOW, pods, pool, snapshot
from tests.virtual_time import run_in_virtual_time


class Executor:
    """Ends claims at once."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.ended = []
        #: What the cluster said was paused when each claim ended.
        self.paused = []

    async def carry_out(self, instructions):
        for each in instructions:
            if isinstance(each, DeleteClaim):
                self.ended.append(each.name)
                self.paused.append(dict(self._cluster.snapshot.paused_gangs))
                self._cluster.handle(events.ClaimGone(each.name))


class Recorder(list):
    def publish(self, event):
        self.append(event)
        return True


class Store:
    """Keeps pauses as the ConfigMap does, and answers nothing while it is `away`."""

    def __init__(self, data=None):
        self.data = data
        self.away = False
        self.writes = 0

    async def read(self):
        if self.away:
            raise ApiUnavailable("no route to host")
        return self.data

    async def write(self, data):
        if self.away:
            raise ApiUnavailable("no route to host")
        self.data = data
        self.writes += 1


class World:
    """A loop and the cluster that it sees, at a time that a test sets."""

    def __init__(self, timeout=600.0, store=None):
        self.now = NOW
        self.recorder = Recorder()
        self.settings = GlobalSettings("demo", gang_timeout=timeout)
        self.store = store or Store()
        self.start()

    def start(self):
        """A loop of a process that knows nothing."""
        self.cluster = Cluster()
        self.executor = Executor(self.cluster)
        timing = Timing(wall_clock=lambda: self.now)
        self.loop = GangLoop(
            self.cluster, self.executor, self.recorder, self.settings, Metrics(), timing, self.store
        )
        self.cluster.handle(events.PoolSeen(POOL))

    def see(self, *things):
        for thing in things:
            seen = events.ClaimSeen if isinstance(thing, NodeClaim) else events.PodSeen
            self.cluster.handle(seen(thing))

    def launch(self, *names):
        self.see(*(launched(name, GANG, age=NOW - self.now)[0] for name in names))

    def look(self, after=0.0):
        self.now += after
        asyncio.run(self.loop.reconcile_once())

    @property
    def paused(self):
        return GANG in self.cluster.snapshot.paused_gangs


def with_a_released_gang():
    """A gang of three whose one node, `a`, was ended after ten minutes; and its pods."""
    world, gang = World(), members(3, 3)
    world.see(*gang)
    world.launch("a")
    world.look(600)
    return world, gang


@pytest.mark.parametrize("timeout", [60.0, 600.0, 7200.0])
def test_nodes_of_a_gang_are_released_after_the_time_that_the_setting_says(timeout):
    world = World(timeout)
    world.see(*members(3, 3))
    world.launch("a", "b")
    world.look(timeout - 1)
    assert not world.executor.ended
    world.look(1)
    assert sorted(world.executor.ended) == ["a", "b"]


def test_a_gang_is_paused_before_its_nodes_end_so_that_they_are_not_launched_anew():
    world = World()
    world.see(*members(3, 3))
    world.launch("a", "b")
    world.look(600)
    assert all(GANG in paused for paused in world.executor.paused)
    assert "it is planned again at" in world.cluster.snapshot.paused_gangs[GANG]


def test_each_waiting_pod_is_told_what_lacked_and_when_it_is_planned_again():
    world = World()
    first, *others = members(4, 4)
    world.see(running(first, "elsewhere"), *others)
    world.launch("a")
    world.look(600)
    told = [event for event in world.recorder if event.kind == "Pod"]
    assert {event.name for event in told} == {pod.name for pod in others}
    assert {event.reason for event in told} == {"GangNodesReleased"}
    assert "1 of 4 pods run" in told[0].message
    assert told[0].message.endswith("planned again in 5 min")


def test_the_pause_grows_each_time_and_ends_with_the_gang():
    world = World()
    gang = members(3, 3)
    world.see(*gang)
    for attempt, pause in enumerate([300, 600, 1200, 2400, 3600, 3600]):
        world.launch(f"n{attempt}")
        world.look(600)
        assert world.executor.ended == [f"n{at}" for at in range(attempt + 1)]
        world.look(pause - 1)
        assert world.paused
        world.look(1)
        assert not world.paused
    world.see(*(running(pod, "elsewhere") for pod in gang))
    world.look()
    world.see(*gang)
    world.launch("last")
    world.look(600)
    assert world.paused
    world.look(300)
    assert not world.paused


def test_a_pause_of_a_gang_whose_pods_are_gone_is_forgotten():
    world, gang = with_a_released_gang()
    assert world.paused
    for pod in gang:
        world.cluster.handle(events.PodGone(pod.key))
    world.look(1)
    assert not world.paused


def test_nodes_of_a_job_that_was_deleted_go_a_minute_later():
    world = World()
    gang = members(3, 3)
    world.see(*gang)
    world.launch("a", "b")
    world.look(100)
    for pod in gang:
        world.cluster.handle(events.PodGone(pod.key))
    world.look(1)
    world.look(59)
    assert not world.executor.ended
    world.look(1)
    assert sorted(world.executor.ended) == ["a", "b"]
    assert not world.paused
    assert not [event for event in world.recorder if event.kind == "Pod"]


def test_a_controller_that_begins_anew_waits_as_long_as_the_one_before_would_have():
    world, gang = with_a_released_gang()
    world.start()
    world.see(*gang)
    asyncio.run(world.loop.restore())
    assert world.paused
    world.look(299)
    assert world.paused
    world.look(1)
    assert not world.paused
    # The next pause is twice as long, as if nothing had happened.
    world.launch("b")
    world.look(600)
    world.start()
    world.see(*gang)
    world.look(599)
    assert world.paused
    world.look(1)
    assert not world.paused


def test_a_pause_is_kept_before_the_nodes_end_so_that_no_moment_is_without_it():
    world = World()
    kept = []
    carry_out = world.executor.carry_out

    async def ending(instructions):
        kept.append(read_pauses(world.store.data, world.now, 3600.0))
        await carry_out(instructions)

    world.executor.carry_out = ending
    world.see(*members(3, 3))
    world.launch("a")
    world.look(600)
    assert kept == [{GANG: (NOW + 900, 300.0)}]


@pytest.mark.parametrize("whole", [True, False])
def test_nothing_is_kept_of_a_gang_that_is_whole_or_gone_meanwhile(whole):
    world, gang = with_a_released_gang()
    world.start()
    world.see(*([running(pod, "elsewhere") for pod in gang] if whole else []))
    world.look(1)
    assert not world.paused
    assert not read_pauses(world.store.data, world.now, 3600.0)


def test_looks_without_news_write_nothing():
    world = World()
    world.see(*members(3, 3))
    for _ in range(3):
        world.look(1)
    assert world.store.writes == 0
    world.launch("a")
    for _ in range(3):
        world.look(600)
    assert world.store.writes == 1


def test_an_api_server_that_cannot_be_reached_keeps_no_node_and_is_asked_again(capsys):
    world, gang = with_a_released_gang()
    world.start()
    world.see(*gang)
    world.store.away = True
    for _ in range(3):
        world.look(1)
    assert not world.paused
    assert capsys.readouterr().out.count("the pauses of gangs cannot be read, trying again: no route") == 1
    world.store.away = False
    world.look(1)
    assert world.paused

    world.look(300)
    world.store.away = True
    world.launch("b")
    world.look(600)
    assert world.executor.ended == ["b"]
    assert world.store.writes == 1
    world.store.away = False
    world.look(1)
    assert world.store.writes == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"default/train": null}',
        '{"default/train": {}}',
        '{"default/train": {"until": "soon", "seconds": 300}}',
        '{"default/train": {"until": "2099-01-01T00:00:00Z", "seconds": "NaN"}}',
        '{"default/train": {"until": "2099-01-01T00:00:00Z", "seconds": -1}}',
        '{"default/train": {"until": "2099-01-01T00:00:00Z", "seconds": 1e9}}',
        '{"default/train": {"until": 5, "seconds": 300}}',
    ],
)
def test_what_nobody_can_have_kept_pauses_nothing(text):
    world = World(store=Store({"pauses": text}))
    world.see(*members(3, 3))
    world.look()
    assert not world.paused


def test_a_pause_ends_no_later_than_its_own_length_from_now():
    text = '{"default/train": {"until": "2999-01-01T00:00:00Z", "seconds": 300}}'
    assert read_pauses({"pauses": text}, NOW, 3600.0) == {GANG: (NOW + 300, 300.0)}


def test_of_more_gangs_than_a_config_map_holds_those_that_wait_longest_are_kept():
    many = {f"default/train-{number:06}": (NOW + number / 10, 300.0) for number in range(MOST_KEPT + 5)}
    (text,) = write_pauses(many).values()
    assert len(text) < 2**20
    kept = read_pauses({"pauses": text}, NOW, 3600.0)
    assert len(kept) == MOST_KEPT
    assert "default/train-000004" not in kept


def test_the_first_pass_and_the_first_look_read_what_is_kept_once():
    world, _ = with_a_released_gang()
    world.start()
    world.see(*members(3, 3))
    reads = []

    async def read():
        reads.append(world.now)
        await asyncio.sleep(0)
        return world.store.data

    world.store.read = read

    async def scenario():
        await asyncio.gather(world.loop.restore(), world.loop.reconcile_once())

    asyncio.run(scenario())
    assert len(reads) == 1
    assert world.paused


def test_no_pass_is_made_before_the_pauses_are_read(monkeypatch):
    living = Living(snapshot(pool()), FAMILY, patch=monkeypatch)
    timing = Timing()

    class Slow(Store):
        async def read(self):
            await asyncio.sleep(60)
            return await super().read()

    async def scenario():
        store = Slow(write_pauses({GANG: (timing.wall_clock() + 300, 300.0)}))
        settings = GlobalSettings("demo")
        gangs = GangLoop(living.cluster, living, Recorder(), settings, living.metrics, timing, store)
        provisioning = Provisioning(
            living.cluster, living, living, Recorder(), living.metrics, settings, prepare=gangs.restore
        )
        for pod in members(3, 3):
            living.cluster.handle(events.PodSeen(pod))
        task = asyncio.create_task(provisioning.run())
        await asyncio.sleep(120)
        assert not living.snapshot.claims
        living.cluster.handle(events.PodSeen(pods(1, "1")[0]))
        await asyncio.sleep(30)
        assert len(living.snapshot.claims) == 1
        task.cancel()

    run_in_virtual_time(scenario())


@pytest.mark.parametrize(
    "pauses",
    [
        "no JSON",
        "[1]",
        "[" * 100_000,
        '{"broken": ' * 50_000,
        '"\ud800"',
        '{"broken": {"until": "2026-01-01T00:00:00Z", "seconds": 9%s}}' % ("9" * 400),
        '{"broken": {"until": "2026-01-01T00:00:00Z", "seconds": "nan"}}',
        '{"broken": {"until": 7, "seconds": 300}}',
        '{"broken": 7}',
    ],
    ids=lambda text: ascii(text[:24]),
)
def test_pauses_that_cannot_be_read_are_none(pauses):
    assert read_pauses({"pauses": pauses}, NOW, 3600.0) == {}


def test_a_pause_that_cannot_be_read_leaves_the_others():
    data = write_pauses({GANG: (NOW + 200, 300.0)})
    broken = '{"broken": {"until": "2026-01-01T00:00:00Z", "seconds": 9%s}, ' % ("9" * 400)
    data["pauses"] = data["pauses"].replace("{", broken, 1)
    assert read_pauses(data, NOW, 3600.0) == {GANG: (NOW + 200, 300.0)}
