"""Given a claim whose machine is to be rebooted, what happens in which order, and when is it given up?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import format_time
from nodeless.model.instructions import (
    AnnotateClaim,
    DeleteClaim,
    DeletePod,
    EvictPod,
    PublishEvent,
    RebootInstance,
    UpdateClaimStatus,
    UpdateNode,
)
from nodeless.model.labels import DO_NOT_DISRUPT, DRAIN_GRACE, REBOOTED_FROM, REBOOTS
from nodeless.model.nodes import (
    DISRUPTION_REASON,
    INITIALIZED_CONDITION,
    REBOOT_FENCE,
    REBOOTING,
    Condition,
)
from nodeless.model.pools import Reference
from nodeless.model.taints import Toleration
from nodeless.nodeclaim import ClaimView, step
from nodeless.nodeclaim.rebooting import HISTORY_SECONDS, reboots_of, request_reboot
from tests.factories import NOW, a_node, a_pod, an_initialized_claim

NODE = a_node(boot_id="one")
FENCED = replace(NODE, taints=(REBOOT_FENCE,))
BACK = replace(FENCED, boot_id="two")
UNFENCED = replace(BACK, taints=())
NODE_POOL = Reference("NodePool", "default", "pool-uid")


def rebooting(since=NOW, *, reason="RebootRequested", asked=(), more=(), **fields):
    base = an_initialized_claim(pool=NODE_POOL)
    conditions = (
        *(condition for condition in base.conditions if condition.type not in {one.type for one in more}),
        Condition(REBOOTING, "True", reason, "", since),
        *more,
    )
    annotations = {
        REBOOTED_FROM: "one",
        **({REBOOTS: ",".join(map(format_time, asked))} if asked else {}),
        **fields.pop("annotations", {}),
    }
    return replace(base, conditions=conditions, annotations=annotations, **fields)


def issued(at=NOW):
    unknown = Condition(INITIALIZED_CONDITION, "Unknown", REBOOTING, "", at)
    return rebooting(at - 60, reason="RebootIssued", asked=(at,), more=(unknown,))


def of_kind(outcome, kind):
    return [instruction for instruction in outcome.instructions if isinstance(instruction, kind)]


def statuses(outcome):
    return {
        condition.type: (condition.status, condition.reason)
        for update in of_kind(outcome, UpdateClaimStatus)
        for condition in update.conditions
    }


def test_the_request_names_the_boot_that_is_to_end_before_the_condition_stands():
    note, status, told = request_reboot(an_initialized_claim(), NODE, "broken", NOW)
    assert note.annotations == {REBOOTED_FROM: "one"}
    assert [(condition.type, condition.status, condition.reason) for condition in status.conditions] == [
        (DISRUPTION_REASON, "True", "Unhealthy"),
        (REBOOTING, "True", "RebootRequested"),
    ]
    assert told.reason == "RebootRequested"


def test_the_node_is_fenced_and_its_pods_leave_before_the_machine_is_touched():
    daemon = a_pod("daemon")
    daemon = replace(daemon, shape=replace(daemon.shape, tolerations=(Toleration("", "Exists"),)))
    pods = (a_pod("a"), daemon)
    outcome = step(ClaimView(rebooting(), NODE, pods), NOW + 60)
    (fence,) = of_kind(outcome, UpdateNode)
    assert REBOOT_FENCE in fence.taints
    assert fence.taints_before == NODE.taints
    assert [each.name for each in of_kind(outcome, EvictPod)] == ["a"]
    assert not of_kind(outcome, RebootInstance)


def test_a_drain_takes_at_least_five_seconds_since_pods_may_be_on_their_way():
    early = step(ClaimView(rebooting(), FENCED), NOW + 1)
    assert not of_kind(early, RebootInstance)
    assert early.again_at == NOW + 5
    assert of_kind(step(ClaimView(rebooting(), FENCED), NOW + 5), RebootInstance)


def test_a_grace_of_zero_skips_the_drain():
    claim = rebooting(annotations={DRAIN_GRACE: "0"})
    outcome = step(ClaimView(claim, NODE, (a_pod("a"),)), NOW)
    assert not of_kind(outcome, EvictPod)
    assert [type(instruction) for instruction in outcome.instructions[:3]] == [
        UpdateNode,
        AnnotateClaim,
        RebootInstance,
    ]


@pytest.mark.parametrize(("own", "of_policy"), [(None, "120"), (120, None), (120, "600")])
def test_after_a_bounded_drain_a_protected_pod_rides_the_reboot_and_is_never_deleted(own, of_policy):
    annotations = {} if of_policy is None else {DRAIN_GRACE: of_policy}
    claim = rebooting(annotations=annotations, termination_grace_period=own)
    view = ClaimView(claim, FENCED, (a_pod("a", annotations={DO_NOT_DISRUPT: "true"}),))
    assert not any(of_kind(step(view, NOW + seconds), DeletePod) for seconds in (60, 110, 120, 121))
    assert not of_kind(step(view, NOW + 120), RebootInstance)
    assert of_kind(step(view, NOW + 121), RebootInstance)


def test_without_a_bound_a_protected_pod_is_waited_for_and_told_of():
    view = ClaimView(rebooting(), FENCED, (a_pod("a", annotations={DO_NOT_DISRUPT: "true"}),))
    outcome = step(view, NOW + 86400)
    assert [each.reason for each in of_kind(outcome, PublishEvent)] == ["FailedDraining"]
    assert not of_kind(outcome, RebootInstance)


def test_the_attempt_is_noted_before_the_cloud_is_asked_and_the_answer_afterwards():
    outcome = step(ClaimView(rebooting(), FENCED), NOW + 5)
    kinds = [type(instruction) for instruction in outcome.instructions]
    assert kinds == [AnnotateClaim, RebootInstance, UpdateClaimStatus, PublishEvent]
    assert of_kind(outcome, AnnotateClaim)[0].annotations == {REBOOTS: format_time(NOW + 5)}
    assert statuses(outcome) == {
        REBOOTING: ("True", "RebootIssued"),
        INITIALIZED_CONDITION: ("Unknown", "Rebooting"),
        "Ready": ("Unknown", "Rebooting"),
    }


def test_a_cloud_that_refuses_is_asked_again_for_five_minutes_and_counts_as_one_reboot():
    claim = rebooting(asked=(NOW + 5,))
    again = step(ClaimView(claim, FENCED), NOW + 300)
    assert of_kind(again, RebootInstance)
    assert not of_kind(again, AnnotateClaim)
    given_up = step(ClaimView(claim, FENCED), NOW + 306)
    assert of_kind(given_up, DeleteClaim)[0].reason == "reboot_failed"
    assert [each.reason for each in of_kind(given_up, PublishEvent)] == ["RebootFailed"]


@pytest.mark.parametrize("node", [FENCED, replace(FENCED, ready=False), replace(BACK, ready=False)])
def test_success_is_another_boot_id_and_ready_within_twenty_minutes(node):
    claim = issued()
    waiting = step(ClaimView(claim, node), NOW + 1200)
    assert not of_kind(waiting, DeleteClaim)
    assert REBOOTING not in statuses(waiting) or statuses(waiting)[REBOOTING][0] == "True"
    assert of_kind(step(ClaimView(claim, node), NOW + 1201), DeleteClaim)[0].reason == "reboot_failed"


def test_a_machine_that_is_back_loses_its_fence_and_is_initialized_anew():
    outcome = step(ClaimView(issued(), BACK), NOW + 90)
    (lifted,) = of_kind(outcome, UpdateNode)
    assert REBOOT_FENCE not in lifted.taints
    assert lifted.taints_before == BACK.taints
    assert REBOOTING not in statuses(outcome), "the lift may meet another write: then it is made again"
    outcome = step(ClaimView(issued(), UNFENCED), NOW + 91)
    assert statuses(outcome)[REBOOTING] == ("False", "RebootSucceeded")
    assert INITIALIZED_CONDITION not in statuses(outcome)
    over = Condition(REBOOTING, "False", "RebootSucceeded", "", NOW + 91)
    kept = tuple(condition for condition in issued().conditions if condition.type != REBOOTING)
    after = replace(issued(), conditions=(*kept, over))
    then = step(ClaimView(after, UNFENCED), NOW + 92)
    assert statuses(then)[INITIALIZED_CONDITION] == ("True", "Initialized")


def test_a_leader_that_died_between_asking_and_noting_finds_the_reboot_done():
    """Its claim still says that the reboot is asked for; the boot id says more."""
    claim = rebooting(asked=(NOW + 5,))
    outcome = step(ClaimView(claim, BACK), NOW + 60)
    assert not of_kind(outcome, RebootInstance)
    assert REBOOT_FENCE not in of_kind(outcome, UpdateNode)[0].taints
    assert statuses(step(ClaimView(claim, UNFENCED), NOW + 61))[REBOOTING] == ("False", "RebootSucceeded")


def test_a_leader_that_died_before_the_machine_was_back_asks_again():
    """Whether the cloud was asked is not known: a second request while it boots changes nothing."""
    outcome = step(ClaimView(rebooting(asked=(NOW + 5,)), replace(FENCED, ready=False)), NOW + 20)
    assert of_kind(outcome, RebootInstance)


def test_the_end_of_a_claim_goes_before_its_reboot():
    claim = rebooting(deletion_timestamp=NOW)
    assert not of_kind(step(ClaimView(claim, FENCED), NOW + 60), RebootInstance)


@given(st.lists(st.integers(0, 3 * 86400), max_size=5))
def test_reboots_count_for_a_day(ages):
    text = ",".join(format_time(NOW - age) for age in ages)
    claim = an_initialized_claim(annotations={REBOOTS: f"{text},rubbish"})
    assert len(reboots_of(claim, NOW)) == sum(age < HISTORY_SECONDS for age in ages)
