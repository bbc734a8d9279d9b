"""A node may bear the name of one that has just gone: EC2 gives addresses again."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.app.cluster import Cluster
from nodeless.app.hands import Hands
from nodeless.app.metrics import Metrics
from nodeless.model.events import ClaimGone, ClaimSeen, NodeGone, NodeSeen
from nodeless.model.instructions import RemoveFinalizer
from nodeless.model.labels import TERMINATION_FINALIZER
from tests.factories import a_claim, a_node

NODE, CLAIM = a_node("a", uid="old"), a_claim("a", uid="old")
KINDS = {
    "Node": (NodeSeen(NODE), NodeGone(NODE.name), NodeSeen(replace(NODE, uid="new")), NODE.name),
    "NodeClaim": (ClaimSeen(CLAIM), ClaimGone("a"), ClaimSeen(replace(CLAIM, uid="new")), "a"),
}


class Server:
    """Takes the last finalizer off; `meanwhile` is what the watch tells before the answer is read."""

    def __init__(self, cluster, meanwhile):
        self.cluster, self.meanwhile = cluster, meanwhile

    async def get(self, _path):
        return {"metadata": {"resourceVersion": "7", "finalizers": [TERMINATION_FINALIZER]}}

    async def patch(self, _path, _body):
        for event in self.meanwhile:
            self.cluster.handle(event)
        return {"metadata": {"uid": "old", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def finalizer_removed(kind, *, heard):
    """The uids that the cluster knows after a finalizer was removed, and after the newcomer is seen again."""
    seen, gone, newcomer, name = KINDS[kind]
    cluster = Cluster()
    cluster.handle(seen)
    server = Server(cluster, (gone, newcomer) if heard else ())
    hands = Hands(server, None, cluster, None, None, Metrics(), "karpenter")
    asyncio.run(hands.carry_out([RemoveFinalizer("test", kind, name, TERMINATION_FINALIZER)]))
    known = [each.uid for each in (*cluster.snapshot.nodes.values(), *cluster.snapshot.claims.values())]
    cluster.handle(newcomer)
    again = [each.uid for each in (*cluster.snapshot.nodes.values(), *cluster.snapshot.claims.values())]
    return known, again


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_under_the_same_name_before_the_answer_is_read_is_kept(kind):
    assert finalizer_removed(kind, heard=True) == (["new"], ["new"])


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_with_its_last_finalizer_is_known_to_be_gone_at_once(kind):
    assert finalizer_removed(kind, heard=False) == ([], ["new"])
