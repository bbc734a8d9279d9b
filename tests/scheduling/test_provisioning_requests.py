"""Provisioning requests: planned whole or not at all, and room that is kept without buying any."""

from dataclasses import replace

import pytest

from nodeless.api.times import format_time
from nodeless.controllers.provisioning.controller import without_nodes_of
from nodeless.controllers.provisioning.plan_shares import Share, shares_of
from nodeless.controllers.provisioning.request_answers import (
    BOOKING_SECONDS,
    LAUNCH_SECONDS,
    LAUNCHING_SINCE,
    REVOKE_AFTER_SECONDS,
    VALID_SECONDS,
    answer_to,
    missing_room,
)
from nodeless.explain.decisions import Situation, read, write
from nodeless.model import events
from nodeless.model.buffers import PodSource
from nodeless.model.conditions import Condition
from nodeless.model.plan import RefusalCode
from nodeless.model.provisioning_requests import (
    ATOMIC_SCALE_UP,
    CHECK_CAPACITY,
    CONSUME_ANNOTATIONS,
    Phase,
    ProvisioningRequest,
    RequestedPods,
)
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve, with_placeholders
from nodeless.scheduling.pods.requests import MOST_PODS, request_of, with_one_more
from nodeless.state import apply
from tests.scheduling.factories import FAMILY, NOW, node, pods, pool, running, snapshot

BOTH = pytest.mark.parametrize("packing", [LOWEST_PRICE, FEWEST_NODES])
TEMPLATE = PodSource("PodTemplate", "default", "chunk", pods(1, "1")[0].shape, {"app": "web"})
LARGE = PodSource("PodTemplate", "default", "large", pods(1, "3")[0].shape)
BOOKED = Condition("Provisioned", "True", "CapacityIsProvisioned", "", NOW)


def a_request(count=3, name="job", source=TEMPLATE, **fields):
    fields = {"provisioning_class": ATOMIC_SCALE_UP, "created_at": NOW, "uid": name, **fields}
    return ProvisioningRequest("default", name, pod_sets=(RequestedPods(source.key, count),), **fields)


def asked(*things, requests=(), sources=(TEMPLATE, LARGE)):
    seen = (
        snapshot(pool(), *things)
        if not any(hasattr(each, "limits") for each in things)
        else snapshot(*things)
    )
    for event in (
        *map(events.PodSourceSeen, sources),
        *map(events.ProvisioningRequestSeen, requests),
    ):
        seen = apply(seen, event)
    return seen


def planned(seen, types=FAMILY, **policy):
    return solve(seen, dict.fromkeys(seen.pools, types), Policy(**policy))


def launched(plan):
    return [key for new in plan.new_nodes for key in new.pods]


def share_of(plan, request):
    return shares_of(plan, request_of).get(request.key, Share())


def answered(seen, request, plan, now=NOW, **more):
    answer = answer_to(seen, request, share_of(plan, request), now, **more)
    return {each.type: (each.status, str(each.reason)) for each in answer.conditions}, answer


def with_answer(request, answer, now):
    """The request as the API server has it after an answer."""
    conditions = {each.type: each for each in request.conditions}
    for each in answer.conditions:
        same = conditions.get(each.type)
        since = same.last_transition_time if same and same.status == each.status else now
        conditions[each.type] = replace(each, last_transition_time=since)
    details = tuple(sorted((dict(request.details) | dict(answer.details)).items()))
    return replace(request, conditions=tuple(conditions.values()), details=details)


@BOTH
def test_a_request_is_planned_in_one_pass(packing):
    plan = planned(asked(requests=[a_request(20)]), packing=packing)
    assert len(launched(plan)) == 20
    assert {request_of(key) for key in launched(plan)} == {"default/job"}
    assert not plan.refusals


@BOTH
def test_what_cannot_be_had_whole_is_not_bought_and_the_message_says_what_is_missing(packing):
    tight = pool("default", limits={"cpu": "4"})
    request = a_request(20)
    seen = asked(tight, requests=[request])
    plan = planned(seen, packing=packing)
    assert not plan.new_nodes
    assert {each.code for each in plan.refusals} == {RefusalCode.GROUP_INCOMPLETE}
    assert len(plan.refusals) == 20
    said, answer = answered(seen, request, plan)
    assert said == {"Accepted": ("True", "Accepted"), "Provisioned": ("False", "CapacityIsNotFound")}
    assert "of 20 pods would have no place" in answer.conditions[1].message
    assert "limit" in answer.conditions[1].message
    assert answer.incomplete


