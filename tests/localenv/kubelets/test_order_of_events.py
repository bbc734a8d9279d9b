"""What the simulated kubelets make of changes that reach them all at once, as under load."""

import asyncio

from localenv.kubelets.addresses import AddressPool
from localenv.kubelets.objects import Container, Pod, PodSpec
from localenv.kubelets.pods import Pods
from localenv.kubelets.registry import ManagedNode, Registry
from localenv.kubernetes import ApiError
from localenv.kubernetes.aio import AsyncKubernetesApi
from localenv.kubernetes.reflector import Metadata


class NothingExecuted:
    """No pod is run as a process."""

    def wants(self, pod):
        return False


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
