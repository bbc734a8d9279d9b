"""What guards a write: who it is about, and what was known of it."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.controllers.executor.claim_writes import ClaimWriter
from nodeless.controllers.executor.evictions import Evictions
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.disruption.commands import advance
from nodeless.kube import ApiError
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimSeen, NodeSeen
from nodeless.model.instructions import DeletePod, EvictPod, UpdateNode
from nodeless.model.nodes import Condition
from nodeless.model.taints import DISRUPTED, Taint
from nodeless.operator.metrics import Metrics
from tests.disruption.world import a_provisioner, cluster, node_of
from tests.factories import NOW, a_claim, a_node


class Server:
    """Notes what it is asked to write, and gives it back."""

    def __init__(self):
        self.asked = []

    async def create(self, path, body):
        self.asked.append((path, body))
        return body

    async def delete(self, path, **options):
        self.asked.append((path, options))

    async def patch(self, path, body, **_):
        self.asked.append((path, body))
        name = path.removesuffix("/status").split("/")[-1]
        return {**body, "metadata": {**body["metadata"], "name": name, "uid": "u"}}


class Silent:
    """A recorder that nobody listens to."""

    def publish(self, _event):
        return True


def evicting(*instructions, times=1, wait=10.0):
    server = Server()

    async def carry_out():
        evictions = Evictions(server, Silent(), Metrics(), None, lambda: None, longest_wait=wait)
        for _ in range(times):
            await evictions.carry_out(instructions)

    asyncio.run(carry_out())
    return server.asked


def test_an_eviction_is_of_the_pod_that_was_seen_and_of_no_namesake():
    (asked,) = evicting(EvictPod("test", "shop", "web-0", uid="uid-7", node_name="node"))
    path, body = asked
    assert path == "/api/v1/namespaces/shop/pods/web-0/eviction"
    assert body["deleteOptions"] == {"preconditions": {"uid": "uid-7"}}


def test_an_eviction_that_was_granted_is_not_asked_for_again_before_it_can_be_seen():
    """The API server grants it once more while the pod ends, and each counts."""
    first, second = (EvictPod("test", "shop", name, uid=f"uid-{name}", node_name="node") for name in "ab")
    assert [path.split("/")[-2] for path, _ in evicting(first, second, times=3)] == ["a", "b"]


def test_a_pod_that_was_deleted_is_not_deleted_again_before_it_can_be_seen():
    deletion = DeletePod("test", "shop", "a", "uid-a", 3, "node")
    assert len(evicting(deletion, times=3)) == 1
    assert len(evicting(EvictPod("test", "shop", "a", "uid-a", "node"), deletion)) == 2


def test_an_eviction_that_is_never_seen_is_asked_for_again():
    """A pod of the same uid that is still there then did not begin to end."""
    assert len(evicting(EvictPod("test", "shop", "a", uid="uid-a", node_name="node"), times=3, wait=0.0)) == 3


def test_a_pod_is_deleted_past_its_drain_s_end_only_when_it_is_the_one_that_was_seen():
    (asked,) = evicting(DeletePod("test", "shop", "web-0", "uid-7", 3, "node"))
    assert asked == ("/api/v1/namespaces/shop/pods/web-0", {"uid": "uid-7", "grace_seconds": 3})


def test_conditions_are_written_onto_the_claim_as_it_was_read():
    cluster, server = Cluster(), Server()
    claim = replace(a_claim("a", uid="u"), resource_version="41")
    cluster.handle(ClaimSeen(claim))
    writer = ClaimWriter(server, cluster)
    launched = (Condition("Launched", "True", "Launched", "", 1.0),)
    asyncio.run(writer.set_conditions("a", launched))
    asyncio.run(writer.show_conditions(claim, launched))
    assert [body["metadata"]["resourceVersion"] for _, body in server.asked] == ["41", "41"]


def test_taints_are_written_onto_the_node_as_it_was_read_and_labels_onto_any():
    cluster, server = Cluster(), Server()
    node = replace(a_node("a", uid="u"), resource_version="41")
    cluster.handle(NodeSeen(node))
    executor = InstructionExecutor(server, None, cluster, None, None, Metrics(), "karpenter")
    tainted = UpdateNode("test", node.name, taints=(Taint("key", "NoSchedule"),), taints_before=())
    asyncio.run(executor.carry_out([tainted, UpdateNode("test", node.name, labels={"one": "two"})]))
    (_, taints), (_, labels) = server.asked
    assert taints["metadata"]["resourceVersion"] == "41"
    assert "resourceVersion" not in labels["metadata"]


OWN, USERS = Taint("dedicated", "NoSchedule", "web"), Taint("maintenance", "NoSchedule")


def unmarking(*taints_now):
    """Take the mark off a node that has other taints by then; what the API server is asked to write."""
    decided = cluster(a_provisioner(), node_of(a_provisioner(), "a", node={"taints": (OWN, DISRUPTED)}))
    node = decided.nodes["node-a"]
    known, server = Cluster(), Server()
    known.handle(NodeSeen(replace(node, resource_version="41")))
    known.handle(NodeSeen(replace(node, taints=taints_now, resource_version="42")))
    executor = InstructionExecutor(server, None, known, None, None, Metrics(), "karpenter")
    asyncio.run(executor.carry_out(each for each in advance(decided, NOW) if isinstance(each, UpdateNode)))
    return [body for _, body in server.asked]


@pytest.mark.parametrize(
    "taints_now", [(OWN, DISRUPTED, USERS), (DISRUPTED,)], ids=["one was added", "one was removed"]
)
def test_taints_that_somebody_changed_since_the_decision_are_not_written_over(taints_now):
    """The instruction is refused as by a conflict: the next one is made from what there is."""
    with pytest.raises(ApiError) as refused:
        unmarking(*taints_now)
    assert refused.value.status == 409


def test_a_heartbeat_since_the_decision_hinders_no_write_of_taints():
    (body,) = unmarking(OWN, DISRUPTED)
    assert body["metadata"]["resourceVersion"] == "42"
    assert [taint["key"] for taint in body["spec"]["taints"]] == ["dedicated"]
