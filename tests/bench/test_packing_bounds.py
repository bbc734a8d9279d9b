"""The bench says which figure an answer misses."""

import pytest

from bench.packing_bounds import find_misses, missed_together

KNOWN = {
    "solveSeconds": 10.0,
    "totalHourlyPrice": 100.0,
    "unscheduledPods": 0,
    "lowerBound": 80.0,
    "achievable": 82.0,
}


def answer(cost=82.0, seconds=0.1, pods=1000, bound=79.0):
    return {"pods": pods, "solveCpuSeconds": seconds, "totalHourlyPrice": cost, "lowerBound": bound}


def test_an_answer_that_is_fast_cheap_and_near_its_bound_misses_nothing():
    assert find_misses("taints", answer(99), answer(), KNOWN) == []
    assert missed_together([("taints", answer(), KNOWN)]) == []


@pytest.mark.parametrize(
    ("name", "fast", "full", "said"),
    [
        ("taints", answer(seconds=0.3), answer(), "is 33 times faster, not 50"),
        ("lab", answer(seconds=0.03, pods=5), answer(pods=5), "takes 30 ms"),
        ("taints", answer(101), answer(), "costs 101.000 without a search, more than 100.000"),
        ("other", answer(), answer(100), "costs 100.000, no less than 100.000"),
        ("other", answer(), answer(83), "costs 83.000, where 82.000 is achievable"),
        ("taints", answer(), answer(85), "is 6.2 % over the bound"),
    ],
)
def test_what_an_answer_misses_is_said_with_its_figures(name, fast, full, said):
    known = KNOWN if name != "lab" else {**KNOWN, "solveSeconds": 0.001}
    assert said in find_misses(name, fast, full, known)


def test_averages_are_taken_over_all_answers():
    dear = {**KNOWN, "totalHourlyPrice": 85.0}
    assert missed_together([("taints", answer(83.0), dear), ("other", answer(82.0), dear)]) == [
        "2.9 % cheaper on average",
        "3.8 % over tight bounds on average",
    ]
