"""A process that plans and answers at once."""

import gc
import sys

import pytest

from nodeless.manager.freeze_gc import answer_while_computing, freeze_gc


@pytest.fixture(autouse=True)
def as_before():
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    gc.unfreeze()


def test_a_thread_that_waits_gets_its_turn_after_a_millisecond():
    answer_while_computing()

    assert sys.getswitchinterval() == pytest.approx(0.001)


def test_what_is_settled_is_not_collected_again_and_is_freed_when_nobody_needs_it():
    table = [[number] for number in range(10_000)]

    freeze_gc()

    assert gc.get_freeze_count() > 10_000
    assert not any(each is table for each in gc.get_objects())
    before = gc.get_freeze_count()
    table.clear()
    assert gc.get_freeze_count() <= before - 10_000
