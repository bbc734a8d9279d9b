"""Times and spans that users write, however far: read and written without a fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import (
    EARLIEST,
    LATEST,
    LONGEST_SPAN,
    format_time,
    is_longer_than_counts,
    parse_go_duration,
    parse_life_span,
    parse_time,
)
from nodeless.api.warnings import suspicions
from nodeless.model.numbers import whole_number


@given(st.one_of(st.floats(), st.integers(-(2**70), 2**70)))
def test_every_number_of_seconds_can_be_written_and_what_is_written_can_be_read(seconds):
    assert EARLIEST <= parse_time(format_time(seconds)) <= LATEST


@given(st.integers(int(EARLIEST), int(LATEST)))
def test_a_time_that_kubernetes_can_name_is_written_exactly(seconds):
    assert parse_time(format_time(seconds)) == seconds


def test_a_fraction_is_cut_off_and_the_year_has_four_digits():
    assert format_time(0.9) == "1970-01-01T00:00:00Z"
    assert format_time(-0.1) == "1969-12-31T23:59:59Z"
    assert format_time(EARLIEST) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("text", ["0000-12-31T10:00:00Z", "0000-01-01T00:00:00Z"])
def test_goes_year_zero_is_the_earliest_time(text):
    assert parse_time(text) == EARLIEST


@given(st.lists(st.tuples(st.integers(0, 10**40), st.sampled_from("smh")), min_size=1))
def test_a_span_is_its_seconds_and_one_that_never_ends_counts_as_the_longest(parts):
    text = "".join(f"{number}{unit}" for number, unit in parts)
    seconds = sum(number * {"s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)
    assert parse_life_span(text) == min(seconds, LONGEST_SPAN)
    assert is_longer_than_counts(text) == (seconds > LONGEST_SPAN)


@pytest.mark.parametrize("text", ["9" * 100_000 + "h", "99999999h", "0" * 5000 + "99999999999h"])
def test_no_span_is_too_long_to_be_read(text):
    assert parse_life_span(text) == LONGEST_SPAN
    assert format_time(1.7e9 + 2 * LONGEST_SPAN)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("8h", 28_800),
        ("1.5h", 5_400),
        ("1h30m", 5_400),
        (".5m", 30),
        ("1.m", 60),
        ("500ms", 0.5),
        ("250us", 0.00025),
        ("250\u00b5s", 0.00025),
        ("250\u03bcs", 0.00025),
        ("7ns", 7e-9),
        ("+10m", 600),
        ("-1.5s", -1.5),
        ("0", 0),
        ("-0", 0),
        ("9" * 400 + "h", LONGEST_SPAN),
    ],
)
def test_a_duration_is_what_go_reads(text, seconds):
    assert parse_go_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "10", "1d", "h", ".h", "1 h", "1h ", "+-1h", "1e3s", "Never", "٣h", "1,5h"]
)
def test_what_go_reads_no_duration_in_is_refused(text):
    with pytest.raises(ValueError, match="is not a duration"):
        parse_go_duration(text)


@given(st.text(alphabet="0123456789-+_ ٣²x", max_size=30), st.integers(1, 10**9))
def test_a_number_has_ascii_digits_and_is_bounded(text, most):
    found = whole_number(text, most)
    assert (found is not None) == (text.isascii() and text.isdigit())
    assert found is None or found == min(int(text), most)


def test_a_number_of_thousands_of_digits_is_the_largest():
    assert whole_number("9" * 100_000, 7) == 7
    assert whole_number("0" * 100_000 + "3", 7) == 3


@pytest.mark.parametrize(
    ("span", "warned"),
    [("99999999h", True), ("9" * 5000 + "s", True), ("720h", False), ("Never", False), (7, False)],
)
@pytest.mark.parametrize("field", ["expireAfter", "terminationGracePeriod"])
def test_a_span_that_counts_as_less_than_it_says_is_warned_of(field, span, warned):
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}}
    pool["spec"] = {"template": {"spec": {field: span}}}
    found = [suspicion for suspicion in suspicions(pool) if suspicion.path == f"spec.template.spec.{field}"]
    assert bool(found) == warned
    assert all("292 years" in str(each) for each in found)
