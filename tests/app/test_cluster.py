"""Answers to our own writes and the watch tell the same story; whoever comes second is not heard."""

from nodeless.app.cluster import Cluster
from nodeless.model.events import ClaimGone, ClaimSeen, NodeGone, NodeSeen
from tests.factories import a_claim, a_node


def followed():
    cluster, heard = Cluster(), []
    cluster.listen(lambda event, _before, _after: heard.append(event))
    return cluster, heard


def test_the_echo_of_a_write_and_older_versions_are_not_heard():
    cluster, heard = followed()
    for version in ("7", "7", "6", "8"):
        cluster.handle(ClaimSeen(a_claim(resource_version=version)))
        cluster.handle(NodeSeen(a_node(resource_version=version)))
    assert [event.claim.resource_version for event in heard if isinstance(event, ClaimSeen)] == ["7", "8"]
    assert [event.node.resource_version for event in heard if isinstance(event, NodeSeen)] == ["7", "8"]


def test_what_is_gone_does_not_come_back_but_a_namesake_may_come():
    cluster, _ = followed()
    claim, node = a_claim(resource_version="7"), a_node(resource_version="7")
    for event in (ClaimSeen(claim), NodeSeen(node), ClaimGone(claim.name), NodeGone(node.name)):
        cluster.handle(event)
    cluster.handle(ClaimSeen(a_claim(resource_version="8")))
    cluster.handle(NodeSeen(a_node(resource_version="8")))
    assert not cluster.snapshot.claims
    assert not cluster.snapshot.nodes
    cluster.handle(ClaimSeen(a_claim(uid="another", resource_version="3")))
    assert cluster.snapshot.claims