def test_one_that_cannot_be_had_takes_nothing_from_others():
    tight = pool("default", limits={"cpu": "8"})
    wanted, early, late = pods(1, "1"), a_request(2, "early"), a_request(40, "late", created_at=NOW + 1)
    plan = planned(asked(tight, wanted, requests=[early, late]))
    assert {request_of(key) for key in launched(plan)} == {"", "default/early"}
    assert {request_of(each.pod) for each in plan.refusals} == {"default/late"}


def test_one_that_comes_after_what_cannot_be_had_is_planned():
    tight = pool("default", limits={"cpu": "8"})
    plan = planned(asked(tight, requests=[a_request(500, "early"), a_request(3, "late", created_at=NOW + 1)]))
    assert {request_of(key) for key in launched(plan)} == {"default/late"}
    assert len(launched(plan)) == 3
    assert {request_of(each.pod) for each in plan.refusals} == {"default/early"}
    assert len(plan.refusals) == 500


def test_more_requests_than_are_left_out_one_by_one_end_at_once():
    tight = pool("default", limits={"cpu": "4"})
    plan = planned(
        asked(tight, requests=[a_request(20, f"job-{at}", created_at=NOW + at) for at in range(9)])
    )
    assert not plan.new_nodes
    assert len(plan.refusals) == 180


@pytest.mark.parametrize(
    "fields",
    [
        {"provisioning_class": "queued-provisioning.gke.io"},
        {"provisioning_class": CHECK_CAPACITY},
        {"parameters": (("processorInstance", "other"),)},
        {"deletion_timestamp": NOW},
        {"conditions": (Condition("Failed", "True"),)},
        {"conditions": (BOOKED, Condition("BookingExpired", "True"))},
        {"conditions": (BOOKED, Condition("CapacityRevoked", "True"))},
    ],
)
def test_what_is_not_to_be_launched_is_not(fields):
    seen = asked(requests=[a_request(**fields)])
    assert planned(seen) == planned(asked())


@pytest.mark.parametrize("count", [0, -3, MOST_PODS + 1, 2**31 - 1])
def test_absurd_counts_make_no_pods_and_fail(count):
    seen = asked(requests=[a_request(count)])
    assert not with_placeholders(seen).pods
    said, answer = answered(seen, a_request(count), planned(seen))
    assert said == {"Failed": ("True", "InvalidRequest")}
    assert str(count) in answer.conditions[0].message


@pytest.mark.parametrize("text", ["", "soon", "-1", "0", "1.5", "9" * 400])
def test_absurd_parameters_fail(text):
    request = a_request(parameters=(("ValidUntilSeconds", text),))
    assert not with_placeholders(asked(requests=[request])).pods
    said, answer = answered(asked(requests=[request]), request, planned(asked()))
    assert said == {"Failed": ("True", "InvalidRequest")}
    assert "spec.parameters.ValidUntilSeconds" in answer.conditions[0].message


def test_a_missing_template_is_waited_for_until_the_request_expires():
    request = a_request()
    seen = asked(requests=[request], sources=())
    plan = planned(seen)
    said, _ = answered(seen, request, plan)
    assert said == {"Accepted": ("False", "PodTemplateNotUsable")}
    said, answer = answered(seen, request, plan, NOW + VALID_SECONDS)
    assert said == {"Failed": ("True", "Expired")}
    assert "PodTemplate/default/chunk does not exist" in answer.conditions[0].message


def test_a_request_that_is_launched_for_is_booked_once_its_nodes_are_ready_and_then_expires():
    request = a_request(3)
    seen = asked(requests=[request])
    said, answer = answered(seen, request, planned(seen))
    assert said["Provisioned"] == ("False", "CapacityIsBeingLaunched")
    request = with_answer(request, answer, NOW)
    seen = asked(node("one", cpu="4"), requests=[request])
    plan = planned(seen)
    assert not plan.new_nodes
    said, answer = answered(seen, request, plan, NOW + 60)
    assert said["Provisioned"] == ("True", "CapacityIsProvisioned")
    request = with_answer(request, answer, NOW + 60)
    assert request.phase == Phase.BOOKED
    said, _ = answered(seen, request, plan, NOW + 60 + BOOKING_SECONDS - 1)
    assert not said
    said, answer = answered(seen, request, plan, NOW + 60 + BOOKING_SECONDS)
    assert said == {"BookingExpired": ("True", "BookingExpired")}
    over = with_answer(request, answer, NOW + 660)
    assert not with_placeholders(asked(node("one"), requests=[over])).pods


