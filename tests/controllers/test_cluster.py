"""Answers to our own writes and the watch tell the same story; whoever comes second is not heard."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodeless.kube.cluster import Cluster
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
        cluster.handle(NodeSeen(a_node(resource_version=version, unschedulable=version == "8")))
    assert [event.claim.resource_version for event in heard if isinstance(event, ClaimSeen)] == ["7", "8"]
    assert [event.node.resource_version for event in heard if isinstance(event, NodeSeen)] == ["7", "8"]


def test_a_kubelet_that_says_the_same_again_changes_nothing_but_the_version_that_writes_name():
    cluster, heard = followed()
    node = a_node(resource_version="7")
    cluster.handle(NodeSeen(node))
    still = cluster.snapshot
    for version in ("8", "9", "8"):
        cluster.handle(NodeSeen(replace(node, resource_version=version)))
    assert cluster.snapshot is still
    assert heard == [NodeSeen(node)]
    assert cluster.newest(node).resource_version == "9"
    late = replace(node, resource_version="8", ready=not node.ready)
    cluster.handle(NodeSeen(late))
    assert cluster.snapshot is still
    news = replace(late, resource_version="10")
    cluster.handle(NodeSeen(news))
    assert heard == [NodeSeen(node), NodeSeen(news)]
    assert cluster.newest(cluster.snapshot.nodes[node.name]) == news


def test_a_node_that_comes_again_under_its_name_has_its_own_version():
    cluster, _ = followed()
    node = a_node(resource_version="7")
    for each in (node, replace(node, resource_version="9")):
        cluster.handle(NodeSeen(each))
    cluster.handle(NodeGone(node.name))
    again = a_node(uid="another", resource_version="3")
    cluster.handle(NodeSeen(again))
    assert cluster.newest(again).resource_version == "3"


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


def test_an_end_that_no_watch_told_of_is_told_when_a_namesake_comes():
    """As after a watch that could not be resumed: the list has the new object alone."""
    cluster, heard = followed()
    claim, node = a_claim(resource_version="7"), a_node(resource_version="7")
    new_claim, new_node = (
        a_claim(uid="another", resource_version="9"),
        a_node(uid="another", resource_version="9"),
    )
    for event in (ClaimSeen(claim), NodeSeen(node), ClaimSeen(new_claim), NodeSeen(new_node)):
        cluster.handle(event)
    assert heard[2:] == [ClaimGone(claim.name), ClaimSeen(new_claim), NodeGone(node.name), NodeSeen(new_node)]
    for late in (ClaimSeen(claim), NodeSeen(node)):
        cluster.handle(late)
    assert cluster.snapshot.claims[claim.name] == new_claim
    assert cluster.snapshot.nodes[node.name] == new_node


def versions(number):
    """So many versions of a node and of its claim, oldest first."""
    return [
        event
        for version in range(1, number + 1)
        for event in (
            NodeSeen(a_node("a", uid="node-uid", resource_version=str(version))),
            ClaimSeen(a_claim("a", uid="claim-uid", resource_version=str(version))),
        )
    ]


@given(st.data())
def test_news_that_come_twice_and_in_any_order_end_in_the_newest(data):
    every = versions(4)
    repeated = data.draw(st.lists(st.sampled_from(every), max_size=8))
    cluster = Cluster()
    for event in data.draw(st.permutations([*every, *repeated])):
        cluster.handle(event)
    assert {cluster.newest(each).resource_version for each in cluster.snapshot.nodes.values()} == {"4"}
    assert cluster.snapshot.claims["a"].resource_version == "4"


@given(st.data())
def test_a_claim_that_is_gone_is_not_brought_back_by_late_news(data):
    every = versions(3)
    cluster = Cluster()
    for event in every:
        cluster.handle(event)
    cluster.handle(ClaimGone("a"))
    for event in data.draw(st.permutations(every)):
        cluster.handle(event)
    assert "a" not in cluster.snapshot.claims
