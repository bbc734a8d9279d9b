"""What one unit of work raises concerns that unit alone, and is said where its owner looks."""

from types import SimpleNamespace

import pytest

from nodeless.cloudprovider import CloudError
from nodeless.controllers.error_boundary import ErrorBoundary, ProcessMustEnd, Subject, cause_of, is_transient
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.operator.event_reasons import undeclared_reason
from nodeless.operator.metrics import Metrics


@pytest.fixture
def world():
    events, metrics = [], Metrics()
    recorder = SimpleNamespace(publish=events.append)
    return SimpleNamespace(events=events, metrics=metrics, boundary=ErrorBoundary("claim", metrics, recorder))


CLAIM = Subject("NodeClaim", "a", "uid-a")


@pytest.mark.parametrize(
    "error",
    [KeyError("spec"), RecursionError(), OverflowError("year out of range"), ApiError(422, "Invalid", "no")],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_stays_inside_rests_and_stands_on_the_object(world, error):
    with world.boundary.around("a", "7", CLAIM):
        raise error
    assert world.boundary.seconds_to_rest("a", "7") > 0
    assert world.boundary.seconds_to_rest("a", "8") == 0, "a changed object is looked at without delay"
    assert world.boundary.seconds_to_rest("b", "7") == 0
    (event,) = world.events
    assert (event.kind, event.name, event.reason) == ("NodeClaim", "a", "Quarantined")
    assert cause_of(error) in event.message
    assert not undeclared_reason(event)
    text = world.metrics.render().decode()
    assert 'nodeless_quarantined_units{unit="claim"} 1.0' in text
    assert 'nodeless_unit_failures_total{unit="claim"} 1.0' in text
    with world.boundary.around("a", "8", CLAIM):
        pass
    assert 'nodeless_quarantined_units{unit="claim"} 0.0' in world.metrics.render().decode()


def test_a_lost_lease_and_a_memory_that_contradicts_itself_pass_through(world):
    with pytest.raises(ProcessMustEnd), world.boundary.around("a", "7", CLAIM):
        raise ProcessMustEnd
    assert world.boundary.seconds_to_rest("a", "7") == 0


def test_a_silent_server_is_everybodys_trouble_and_yet_the_next_round_begins_with_the_others(world):
    with pytest.raises(ApiUnavailable), world.boundary.around("a", "7", CLAIM):
        raise ApiUnavailable("no answer")
    assert world.boundary.seconds_to_rest("a", "7") > 0


def test_a_conflict_is_nobodys_fault(world):
    with world.boundary.around("a", "7", CLAIM):
        raise ApiError(409, "Conflict", "somebody else wrote first")
    assert world.boundary.seconds_to_rest("a", "7") == 0
    assert not world.events


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (ApiError(422, "Invalid", ""), False),
        (ApiError(400, "BadRequest", ""), False),
        (ApiError(500, "", ""), True),
        (ApiError(429, "", ""), True),
        (ApiError(409, "", ""), True),
        (ApiUnavailable(), True),
        (CloudError("no"), True),
        (ValueError(), False),
    ],
)
def test_a_refusal_of_what_is_said_is_told_from_what_passes_with_time(error, transient):
    assert is_transient(error) is transient


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")


@pytest.mark.parametrize("error", [ValueError("x" * 10_000_000), Unspeakable(), ValueError("a\nb\ud800")])
def test_a_cause_is_one_short_line_whatever_the_error(error):
    assert 0 < len(cause_of(error)) < 600
    assert "\n" not in cause_of(error)
