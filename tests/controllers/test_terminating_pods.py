"""Pods of a rollout wait for those that they replace: no node is launched for what is free in a moment."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.controllers.provisioning.terminating_pods import TerminatingPods
from nodeless.model import events
from nodeless.model.labels import GANG_SIZE
from nodeless.operator.clock import wall_clock
from nodeless.operator.settings import GlobalSettings
from nodeless.scheduling import Policy
from tests.controllers.test_planned_pods import Opening, Written, a_leader, come, named
from tests.controllers.world import CLAIMS, a_pod, a_template, a_tight_pool
from tests.scheduling.factories import FAMILY, NOW, node, pods, pool, running, snapshot
from tests.virtual_time import run_in_virtual_time

(NEW,) = pods(1, "3", name="new")
LONGEST = Policy().termination_wait
LATE = LONGEST + 1


def at(waits, after, pod=NEW, waiting=True):
    """A pass so many seconds later: whether the pod must not wait; then, whether it waits is noted."""
    seen = snapshot(pod)
    answer = waits.must_not_wait(seen, pod.key, NOW + after, LONGEST)
    waits.note(seen, [pod.key] if waiting and not answer else [], NOW + after)
    return answer


class TestHowLong:
    def test_a_pod_waits_for_no_longer_than_a_node_takes(self):
        """Others terminate all the time, and others still take their room."""
        waits = TerminatingPods()
        times = (0, 10, LONGEST, LATE, LATE + 10)
        assert [at(waits, after) for after in times] == [False, False, False, True, True]

    def test_passes_in_which_it_does_not_wait_or_is_not_count_too(self):
        """It had room for a moment, or came second in a pass that has two."""
        waits = TerminatingPods()
        at(waits, 0)
        at(waits, 10, waiting=False)
        assert at(waits, LATE)

    @pytest.mark.parametrize(
        ("what", "after"),
        [
            ("it has a node", replace(NEW, node_name="n1")),
            ("it is gone, and another has its name", replace(NEW, uid="another")),
        ],
    )
    def test_a_pod_that_waits_no_more_is_forgotten(self, what, after):
        waits = TerminatingPods()
        at(waits, 0)
        at(waits, 5, after, waiting=False)
        assert not at(waits, LATE, replace(after, node_name="")), what

    def test_a_clock_that_was_set_back_makes_nobody_wait_longer(self):
        waits = TerminatingPods()
        at(waits, 0)
        assert at(waits, -60)

    def test_nothing_is_kept_of_pods_that_are_gone(self):
        waits = TerminatingPods()
        for number in range(100):
            at(waits, number, replace(NEW, uid=f"uid-{number}"))
        assert len(waits._since) == 1


@pytest.mark.parametrize(
    ("what", "pod"),
    [
        ("it runs on a node that is being removed", replace(NEW, node_name="n1")),
        ("it runs with all others or not at all", replace(NEW, annotations={GANG_SIZE: "2"})),
        ("its buffer's status says that its room is there", replace(NEW, name="spare~0")),
    ],
)
def test_who_does_not_wait(what, pod):
    assert at(TerminatingPods(), 0, pod), what


class Expecting(Opening):
    """Knows where the last pass expects pods, and which of them wait."""

    def expect(self, considered, places, waiting=()):
        self.considered = {pod.key for pod in considered}
        self.places, self.waiting = dict(places), set(waiting)


@pytest.fixture
def rolling(monkeypatch):
    """A node without room, on which two pods terminate."""
    old = pods(2, "3", name="old")
    full = node("n1", "7", ready=True, provider_id="aws:///z1/i-n1")
    return Written(snapshot(pool(), full, [running(pod, "n1") for pod in old]), FAMILY, patch=monkeypatch)


def terminate(rolling, seconds=25):
    for pod in rolling.snapshot.pods_on("n1"):
        ends = wall_clock() + seconds
        rolling.cluster.handle(events.PodSeen(replace(pod, deletion_timestamp=ends)))


class TestPasses:
    def test_pods_wait_each_with_an_event_and_a_place_that_is_kept(self, rolling):
        async def scenario():
            told, nominator = [], Expecting()
            leader = a_leader(rolling, nominator, lambda event: told.append(event) or True)
            terminate(rolling)
            come(rolling, pods(2, "3", name="new"))
            await leader.plan_once()
            assert not rolling.snapshot.claims
            assert (
                nominator.places == leader._places == dict.fromkeys(("default/new-0", "default/new-1"), "n1")
            )
            assert nominator.waiting == set(nominator.places)
            assert [event.reason for event in told] == ["WaitingForTermination"] * 2
            assert rolling.snapshot.is_nominated("n1", wall_clock())

        run_in_virtual_time(scenario())

    @pytest.mark.parametrize("opening", [True, False])
    def test_one_that_has_waited_long_enough_gets_a_node_and_the_other_waits_on(self, rolling, opening):
        async def scenario():
            nominator = Expecting()
            nominator.now = opening
            leader = a_leader(rolling, nominator)
            terminate(rolling)
            come(rolling, pods(2, "3", name="new"))
            await leader.plan_once()
            leader._terminating._since["new-0"] -= LATE
            terminate(rolling)
            await leader.plan_once()
            assert list(named(rolling).values()) == [{"new-0"}]
            assert nominator.waiting == {"default/new-1"}
            assert nominator.considered == nominator.places.keys() == {"default/new-0", "default/new-1"}

        run_in_virtual_time(scenario())

    def test_with_the_wait_set_to_zero_all_get_nodes_at_once(self, rolling):
        async def scenario():
            leader = a_leader(rolling, Expecting(), settings=GlobalSettings("demo", termination_wait=0.0))
            terminate(rolling)
            come(rolling, pods(2, "3", name="new"))
            await leader.plan_once()
            assert {"new-0", "new-1"} == set().union(*named(rolling).values())

        run_in_virtual_time(scenario())

    def test_with_a_longer_wait_pods_wait_longer_and_the_event_says_how_long(self, rolling):
        async def scenario():
            told, nominator = [], Expecting()
            settings = GlobalSettings("demo", termination_wait=90.0)
            leader = a_leader(rolling, nominator, lambda event: told.append(event) or True, settings)
            terminate(rolling, seconds=80)
            come(rolling, pods(2, "3", name="new"))
            await leader.plan_once()
            leader._terminating._since["new-0"] -= LATE
            await leader.plan_once()
            assert not rolling.snapshot.claims
            assert nominator.waiting == {"default/new-0", "default/new-1"}
            assert all("90 s" in event.message for event in told)

        run_in_virtual_time(scenario())

    def test_a_gang_gets_its_nodes_at_once_and_an_ordinary_pod_waits(self, rolling):
        async def scenario():
            leader = a_leader(rolling, Expecting())
            terminate(rolling)
            come(rolling, [replace(pods(1, "3", name="gang")[0], annotations={GANG_SIZE: "1"})])
            come(rolling, pods(1, "3", name="new"))
            await leader.plan_once()
            assert list(named(rolling).values()) == [{"gang-0"}]

        run_in_virtual_time(scenario())

    def test_where_they_do_not_end_in_time_all_get_nodes(self, rolling):
        async def scenario():
            leader = a_leader(rolling, Expecting())
            terminate(rolling, seconds=-6)
            come(rolling, pods(2, "3", name="new"))
            await leader.plan_once()
            assert {"new-0", "new-1"} == set().union(*named(rolling).values())

        run_in_virtual_time(scenario())


async def with_an_old_pod(rig, namespace, grace):
    """A pod that fills the only node terminates, and its containers do not end; its successor waits."""
    spec = {"cpu": "1200m", "terminationGracePeriodSeconds": grace}
    await rig.create(a_template(), a_tight_pool(), a_pod("old", namespace, **spec))
    where = await rig.running(namespace, "old")
    await rig.claim()
    rig.kubelets.busy.add("old")
    await asyncio.to_thread(rig.api.delete, f"/api/v1/namespaces/{namespace}/pods/old")
    await rig.create(a_pod("new", namespace, **spec))
    await rig.event(namespace, "new", "WaitingForTermination", where)
    return where


@pytest.mark.cluster
def test_a_pod_gets_the_room_of_one_that_terminates_and_no_node_is_launched(scene):
    async def scenario(rig, namespace):
        where = await with_an_old_pod(rig, namespace, grace=28)
        rig.kubelets.busy.clear()
        assert await rig.running(namespace, "new") == where
        assert len(await asyncio.to_thread(rig.api.list, CLAIMS)) == 1
        messages = [event["message"] for event in rig.api.events(namespace, "new")]
        assert not any("a new node of" in message for message in messages)

    scene(scenario)


@pytest.mark.cluster
def test_for_a_pod_whose_predecessor_does_not_end_in_time_a_node_is_launched(scene):
    async def scenario(rig, namespace):
        where = await with_an_old_pod(rig, namespace, grace=12)
        await rig.event(namespace, "new", "Nominated", "a new node of")
        assert await rig.running(namespace, "new") != where
        rig.kubelets.busy.clear()
        await rig.until_gone(f"/api/v1/namespaces/{namespace}/pods/old")

    scene(scenario)
