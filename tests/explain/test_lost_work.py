"""Spot or on-demand for pods that say what an interruption loses, as pages and answers tell it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from nodeless.explain.answers import answer
from nodeless.explain.decisions import Situation
from nodeless.explain.lost_work import format_span, reason_of
from nodeless.explain.page import page
from nodeless.explain.report import report
from nodeless.model.labels import ON_DEMAND, SPOT
from nodeless.model.lost_work import CapacityChoice, LostWork
from nodeless.scheduling import Policy
from tests.disruption.test_lost_work import NOW, OFTEN, POOL, TYPES, a_node, losing
from tests.disruption.world import cluster, on


def text(expected, saving, pods=1, seconds=36000, per_month=20.0):
    return reason_of(
        LostWork(seconds, pods, CapacityChoice(expected, saving, per_month), settled=True)
    ).message


def test_the_figures_are_told():
    assert text(0.45, 0.3) == (
        "on-demand: an interruption loses 10h of work, "
        "0.4500 USD/h expected at 20 a month, spot saves 0.3000 USD/h"
    )
    assert text(0.1, 0.3, seconds=5400) == (
        "spot: an interruption loses 1h30m of work, "
        "0.1000 USD/h expected at 20 a month, spot saves 0.3000 USD/h"
    )


def test_a_gang_says_how_many_lose_their_work():
    assert "loses 10h of work of each of 8 pods, " in text(0.45, 0.3, pods=8)


def test_spot_may_be_the_dearer_one_by_itself():
    assert text(0.1, -0.2).endswith("0.1000 USD/h expected at 20 a month, spot costs 0.2000 USD/h more")


def test_nothing_is_told_where_there_was_nothing_to_choose():
    assert reason_of(LostWork(36000, settled=True)) is None


@pytest.mark.parametrize(
    ("seconds", "written"), [(36000, "10h"), (5400, "1h30m"), (45, "45s"), (3601, "1h1s")]
)
def test_spans_are_written_as_they_are_read(seconds, written):
    assert format_span(seconds) == written


@pytest.mark.parametrize(("hours", "capacity_type"), [(10, ON_DEMAND), (9, SPOT)])
def test_a_pod_that_runs_is_told_of_too(hours, capacity_type):
    seen = cluster(POOL, a_node("a", ON_DEMAND), losing(hours, "a"))
    policy = Policy(time_box=0.0, spot_interruptions=OFTEN)
    situation = Situation(seen, {POOL.key: TYPES}, policy, NOW)
    said = answer(situation, situation.plan(), "pod/app-a-0-a")
    assert said.facts["capacity"].capacity_type == capacity_type
    assert said.facts["capacity"].message in said.lines


def test_of_other_pods_nothing_is_said():
    seen = cluster(POOL, a_node("a", ON_DEMAND), on("a"))
    situation = Situation(seen, {POOL.key: TYPES}, Policy(time_box=0.0), NOW)
    assert "capacity" not in answer(situation, situation.plan(), "pod/app-a-0-a").facts


def test_the_page_says_it():
    (pod,) = losing(10, "a")
    waiting = replace(pod, node_name="", phase="Pending", unschedulable=True)
    situation = Situation(
        cluster(POOL, waiting), {POOL.key: TYPES}, Policy(time_box=0.0, spot_interruptions=OFTEN), NOW
    )
    made = page(report(situation, situation.plan()), datetime(2026, 1, 2, tzinfo=UTC), "nodeless plan")
    assert "Spot or on-demand for each pod, by what interruptions lose" in made
    assert "on-demand: an interruption loses 10h of work" in made
