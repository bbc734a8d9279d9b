"""What the simulated kubelets make of changes that reach them all at once, as under load."""

import asyncio
from datetime import UTC, datetime

import pytest

from localenv.kubelets.addresses import AddressPool
from localenv.kubelets.objects import Container, Pod, PodSpec, PodStatus
from localenv.kubelets.pods import Pods
from localenv.kubelets.registry import ManagedNode, Registry
from localenv.kubernetes import ApiError
from localenv.kubernetes.aio import AsyncKubernetesApi
from localenv.kubernetes.reflector import Metadata


class NothingExecuted:
    """No pod is run as a process."""

    def wants(self, pod):
        return False


class Recorded(AsyncKubernetesApi):
    """An API server that says yes; what was asked of it, and what the node held as a status was written."""

    def __init__(self):
        self.asked = []
        self.node = ManagedNode("n", "10.0.0.1", "10.0.0.0/24", {"cpu": 1000, "pods": 10})
        self.held = None

    async def patch(self, path, body, **others):
        self.asked.append((path, body["status"]["phase"]))
        self.held = dict(self.node.held)
        return {}

    async def delete(self, path, **others):
        self.asked.append((path, "deleted"))
        return {}


class Gone(AsyncKubernetesApi):
    """An API server that has none of the pods any more."""

    def __init__(self):
        pass

    async def patch(self, path, body, **others):
        raise ApiError("PATCH", path, 404, "")


def test_a_pod_that_is_gone_before_its_start_begins_holds_nothing_of_its_node():
    pod = Pod(Metadata("web", "default", uid="1"), PodSpec(containers=[Container("main")], nodeName="n"))

    async def seen_and_gone():
        registry = Registry(Gone())
        pods = Pods(Gone(), registry, NothingExecuted(), AddressPool(), start_seconds=0.0, stop_seconds=0.0)
        node = ManagedNode("n", "10.0.0.1", "10.0.0.0/24", {"cpu": 1000, "pods": 10})
        registry.add(node)
        pods.look(pod)
        pods._handle_gone(pod)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        return node.held

    assert asyncio.run(seen_and_gone()) == {}


@pytest.mark.parametrize(
    ("phase", "restart_policy", "last"),
    [
        pytest.param("Running", "Always", "Succeeded", id="a server is asked to end"),
        pytest.param("Running", "Never", "Failed", id="a Job's pod is ended before its work is done"),
        pytest.param("Pending", "Always", "Failed", id="a pod has never run"),
    ],
)
def test_how_a_deleted_pod_ended_is_said_before_it_goes(phase, restart_policy, last):
    deleted = Metadata("web", "default", uid="1", deletionTimestamp=datetime.now(UTC))
    spec = PodSpec(containers=[Container("main")], nodeName="n", restartPolicy=restart_policy)
    api = Recorded()

    async def ended():
        registry = Registry(api)
        pods = Pods(api, registry, NothingExecuted(), AddressPool(), start_seconds=0.0, stop_seconds=0.0)
        registry.add(api.node)
        api.node.held["1"] = {"cpu": 1000}
        pods.look(Pod(deleted, spec, PodStatus(phase=phase)))
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    asyncio.run(ended())
    path = "/api/v1/namespaces/default/pods/web"
    assert api.asked == [(f"{path}/status", last), (path, "deleted")]
    assert api.held == {}, "kube-scheduler gives its room away as soon as it reads this"


def test_a_pod_that_ends_by_itself_holds_nothing_any_more_once_it_is_said():
    sleeping = Container("main", command=["sleep", "0"])
    spec = PodSpec(containers=[sleeping], nodeName="n", restartPolicy="Never")
    api = Recorded()

    async def ended():
        registry = Registry(api)
        pods = Pods(api, registry, NothingExecuted(), AddressPool(), start_seconds=0.0, stop_seconds=0.0)
        registry.add(api.node)
        pods.look(Pod(Metadata("job", "default", uid="1"), spec, PodStatus()))
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    asyncio.run(ended())
    assert [said for _, said in api.asked] == ["Running", "Succeeded"]
    assert api.held == {}
