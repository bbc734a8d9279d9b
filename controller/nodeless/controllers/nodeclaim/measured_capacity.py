"""Learns from nodes that joined what their kind has, and keeps it over restarts in a ConfigMap.

Memory is learned from initialized nodes. A disk that is smaller than planned is learned as soon as its node
is Ready: the pods that it was planned for wait, and the next node would be bought by the same mistake.
"""

import asyncio

from nodeless.cloudprovider import CloudProvider
from nodeless.kube import ApiClient, ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.kube.config_maps import KeptData
from nodeless.model.events import Event, NodeSeen
from nodeless.model.labels import INSTANCE_AMI_ID
from nodeless.model.memory_observations import MemoryObservations, read_observations, write_observations
from nodeless.model.nodes import Node
from nodeless.model.resources import EPHEMERAL_STORAGE, MEMORY
from nodeless.model.snapshot import Snapshot
from nodeless.operator.clock import wall_clock
from nodeless.operator.logs import logger

MEASURED_NAME = "nodeless-measured-capacity"
#: Seconds: after a sight until it is written, for others that come with it; and until another try.
_SETTLE_SECONDS = 2.0
_RETRY_SECONDS = 60.0


class MeasuredCapacity:
    """Watches nodes and tells the cloud; one write for many sights."""

    def __init__(self, client: ApiClient, cluster: Cluster, cloud: CloudProvider, namespace: str) -> None:
        self._kept = KeptData(client, namespace, MEASURED_NAME)
        self._cloud = cloud
        self._measured = MemoryObservations()
        self._changed = asyncio.Event()
        self._log = logger("measured")
        cluster.listen(self._on_event)

    def _on_event(self, event: Event, _before: Snapshot, after: Snapshot) -> None:
        if isinstance(event, NodeSeen):
            self._observe_memory(event.node)
            self._observe_disk(event.node, after)

    def _observe_disk(self, node: Node, snapshot: Snapshot) -> None:
        claim = snapshot.claim_of(node)
        seen = node.capacity.get(EPHEMERAL_STORAGE, 0)
        if claim is None or not (node.ready and seen > 0 and claim.image_id):
            return
        planned = claim.capacity.get(EPHEMERAL_STORAGE, 0)
        self._record(self._measured.observe_disk(claim.image_id, planned, seen, wall_clock()))

    def _observe_memory(self, node: Node) -> None:
        image, memory = node.labels.get(INSTANCE_AMI_ID, ""), node.capacity.get(MEMORY, 0)
        # An instance that was never initialized may still be about to find its memory.
        if not (node.initialized and node.instance_type and image and memory > 0):
            return
        self._record(self._measured.observe(node.instance_type, image, memory, wall_clock()))

    def _record(self, measured: MemoryObservations) -> None:
        if measured is not self._measured:
            self._measured = measured
            self._cloud.record_memory_overhead(measured)
            self._changed.set()

    async def run(self) -> None:
        """Read what is kept, then write what is new, until cancelled."""
        said = ""
        # What is written takes the place of what is kept.
        while problem := await self._read():
            if problem != said:
                self._log.warning(f"measured capacity cannot be read, trying again: {problem}")
                said = problem
            await asyncio.sleep(_RETRY_SECONDS)
        while True:
            await self._changed.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
            self._changed.clear()
            try:
                await self._kept.write(write_observations(self._measured))
            except (ApiError, ApiUnavailable) as error:
                self._log.warning(f"measured capacity is not saved yet: {error}")
                self._changed.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def _read(self) -> str:
        """Take over what is kept; gives back why it cannot be read, or nothing."""
        try:
            data = await self._kept.read()
        except (ApiError, ApiUnavailable) as error:
            return str(error)
        if data is None:
            return ""
        kept = read_observations(data, wall_clock())
        for (instance_type, image), (memory, seen) in self._measured.sights.items():
            kept = kept.observe(instance_type, image, memory, seen)
        for (image, planned), (had, seen) in self._measured.disks.items():
            kept = kept.observe_disk(image, planned, had, seen)
        self._record(kept)
        return ""
