"""A node may bear the name of one that has just gone: EC2 gives addresses again."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube import ApiError
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimGone, ClaimSeen, NodeGone, NodeSeen
from nodeless.model.instructions import DeleteNode, RemoveFinalizer
from nodeless.model.labels import TERMINATION_FINALIZER
from nodeless.operator.metrics import Metrics
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
    executor = InstructionExecutor(server, None, cluster, None, None, Metrics(), "karpenter")
    asyncio.run(executor.carry_out([RemoveFinalizer("test", kind, name, TERMINATION_FINALIZER)]))
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


class Newcomer:
    """What is under every name now bears the uid `new`; a delete with another uid is refused, as by etcd."""

    def __init__(self):
        self.written = []

    async def get(self, _path):
        return {"metadata": {"uid": "new", "resourceVersion": "7", "finalizers": [TERMINATION_FINALIZER]}}

    async def patch(self, path, _body):
        self.written.append(path)
        return {"metadata": {"uid": "new"}}

    async def delete(self, path, *, uid=None, **_options):
        if uid not in (None, "new"):
            raise ApiError(409, "Conflict", f"the UID in the precondition ({uid}) does not match")
        self.written.append(path)
        return {"kind": "Status"}


def written_for(uid, make):
    cluster, server = Cluster(), Newcomer()
    for seen, *_ in KINDS.values():
        cluster.handle(seen)
    executor = InstructionExecutor(server, None, cluster, None, None, Metrics(), "karpenter")
    asyncio.run(executor.carry_out([make(uid)]))
    return server.written


ENDS = {
    "deletion": lambda uid: DeleteNode("test", "a", uid=uid),
    "finalizer of a node": lambda uid: RemoveFinalizer("test", "Node", "a", TERMINATION_FINALIZER, uid),
    "finalizer of a claim": lambda uid: RemoveFinalizer("test", "NodeClaim", "a", TERMINATION_FINALIZER, uid),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_one_object_is_not_that_of_another_that_has_come_under_its_name(end):
    assert not written_for("old", ENDS[end])
    assert len(written_for("new", ENDS[end])) == 1
