"""The figures of a soak are computed from samples and scrapes, as they are defined."""

import math
from dataclasses import replace
from typing import Any

import pytest

from bench.soak import Findings, quantiles

BUCKET = 'controller_runtime_reconcile_time_seconds_bucket{controller="%s",le="%s"}'


def scraped(**loops: tuple[float, float, float]) -> dict[str, float]:
    """Rounds of each loop that took at most 0.1 s, at most 1 s, and any time."""
    return {
        BUCKET % (loop, bound): count
        for loop, counts in loops.items()
        for bound, count in zip(("0.1", "1.0", "+Inf"), counts, strict=True)
    }


def test_the_quantile_counts_the_rounds_between_two_scrapes_alone() -> None:
    before = scraped(claims=(0, 0, 500))
    assert quantiles(before, scraped(claims=(99, 100, 600))) == {"claims": 0.1}
    assert quantiles(before, scraped(claims=(98, 100, 600))) == {"claims": 1.0}
    assert quantiles(before, scraped(claims=(50, 60, 600))) == {"claims": math.inf}


def test_a_loop_that_did_nothing_has_no_quantile() -> None:
    before = scraped(claims=(1, 1, 1), drift=(3, 3, 3))
    assert quantiles(before, scraped(claims=(2, 2, 2), drift=(3, 3, 3))) == {"claims": 0.1}


def test_the_loop_that_waits_for_messages_has_no_quantile() -> None:
    assert quantiles({}, scraped(interruption=(0, 0, 9), claims=(9, 9, 9))) == {"claims": 0.1}


def test_growth_compares_the_last_third_with_the_second_since_the_first_is_warm_up() -> None:
    warm = [(0.0, 50.0), (5.0, 90.0), (10.0, 100.0), (15.0, 100.0), (20.0, 110.0), (25.0, 110.0)]
    assert Findings(memory=warm).growth() == pytest.approx(0.1)
    assert Findings().growth() == 0.0


GOOD = Findings(idle=0.019, memory=[(5.0 * n, 100.0) for n in range(9)], p99={"a": 0.5, "b": 1.0}, churned=9)


def test_a_soak_whose_every_figure_is_within_its_bound_holds() -> None:
    assert [figure.name for figure in GOOD.figures() if not figure.holds] == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"idle": 0.021}, "processor while quiet"),
        ({"memory": [(0.0, 50.0), (5.0, 100.0), (10.0, 106.0)]}, "memory, last third above the second"),
        ({"p99": {"a": 0.5, "b": 2.5}}, "p99 of b"),
        ({"missed": ["a pod"]}, "missed events"),
    ],
)
def test_a_soak_fails_by_each_figure_that_is_beyond_its_bound(change: dict[str, Any], name: str) -> None:
    assert [figure.name for figure in replace(GOOD, **change).figures() if not figure.holds] == [name]
