"""A failed offering is left alone for three minutes, counted from its last failure."""

from nodeless.launch.unavailable import Unavailable

KEY = ("m5.large", "us-east-1a", "spot")


def test_a_mark_lasts_three_minutes_from_the_last_failure() -> None:
    memory = Unavailable().mark([KEY], now=1000.0)
    assert memory.at(1179.9) == {KEY}
    assert memory.at(1180.0) == frozenset()
    assert memory.mark([KEY], now=1100.0).at(1279.0) == {KEY}


def test_marking_leaves_the_older_memory_as_it_was_and_drops_what_expired() -> None:
    first = Unavailable().mark([KEY], now=0.0)
    other = ("m5.large", "us-east-1b", "spot")
    second = first.mark([other], now=500.0)
    assert first.at(10.0) == {KEY}
    assert set(second.until) == {other}
