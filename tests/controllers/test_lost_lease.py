"""Whoever loses the lease in the middle of many calls makes none of those that are left."""

import asyncio

import pytest
import structlog

from nodeless.cloudprovider.aws import AwsProvider
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube.cluster import Cluster
from nodeless.kube.leader_election import Leadership, NotLeadingError
from nodeless.model.instructions import DeletePod, EvictPod, TerminateEverything
from nodeless.operator.metrics import Metrics
from tests.controllers.test_endings import an_unclaimed_instance
from tests.controllers.world import AWS_SETTINGS, StrictRecorder

pytestmark = pytest.mark.cluster


class LeadingUntil(Leadership):
    """A lease that is lost once a condition holds, and does not come back."""

    def __init__(self, condition):
        self._lost, self._condition = False, condition

    @property
    def leading(self):
        self._lost = self._lost or self._condition()
        return not self._lost


def executor(client, namespace, lost, cloud=None):
    recorder = StrictRecorder(client, "test")
    return InstructionExecutor(client, cloud, Cluster(), LeadingUntil(lost), recorder, Metrics(), namespace)


@pytest.mark.parametrize(
    "asked",
    [
        lambda namespace, name: EvictPod("test", namespace, name, f"uid-{name}", "node"),
        lambda namespace, name: DeletePod("test", namespace, name, f"uid-{name}", 1, "node"),
    ],
    ids=["evictions", "deletions"],
)
def test_no_pod_is_asked_to_leave_after_the_lease_is_lost(on_cluster, namespace, asked):
    async def scenario(client):
        made = executor(client, namespace, lambda: len(answered) >= 10)
        answered, request = [], client.request

        async def counted(*arguments, **options):
            try:
                return await request(*arguments, **options)
            finally:
                answered.append(arguments)

        client.request = counted
        with pytest.raises(NotLeadingError):
            await made.carry_out([asked(namespace, f"pod-{number}") for number in range(120)])
        # Those that were under way by then get their answers: at most fifty at a time.
        assert 10 <= len(answered) < 60

    on_cluster(scenario)


def test_no_instance_is_terminated_after_the_lease_is_lost(on_cluster, namespace, network):
    cloud = AwsProvider(AWS_SETTINGS, structlog.get_logger())

    def living():
        return len(network.instances("pending", "running"))

    async def scenario(client):
        for _ in range(3):
            await asyncio.to_thread(an_unclaimed_instance, network)
        made = executor(client, namespace, lambda: living() < 3, cloud)
        with pytest.raises(NotLeadingError):
            await made.carry_out([TerminateEverything("test")])
        assert living() == 2

    on_cluster(scenario)
