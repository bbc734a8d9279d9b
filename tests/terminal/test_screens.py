"""The commands on real terminals: as the files hold it, and nothing that names a thing is cut."""

import re

import pytest
from rich.console import Console

from nodeless.cli.tables import Column, FittedTable, indented
from tests.terminal.screens import SCREENS, WIDTHS, held, screen

#: All on the narrowest, where most is folded.
DRAWN = [
    pytest.param(name, width, marks=() if width == WIDTHS[0] else pytest.mark.drawn)
    for name, width in SCREENS
]


@pytest.mark.parametrize(("name", "width"), DRAWN)
def test_a_command_shows_what_its_file_holds(name, width):
    """Where what is printed has changed on purpose: `python -m tests.terminal`, and read the diff."""
    assert screen(name, width) == held(name, width).read_text()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_plan_shows_every_type_zone_and_pool_whole_and_on_one_line(width):
    shown = held("plan", width).read_text()
    rows = re.findall(
        r"^ +1   [a-z0-9]+\.\w+ +us-east-1[abc] +(?:spot|on-demand) +0\.\d{4} +\w+/\w+", shown, re.MULTILINE
    )
    assert len(rows) == 6
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize("name", ["windows", "solve", "replay"])
@pytest.mark.parametrize("width", WIDTHS)
def test_lines_are_folded_at_the_width_and_no_word_is_cut(name, width):
    """A word that is wider than the terminal stays whole."""
    lines = held(name, width).read_text().splitlines()
    assert [line for line in lines if len(line) > width and len(line.split()) > 1] == []
    widest = held(name, WIDTHS[-1]).read_text().split()
    assert " ".join(lines).split() == widest


TABLE = FittedTable(
    (
        Column("NODE"),
        Column("POOL", optional=True),
        Column("PODS", right=True),
        Column("AGE", right=True, optional=True),
        Column("ZONE"),
        Column("WHY", folds=True, least=20),
    ),
    [
        ("ip-10-0-12-34.ec2.internal", "general", "12", "3d4h", "-", "its budget allows no disruption now"),
        ("ip-10-0-99-1.ec2.internal", "batch", "3", "45m", "-", "-"),
    ],
)


def lines(width):
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(TABLE, soft_wrap=True)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_wide_table_shows_everything():
    assert lines(120)[:2] == [
        "NODE                         POOL      PODS    AGE   ZONE   WHY",
        "ip-10-0-12-34.ec2.internal   general     12   3d4h   -      its budget allows no disruption now",
    ]


def test_a_column_without_anything_in_it_goes_first_and_nobody_is_told():
    assert lines(76) == [
        "NODE                         POOL      PODS    AGE   WHY",
        "ip-10-0-12-34.ec2.internal   general     12   3d4h   its budget allows no",
        "                                                     disruption now",
        "ip-10-0-99-1.ec2.internal    batch        3    45m   -",
    ]


def test_then_optional_columns_the_last_ones_first_which_are_named():
    assert lines(66) == [
        "NODE                         POOL      PODS   WHY",
        "ip-10-0-12-34.ec2.internal   general     12   its budget allows no",
        "                                              disruption now",
        "ip-10-0-99-1.ec2.internal    batch        3   -",
        "not shown for want of width: AGE",
    ]


def test_then_what_folds_has_lines_of_its_own():
    assert lines(50) == [
        "NODE                         POOL      PODS    AGE",
        "ip-10-0-12-34.ec2.internal   general     12   3d4h",
        "        WHY: its budget allows no disruption now",
        "ip-10-0-99-1.ec2.internal    batch        3    45m",
    ]


def test_what_is_always_shown_is_never_cut():
    assert lines(20) == [
        "NODE                         PODS",
        "ip-10-0-12-34.ec2.internal     12",
        "        WHY: its budget",
        "          allows no",
        "          disruption now",
        "ip-10-0-99-1.ec2.internal       3",
        "not shown for want of width: POOL, AGE",
    ]


def test_a_table_without_rows_is_its_heads():
    console = Console(width=30)
    with console.capture() as captured:
        console.print(FittedTable((Column("NODE"), Column("WHY", folds=True)), ()))
    assert captured.get().split() == ["NODE", "WHY"]


def test_a_word_longer_than_the_line_stays_whole():
    name = "arn:aws:iam::123456789012:instance-profile/shop"
    assert [str(line) for line in indented(f"use {name}", 30, 2)] == ["  use", f"    {name}"]
