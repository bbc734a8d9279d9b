"""Memory that was seen on nodes: the least counts, old sights are forgotten, and it survives a restart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.measured import KEPT_SECONDS, Measured, read_measured, write_measured

NOW = 1_800_000_000.0
DAY = 86_400.0
kinds = st.tuples(st.sampled_from(["m5.large", "u-6tb1.112xlarge"]), st.sampled_from(["ami-1", "ami-2"]))
sights = st.lists(st.tuples(kinds, st.integers(1, 2**43), st.integers(0, 50 * 86_400)), max_size=20)


def test_the_least_that_was_seen_counts() -> None:
    seen = Measured().observe("m5.large", "ami-1", 800, NOW).observe("m5.large", "ami-1", 700, NOW + 1)
    seen = seen.observe("m5.large", "ami-1", 900, NOW + 2)
    assert seen.memory("m5.large", "ami-1") == 700
    assert seen.memory("m5.large", "ami-2") is None


def test_a_sight_that_says_nothing_new_changes_nothing_but_once_a_day() -> None:
    seen = Measured().observe("m5.large", "ami-1", 700, NOW)
    assert seen.observe("m5.large", "ami-1", 700, NOW + DAY - 1) is seen
    assert seen.observe("m5.large", "ami-1", 700, NOW + DAY) is not seen


def test_1_3_what_was_not_seen_for_sixty_days_is_forgotten() -> None:
    old = Measured().observe("m5.large", "ami-1", 700, NOW)
    newer = old.observe("m5.large", "ami-2", 700, NOW + KEPT_SECONDS)
    assert set(newer.sights) == {("m5.large", "ami-2")}
    assert read_measured(write_measured(old), NOW + KEPT_SECONDS - 1).memory("m5.large", "ami-1") == 700
    assert read_measured(write_measured(old), NOW + KEPT_SECONDS).sights == {}


@given(sights)
def test_it_reads_back_as_it_was_written(observed: list[tuple[tuple[str, str], int, int]]) -> None:
    measured = Measured()
    for (name, image), memory, age in observed:
        measured = measured.observe(name, image, memory, NOW - age)
    assert read_measured(write_measured(measured), NOW).sights == measured.sights


@pytest.mark.parametrize(
    ("key", "text"),
    [("m5.large", "1 1800000000"), ("m5.large_ami-1", "x 1"), ("m5.large_ami-1", ""), ("_", "0 1800000000")],
)
def test_entries_that_are_none_are_left_out(key: str, text: str) -> None:
    assert read_measured({key: text, "m5.large_ami-2": "5 1800000000"}, NOW).memory("m5.large", "ami-2") == 5
    assert len(read_measured({key: text}, NOW).sights) == 0
