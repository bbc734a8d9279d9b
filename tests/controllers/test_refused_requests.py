"""What is refused for one pod of a drain concerns that pod alone: it is retried, and the rest goes on."""

import asyncio
from math import inf
from types import SimpleNamespace

import pytest

from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.kube.leader_election import NotLeadingError
from nodeless.model.instructions import (
    CheckInstance,
    DeletePod,
    EvictPod,
    RequestCheckpoint,
    RestartDeployment,
)
from nodeless.operator.event_reasons import undeclared_reason
from nodeless.operator.metrics import Metrics
from tests.factories import NOW
from tests.virtual_time import run_in_virtual_time

EVICTION = EvictPod("claim:a", "shop", "held", "uid-held", "node-a")
DELETION = DeletePod("claim:a", "shop", "held", "uid-held", 3, "node-a")
RESTART = RestartDeployment("claim:a", "shop", "held", "held", "uid-held", "node-a")
CHECKPOINT = RequestCheckpoint("claim:a", "shop", "held", "uid-held", "node-a", NOW, NOW + 1, NOW + 601)
REQUESTS = [EVICTION, DELETION, RESTART, CHECKPOINT]
OTHER = EvictPod("claim:a", "shop", "small", "uid-small", "node-a")
CHECK = CheckInstance("claim:a", "a", "i-a")


def each_request(test):
    return pytest.mark.parametrize("asked", REQUESTS, ids=lambda each: type(each).__name__)(test)


class World:
    """An executor whose API server fails for one pod until a moment."""

    def __init__(self, error, until=inf):
        self.error, self.until, self.published, self.metrics = error, until, [], Metrics()
        #: When something was asked for which pod (or its Deployment).
        self.asked = []
        self.found = []
        server = SimpleNamespace(create=self._answer, delete=self._answer, patch=self._answer)
        cloud = SimpleNamespace(find=self._find)
        recorder = SimpleNamespace(publish=self._publish)
        self.executor = InstructionExecutor(
            server, cloud, Cluster(), None, recorder, self.metrics, "karpenter"
        )

    async def _answer(self, path, *_arguments, **_options):
        name = path.split("/shop/")[1].split("/")[1]
        now = asyncio.get_running_loop().time()
        self.asked.append((now, name))
        if name == "held" and now < self.until:
            raise self.error
        return {}

    async def _find(self, instance_id):
        self.found.append(instance_id)
        return instance_id

    def _publish(self, event):
        assert not undeclared_reason(event)
        self.published.append(event)
        return True

    def carry_out(self, *instructions, at=(0.0,)):
        async def scenario():
            for moment in at:
                await asyncio.sleep(moment - asyncio.get_running_loop().time())
                await self.executor.carry_out(instructions)

        run_in_virtual_time(scenario())

    def reasons(self, name):
        return [event.reason for event in self.published if event.name == name]


@each_request
@pytest.mark.parametrize("status", [400, 422, 500, 504])
def test_the_rest_of_a_step_is_carried_out_when_a_request_for_one_pod_is_refused(asked, status):
    world = World(ApiError(status, "Refused", 'admission webhook "guard" said no'))
    world.carry_out(asked, OTHER, CHECK)
    assert [name for _, name in world.asked] == ["held", "small"]
    assert world.reasons("small") == ["Evicted"]
    assert world.found == ["i-a"]


@pytest.mark.parametrize("asked", [EVICTION, DELETION], ids=["eviction", "deletion"])
def test_an_eviction_and_a_deletion_may_be_forbidden_for_one_pod(asked):
    """As by Kubernetes' own handler when a budget has too many disrupted pods."""
    world = World(ApiError(403, "Forbidden", "DisruptedPods map too big"))
    world.carry_out(asked, OTHER, CHECK)
    assert world.reasons("small") == ["Evicted"]
    assert world.found == ["i-a"]


@each_request
def test_what_was_refused_and_why_is_told_on_the_node_in_the_log_and_counted(capsys, asked):
    world = World(ApiError(422, "Invalid", 'admission webhook "guard" said no'))
    world.carry_out(asked)
    (event,) = (event for event in world.published if event.reason == "FailedDraining")
    assert (event.kind, event.name, event.type) == ("Node", "node-a", "Warning")
    assert "shop/held" in event.message
    assert event.message.endswith(': 422 Invalid: admission webhook "guard" said no')
    assert event.message in capsys.readouterr().out
    assert 'nodeless_unit_failures_total{unit="pod\'s drain"} 1.0' in world.metrics.render().decode()


@pytest.mark.parametrize("status", [429, 500])
def test_an_eviction_that_budgets_refuse_is_no_failure(status):
    world = World(ApiError(status, "", "a budget"))
    world.carry_out(EVICTION)
    assert "FailedDraining" in world.reasons("node-a")
    assert "pod's drain" not in world.metrics.render().decode()


@each_request
def test_a_refused_request_is_made_again_after_a_wait_that_grows_and_then_carried_out(asked):
    world = World(ApiError(422, "Invalid", "no"), until=0.8)
    world.carry_out(asked, at=(0.0, 0.05, 0.11, 0.2, 0.32, 0.8))
    assert [at for at, _ in world.asked] == pytest.approx([0.0, 0.11, 0.32, 0.8])
    assert set(world.reasons("held")) <= {"Evicted", "Disrupted", "Surging", "CheckpointRequested"}
    assert world.reasons("held")


@each_request
@pytest.mark.parametrize(
    "error", [ApiUnavailable("no answer"), NotLeadingError("another leads"), KeyError("metadata")], ids=repr
)
def test_a_silent_server_a_lost_lease_and_a_defect_are_not_one_pod_s_fault(asked, error):
    world = World(error)
    with pytest.raises(type(error)):
        world.carry_out(asked, CHECK)
    assert world.found == []


def test_a_pod_that_cannot_be_told_to_save_its_work_by_a_condition_is_told_by_an_event_alone():
    """Its time counts from the beginning of the drain then: nothing waits for it for ever."""
    world = World(ApiError(422, "Invalid", "no"))
    world.carry_out(CHECKPOINT, at=range(3))
    assert "CheckpointRequested" in world.reasons("held")
    assert not world.executor.checkpoints.refused
    world = World(ApiError(422, "Invalid", "no"))
    world.carry_out(CHECKPOINT, at=range(30))
    assert world.executor.checkpoints.refused == {"uid-held"}
    assert "FailedConsistencyCheck" not in world.reasons("node-a")


@pytest.mark.parametrize("asked", [EVICTION, DELETION, RESTART], ids=lambda each: type(each).__name__)
def test_a_node_of_which_a_pod_is_refused_for_long_fails_a_consistency_check(asked):
    world = World(ApiError(422, "Invalid", "no"))
    world.carry_out(asked, at=range(30))
    assert "FailedConsistencyCheck" in world.reasons("node-a")