def test_a_launch_that_takes_too_long_fails_though_the_controller_began_anew():
    since = ((LAUNCHING_SINCE, format_time(NOW)),)
    request = a_request(3, details=since)
    seen = asked(requests=[request])
    said, _ = answered(seen, request, planned(seen), NOW + LAUNCH_SECONDS - 1)
    assert said["Provisioned"] == ("False", "CapacityIsBeingLaunched")
    said, _ = answered(seen, request, planned(seen), NOW + LAUNCH_SECONDS)
    assert said["Failed"] == ("True", "LaunchTookTooLong")
    # With capacity that is out of stock as well.
    said, answer = answered(seen, request, planned(seen, types=()), NOW + LAUNCH_SECONDS)
    assert said["Failed"] == ("True", "LaunchTookTooLong")
    assert not with_placeholders(asked(requests=[with_answer(request, answer, NOW)])).pods


def test_a_launch_that_fails_while_the_request_rests_says_what_lacked_when_it_was_last_planned():
    lacking = Condition("Provisioned", "False", "CapacityIsNotFound", "1 of 3 pods would have no place: none")
    request = a_request(3, details=((LAUNCHING_SINCE, format_time(NOW)),), conditions=(lacking,))
    _, answer = answered(asked(requests=[request]), request, planned(asked()), NOW + LAUNCH_SECONDS)
    assert answer.conditions[-1].type == "Failed"
    assert answer.conditions[-1].message.endswith("900 s after the first launch: " + lacking.message)


def test_a_time_that_somebody_broke_begins_anew():
    request = a_request(3, details=((LAUNCHING_SINCE, "yesterday"),))
    seen = asked(requests=[request])
    _, answer = answered(seen, request, planned(seen))
    assert answer.details == {LAUNCHING_SINCE: format_time(NOW)}


def test_a_request_of_which_a_part_was_set_aside_keeps_what_was_said_of_it():
    request = a_request(3, conditions=(Condition("Provisioned", "False", "CapacityIsNotFound", "no"),))
    said, _ = answered(asked(requests=[request]), request, planned(asked()))
    assert said == {"Accepted": ("True", "Accepted")}


@BOTH
def test_a_booking_keeps_room_and_buys_none(packing):
    request = a_request(6, conditions=(BOOKED,))
    seen = asked(node("one", cpu="4"), pods(1, "2"), requests=[request])
    plan = planned(seen, packing=packing)
    kept = [key for key in plan.placements if request_of(key)]
    assert kept
    assert not [key for key in launched(plan) if request_of(key)]
    assert len(kept) + len(plan.refusals) == 6
    assert missing_room(share_of(plan, request)).startswith(
        f"room for {6 - len(kept)} of its pods is no longer available"
    )


@BOTH
def test_pods_of_nodes_that_leave_take_no_room_that_is_booked(packing):
    request = a_request(3, conditions=(BOOKED,))
    there = [running(pod, "ends") for pod in pods(2, "1")]
    seen = asked(node("one", cpu="3"), node("ends", deletion_timestamp=NOW), there, requests=[request])
    plan = planned(seen, packing=packing)
    assert {key: name for key, name in plan.placements.items() if request_of(key)} == {
        f"default/job^^{number}": "one" for number in range(3)
    }
    assert sorted(launched(plan)) == ["default/web-0", "default/web-1"]
    assert not missing_room(share_of(plan, request))


def test_room_that_is_gone_is_revoked_after_a_while_unless_pods_came():
    request = a_request(3, conditions=(BOOKED,))
    seen = asked(requests=[request])
    plan = planned(seen)
    late = NOW + REVOKE_AFTER_SECONDS
    assert not answered(seen, request, plan, late - 1, missing_since=NOW)[0]
    assert not answered(seen, request, plan, late, missing_since=NOW, used=True)[0]
    said, answer = answered(seen, request, plan, late, missing_since=NOW)
    assert said == {"CapacityRevoked": ("True", "CapacityRevoked")}
    assert "nothing is launched for a booking" in answer.conditions[0].message


