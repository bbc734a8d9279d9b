"""What follows from a warning about an instance."""

from dataclasses import replace

import pytest

from nodeless.model.events import ClaimSeen, NodeSeen
from nodeless.model.instructions import AnnotateClaim, DeleteClaim, PublishEvent
from nodeless.model.interruptions import Interruption, InterruptionKind
from nodeless.model.nodes import REBOOTING, Condition, Node, NodeClaim
from nodeless.model.pools import Reference
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.interruption import claims_by_instance, react_to_warning
from nodeless.state import apply

CLAIM = NodeClaim(
    name="default-abcde",
    pool=Reference("Provisioner", "default"),
    node_class=Reference("AWSNodeTemplate", "default"),
    uid="1",
    provider_id="aws:///us-east-1a/i-1",
    labels={
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "us-east-1a",
        "karpenter.sh/capacity-type": "spot",
    },
)
NODE = Node(name="ip-10-0-0-1", uid="2", provider_id=CLAIM.provider_id)


def a_snapshot(claim=CLAIM, node=NODE):
    snapshot = apply(Snapshot(), ClaimSeen(claim))
    return apply(snapshot, NodeSeen(node)) if node is not None else snapshot


def react(warning, snapshot=None):
    snapshot = snapshot if snapshot is not None else a_snapshot()
    return react_to_warning(snapshot, claims_by_instance(snapshot), warning)


def reasons(reaction, kind):
    return [
        instruction.reason
        for instruction in reaction.instructions
        if isinstance(instruction, PublishEvent) and instruction.kind == kind
    ]


@pytest.mark.parametrize(
    ("kind", "state", "reason"),
    [
        (InterruptionKind.SPOT_INTERRUPTION, "", "InstanceSpotInterrupted"),
        (InterruptionKind.SCHEDULED_CHANGE, "", "InstanceUnhealthy"),
        (InterruptionKind.IMPAIRED, "", "InstanceUnhealthy"),
        (InterruptionKind.STATE_CHANGE, "stopping", "InstanceStopping"),
        (InterruptionKind.STATE_CHANGE, "stopped", "InstanceStopping"),
        (InterruptionKind.STATE_CHANGE, "shutting-down", "InstanceTerminating"),
        (InterruptionKind.STATE_CHANGE, "terminated", "InstanceTerminating"),
        (InterruptionKind.RESERVATION_INTERRUPTION, "", "InstanceReservationInterrupted"),
    ],
)
def test_a_warning_ends_the_claim_and_tells_node_and_claim(kind, state, reason):
    reaction = react(Interruption(kind, ("i-1",), state))
    (deletion,) = [
        instruction for instruction in reaction.instructions if isinstance(instruction, DeleteClaim)
    ]
    assert (deletion.name, deletion.reason) == (CLAIM.name, "interruption")
    for subject in ("Node", "NodeClaim"):
        assert reasons(reaction, subject) == [reason, "NodeTerminatingOnInterruption"]
    assert (reaction.drained, reaction.ignored) == (1, 0)


def test_only_a_spot_interruption_tells_of_the_pool_that_ran_dry():
    offering = ("m5.large", "us-east-1a", "spot")
    assert react(Interruption(InterruptionKind.SPOT_INTERRUPTION, ("i-1",))).offerings == (offering,)
    assert react(Interruption(InterruptionKind.SCHEDULED_CHANGE, ("i-1",))).offerings == ()
    unlabeled = a_snapshot(replace(CLAIM, labels={}))
    assert react(Interruption(InterruptionKind.SPOT_INTERRUPTION, ("i-1",)), unlabeled).offerings == ()


def test_only_the_interruption_of_a_reservation_tells_of_the_reservation_that_is_taken_back():
    """Also of a claim that ends already, as when its other instances were warned of before."""
    reserved = replace(CLAIM, labels={"karpenter.k8s.aws/capacity-reservation-id": "cr-1"})
    warning = Interruption(InterruptionKind.RESERVATION_INTERRUPTION, ("i-1",))
    assert react(warning, a_snapshot(reserved)).reservations == ("cr-1",)
    assert react(warning, a_snapshot(replace(reserved, deletion_timestamp=1.0))).reservations == ("cr-1",)
    assert react(warning).reservations == ()
    spot = Interruption(InterruptionKind.SPOT_INTERRUPTION, ("i-1",))
    assert react(spot, a_snapshot(reserved)).reservations == ()


