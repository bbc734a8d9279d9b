"""A fault while one node or command is looked at, or carried out, stays with that one."""

import asyncio

import pytest

from nodeless.disruption import CommandStep, commands, validating
from nodeless.disruption.candidates import CandidateBuilder
from nodeless.disruption.consolidation import Consolidation
from nodeless.kube import ApiError
from nodeless.model.instructions import CreateClaim, DeleteClaim
from nodeless.model.labels import REPLACES
from tests.controllers.test_disruption_loop import POOL, World
from tests.disruption.world import node_of, on

#: Two wasteful nodes; what is found for one is found without the other, too.
TWO = (node_of(POOL, "a", "2xlarge"), on("a", cpu="500m"), node_of(POOL, "b", "2xlarge"), on("b", cpu="500m"))


def cursed(monkeypatch, owner, method, name_of):
    """Have a method raise when it is about the node `a`."""
    plain = getattr(owner, method)

    def faulty(self, first, *rest, **fields):
        if name_of(first) == "a":
            raise KeyError("nobody foresaw this")
        return plain(self, first, *rest, **fields)

    monkeypatch.setattr(owner, method, faulty)


@pytest.mark.parametrize(
    ("owner", "method", "name_of"),
    [
        (CandidateBuilder, "candidate", lambda claim: claim.name),
        (Consolidation, "_is_crowded", lambda candidate: candidate.name),
    ],
    ids=["while it is made a candidate", "while others are asked for room"],
)
def test_a_node_whose_look_fails_is_left_alone_and_the_others_are_not(monkeypatch, owner, method, name_of):
    cursed(monkeypatch, owner, method, name_of)
    world = World(*TWO)
    assert world.look()
    world.look(16)
    touched = {each.name for each in world.done if isinstance(each, DeleteClaim)}
    touched |= {each.claim.annotations[REPLACES] for each in world.done if isinstance(each, CreateClaim)}
    assert world.done
    assert "a" not in touched
    found = [message for name, reason, message in world.events() if reason == "Quarantined"]
    assert found
    assert all("nobody foresaw this" in message for message in found)


def test_a_second_look_that_fails_drops_its_move_and_the_loop_goes_on(monkeypatch):
    world = World(*TWO)
    assert world.look()
    plain = validating._validate_command

    def faulty(_look, _move):
        raise KeyError("nobody foresaw this")

    monkeypatch.setattr(validating, "_validate_command", faulty)
    world.look(16)
    assert not world.done
    monkeypatch.setattr(validating, "_validate_command", plain)
    world.look(10)
    world.look(16)
    assert world.done


@pytest.mark.parametrize("error", [KeyError("nobody foresaw this"), ApiError(422, "Invalid", "no")], ids=str)
def test_a_command_that_cannot_be_carried_out_rests_and_the_others_go_on(monkeypatch, error):
    world = World(*TWO)
    steps = {"a": (DeleteClaim("t", "a", "x"),), "b": (DeleteClaim("t", "b", "x"),)}
    monkeypatch.setattr(
        "nodeless.controllers.disruption.controller.next_steps",
        lambda _snapshot, _now: tuple(CommandStep(key, some) for key, some in steps.items()),
    )
    plain = world.carry_out

    async def carry_out(instructions):
        if any(isinstance(each, DeleteClaim) and each.name == "a" for each in instructions):
            raise error
        await plain(instructions)

    world.carry_out = carry_out
    for _ in range(3):
        asyncio.run(world.loop.advance_once())
    assert [each.name for each in world.done] == ["b"] * 3
    assert [name for name, reason, _ in world.events() if reason == "Quarantined"] == ["a"]


def test_a_command_whose_step_cannot_be_found_keeps_no_other_from_its_own(monkeypatch):
    plain = commands._remove_marks

    def faulty(snapshot, claim, now):
        if claim.name == "a":
            raise KeyError("nobody foresaw this")
        return [*plain(snapshot, claim, now), DeleteClaim("t", claim.name, "x")]

    monkeypatch.setattr(commands, "_remove_marks", faulty)
    world = World(*TWO)
    asyncio.run(world.loop.advance_once())
    assert [each.name for each in world.done] == ["b"]
    with pytest.raises(KeyError):
        commands.advance(world.cluster.snapshot, world.now)
