"""The leader is killed at every boundary of every instruction: nothing is lost, doubled or left behind."""

from __future__ import annotations

import pytest

from nodeless.app.failpoints import boundaries
from tests.chaos.story import whole_life
from tests.chaos.world import World

pytestmark = pytest.mark.cluster


def test_a_leader_killed_at_every_boundary_of_every_instruction_loses_nothing(world: World) -> None:
    with world.leaders() as lives:
        whole_life(world)
        died_at = lives.died_at
        lives.check()
    # Each boundary once: the one that nobody reached would be an instruction that the story lacks.
    assert sorted(died_at) == sorted(boundaries())
