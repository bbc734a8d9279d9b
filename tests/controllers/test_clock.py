"""What time it is, is what the API server says."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.operator.clock import SLACK_SECONDS, Clock

NOON = 1_700_000_000.0


class Machine:
    """Clocks of a machine that the test commands."""

    def __init__(self):
        self.wall, self.steady = NOON, 50.0

    def passes(self, seconds):
        self.wall += seconds
        self.steady += seconds

    def clock(self):
        return Clock(lambda: self.wall, lambda: self.steady)


def date(seconds):
    return format_datetime(datetime.fromtimestamp(int(seconds), UTC), usegmt=True)


def test_a_machine_clock_that_jumps_changes_nothing():
    machine = Machine()
    clock = machine.clock()
    machine.passes(10)
    machine.wall += 7200
    assert clock.now() == NOON + 10


@pytest.mark.parametrize("wrong_by", [-86_400, -60, 60, 86_400])
def test_a_machine_clock_that_is_wrong_from_the_start_is_set_by_the_first_answer(wrong_by):
    machine = Machine()
    machine.wall += wrong_by
    clock = machine.clock()
    assert clock.sync(date(NOON), 0.2)
    assert abs(clock.now() - NOON) <= 1.5
    machine.passes(30)
    assert not clock.sync(date(NOON + 30), 0.2)


@given(st.floats(0, 3600), st.floats(0, 30), st.floats(-SLACK_SECONDS / 2, SLACK_SECONDS / 2))
def test_answers_that_come_late_and_servers_that_differ_a_little_do_not_move_the_clock(later, took, drift):
    machine = Machine()
    clock = machine.clock()
    machine.passes(later)
    answered = NOON + later + drift
    machine.passes(took)
    assert not clock.sync(date(answered), took)
    assert clock.now() == pytest.approx(NOON + later + took)


@pytest.mark.parametrize("text", [None, "", "yesterday"])
def test_an_answer_without_a_date_moves_nothing(text):
    clock = Machine().clock()
    assert not clock.sync(text, 0.1)
    assert clock.now() == NOON
