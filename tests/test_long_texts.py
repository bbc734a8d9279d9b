"""A long text, as a ConfigMap or an annotation may hold, is read or refused at once.

Where reading takes quadratic time, it takes a quarter of an hour: the limit of a minute is far from both.
"""

import contextlib
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.api.errors import FieldError
from nodeless.api.schedules import SCHEDULE_PATTERN, has_form_of_schedule
from nodeless.api.times import is_longer_than_counts, parse_go_duration, parse_life_span
from nodeless.api.validation import validate
from nodeless.api.warnings import suspicions
from nodeless.cloudprovider.aws.type_facts import TypeFacts
from nodeless.launch import al2023, windows
from nodeless.launch.call_details import split_call_details
from nodeless.launch.kubelet_arguments import go_duration
from nodeless.model.quantity import LARGEST, parse_decimal
from nodeless.operator.setting_values import duration
from tests.api.manifests import node_pool
from tests.launch.test_user_data import PLAIN

LENGTH = 300_000
TYPE = TypeFacts("m5.large", "amd64", 2, 8192, 3, 10, None, "nitro", True, None, (), (), ())


def generation_of_a_type(text: str) -> str | None:
    return replace(TYPE, name=text).generation


def powershell_of_a_node(text: str) -> str:
    return windows.user_data(replace(PLAIN, custom=text))


def broken_yaml_of_a_node(text: str) -> str:
    return al2023.user_data(replace(PLAIN, custom="{}}" + text))


def faults_of_a_schedule(text: str) -> list[FieldError]:
    budget = {"nodes": "10%", "duration": "1h", "schedule": text}
    return [
        fault
        for fault in validate(node_pool(disruption={"budgets": [budget]}))
        if fault.path.endswith("schedule")
    ]


READERS = (
    broken_yaml_of_a_node,
    duration,
    faults_of_a_schedule,
    generation_of_a_type,
    go_duration,
    is_longer_than_counts,
    parse_decimal,
    parse_go_duration,
    parse_life_span,
    powershell_of_a_node,
    split_call_details,
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", ["", "!", "h", "x."])
@pytest.mark.parametrize("start", ["", "a"])
@pytest.mark.parametrize("part", ["9", "9.", "9h", "a", "a9", " ", "\n", " \n", "(", "(,"])
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_long_text_is_read_or_refused_at_once(
    read: Callable[[str], object], start: str, part: str, end: str
) -> None:
    text = start + part * (LENGTH // len(part)) + end
    try:
        read(text)
    except ValueError as refusal:
        assert len(str(refusal)) < 1000


@pytest.mark.parametrize("digits", [61, 5000, 1_000_001])
@pytest.mark.parametrize("suffix", ["", "n", "Ei", "e-30", ".5"])
def test_an_amount_of_any_length_counts_as_the_largest(digits: int, suffix: str) -> None:
    assert parse_decimal("9" * digits + suffix) == LARGEST
    assert parse_decimal("-" + "9" * digits + suffix) == -LARGEST


def test_leading_zeros_and_small_exponents_are_no_size() -> None:
    assert parse_decimal("0" * LENGTH + "7") == 7
    assert parse_decimal("1" + "0" * 50 + "e-30") == 10**20


def test_a_grace_period_longer_than_any_number_is_passed_on_as_it_is() -> None:
    assert go_duration("9" * 400 + "h") == "9" * 400 + "h"


@pytest.mark.parametrize(
    "text",
    ["0 0 * * " + "9" * 5000, "0 0 * * 1-" + "9" * 5000, " " * 200 + "\n\nx", "0" * 5000],
    ids=["day", "last day", "blanks", "one field"],
)
def test_a_long_text_that_is_no_schedule_is_a_fault_of_its_field(text: str) -> None:
    assert [fault.path for fault in faults_of_a_schedule(text)]


@given(st.text("a0*@daily \t\r\n", max_size=20) | st.text("a \n", max_size=10))
@settings(max_examples=2000)
def test_a_text_has_the_form_of_a_schedule_where_karpenters_pattern_matches(text: str) -> None:
    assert has_form_of_schedule(text) == (re.search(SCHEDULE_PATTERN, text) is not None)


@pytest.mark.parametrize(
    "text", ["@daily", "0 9 * * mon-fri", "0 " + "0" * 5000 + "9 * * 1", "1,2," * 50 + "3 0 * * *"]
)
def test_a_schedule_of_any_length_is_one(text: str) -> None:
    assert faults_of_a_schedule(text) == []


def manifests() -> Iterator[dict[str, Any]]:
    """Those of our kinds in the repository, and one with a bound."""
    at_least = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]}
    yield node_pool(template={"requirements": [at_least]})
    root = Path(__file__).parents[1]
    for file in sorted([*root.glob("examples/**/*.yaml"), *root.glob("tests/**/*.yaml")]):
        with contextlib.suppress(yaml.YAMLError):  # templates of charts, and broken ones for tests
            for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
                if isinstance(document, dict) and "karpenter" in str(document.get("apiVersion")):
                    yield document


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of all that is neither an object nor a list."""
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in members:
            yield from places(member, (*path, key))
    else:
        yield path


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "text",
    [
        "9" * 5000,
        "-" + "9" * 5000,
        "9" * 5000 + "%",
        "9" * 5000 + "h",
        "9" * 5000 + "Gi",
        "1e" + "9" * 5000,
        "a" * 100_000,
        "a." * 50_000,
        "a/" * 50_000,
        "arn:" * 25_000,
        " " * 100_000 + "x",
        "a" + "\n" * 100_000 + "!",
    ],
    ids=lambda text: repr(text[:6] + text[-3:]),
)
def test_a_long_text_in_any_field_is_judged(text: str) -> None:
    seen = set()
    for manifest in manifests():
        for path in places(manifest):
            field = (
                manifest["apiVersion"],
                manifest["kind"],
                *(name for name in path if isinstance(name, str)),
            )
            if field in seen or path[0] in ("apiVersion", "kind"):
                continue
            seen.add(field)
            changed = holder = copy.deepcopy(manifest)
            for name in path[:-1]:
                holder = holder[name]
            holder[path[-1]] = text
            for fault in (*validate(changed), *suspicions(changed)):
                assert len(str(fault)) < 20_000, path
    assert len(seen) > 50
