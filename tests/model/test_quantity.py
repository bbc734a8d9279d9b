"""Quantities are exact integers, and come back as they were meant."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.quantity import (
    LARGEST,
    QuantityError,
    format_milli,
    format_units,
    parse_decimal,
    parse_milli,
    parse_units,
)


@pytest.mark.parametrize(
    ("text", "millicores"),
    [
        ("500m", 500),
        ("2", 2000),
        (4, 4000),
        ("0.1", 100),
        ("1e3", 1_000_000),
        ("100u", 1),
        (".5", 500),
        ("-1", -1000),
    ],
)
def test_cpu_counts_millicores_rounded_up(text, millicores):
    assert parse_milli(text) == millicores


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("4Gi", 4 * 2**30),
        ("1.5Gi", 3 * 2**29),
        ("100M", 10**8),
        ("1k", 1000),
        ("1m", 1),
        ("0", 0),
        ("12E", 12 * 10**18),
    ],
)
def test_other_resources_count_whole_units_rounded_up(text, units):
    assert parse_units(text) == units


@pytest.mark.parametrize("text", ["", "4GB", "1,5", "Gi", "1e", "0x10", "1 Gi", "--1", "nan"])
def test_what_is_no_quantity_is_refused_with_the_text_and_a_hint(text):
    with pytest.raises(QuantityError, match="hint: ") as refused:
        parse_decimal(text)
    assert refused.value.text == text


@pytest.mark.parametrize("text", ["0.25", " 1536Mi ", "2" * 30, "0" * 40 + "7", "4GB", "9" * 40 + "GB"])
def test_a_text_says_the_same_each_time_however_long_it_is(text):
    """Short ones are kept as they were read the first time."""

    def read():
        try:
            return parse_decimal(text)
        except QuantityError as refused:
            return refused.text

    first = read()
    assert [read(), read()] == [first, first]
    assert first == (text if text.endswith("B") else min(parse_decimal("0" * 40 + text.strip()), LARGEST))


@given(st.integers(0, 2**62))
def test_units_survive_writing_and_reading(amount):
    assert parse_units(format_units(amount)) == amount


@given(st.integers(0, 2**53))
def test_millicores_survive_writing_and_reading(amount):
    assert parse_milli(format_milli(amount)) == amount


@given(st.decimals(0, 10**6, places=6), st.sampled_from(["", "m", "k", "Mi", "G"]))
def test_reading_never_loses_anything_but_rounds_up(number, suffix):
    text = f"{number:f}{suffix}"
    exact = parse_decimal(text)
    assert exact <= parse_units(text) < exact + 1
    assert exact * 1000 <= parse_milli(text) < exact * 1000 + 1


def test_decimal_values_are_exact():
    assert parse_decimal("0.1") == Decimal(1) / Decimal(10)


@pytest.mark.parametrize("text", ["1e999999999", "1E-999999999"])
def test_an_exponent_beyond_all_measure_is_refused_not_computed(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_units(text)
