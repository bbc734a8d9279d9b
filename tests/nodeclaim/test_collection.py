"""Given claims and instances that lost each other, what is ended and what is spared?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.reading import read_broken_claim
from nodeless.model.events import ClaimSeen, NodeSeen
from nodeless.model.instructions import DeleteClaim, DeleteNode, TerminateInstance
from nodeless.model.nodes import LAUNCHED, REGISTERED_CONDITION
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim import ClaimView, end_unclaimed, end_vanished, step, unlisted_claims
from nodeless.state import apply
from tests.factories import NOW, a_claim, a_launched_claim, a_node, an_instance, conditions


def cluster(*events):
    snapshot = Snapshot()
    for event in events:
        snapshot = apply(snapshot, event)
    return snapshot


NAME = "default-abcde"
LONG_AFTER = NOW + 301


def a_registered_claim():
    return a_launched_claim(conditions=conditions(LAUNCHED, REGISTERED_CONDITION))


def test_mc_10_an_instance_that_no_claim_knows_is_terminated_and_its_node_deleted():
    snapshot = cluster(NodeSeen(a_node("gone")))
    assert end_unclaimed(snapshot, [an_instance("gone")], NOW + 31) == (
        TerminateInstance("instance:i-gone", "", "i-gone"),
        DeleteNode("instance:i-gone", "node-gone", "its instance belongs to no claim", "uid-node-gone"),
    )


def test_mc_10_a_young_instance_is_spared():
    assert end_unclaimed(Snapshot(), [an_instance()], NOW + 29) == ()


def test_an_instance_whose_claim_has_not_recorded_it_yet_is_spared():
    assert end_unclaimed(cluster(ClaimSeen(a_claim())), [an_instance()], NOW + 60) == ()


def test_an_instance_of_a_group_is_spared_while_one_of_its_claims_has_none():
    mark = {"nodeless.dev/launch-group": "a", "nodeless.dev/launch-group-size": "2"}
    of_group = an_instance("spare", tags={"nodeless.dev/launch-group": "a"})
    has_one, has_none = a_launched_claim("a", annotations=mark), a_claim("b", annotations=mark)
    assert end_unclaimed(cluster(ClaimSeen(has_one), ClaimSeen(has_none)), [of_group], NOW + 60) == ()
    ended = end_unclaimed(cluster(ClaimSeen(has_one)), [of_group], NOW + 60)
    assert ended == (TerminateInstance("instance:i-spare", "", "i-spare"),)


def test_a_second_instance_of_a_claim_is_ended():
    claim = a_launched_claim()
    double = an_instance(id="i-double", provider_id="aws:///us-east-1a/i-double")
    ended = end_unclaimed(cluster(ClaimSeen(claim)), [an_instance(), double], NOW + 60)
    # Without the claim's name: the end of the double says nothing about the claim's own instance.
    assert ended == (TerminateInstance("instance:i-double", "", "i-double"),)


def test_mc_06_a_claim_is_asked_about_that_a_list_does_not_show():
    snapshot = cluster(ClaimSeen(a_registered_claim()))
    assert unlisted_claims(snapshot, [], NOW + 11) == {NAME}
    assert unlisted_claims(snapshot, [an_instance("another")], NOW + 11) == {NAME}
    assert unlisted_claims(snapshot, [an_instance()], NOW + 60) == frozenset()


def test_mc_06_a_listing_older_than_the_launch_proves_nothing():
    assert unlisted_claims(cluster(ClaimSeen(a_registered_claim())), [], NOW + 9) == frozenset()


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
@pytest.mark.parametrize("claim", [a_launched_claim(), a_registered_claim()], ids=["launched", "registered"])
def test_mc_06_a_claim_whose_instance_has_ended_in_the_clouds_own_words_is_deleted(claim, state):
    ended = end_vanished(cluster(ClaimSeen(claim)), {NAME: state}, NOW + 11)
    assert ended[-1] == DeleteClaim(f"claim:{NAME}", NAME, "garbage_collected")


def test_mc_06_a_registered_claim_whose_instance_nobody_knows_is_deleted_long_after_its_launch():
    snapshot = cluster(ClaimSeen(a_registered_claim()))
    assert end_vanished(snapshot, {NAME: ""}, NOW + 299) == ()
    assert end_vanished(snapshot, {NAME: ""}, LONG_AFTER)[-1] == DeleteClaim(
        f"claim:{NAME}", NAME, "garbage_collected"
    )


def test_a_claim_without_node_whose_instance_nobody_knows_is_left_to_its_deadline():
    assert end_vanished(cluster(ClaimSeen(a_launched_claim())), {NAME: ""}, NOW + 1e6) == ()


@given(
    state=st.sampled_from(["pending", "running", "stopping", "stopped", "rebooting", "not-known-yet"]),
    after=st.floats(0, 1e7),
)
def test_no_other_word_of_the_cloud_ends_a_claim(state, after):
    assert end_vanished(cluster(ClaimSeen(a_registered_claim())), {NAME: state}, NOW + after) == ()


def test_mc_16_a_ready_node_proves_that_its_instance_lives():
    snapshot = cluster(ClaimSeen(a_registered_claim()), NodeSeen(a_node()))
    assert unlisted_claims(snapshot, [], NOW + 60) == frozenset()
    # It became Ready between the lists and the answer.
    assert end_vanished(snapshot, {NAME: "terminated"}, LONG_AFTER) == ()


def test_what_went_while_the_cloud_was_asked_is_passed_over():
    assert end_vanished(Snapshot(), {NAME: "terminated"}, LONG_AFTER) == ()
    going = a_launched_claim(deletion_timestamp=NOW)
    assert end_vanished(cluster(ClaimSeen(going)), {NAME: "terminated"}, LONG_AFTER) == ()


def test_a_claim_that_cannot_be_read_keeps_its_instance_and_is_kept():
    manifest = {
        "metadata": {"name": NAME, "uid": "u", "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {"requirements": "none"},
        "status": {"providerID": f"aws:///us-east-1a/i-{NAME}"},
    }
    broken = read_broken_claim(manifest, "spec.requirements is no list")
    snapshot = cluster(ClaimSeen(broken))
    assert end_unclaimed(snapshot, [an_instance()], NOW + 60) == ()
    assert unlisted_claims(snapshot, [], NOW + 60) == frozenset()
    assert end_vanished(snapshot, {NAME: "terminated"}, LONG_AFTER) == ()
    assert step(ClaimView(broken, a_node()), NOW + 1e9).instructions == ()
