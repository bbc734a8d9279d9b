"""Capacity buffers and provisioning requests, what they name, and the nodes that hold their room."""

from dataclasses import replace

from immutables import Map

from nodeless.model import events
from nodeless.model.snapshot import Snapshot
from nodeless.state.entries import delete_key


def apply_buffers(snapshot: Snapshot, event: events.BufferEvent) -> Snapshot:
    """The snapshot after an event about capacity buffers."""
    match event:
        case events.CapacityBufferSeen(buffer):
            return replace(snapshot, capacity_buffers=snapshot.capacity_buffers.set(buffer.key, buffer))
        case events.CapacityBufferGone(key):
            return replace(snapshot, capacity_buffers=delete_key(snapshot.capacity_buffers, key))
        case events.ProvisioningRequestSeen(request):
            requests = snapshot.provisioning_requests.set(request.key, request)
            return replace(snapshot, provisioning_requests=requests)
        case events.ProvisioningRequestGone(key):
            requests = delete_key(snapshot.provisioning_requests, key)
            return replace(snapshot, provisioning_requests=requests)
        case events.PodSourceSeen(source):
            return replace(snapshot, pod_sources=snapshot.pod_sources.set(source.key, source))
        case events.PodSourceGone(key):
            return replace(snapshot, pod_sources=delete_key(snapshot.pod_sources, key))
        case events.BuffersPlaced(nodes):
            return replace(snapshot, buffered=Map(dict.fromkeys(nodes, True)), room_placed=True)
