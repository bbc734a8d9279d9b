"""Given a claim on its way to a working node, what happens next?"""

from dataclasses import replace

from nodeless.model.instructions import (
    AddFinalizer,
    DeleteClaim,
    LaunchInstance,
    PublishEvent,
    UpdateClaimStatus,
    UpdateNode,
)
from nodeless.model.labels import (
    INITIALIZED,
    LAUNCHED_FOR_GANG,
    LAUNCHED_FOR_REQUEST,
    REGISTERED,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from nodeless.model.nodes import INITIALIZED_CONDITION, LAUNCHED, READY, REGISTERED_CONDITION
from nodeless.model.taints import Taint
from nodeless.nodeclaim import ClaimView, step
from tests.factories import NOW, a_claim, a_launched_claim, a_node, an_initialized_claim, conditions

MINUTE, HOUR = 60.0, 3600.0
UNREGISTERED = Taint(UNREGISTERED_TAINT, "NoExecute")


def a_joining_node(**fields):
    return a_node(labels={}, finalizers=(), ready=False, **fields)


def test_a_new_claim_is_launched():
    claim = a_claim()
    assert step(ClaimView(claim), NOW).instructions == (LaunchInstance(f"claim:{claim.name}", claim),)


def test_a_claim_that_a_user_made_is_tied_to_its_instance_before_it_is_launched():
    claim = a_claim(finalizers=())
    tie, launch = step(ClaimView(claim), NOW).instructions
    assert tie == AddFinalizer(f"claim:{claim.name}", "NodeClaim", claim.name, TERMINATION_FINALIZER)
    assert launch == LaunchInstance(f"claim:{claim.name}", claim)


def test_mc_14_a_claim_without_instance_for_five_minutes_is_given_up_with_an_event():
    event, deletion = step(ClaimView(a_claim()), NOW + 5 * MINUTE + 1).instructions
    assert isinstance(event, PublishEvent)
    assert event.type == "Warning"
    assert isinstance(deletion, DeleteClaim)
    assert deletion.reason == "launch_timeout"


def test_an_instance_that_has_not_joined_is_waited_for():
    outcome = step(ClaimView(a_launched_claim()), NOW + MINUTE)
    (status,) = outcome.instructions
    assert isinstance(status, UpdateClaimStatus)
    assert status.conditions[0].reason == "NodeNotFound"
    assert outcome.again_at is not None


def test_mc_05_an_instance_that_never_joins_is_given_up_after_fifteen_minutes():
    event, deletion = step(ClaimView(a_launched_claim()), NOW + 15 * MINUTE + 1).instructions
    assert "has not joined" in event.message
    assert deletion == DeleteClaim("claim:default-abcde", "default-abcde", "registration_timeout")


def test_mc_05_a_node_that_once_joined_is_never_given_up_for_not_joining():
    broken = a_node(ready=False, labels={REGISTERED: "true"})
    for claim in (registered_claim(), an_initialized_claim()):
        later = step(ClaimView(claim, broken), NOW + 100 * HOUR).instructions
        assert not [each for each in later if isinstance(each, DeleteClaim)]


def test_mc_03_a_node_that_joins_gets_labels_owner_and_finalizer_and_loses_the_unregistered_taint():
    dedicated, startup = Taint("dedicated", "NoSchedule", "web"), Taint("cilium", "NoExecute")
    claim = a_launched_claim(
        labels={"team": "web"},
        annotations={"note": "x", LAUNCHED_FOR_GANG: "default/train", LAUNCHED_FOR_REQUEST: "default/job"},
        taints=(dedicated,),
        startup_taints=(startup,),
    )
    update, event, status = step(ClaimView(claim, a_joining_node(taints=(UNREGISTERED,))), NOW).instructions
    assert event.reason == "Registered"
    assert isinstance(update, UpdateNode)
    assert update.labels == {"team": "web", REGISTERED: "true"}
    assert update.annotations == {"note": "x"}
    assert update.taints == (dedicated, startup)
    assert update.taints_before == (UNREGISTERED,)
    assert update.add_finalizer == TERMINATION_FINALIZER
    assert update.owner_claim == claim
    assert status.conditions[0].type == REGISTERED_CONDITION
    assert status.node_name == "node-default-abcde"


def test_mc_12_a_node_that_joins_without_the_unregistered_taint_is_adopted_with_a_warning():
    _, *told, _ = step(ClaimView(a_launched_claim(), a_joining_node()), NOW).instructions
    assert [event.reason for event in told] == ["Registered", "UnregisteredTaintMissing"]


def test_aws_15_13_a_kubelet_that_registers_first_gets_every_label_of_its_instance():
    labels = {"node.kubernetes.io/instance-type": "m5.large", "karpenter.k8s.aws/instance-cpu": "2"}
    for node in (a_joining_node(), a_joining_node(taints=(UNREGISTERED,))):
        update, *_ = step(ClaimView(a_launched_claim(labels=labels), node), NOW).instructions
        assert update.labels.items() >= labels.items()
        assert update.add_finalizer == TERMINATION_FINALIZER


def test_mc_13_taints_are_not_synced_to_a_node_that_says_so():
    claim = a_launched_claim(taints=(Taint("dedicated", "NoSchedule", "web"),))
    for value, expected in (("true", ()), ("false", claim.taints)):
        node = replace(
            a_joining_node(taints=(UNREGISTERED,)), labels={"karpenter.sh/do-not-sync-taints": value}
        )
        update, *_ = step(ClaimView(claim, node), NOW).instructions
        assert update.taints == expected


def test_a_taint_that_the_kubelet_registered_already_is_not_doubled():
    dedicated = Taint("dedicated", "NoSchedule", "web")
    claim = a_launched_claim(taints=(dedicated,))
    update, *_ = step(ClaimView(claim, a_joining_node(taints=(UNREGISTERED, dedicated))), NOW).instructions
    assert update.taints == (dedicated,)


def test_registration_is_never_repeated_so_that_a_removed_startup_taint_stays_removed():
    """The controller was killed between the node's update and the claim's."""
    claim = a_launched_claim(startup_taints=(Taint("cilium", "NoExecute"),))
    node = a_node(labels={REGISTERED: "true"}, taints=())
    (status,) = step(ClaimView(claim, node), NOW).instructions
    assert isinstance(status, UpdateClaimStatus)


def registered_claim(**fields):
    return a_launched_claim(conditions=conditions(LAUNCHED, REGISTERED_CONDITION), **fields)


def test_mc_04_nd_01_a_ready_complete_node_becomes_initialized():
    node = a_node(labels={REGISTERED: "true"})
    view = ClaimView(registered_claim(requests={"cpu": 1000}), node)
    update, event, status = step(view, NOW).instructions
    assert event.reason == "Initialized"
    assert update.labels == {INITIALIZED: "true"}
    assert {(c.type, c.status) for c in status.conditions} == {
        (INITIALIZED_CONDITION, "True"),
        (READY, "True"),
    }


def reason_for_waiting(claim, node):
    (status,) = step(ClaimView(claim, node), NOW).instructions
    (condition,) = status.conditions
    assert condition.status == "Unknown"
    return condition.reason


def test_mc_04_nd_02_nd_03_a_node_waits_for_ready_for_startup_taints_and_for_its_resources():
    node = a_node(labels={REGISTERED: "true"})
    startup = Taint("cilium", "NoExecute")
    assert reason_for_waiting(registered_claim(), replace(node, ready=False)) == "NodeNotReady"
    assert (
        reason_for_waiting(registered_claim(startup_taints=(startup,)), replace(node, taints=(startup,)))
        == "StartupTaintsExist"
    )
    for key in ("node.kubernetes.io/not-ready", "readiness.k8s.io/network"):
        tainted = replace(node, taints=(Taint(key, "NoSchedule"),))
        assert reason_for_waiting(registered_claim(), tainted) == "KnownEphemeralTaintsExist"
    gpu = registered_claim(requests={"nvidia.com/gpu": 1}, allocatable={"nvidia.com/gpu": 1})
    assert reason_for_waiting(gpu, node) == "ResourceNotRegistered"


def test_a_node_whose_driver_publishes_the_devices_of_a_resource_need_not_announce_it():
    """kube-scheduler gives pods these devices (KEP-5004): no device plugin will ever announce them."""
    node = a_node(labels={REGISTERED: "true"})
    gpu = registered_claim(requests={"nvidia.com/gpu": 1}, allocatable={"nvidia.com/gpu": 1})
    view = ClaimView(gpu, node, device_classes={"nvidia.com/gpu": "gpu.nvidia.com"})
    (status,) = step(view, NOW).instructions
    (condition,) = status.conditions
    assert condition.reason == "ResourceNotRegistered"
    assert "any nvidia.com/gpu yet, nor does a driver publish a device of DeviceClass gpu.nvidia.com" in (
        condition.message
    )
    published = replace(view, served_by_devices=frozenset(("nvidia.com/gpu",)))
    assert step(published, NOW).instructions[0].labels == {INITIALIZED: "true"}


def test_a_condition_that_stands_already_is_not_written_again():
    waiting = registered_claim()
    node = a_node(labels={REGISTERED: "true"}, ready=False)
    (status,) = step(ClaimView(waiting, node), NOW).instructions
    again = replace(waiting, conditions=(*waiting.conditions, *status.conditions))
    assert step(ClaimView(again, node), NOW + 5).instructions == ()


def test_a_claim_whose_node_was_removed_by_force_ends_so_that_its_instance_does():
    for claim in (registered_claim(), an_initialized_claim()):
        event, deletion = step(ClaimView(claim, missed_since=NOW), NOW + 31).instructions
        assert (event.reason, deletion.reason) == ("NodeGone", "node_deleted")


def test_a_node_that_is_missing_only_now_has_half_a_minute_however_long_ago_it_joined():
    """A watch may lag, and say the next moment that the node is there."""
    long_after = NOW + 86_400
    for view in (
        ClaimView(an_initialized_claim()),
        ClaimView(an_initialized_claim(), missed_since=long_after),
    ):
        waiting = step(view, long_after)
        assert not any(isinstance(each, DeleteClaim) for each in waiting.instructions)
        assert waiting.again_at == long_after + 30


def test_a_node_just_registered_may_not_have_come_through_the_watch_yet():
    outcome = step(ClaimView(registered_claim(), missed_since=NOW), NOW + 29)
    assert outcome.instructions == ()
    assert outcome.again_at == NOW + 30
