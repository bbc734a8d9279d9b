"""What failed rests ever longer, alone, and is taken up at once when it has changed."""

from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.quarantine import FIRST_DELAY, LONGEST_DELAY, MOST_REMEMBERED, Quarantine

KEYS = st.sampled_from("abc")
STEPS = st.lists(
    st.tuples(st.sampled_from(["failed", "passed"]), KEYS, st.sampled_from("12"), st.floats(0, 100))
)


@given(st.integers(1, 40))
def test_every_failure_in_a_row_doubles_the_rest_up_to_the_longest(failures):
    quarantine, now = Quarantine(), 0.0
    for number in range(failures):
        quarantine = quarantine.after_failure("a", "broken", now, "1")
        assert quarantine.seconds_to_rest("a", now, "1") == min(FIRST_DELAY * 2**number, LONGEST_DELAY)
        now += quarantine.seconds_to_rest("a", now, "1")
    assert quarantine.seconds_to_rest("a", now, "1") == 0


@given(STEPS)
def test_nothing_rests_for_another_ones_failure_and_no_version_for_an_earlier_one(steps):
    quarantine, now, last = Quarantine(), 0.0, {}
    for what, key, version, seconds in steps:
        now += seconds
        if what == "failed":
            quarantine, last[key] = quarantine.after_failure(key, "broken", now, version), version
        else:
            quarantine = quarantine.after_success(key)
            last.pop(key, None)
        for each in "abc":
            assert (each in quarantine.entries) == (each in last)
            for candidate in "12":
                if last.get(each) != candidate:
                    assert quarantine.seconds_to_rest(each, now, candidate) == 0
                assert 0 <= quarantine.seconds_to_rest(each, now, candidate) <= LONGEST_DELAY


def test_a_cause_is_new_until_it_was_noted_and_after_the_thing_has_passed():
    quarantine = Quarantine()
    assert quarantine.is_new_cause("a", "broken")
    quarantine = quarantine.after_failure("a", "broken", 0.0)
    assert not quarantine.is_new_cause("a", "broken")
    assert quarantine.is_new_cause("a", "broken otherwise")
    assert quarantine.after_success("a").is_new_cause("a", "broken")


def test_whoever_makes_very_many_bad_things_does_not_fill_the_memory():
    quarantine = Quarantine()
    for number in range(MOST_REMEMBERED + 10):
        quarantine = quarantine.after_failure(f"pod-{number}", "broken", float(number))
    assert len(quarantine.entries) == MOST_REMEMBERED
    assert "pod-0" not in quarantine.entries
