"""Given a pod that needs time to save its work, does it get that, once, and no more than there is?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import format_time
from nodeless.disruption.events import invalid_annotation_events
from nodeless.model.events import ClaimSeen, NodeSeen, PodSeen
from nodeless.model.instructions import AnnotateClaim, DeletePod, EvictPod, RequestCheckpoint
from nodeless.model.interruptions import Interruption, InterruptionKind
from nodeless.model.labels import (
    CHECKPOINT_GRACE,
    DISRUPTED_TAINT,
    DO_NOT_DISRUPT,
    DRAIN_GRACE,
    EXCLUDE_BALANCERS,
    INSTANCE_ENDS,
    TERMINATION_TIMESTAMP,
)
from nodeless.model.nodes import REBOOT_FENCE, REBOOTING, Condition
from nodeless.model.pools import Reference
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint
from nodeless.nodeclaim import ClaimView, step
from nodeless.nodeclaim.checkpoints import LONGEST_GRACE, checkpoint_grace
from nodeless.nodeclaim.draining import pods_saving_work
from nodeless.nodeclaim.interruption import claims_by_instance, react_to_warning
from nodeless.state import apply
from tests.factories import NOW, a_node, a_pod, an_initialized_claim

POOLS = (Reference("NodePool", "default"), Reference("Provisioner", "default"))
NODE = a_node(deletion_timestamp=NOW)
TAINTED = replace(
    NODE,
    taints=(Taint(DISRUPTED_TAINT, "NoSchedule"),),
    labels={**NODE.labels, EXCLUDE_BALANCERS: "karpenter"},
    unschedulable=True,
)


def trainer(grace="10m", name="train", **fields):
    annotations = {CHECKPOINT_GRACE: grace, **fields.pop("annotations", {})}
    node = {"node_name": NODE.name, "phase": "Running"}
    return a_pod(name, annotations=annotations, **{**node, **fields})


def draining(pool=POOLS[0], **annotations):
    return an_initialized_claim(pool=pool, deletion_timestamp=NOW, annotations=annotations)


def asked(pods, now, claim=None, **view):
    instructions = step(ClaimView(claim or draining(), TAINTED, tuple(pods), **view), now).instructions
    return [each for each in instructions if isinstance(each, EvictPod | RequestCheckpoint | DeletePod)]


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_a_pod_is_told_first_and_evicted_once_its_grace_is_over(pool):
    claim, pod = draining(pool), trainer("10m")
    (request,) = asked([pod], NOW + 0.25, claim)
    assert isinstance(request, RequestCheckpoint)
    assert (request.at, request.until) == (NOW + 1, NOW + 601)
    told = replace(pod, checkpoint_requested_at=request.at)
    assert asked([told], NOW + 600, claim) == []
    (eviction,) = asked([told], NOW + 601, claim)
    assert isinstance(eviction, EvictPod)


def test_what_a_pod_was_told_in_an_earlier_drain_is_over():
    """It stayed through a reboot, say, which took longer than its grace."""
    (request,) = asked([trainer("10m", checkpoint_requested_at=NOW - 3600)], NOW)
    assert isinstance(request, RequestCheckpoint)
    assert request.until == NOW + 600


def test_a_clock_behind_the_api_servers_gives_the_same_time_once():
    (request,) = asked([trainer("10m")], NOW - 30)
    assert (request.at, request.until) == (NOW, NOW + 600)
    assert asked([trainer("10m", checkpoint_requested_at=request.at)], NOW - 29) == []


def test_a_reboot_that_is_bounded_leaves_no_more_time_than_it_waits():
    condition = Condition(REBOOTING, "True", "RebootRequested", "", NOW)
    base = an_initialized_claim(pool=POOLS[0], annotations={DRAIN_GRACE: "300"})
    claim = replace(base, conditions=(*base.conditions, condition))
    node = a_node(taints=(REBOOT_FENCE,))
    pod = trainer("1h", grace_period_seconds=60)

    def at(seconds, *pods):
        found = step(ClaimView(claim, node, pods), NOW + seconds).instructions
        return [each for each in found if isinstance(each, EvictPod | RequestCheckpoint)]

    (request,) = at(0, pod)
    assert request.until == NOW + 240
    told = replace(pod, checkpoint_requested_at=request.at)
    assert at(239, told) == []
    assert [type(each) for each in at(240, told)] == [EvictPod]


def test_other_pods_of_the_node_leave_meanwhile():
    pods = [trainer(), a_pod("web", node_name=NODE.name)]
    assert {type(each): each.name for each in asked(pods, NOW)} == {
        RequestCheckpoint: "train",
        EvictPod: "web",
    }


@given(
    graces=st.lists(st.integers(0, 2 * LONGEST_GRACE), min_size=1, max_size=4),
    leaves=st.integers(0, 300),
    deadline=st.one_of(st.none(), st.integers(0, 5000)),
    ends=st.one_of(st.none(), st.integers(0, 5000)),
    looks=st.lists(st.floats(0.1, 900), min_size=1, max_size=30),
    refused=st.booleans(),
)
def test_no_pod_leaves_before_its_grace_nor_later_than_it_must(
    graces, leaves, deadline, ends, looks, refused
):
    """Looks come at any times, as after restarts: what is known is on the objects alone."""
    notes = {}
    if deadline is not None:
        notes[TERMINATION_TIMESTAMP] = format_time(NOW + deadline)
    if ends is not None:
        notes[INSTANCE_ENDS] = format_time(NOW + ends)
    claim = draining(**notes)
    pods = {
        f"p{number}": trainer(f"{grace}s", f"p{number}", grace_period_seconds=leaves)
        for number, grace in enumerate(graces)
    }
    bounds = [bound for bound in (deadline, ends) if bound is not None]
    latest = NOW + min(bounds, default=10**9) - leaves
    requests, now = {}, NOW
    for wait in looks:
        now += wait
        unmarked = frozenset(pod.key for pod in pods.values()) if refused and requests else frozenset()
        named = {each.name: each for each in asked(pods.values(), now, claim, unmarked=unmarked)}
        for name, pod in list(pods.items()):
            began = NOW if refused else requests.get(name, now)
            over = min(began + min(graces[int(name[1:])], LONGEST_GRACE), latest)
            match named.get(name):
                case RequestCheckpoint(at=at, until=until):
                    assert name not in requests, "the time of a pod that was told began anew"
                    assert now < until <= latest
                    requests[name] = at
                    if not refused:
                        pods[name] = replace(pod, checkpoint_requested_at=at)
                case None:
                    assert now < over
                case _:
                    assert now >= over
                    del pods[name]


def test_a_longer_grace_than_an_hour_counts_as_an_hour():
    assert checkpoint_grace(trainer("90m")) == checkpoint_grace(trainer("Never")) == LONGEST_GRACE


def test_the_time_begins_only_once_a_protection_is_over():
    pod = trainer("10m", annotations={DO_NOT_DISRUPT: "1h"}, started_at=NOW)
    assert asked([pod], NOW + 3599) == []
    (request,) = asked([pod], NOW + 3600)
    assert isinstance(request, RequestCheckpoint)


@pytest.mark.parametrize("value", ["ten minutes", "", "10", "-5m"])
def test_a_value_that_is_no_duration_gives_no_time_and_is_told(value):
    pod = trainer(value)
    assert [type(each) for each in asked([pod], NOW)] == [EvictPod]
    (event,) = invalid_annotation_events(apply(Snapshot(), PodSeen(pod)))
    assert event.reason == "InvalidCheckpointGrace"
    assert repr(value) in event.message
    assert invalid_annotation_events(apply(Snapshot(), PodSeen(trainer("10m")))) == ()


def warned(kind, pods, sent_at=NOW, state="", **fields):
    claim = an_initialized_claim(**fields)
    snapshot = apply(apply(Snapshot(), ClaimSeen(claim)), NodeSeen(NODE))
    for pod in pods:
        snapshot = apply(snapshot, PodSeen(pod))
    warning = Interruption(kind, (claim.instance_id,), state, sent_at)
    found = react_to_warning(snapshot, claims_by_instance(snapshot), warning).instructions
    return [each.annotations[INSTANCE_ENDS] for each in found if isinstance(each, AnnotateClaim)]


SPOT_WARNING = InterruptionKind.SPOT_INTERRUPTION


def test_a_spot_interruption_bounds_the_time_by_its_two_minutes():
    assert warned(SPOT_WARNING, [trainer()]) == [format_time(NOW + 120)]
    claim = draining(**{INSTANCE_ENDS: format_time(NOW + 120)})
    told = trainer("1h", checkpoint_requested_at=NOW, grace_period_seconds=30)
    assert asked([told], NOW + 89, claim) == []
    assert [type(each) for each in asked([told], NOW + 90, claim)] == [EvictPod]


def test_an_interruption_in_the_middle_of_a_drain_shortens_what_is_left():
    assert warned(SPOT_WARNING, [trainer()], deletion_timestamp=NOW - 60) == [format_time(NOW + 120)]


def test_an_instance_that_is_going_down_already_leaves_no_time():
    assert warned(InterruptionKind.STATE_CHANGE, [trainer()], state="shutting-down") == [format_time(NOW)]
    assert warned(SPOT_WARNING, [trainer()], sent_at=None) == [format_time(120)]


def test_claims_without_pods_that_take_time_are_not_written():
    assert warned(SPOT_WARNING, [a_pod(node_name=NODE.name)]) == []
    earlier = {INSTANCE_ENDS: format_time(NOW + 60)}
    assert warned(SPOT_WARNING, [trainer()], annotations=earlier) == []


TOLD = {"checkpoint_requested_at": NOW}


@pytest.mark.parametrize(
    ("pod", "seconds", "until"),
    [
        pytest.param(trainer(**TOLD), 0, 600, id="told, with ten minutes"),
        pytest.param(trainer(**TOLD), 599, 600, id="until they are over"),
        pytest.param(trainer(**TOLD), 600, None, id="they are over"),
        pytest.param(trainer(), 0, None, id="not told yet"),
        pytest.param(trainer(checkpoint_requested_at=NOW - 60), 0, None, id="told in an earlier drain"),
        pytest.param(trainer(phase="Succeeded", **TOLD), 0, None, id="has ended"),
        pytest.param(trainer(deletion_timestamp=NOW + 30, **TOLD), 0, None, id="leaves already"),
    ],
)
def test_who_saves_its_work_is_shown_with_the_time_until_which_it_may(pod, seconds, until):
    saving = pods_saving_work(draining(), NODE, [pod], NOW + seconds)
    assert saving == ({} if until is None else {pod.key: NOW + until})


def test_a_deadline_ends_the_time_to_save_work_early_enough_for_the_pods_own_grace():
    claim = draining(**{TERMINATION_TIMESTAMP: format_time(NOW + 120)})
    pod = trainer(grace_period_seconds=30, **TOLD)
    assert pods_saving_work(claim, NODE, [pod], NOW) == {pod.key: NOW + 90}


def test_nobody_saves_its_work_on_a_node_that_stays():
    assert not pods_saving_work(draining(), replace(NODE, deletion_timestamp=None), [trainer(**TOLD)], NOW)
