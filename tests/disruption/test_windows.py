"""Given a pool's budgets, when may its nodes be disrupted?"""

import itertools
from datetime import UTC, datetime

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.disruption.budgets import UNLIMITED, allowed_disruptions
from nodeless.disruption.windows import windows
from nodeless.model.pools import Budget
from tests.api.manifests import node_pool
from tests.disruption.world import a_node_pool

HOUR = 3600.0
START = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
NIGHTS_ONLY = (Budget("10%"), Budget("0", schedule="0 6 * * *", duration=16 * 3600))


def test_days_are_closed_and_nights_are_open():
    pool = a_node_pool(budgets=NIGHTS_ONLY)
    found = windows(pool, "Drifted", 20, START, START + 24 * HOUR)
    assert [((w.start - START) / HOUR, (w.end - START) / HOUR, w.nodes) for w in found] == [
        (0, 6, 2),
        (6, 22, 0),
        (22, 24, 2),
    ]


def test_the_windows_say_at_each_minute_what_the_budgets_say():
    pool = a_node_pool(
        budgets=(*NIGHTS_ONLY, Budget("1", schedule="30 */5 * * *", duration=2400, reasons=("Empty",)))
    )
    found = windows(pool, "Empty", 20, START, START + 48 * HOUR)
    assert all(before.end == after.start for before, after in itertools.pairwise(found))
    for minute in range(0, 48 * 60, 7):
        at = START + 60.0 * minute
        (window,) = [each for each in found if each.start <= at < each.end]
        number = allowed_disruptions(pool, "Empty", 20, at)
        assert window.nodes == (None if number == UNLIMITED else number)


def test_a_paused_pool_has_no_window():
    pool = a_node_pool(own_annotations={"nodeless.dev/pause-disruption": "true"})
    assert [window.nodes for window in windows(pool, "Empty", 5, START, START + HOUR)] == [0]


def run(*arguments, manifest):
    return CliRunner().invoke(app, ["windows", "-", *arguments], input=yaml.safe_dump(manifest))


def test_the_command_prints_local_times_and_groups_reasons():
    budgets = [{"nodes": "2"}, {"nodes": "0", "schedule": "0 6 * * *", "duration": "16h"}]
    done = run("-z", "Asia/Tokyo", "--days", "2", manifest=node_pool(disruption={"budgets": budgets}))
    assert done.exit_code == 0, done.output
    assert "NodePool/default (Asia/Tokyo, 10 nodes)" in done.output
    assert "Empty, Underutilized, Drifted" in done.output
    assert "15:00" in done.output
    assert "2 nodes at once" in done.output


@pytest.mark.parametrize(
    ("disruption", "reasons"),
    [
        ({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"}, "Empty, Drifted, Unhealthy"),
        ({"consolidateAfter": "Never"}, "Drifted, Unhealthy"),
    ],
    ids=["WhenEmpty", "Never"],
)
def test_the_command_leaves_out_what_the_pool_never_does(disruption, reasons):
    manifest = node_pool(disruption={**disruption, "budgets": [{"nodes": "2"}]})
    lines = run(manifest=manifest).output.splitlines()
    assert lines[1].strip() == reasons


def test_an_unknown_time_zone_is_named():
    done = run("-z", "Mars/Olympus", manifest=node_pool())
    assert done.exit_code == 2
    assert "Mars/Olympus" in done.output
