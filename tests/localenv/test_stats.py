"""The figures are computed from the log and the recorded calls, as they are defined."""

from localenv.labs.timeline import timeline
from localenv.stats import Decision, decisions, describe


def a_pass(at: float, began: float) -> dict[str, object]:
    return {"message": "computed 1 node for 10 pods", "pass": f"{began:.3f}", "at": at}


def test_a_decision_lasts_from_the_end_of_the_window_to_the_next_fleet_request() -> None:
    calls = [
        {"action": "CreateFleet", "time": 90.0},
        {"action": "DescribeInstances", "time": 100.01},
        {"action": "CreateFleet", "time": 100.08},
    ]
    (found,) = decisions([a_pass(at=100.03, began=100.0)], calls)
    assert round(found.planned, 3) == 0.03
    assert round(found.requested, 3) == 0.08


def test_a_pass_without_a_request_after_it_is_left_out() -> None:
    assert decisions([a_pass(at=100.03, began=100.0)], [{"action": "CreateFleet", "time": 90.0}]) == []
    assert "not measured" in describe([])


def test_the_text_tells_median_fastest_and_slowest() -> None:
    assert describe([Decision(0, 0.04), Decision(0, 0.02), Decision(0, 0.06)]) == (
        "median 40 ms (fastest 20, slowest 60, of 3)"
    )


def test_a_timeline_counts_from_the_first_pending_pod() -> None:
    lines = [
        {"message": "computed 1 node for 3 pods", "at": 101.0},
        {"message": "launched instance", "at": 101.5},
        {"message": "registered node", "at": 103.0},
        {"message": "registered node", "at": 109.0},
    ]
    assert timeline(lines, pending=100.0, running=104.0) == {
        "pending": 0.0,
        "decided": 1.0,
        "launched": 1.5,
        "registered": 3.0,
        "running": 4.0,
    }
