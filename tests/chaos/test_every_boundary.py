"""The leader is killed at every boundary of every instruction: nothing is lost, doubled or left behind.

CHAOS_DEATHS says how many leaders die at each, one after the other where the next comes there again; one
unless told, three in `make chaos`. `make test` draws a third of the boundaries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from nodeless.operator.failpoints import boundaries
from tests.chaos.story import whole_life
from tests.chaos.world import DEATHS, World

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800 * DEATHS)]


def test_a_leader_killed_at_every_boundary_of_every_instruction_loses_nothing(
    world: World, is_drawn: Callable[[str], bool]
) -> None:
    world.settings["nodeless.nodeRepair"] = "true"
    deadly = [place for place in boundaries() if is_drawn(place)]
    with world.leaders(deadly=deadly, deaths=DEATHS) as lives:
        whole_life(world)
        died_at = Counter(lives.died_at)
        lives.check()
    # The boundary that nobody reached would be an instruction that the story lacks.
    assert sorted(died_at) == sorted(deadly)
    assert max(died_at.values()) == DEATHS
