"""Given claims and instances that lost each other, what is ended and what is spared?"""

from immutables import Map

from nodeless.api.reading import read_broken_claim
from nodeless.lifecycle import ClaimView, collect, step
from nodeless.model.events import ClaimSeen, NodeSeen
from nodeless.model.instructions import DeleteClaim, DeleteNode, TerminateInstance
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply
from tests.factories import NOW, a_claim, a_launched_claim, a_node, an_instance


def cluster(*events):
    snapshot = Snapshot()
    for event in events:
        snapshot = apply(snapshot, event)
    return snapshot


def test_mc_10_an_instance_that_no_claim_knows_is_terminated_and_its_node_deleted():
    snapshot = cluster(NodeSeen(a_node("gone")))
    ended = collect(snapshot, [an_instance("gone")], NOW + 31, NOW + 31)
    assert ended == (
        TerminateInstance("instance:i-gone", "", "i-gone"),
        DeleteNode("instance:i-gone", "node-gone", "its instance belongs to no claim"),
    )


def test_mc_10_a_young_instance_is_spared():
    assert collect(Snapshot(), [an_instance()], NOW + 29, NOW + 29) == ()


def test_an_instance_whose_claim_has_not_recorded_it_yet_is_spared():
    assert collect(cluster(ClaimSeen(a_claim())), [an_instance()], NOW + 60, NOW + 60) == ()


def test_an_instance_of_a_group_is_spared_while_one_of_its_claims_has_none():
    mark = {"nodeless.dev/launch-group": "a", "nodeless.dev/launch-group-size": "2"}
    of_group = an_instance("spare", tags={"nodeless.dev/launch-group": "a"})
    has_one, has_none = a_launched_claim("a", annotations=mark), a_claim("b", annotations=mark)
    assert collect(cluster(ClaimSeen(has_one), ClaimSeen(has_none)), [of_group], NOW, NOW + 60) == ()
    ended = collect(cluster(ClaimSeen(has_one)), [of_group], NOW, NOW + 60)
    assert ended == (TerminateInstance("instance:i-spare", "", "i-spare"),)


def test_a_second_instance_of_a_claim_is_ended():
    claim = a_launched_claim()
    double = an_instance(id="i-double", provider_id="aws:///us-east-1a/i-double")
    ended = collect(cluster(ClaimSeen(claim)), [an_instance(), double], NOW + 60, NOW + 60)
    # Without the claim's name: the end of the double says nothing about the claim's own instance.
    assert ended == (TerminateInstance("instance:i-double", "", "i-double"),)


def test_mc_06_a_claim_whose_instance_vanished_is_deleted():
    ended = collect(cluster(ClaimSeen(a_launched_claim())), [], NOW + 11, NOW + 11)
    assert ended[-1] == DeleteClaim("claim:default-abcde", "default-abcde", "garbage_collected")


def test_mc_06_a_listing_older_than_the_launch_proves_nothing():
    assert collect(cluster(ClaimSeen(a_launched_claim())), [], NOW + 9, NOW + 60) == ()


def test_mc_16_a_ready_node_proves_that_its_instance_lives():
    snapshot = cluster(ClaimSeen(a_launched_claim()), NodeSeen(a_node()))
    assert collect(snapshot, [], NOW + 60, NOW + 60) == ()


def test_mc_06_nothing_happens_when_claims_and_instances_agree():
    assert collect(cluster(ClaimSeen(a_launched_claim())), [an_instance()], NOW + 60, NOW + 60) == ()
    assert Snapshot().claims == Map()


def test_a_claim_that_cannot_be_read_keeps_its_instance_and_is_kept():
    manifest = {
        "metadata": {"name": "default-abcde", "uid": "u", "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {"requirements": "none"},
        "status": {"providerID": "aws:///us-east-1a/i-default-abcde"},
    }
    broken = read_broken_claim(manifest, "spec.requirements is no list")
    assert collect(cluster(ClaimSeen(broken)), [an_instance()], NOW + 60, NOW + 60) == ()
    assert collect(cluster(ClaimSeen(broken)), [], NOW + 60, NOW + 60) == ()
    assert step(ClaimView(broken, a_node()), NOW + 1e9).instructions == ()
