"""What a body in the interruption queue means, whoever wrote it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.cloudprovider.aws.interruption_messages import MAX_BODY_BYTES, read_message
from nodeless.model.interruptions import InterruptionKind

EC2 = "aws.ec2"


def a_body(detail_type, detail, source=EC2, **changes):
    return json.dumps(
        {
            "version": "0",
            "id": "1",
            "account": "123456789012",
            "region": "us-east-1",
            "time": "2026-03-01T12:00:00Z",
            "resources": [],
            "source": source,
            "detail-type": detail_type,
            "detail": detail,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("detail_type", "detail", "kind"),
    [
        (
            "EC2 Spot Instance Interruption Warning",
            {"instance-action": "terminate"},
            InterruptionKind.SPOT_INTERRUPTION,
        ),
        ("EC2 Instance Rebalance Recommendation", {}, InterruptionKind.REBALANCE_RECOMMENDATION),
        (
            "EC2 Capacity Reservation Instance Interruption Warning",
            {},
            InterruptionKind.RESERVATION_INTERRUPTION,
        ),
    ],
)
def test_an_event_of_ec2_names_its_instance(detail_type, detail, kind):
    message = read_message(a_body(detail_type, {"instance-id": "i-1", **detail}), "handle")
    assert (message.kind, message.instance_ids, message.handle) == (kind, ("i-1",), "handle")
    assert message.sent_at == 1772366400.0
    assert not message.problem


@pytest.mark.parametrize("state", ["stopping", "Stopped", "SHUTTING-DOWN", "terminated"])
def test_a_state_that_ends_an_instance_counts_in_any_case_of_letters(state):
    message = read_message(
        a_body("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": state})
    )
    assert (message.kind, message.state) == (InterruptionKind.STATE_CHANGE, state.lower())


@pytest.mark.parametrize("state", ["pending", "running", "", None])
def test_other_states_concern_nobody(state):
    message = read_message(
        a_body("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": state})
    )
    assert message.kind is InterruptionKind.NONE


def test_a_health_event_names_every_affected_instance_once():
    detail = {
        "service": "EC2",
        "eventTypeCategory": "scheduledChange",
        "affectedEntities": [{"entityValue": each} for each in ("i-1", "i-2", "i-1")],
    }
    message = read_message(a_body("AWS Health Event", detail, "aws.health"))
    assert (message.kind, message.instance_ids) == (InterruptionKind.SCHEDULED_CHANGE, ("i-1", "i-2"))


@pytest.mark.parametrize("change", [{"service": "RDS"}, {"eventTypeCategory": "issue"}])
def test_health_events_of_other_services_and_categories_concern_nobody(change):
    detail = {
        "service": "EC2",
        "eventTypeCategory": "scheduledChange",
        "affectedEntities": [{"entityValue": "i-1"}],
        **change,
    }
    assert read_message(a_body("AWS Health Event", detail, "aws.health")).kind is InterruptionKind.NONE


@pytest.mark.parametrize(
    "changes",
    [{"version": "1"}, {"source": "aws.rds"}, {"detail-type": "Something Else"}, {"source": ["aws.ec2"]}],
)
def test_messages_that_are_none_of_ours_are_understood_and_mean_nothing(changes):
    body = a_body("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}, **changes)
    message = read_message(body)
    assert (message.kind, message.problem) == (InterruptionKind.NONE, "")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ("x" * (MAX_BODY_BYTES + 1), "262145 characters"),
        (a_body("EC2 Spot Instance Interruption Warning", {}), "names no instance"),
        (a_body("EC2 Spot Instance Interruption Warning", {"instance-id": 7}), "names no instance"),
        (a_body("EC2 Spot Instance Interruption Warning", "i-1"), "has no detail"),
        (
            a_body(
                "AWS Health Event",
                {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": "i-1"},
                "aws.health",
            ),
            "names no instance",
        ),
    ],
)
def test_what_cannot_be_read_says_why(body, problem):
    message = read_message(body, "handle")
    assert (message.kind, message.handle) == (InterruptionKind.NONE, "handle")
    assert problem in message.problem


def test_a_time_that_is_none_is_no_reason_to_ignore_a_warning():
    body = a_body("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}, time="yesterday")
    message = read_message(body)
    assert (message.kind, message.sent_at) == (InterruptionKind.SPOT_INTERRUPTION, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
details = st.dictionaries(
    st.sampled_from(["instance-id", "state", "service", "eventTypeCategory", "affectedEntities"]), json_values
)


@settings(max_examples=60)
@given(
    st.sampled_from(
        [
            "EC2 Spot Instance Interruption Warning",
            "EC2 Instance State-change Notification",
            "AWS Health Event",
        ]
    ),
    details | json_values,
    st.sampled_from(["aws.ec2", "aws.health"]),
)
def test_no_body_raises_and_every_id_is_a_text(detail_type, detail, source):
    message = read_message(a_body(detail_type, detail, source))
    assert all(isinstance(each, str) and each for each in message.instance_ids)
