"""What nodes of a command under way are told, in the words of their generation."""

from dataclasses import replace

from nodeless.disruption.events import command_events
from nodeless.model import events
from nodeless.state import apply
from tests.disruption.test_commands import CLUSTER, begun, ready, replacement_of
from tests.scheduling.factories import NOW


def reasons(snapshot):
    return {(command_event.name, command_event.reason) for command_event in command_events(snapshot)}


def test_without_a_move_nothing_is_told():
    assert command_events(CLUSTER) == ()


def test_a_replacement_that_has_not_joined_is_told_nothing():
    assert command_events(begun()[1]) == ()


def test_a_replacement_is_told_what_it_is_for_and_that_the_others_wait_for_it():
    snapshot = ready(begun()[1])
    claim = replacement_of(snapshot)
    node = snapshot.node_of(claim)
    assert reasons(snapshot) == {(node.name, "DeprovisioningLaunching")}
    waiting = apply(snapshot, events.ClaimSeen(replace(claim, conditions=())))
    assert reasons(waiting) == {
        (node.name, "DeprovisioningLaunching"),
        (node.name, "DeprovisioningWaitingReadiness"),
    }


def test_a_node_that_goes_is_told_that_its_replacement_is_there():
    snapshot = ready(begun()[1])
    (old,) = (claim for claim in CLUSTER.claims.values() if claim.name in snapshot.claims)
    going = apply(snapshot, events.ClaimSeen(replace(snapshot.claims[old.name], deletion_timestamp=NOW)))
    node = going.node_of(going.claims[old.name])
    assert (node.name, "DeprovisioningWaitingDeletion") in reasons(going)


def test_a_node_that_is_interrupted_before_its_replacement_is_ready_is_not_said_to_be_replaced():
    snapshot = ready(begun()[1])
    claim, old = replacement_of(snapshot), snapshot.claims["a"]
    waiting = apply(snapshot, events.ClaimSeen(replace(claim, conditions=())))
    going = apply(waiting, events.ClaimSeen(replace(old, deletion_timestamp=NOW)))
    assert reasons(going) == {(going.node_of(claim).name, "DeprovisioningLaunching")}
