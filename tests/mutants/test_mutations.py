"""What counts as a small change, and what is left alone."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import draw
from tests.mutants.mutations import mutants
from tests.mutants.rooms import ROOMS, Room


def changes(source):
    return {(each.before.strip(), each.after.strip()) for each in mutants(source)}


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("a < b", ("<", "<=")),
        ("a == b", ("==", "!=")),
        ("a in b", ("in", "not in")),
        ("x = a and b", ("and", "or")),
        ("x = not a", ("not a", "a")),
        ("x = a + b", ("+", "-")),
        ("x = 15", ("15", "(15 + 1)")),
        ("x = True", ("True", "False")),
        ("x = 'uid'", ("'uid'", "'uidx'")),
        ("f(1, uid=u)", ("f(1, uid=u)", "f(1)")),
        ("x = {'a': 1, 'b': 2}", ("{'a': 1, 'b': 2}", "{'a': 1}")),
        ("x = [a, b]", ("[a, b]", "[a]")),
        ("f()", ("f()", "pass")),
        ("def f():\n    return a", ("return a", "return None")),
        ("if a:\n    b()", ("a", "(not (a))")),
    ],
)
def test_a_change_that_means_something_else_is_found(source, change):
    assert change in changes(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "raise ValueError('no')",
        "x: int | None",
        "log.info('hello there', pods=1)",
        "x = 'a text for people'",
        "import os",
    ],
)
def test_what_only_people_read_is_left_alone(source):
    assert not changes(source)


def test_bytes_before_a_change_may_be_several_for_a_character():
    (mutant,) = [each for each in mutants("x = 'äö ü', a < b") if each.before.strip() == "<"]
    assert mutant.source == "x = 'äö ü', a <= b"


@pytest.mark.parametrize("name", sorted(ROOMS))
def test_a_room_has_code_and_tests_and_the_same_seed_draws_the_same(name):
    room: Room = ROOMS[name]
    root = Path(__file__).parents[2]
    assert (root / room.code).is_dir()
    assert all((root / each).exists() for each in room.tests)
    assert draw(room, 5, 7, only="__init__") == draw(room, 5, 7, only="__init__")
