"""Nodes that hold room for capacity buffers: row DN-22, and how they are consolidated."""

from nodeless.disruption.simulation import with_buffers
from nodeless.model import events
from nodeless.model.buffers import CapacityBuffer, PodSource
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND
from nodeless.model.requirements import Requirements
from nodeless.scheduling import Policy
from nodeless.state import apply
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import FAMILY, needs, pods

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
CHUNK = PodSource("PodTemplate", "default", "chunk", pods(1, "1")[0].shape)


def with_buffer(seen, replicas):
    buffer = CapacityBuffer("default", "spare", source=CHUNK.key, source_kind=CHUNK.kind, replicas=replicas)
    for event in (events.PodSourceSeen(CHUNK), events.CapacityBufferSeen(buffer)):
        seen = apply(seen, event)
    return seen


def test_dn_22_a_node_with_only_placeholders_is_not_emptied_until_the_buffer_is_gone():
    seen = with_buffer(cluster(POOL, node_of(POOL, "a", "medium")), replicas=1)
    assert not decide(seen).commands
    gone = apply(seen, events.CapacityBufferGone("default/spare"))
    assert only_command(decide(gone)).reason == "Empty"


def test_a_node_that_is_too_large_for_the_room_it_holds_is_replaced():
    seen = with_buffer(cluster(POOL, node_of(POOL, "a", "2xlarge")), replicas=1)
    command = only_command(decide(seen))
    assert command.reason == "Underutilized"
    assert [node.instance_type for node in command.replacements] == ["medium"]


def test_room_that_other_nodes_have_frees_the_node_that_holds_it():
    seen = with_buffer(
        cluster(POOL, node_of(POOL, "a", "medium"), node_of(POOL, "b", "large"), on("b", cpu="1")), replicas=1
    )
    assert only_command(decide(seen)).claims == ("a",)


def test_what_a_buffer_lacks_holds_no_move_back():
    seen = with_buffer(cluster(POOL, node_of(POOL, "a", "large"), on("a"), node_of(POOL, "b")), replicas=0)
    assert only_command(decide(seen)).claims == ("b",)


def test_pods_that_wait_go_on_waiting_beside_the_room_of_a_buffer():
    """Only the room of the buffer is where it would be; kube-scheduler has not bound the pod yet."""
    seen = with_buffer(cluster(POOL, node_of(POOL, "a", "2xlarge"), pods(1, name="waits")), replicas=1)
    placed = with_buffers(seen, dict.fromkeys(seen.pools, FAMILY), Policy())
    assert {pod.node_name for pod in placed.pods.values() if pod.shape.placeholder} == {"node-a"}
    assert [pod.node_name for pod in placed.pods.values() if not pod.shape.placeholder] == [""]