@pytest.mark.parametrize("annotation", CONSUME_ANNOTATIONS)
def test_pods_take_the_room_that_was_booked_for_them(annotation):
    request = a_request(3, conditions=(BOOKED,))
    mine = [replace(each, annotations={annotation: "job"}) for each in pods(2, "1")]
    there = replace(running(mine[0], "one"), annotations=mine[0].annotations)
    seen = asked(node("one", cpu="4"), there, mine[1], requests=[request])
    waiting = [key for key in with_placeholders(seen).pods if request_of(key)]
    assert len(waiting) == 1
    other = replace(mine[1], annotations={annotation: "another"})
    seen = asked(node("one", cpu="4"), there, other, requests=[request])
    assert len([key for key in with_placeholders(seen).pods if request_of(key)]) == 2


def test_pods_of_two_kinds_take_each_their_own_room():
    two = replace(
        a_request(conditions=(BOOKED,)),
        pod_sets=(RequestedPods(TEMPLATE.key, 1), RequestedPods(LARGE.key, 2)),
    )
    large = replace(pods(1, "3")[0], annotations={CONSUME_ANNOTATIONS[0]: "job"})
    left = with_placeholders(asked(large, requests=[two])).pods.values()
    assert sorted(dict(pod.shape.requests)["cpu"] for pod in left if request_of(pod.key)) == [1000, 3000]


def test_a_pod_takes_the_room_of_no_other_kind_and_of_its_own_only_once():
    two = replace(
        a_request(conditions=(BOOKED,)),
        pod_sets=(RequestedPods(TEMPLATE.key, 2), RequestedPods(LARGE.key, 2)),
    )

    def left(*came):
        mine = [replace(pod, annotations={CONSUME_ANNOTATIONS[0]: "job"}) for pod in came]
        kept = with_placeholders(asked(*mine, requests=[two])).pods.values()
        return sorted(dict(pod.shape.requests)["cpu"] // 1000 for pod in kept if request_of(pod.key))

    first, second, third = pods(3, "1")
    failed = replace(first, phase="Failed", node_name="one", unschedulable=False)
    assert left(failed) == [1, 1, 3, 3]
    assert left(failed, second) == [1, 3, 3]
    assert left(first, second, third) == [3, 3]
    # With a container that a webhook adds, nobody knows of which kind it is.
    more = pods(1, "1100m", name="more")
    assert left(*more) == [1, 3, 3]
    assert left(*more, first, second) == [3]


def test_pods_of_a_request_without_capacity_wait_for_it():
    mine = [replace(each, annotations={CONSUME_ANNOTATIONS[0]: "job"}) for each in pods(3, "1")]
    seen = asked(pool("default", limits={"cpu": "4"}), mine, requests=[a_request(20)])
    assert not planned(seen).new_nodes
    # Of one that failed they are pods like others.
    failed = a_request(20, conditions=(Condition("Failed", "True"),))
    assert len(launched(planned(asked(mine, requests=[failed])))) == 3


def test_a_check_counts_what_is_there_and_what_others_booked():
    check = a_request(2, provisioning_class=CHECK_CAPACITY)
    seen = asked(node("one", cpu="4"), requests=[check])
    found = solve(with_one_more(seen, check), {}, Policy())
    said, _ = answered(seen, check, found)
    assert said == {"Accepted": ("True", "Accepted"), "Provisioned": ("True", "CapacityIsFound")}
    booked = a_request(3, "other", conditions=(BOOKED,))
    seen = asked(node("one", cpu="4"), requests=[check, booked])
    found = solve(with_one_more(seen, check), {}, Policy())
    said, answer = answered(seen, check, found)
    assert said["Provisioned"] == ("False", "CapacityIsNotFound")
    assert answer.incomplete
    once = replace(check, parameters=(("noRetry", "true"),))
    assert answered(seen, once, found)[0]["Failed"] == ("True", "CapacityIsNotFound")


def test_a_saved_situation_keeps_requests():
    seen = asked(requests=[a_request(5, parameters=(("ValidUntilSeconds", "60"),))])
    situation = Situation(seen, dict.fromkeys(seen.pools, FAMILY), Policy(), NOW)
    saved = read(write(situation, "")).situation
    assert saved == situation
    assert saved.plan() == situation.plan()


def test_nothing_is_launched_for_a_request_that_has_just_failed_alone():
    failing = a_request(3, "failing", source=LARGE)
    plan = planned(asked(pods(1, "3"), requests=[failing]))
    assert "default/failing" in map(request_of, launched(plan))
    left = without_nodes_of(plan, frozenset({"default/failing"}))
    assert "default/web-0" in launched(left)
    assert {"", "default/failing"} >= {*map(request_of, launched(left))}
    alone = without_nodes_of(planned(asked(requests=[failing])), frozenset({"default/failing"}))
    assert not alone.new_nodes