def test_a_rebalance_recommendation_is_told_and_ends_nothing():
    reaction = react(Interruption(InterruptionKind.REBALANCE_RECOMMENDATION, ("i-1",)))
    assert reasons(reaction, "Node") == ["InstanceSpotRebalanceRecommendation"]
    assert not [instruction for instruction in reaction.instructions if isinstance(instruction, DeleteClaim)]
    assert (reaction.drained, reaction.ignored) == (0, 1)


def test_an_instance_of_somebody_else_is_nobodys_business():
    reaction = react(Interruption(InterruptionKind.SPOT_INTERRUPTION, ("i-2",)))
    assert (reaction.instructions, reaction.offerings, reaction.drained, reaction.ignored) == ((), (), 0, 0)


def test_a_claim_that_ends_already_is_left_alone_but_its_pool_is_remembered():
    """The same warning twice, or the echo of our own termination."""
    ending = a_snapshot(replace(CLAIM, deletion_timestamp=1.0))
    reaction = react(Interruption(InterruptionKind.SPOT_INTERRUPTION, ("i-1",)), ending)
    assert (reaction.instructions, reaction.ignored) == ((), 1)
    assert reaction.offerings


def test_an_instance_that_has_not_joined_yet_is_given_up_too():
    reaction = react(Interruption(InterruptionKind.SPOT_INTERRUPTION, ("i-1",)), a_snapshot(node=None))
    assert reasons(reaction, "Node") == []
    assert reaction.drained == 1


def test_a_health_event_ends_every_claim_that_it_names():
    other = replace(CLAIM, name="default-fghij", uid="3", provider_id="aws:///us-east-1b/i-2")
    snapshot = apply(a_snapshot(), ClaimSeen(other))
    reaction = react(Interruption(InterruptionKind.SCHEDULED_CHANGE, ("i-1", "i-9", "i-2")), snapshot)
    deleted = [
        instruction.name for instruction in reaction.instructions if isinstance(instruction, DeleteClaim)
    ]
    assert deleted == [CLAIM.name, other.name]


def test_an_instance_that_fails_its_checks_is_ended_without_waiting_for_its_drain():
    reaction = react(Interruption(InterruptionKind.IMPAIRED, ("i-1",), sent_at=1_800_000_000.0))
    changes = [
        instruction for instruction in reaction.instructions if not isinstance(instruction, PublishEvent)
    ]
    stamp = {"karpenter.sh/nodeclaim-termination-timestamp": "2027-01-15T08:00:00Z"}
    assert changes == [
        AnnotateClaim("claim:default-abcde", "default-abcde", stamp),
        DeleteClaim("claim:default-abcde", "default-abcde", "interruption"),
    ]
    warned = react(Interruption(InterruptionKind.SCHEDULED_CHANGE, ("i-1",), sent_at=1_800_000_000.0))
    assert not [instruction for instruction in warned.instructions if isinstance(instruction, AnnotateClaim)]


STAMP = "karpenter.sh/nodeclaim-termination-timestamp"


@pytest.mark.parametrize(
    ("earlier", "stamped"),
    [
        ({}, True),
        ({STAMP: "2027-01-16T08:00:00Z"}, True),
        ({STAMP: "2027-01-15T08:00:00Z"}, False),
        ({STAMP: "2027-01-15T07:00:00Z"}, False),
        ({STAMP: "soon"}, True),
    ],
)
def test_the_drain_of_an_instance_that_begins_to_fail_during_it_is_over(earlier, stamped):
    ending = replace(CLAIM, deletion_timestamp=1_799_999_000.0, annotations=earlier)
    warning = Interruption(InterruptionKind.IMPAIRED, ("i-1",), sent_at=1_800_000_000.0)
    reaction = react(warning, a_snapshot(ending))
    stamps = [each.annotations for each in reaction.instructions if isinstance(each, AnnotateClaim)]
    assert stamps == ([{STAMP: "2027-01-15T08:00:00Z"}] if stamped else [])
    assert reasons(reaction, "Node") == (["InstanceUnhealthy"] if stamped else [])
    assert not any(isinstance(each, DeleteClaim) for each in reaction.instructions)
    assert (reaction.drained, reaction.ignored) == (0, 1)


def test_a_claim_that_ends_while_its_instance_is_rebooted_keeps_the_time_of_its_drain():
    rebooting = (Condition(REBOOTING, "True", "RebootIssued", "", 1.0),)
    ending = replace(CLAIM, deletion_timestamp=1.0, conditions=rebooting)
    assert react(Interruption(InterruptionKind.IMPAIRED, ("i-1",)), a_snapshot(ending)).instructions == ()
