"""The nodes whose kubelet this process is, and their heartbeats.

Shared by `instances` and `fargate`, which add and remove nodes, and by `pods`, which runs pods on them.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from localenv.kubelets.clock import micro_timestamp
from localenv.kubelets.quantities import Resources
from localenv.kubernetes import ApiError, ApiUnreachable
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist

log = logging.getLogger(__name__)

LEASE_SECONDS = 40
_HEARTBEAT_SECONDS = 10.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass
class ManagedNode:
    """One node of ours.

    Attributes:
        cidr: subnet that its pods' addresses come from.
        held: what each admitted pod holds, by uid.
    """

    name: str
    ip: str
    cidr: str
    allocatable: Resources
    fargate: bool = False
    held: dict[str, Resources] = field(default_factory=dict)


async def _do_nothing(_name: str) -> None:
    """What a heartbeat does besides, unless told otherwise."""


class Registry:
    """Nodes of ours by name."""

    def __init__(self, api: AsyncKubernetesApi) -> None:
        self._api = api
        self._nodes: dict[str, ManagedNode] = {}
        self._beats: dict[str, asyncio.Task[None]] = {}
        #: Called with a node's name when its pods may be looked at.
        self.on_added: Callable[[str], None] = lambda name: None
        #: Awaited with a node's name at each of its heartbeats.
        self.on_beat: Callable[[str], Awaitable[None]] = _do_nothing

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def get(self, name: str) -> ManagedNode | None:
        return self._nodes.get(name)

    def add(self, node: ManagedNode) -> None:
        """Take charge of a node. Do so before posting it: daemon pods are bound before the reply is read."""
        self._nodes[node.name] = node
        self.on_added(node.name)

    def remove(self, name: str) -> None:
        """Stop being its kubelet."""
        self._nodes.pop(name, None)
        self.silence(name)

    def beat(self, name: str) -> None:
        """Renew the node's lease from now on."""
        if name not in self._beats:
            self._beats[name] = asyncio.create_task(self._renew(name))

    def silence(self, name: str) -> None:
        """Stop the heartbeats: the instance stopped or is gone."""
        if task := self._beats.pop(name, None):
            task.cancel()

    async def _renew(self, name: str) -> None:
        await persist(lambda: self._create_lease(name))
        await asyncio.sleep(random.uniform(0, _HEARTBEAT_SECONDS))
        while True:
            try:
                renewal = {"spec": {"renewTime": micro_timestamp(), "holderIdentity": name}}
                await self._api.patch(f"{_LEASES}/{name}", renewal)
                await self.on_beat(name)
            except ApiError as error:
                if error.status == 404:
                    await persist(lambda: self._create_lease(name))
                else:
                    log.warning("heartbeat of %s: %s", name, error)
            except ApiUnreachable as error:
                log.info("heartbeat of %s: %r", name, error)
            await asyncio.sleep(_HEARTBEAT_SECONDS)

    async def _create_lease(self, name: str) -> None:
        """Its Node owns the lease, so that it goes with it; where there is no Node, there is none either."""
        node = await ignoring(self._api.get(f"/api/v1/nodes/{name}"), 404)
        if node is not None:
            await ignoring(self._api.create(_lease(name, node["metadata"]["uid"]), path=_LEASES), 409)


def _lease(name: str, uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": "kube-node-lease",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
        },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": micro_timestamp(),
        },
    }


class Tasks:
    """Background tasks that are kept alive and whose failures are logged."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=what)
        self._running.add(task)
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)
