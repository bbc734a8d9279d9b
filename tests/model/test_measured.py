"""Memory and disks of nodes: the least that was seen counts, for sixty days, and it survives a restart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.memory_observations import (
    KEPT_SECONDS,
    MemoryObservations,
    read_observations,
    write_observations,
)

NOW = 1_800_000_000.0
DAY = 86_400.0
kinds = st.tuples(st.sampled_from(["m5.large", "u-6tb1.112xlarge"]), st.sampled_from(["ami-1", "ami-2"]))
sights = st.lists(st.tuples(kinds, st.integers(1, 2**43), st.integers(0, 50 * 86_400)), max_size=20)


def test_the_least_that_was_seen_counts() -> None:
    seen = (
        MemoryObservations().observe("m5.large", "ami-1", 800, NOW).observe("m5.large", "ami-1", 700, NOW + 1)
    )
    seen = seen.observe("m5.large", "ami-1", 900, NOW + 2)
    assert seen.memory("m5.large", "ami-1") == 700
    assert seen.memory("m5.large", "ami-2") is None


def test_a_sight_that_says_nothing_new_changes_nothing_but_once_a_day() -> None:
    seen = MemoryObservations().observe("m5.large", "ami-1", 700, NOW)
    assert seen.observe("m5.large", "ami-1", 700, NOW + DAY - 1) is seen
    assert seen.observe("m5.large", "ami-1", 700, NOW + DAY) is not seen


def test_aws_1_3_what_was_not_seen_for_sixty_days_is_forgotten() -> None:
    old = MemoryObservations().observe("m5.large", "ami-1", 700, NOW)
    newer = old.observe("m5.large", "ami-2", 700, NOW + KEPT_SECONDS)
    assert set(newer.sights) == {("m5.large", "ami-2")}
    assert (
        read_observations(write_observations(old), NOW + KEPT_SECONDS - 1).memory("m5.large", "ami-1") == 700
    )
    assert read_observations(write_observations(old), NOW + KEPT_SECONDS).sights == {}


GIB = 2**30


def test_a_disk_that_is_smaller_than_planned_is_that_small_for_every_node_of_its_image() -> None:
    seen = MemoryObservations().observe_disk("ami-1", 20 * GIB, 18 * GIB, NOW)
    assert seen.ephemeral_storage("ami-1", 20 * GIB) == 18 * GIB
    # Another image may leave more, and so may another size of the disk.
    assert seen.ephemeral_storage("ami-2", 20 * GIB) == 20 * GIB
    assert seen.ephemeral_storage("ami-1", 40 * GIB) == 40 * GIB
    # A node that was planned by what was learned, and has even less.
    less = seen.observe_disk("ami-1", 18 * GIB, 17 * GIB, NOW)
    assert less.ephemeral_storage("ami-1", 20 * GIB) == 17 * GIB


@pytest.mark.parametrize("had", [20 * GIB, 20 * GIB + 1, 60 * GIB])
def test_a_disk_that_is_as_planned_or_larger_teaches_nothing(had: int) -> None:
    nothing = MemoryObservations()
    assert nothing.observe_disk("ami-1", 20 * GIB, had, NOW) is nothing


def test_a_small_disk_is_noted_again_once_a_day_and_forgotten_after_sixty() -> None:
    seen = MemoryObservations().observe_disk("ami-1", 20, 18, NOW)
    assert seen.observe_disk("ami-1", 20, 18, NOW + DAY - 1) is seen
    assert seen.observe_disk("ami-1", 20, 19, NOW + DAY - 1) is seen
    assert seen.observe_disk("ami-1", 20, 18, NOW + DAY) is not seen
    assert seen.observe_disk("ami-1", 20, 17, NOW + 1).ephemeral_storage("ami-1", 20) == 17
    assert set(seen.observe_disk("ami-2", 20, 18, NOW + KEPT_SECONDS).disks) == {("ami-2", 20)}
    assert read_observations(write_observations(seen), NOW + KEPT_SECONDS).disks == {}


disks = st.tuples(st.sampled_from(["ami-1", "ami-2"]), st.integers(1, 2**6), st.integers(1, 2**6))


@given(st.lists(disks, max_size=30))
def test_what_is_learned_of_disks_never_makes_one_larger_and_holds_for_every_node_seen(
    observed: list[tuple[str, int, int]],
) -> None:
    measured = MemoryObservations()
    for image, planned, had in observed:
        measured = measured.observe_disk(image, planned, had, NOW)
    for image, planned, had in observed:
        assert measured.ephemeral_storage(image, planned) <= min(planned, had)
    assert read_observations(write_observations(measured), NOW).disks == measured.disks


@given(sights)
def test_it_reads_back_as_it_was_written(observed: list[tuple[tuple[str, str], int, int]]) -> None:
    measured = MemoryObservations()
    for (name, image), memory, age in observed:
        measured = measured.observe(name, image, memory, NOW - age)
    assert read_observations(write_observations(measured), NOW).sights == measured.sights


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("ephemeral-storage_ami-1", "1 1800000000"),
        ("ephemeral-storage_ami-1_", "1 1800000000"),
        ("ephemeral-storage_ami-1_x", "1 1800000000"),
        ("ephemeral-storage__7", "1 1800000000"),
        ("m5.large", "1 1800000000"),
        ("m5.large_ami-1", "x 1"),
        ("m5.large_ami-1", ""),
        ("_", "0 1800000000"),
    ],
)
def test_entries_that_are_none_are_left_out(key: str, text: str) -> None:
    assert (
        read_observations({key: text, "m5.large_ami-2": "5 1800000000"}, NOW).memory("m5.large", "ami-2") == 5
    )
    alone = read_observations({key: text}, NOW)
    assert len(alone.sights) == len(alone.disks) == 0
