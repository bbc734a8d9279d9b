"""What an earlier controller has learned of nodes outlives an API server that does not answer at first."""

import asyncio
from types import SimpleNamespace

import pytest

from nodeless.controllers.nodeclaim.measured_capacity import MeasuredCapacity
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.model.events import NodeSeen
from nodeless.model.labels import INITIALIZED, INSTANCE_AMI_ID, INSTANCE_TYPE
from nodeless.model.memory_observations import MemoryObservations
from nodeless.model.nodes import Node
from nodeless.operator.clock import wall_clock
from tests.virtual_time import run_in_virtual_time

LABELS = {INSTANCE_TYPE: "m5.large", INSTANCE_AMI_ID: "ami-1", INITIALIZED: "true"}
NODE = Node("a", labels=LABELS, capacity={"memory": 8_000_000_000})


class Server:
    """Fails the first reads; gives the ConfigMap of an earlier controller then, and takes in another one."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.data = {"m5.xlarge_ami-1": f"16000000000 {int(wall_clock())}"}
        self.written = asyncio.Event()

    async def get(self, _path):
        if self.failures:
            raise self.failures.pop(0)
        return {"data": self.data}

    async def patch(self, _path, body):
        merged = {**self.data, **body["data"]}
        self.data = {key: value for key, value in merged.items() if value is not None}
        self.written.set()


class Cloud:
    known = MemoryObservations()

    def record_memory_overhead(self, measured):
        self.known = measured


@pytest.mark.parametrize(
    "failures",
    [[], [ApiError(503, "", "no leader")], [ApiUnavailable("no route"), ApiError(429, "", "too many")]],
    ids=["at once", "later", "much later"],
)
def test_what_was_kept_is_known_and_stays_beside_what_is_seen_before_it_can_be_read(failures):
    async def scenario():
        server, cloud, cluster = Server(*failures), Cloud(), Cluster()
        keeper = MeasuredCapacity(server, cluster, cloud, "karpenter")
        running = asyncio.create_task(keeper.run())
        cluster.handle(NodeSeen(NODE))
        await server.written.wait()
        running.cancel()
        return SimpleNamespace(kept=sorted(server.data), known=sorted(cloud.known.sights))

    after = run_in_virtual_time(scenario())
    assert after.kept == ["m5.large_ami-1", "m5.xlarge_ami-1"]
    assert after.known == [("m5.large", "ami-1"), ("m5.xlarge", "ami-1")]
