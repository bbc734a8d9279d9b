"""The collector believes no single list: lists of EC2 lag behind, and so may our view of the claims."""

import asyncio
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.cloudprovider import CloudUnavailable
from nodeless.controllers.nodeclaim.garbage_collection import Collector
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimSeen
from nodeless.model.instructions import DeleteClaim, TerminateInstance
from nodeless.model.nodes import LAUNCHED, REGISTERED_CONDITION
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import Timing
from tests.factories import NOW, a_claim, a_launched_claim, an_instance, conditions


class World:
    """A cloud whose lists and whose answers on one instance lag behind; a controller's hands beside it."""

    def __init__(self, *claims, listed=()):
        self.at = NOW
        self.cluster = Cluster()
        for claim in claims:
            self.cluster.handle(ClaimSeen(claim))
        self.done, self.asked = [], []
        #: What the API server has, whatever the watch has told.
        self.stored = list(listed)
        self.shown, self.states = [], {}
        self.claims = self

    async def instances(self):
        return tuple(self.shown)

    async def state_of(self, instance_id):
        self.asked.append(instance_id)
        state = self.states.get(instance_id, "")
        if isinstance(state, Exception):
            raise state
        return state

    async def list_claims(self):
        return self.stored

    async def carry_out(self, instructions):
        self.done += instructions

    def ended(self):
        return [each for each in self.done if isinstance(each, DeleteClaim | TerminateInstance)]

    def collector(self):
        return Collector(self.cluster, self, self, Metrics(), Timing(wall_clock=lambda: self.at))


def rounds(world, times, every=10.0):
    async def run():
        loop = world.collector()
        for at in range(times):
            world.at = NOW + 5 + at * every
            await loop.collect_once()

    asyncio.run(run())


def a_registered_claim(name="default-abcde"):
    return a_launched_claim(name, conditions=conditions(LAUNCHED, REGISTERED_CONDITION))


def test_lists_that_lag_for_minutes_end_no_claim_without_node_and_no_instance():
    world = World(*(a_launched_claim(f"web-{each}") for each in range(3)))
    rounds(world, 20)
    assert world.ended() == []
    # A list that shows them again says that all is well.
    world.shown = [an_instance(f"web-{each}") for each in range(3)]
    world.asked.clear()
    rounds(world, 3)
    assert world.ended() == world.asked == []


@pytest.mark.parametrize("lists", ["shown, missing, shown, missing", "missing"])
def test_no_single_list_leads_to_a_question(lists):
    world = World(a_registered_claim())
    world.states = {"i-default-abcde": "terminated"}

    async def run():
        loop = world.collector()
        for at, each in enumerate(lists.split(", ")):
            world.at = NOW + 20 + at * 10
            world.shown = [an_instance()] if each == "shown" else []
            await loop.collect_once()

    asyncio.run(run())
    assert world.asked == world.ended() == []


def test_an_instance_that_ended_before_its_node_came_is_noticed_at_the_second_list():
    world = World(a_launched_claim())
    world.states = {"i-default-abcde": "terminated"}
    rounds(world, 3)
    assert world.ended()[0] == DeleteClaim("claim:default-abcde", "default-abcde", "garbage_collected")
    # 5 s: too young; 15 s: missed once; 25 s: missed twice.
    assert world.asked == ["i-default-abcde"]


def test_a_claim_that_cannot_be_asked_about_keeps_no_other_from_its_end():
    world = World(a_registered_claim("a"), a_registered_claim("b"))
    world.states = {"i-a": CloudUnavailable("ec2", "throttled"), "i-b": "terminated"}
    rounds(world, 3)
    assert [each.name for each in world.ended()] == ["b"]


def test_an_instance_whose_claim_the_watch_has_not_shown_yet_lives():
    claim = a_claim("late")
    world = World(listed=[claim])
    world.shown = [an_instance("late")]
    rounds(world, 12)
    assert world.ended() == []
    world.stored = []
    rounds(world, 12)
    assert set(world.ended()) == {TerminateInstance("instance:i-late", "", "i-late")}


@settings(max_examples=60)
@given(
    lag=st.floats(0, 200),
    joins=st.lists(st.floats(15, 400) | st.none(), min_size=1, max_size=4),
    deaths=st.sets(st.integers(0, 40), max_size=3),
)
def test_whatever_the_lag_and_whoever_leads_nothing_that_lives_is_ended(lag, joins, deaths):
    """Instances launched at 0; each is shown, in lists and by id, `lag` seconds later."""
    names = [f"web-{each}" for each in range(len(joins))]
    world = World(*map(a_launched_claim, names))

    async def run():
        loop = world.collector()
        for at in range(45):
            world.at = NOW + at * 10
            if at in deaths:
                loop = world.collector()
            for name, joined in zip(names, joins, strict=True):
                if joined is not None and joined <= at * 10:
                    world.cluster.handle(ClaimSeen(a_registered_claim(name)))
            seen = names if at * 10 > lag else []
            world.shown = [an_instance(name) for name in seen]
            world.states = {f"i-{name}": "running" for name in seen}
            await loop.collect_once()

    asyncio.run(run())
    assert world.ended() == []


@pytest.mark.parametrize(("registered", "state"), [*product([True, False], ["terminated"]), (True, "")])
def test_what_has_really_ended_is_ended(registered, state):
    world = World(a_registered_claim() if registered else a_launched_claim())
    world.states = {"i-default-abcde": state}
    rounds(world, 40)
    assert world.ended()
