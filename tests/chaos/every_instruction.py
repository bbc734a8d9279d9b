"""The long form of `make chaos`: no leader lives longer than one instruction.

Not collected by `make test`: some two hundred leaders take their time.
"""

from __future__ import annotations

import pytest

from nodeless.app.failpoints import boundaries
from tests.chaos.story import whole_life
from tests.chaos.world import World

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]


def test_leaders_that_each_carry_out_one_instruction_come_to_the_same_end(world: World) -> None:
    with world.leaders(every=1) as lives:
        whole_life(world)
        died_at = lives.died_at
        lives.check()
    assert set(died_at) == set(boundaries())
    assert len(died_at) > 2 * len(boundaries())
