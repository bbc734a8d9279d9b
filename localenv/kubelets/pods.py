"""Pods on simulated nodes: admitted or refused, running after a moment, ended with grace.

Level based: every change of a pod is looked at from the start, so a restarted simulator or API server changes
nothing. Pods whose image is to be executed are handed to `execution`; all others run in name only: their
status says what a kubelet's would.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from localenv.kubelets.addresses import AddressPool
from localenv.kubelets.clock import timestamp
from localenv.kubelets.containers import container_status
from localenv.kubelets.fitting import admit
from localenv.kubelets.objects import ENDED_PHASES, Pod, pod_requests
from localenv.kubelets.registry import ManagedNode, Registry, Tasks
from localenv.kubelets.sleeping import pre_stop_seconds, seconds_to_end
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist
from localenv.kubernetes.reflector import Reflector

log = logging.getLogger(__name__)

PODS_PATH = "/api/v1/pods"
#: From one attempt to get a pod's devices ready to the next.
_PREPARE_SECONDS = 0.5


class Execution(Protocol):
    """Where pods that are really executed go."""

    def wants(self, pod: Pod) -> bool: ...

    async def start(self, pod: Pod, ip: str, host_ip: str) -> None: ...

    async def stop(self, uid: str, grace_seconds: float) -> None: ...

    def say_again(self, uid: str) -> None: ...


class Pods:
    """All pods bound to nodes of ours.

    Args:
        start_seconds: from the binding to Running.
        stop_seconds: the longest that a simulated pod takes to end, whatever its grace period.
    """

    def __init__(
        self,
        api: AsyncKubernetesApi,
        registry: Registry,
        execution: Execution,
        addresses: AddressPool,
        *,
        start_seconds: float,
        stop_seconds: float,
    ) -> None:
        self._api = api
        self._registry = registry
        self._execution = execution
        self._addresses = addresses
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._started: set[str] = set()
        self._stopping: set[str] = set()
        self._due: dict[str, float] = {}
        self._hurried: dict[str, asyncio.Event] = {}
        self._halted: set[str] = set()
        self._doubted: dict[str, dict[str, Pod]] = {}
        self._tasks = Tasks()
        self.on_gone: Callable[[Pod], None] = lambda pod: None
        #: Awaited with each pod whose containers have come up.
        self.on_running: Callable[[Pod], Awaitable[None]] = _do_nothing
        #: Awaited with each pod that claims devices until it says that they are ready for the pod.
        self.prepare: Callable[[Pod], Awaitable[bool]] = _is_ready
        self.bound = Reflector(
            api,
            PODS_PATH,
            Pod,
            field_selector="spec.nodeName!=",
            on_change=self.look,
            on_delete=self._handle_gone,
        )
        registry.on_added = self._rescan

    def look(self, pod: Pod) -> None:
        """Bring one pod on."""
        if pod.status.podIP and not pod.spec.hostNetwork:
            self._addresses.hold(pod.status.podIP)
        uid = pod.metadata.uid
        if pod.doubted:
            self._doubted.setdefault(pod.spec.nodeName, {})[uid] = pod
        else:
            self._doubted.get(pod.spec.nodeName, {}).pop(uid, None)
        node = self._registry.get(pod.spec.nodeName)
        if node is None:
            return
        if pod.ended:
            node.held.pop(uid, None)
        if pod.metadata.deletionTimestamp is not None:
            # Who deletes it again may give it less time, never more.
            self._due[uid] = min(self._due.get(uid, float("inf")), time.monotonic() + self._end_seconds(pod))
            self._hurried.setdefault(uid, asyncio.Event()).set()
            if uid not in self._stopping:
                self._stopping.add(uid)
                self._tasks.start(self._stop(pod), f"end of {pod.path}")
        elif not pod.ended and uid not in self._started:
            self._started.add(uid)
            self._tasks.start(self._start(pod, node), f"start of {pod.path}")

    def _rescan(self, node_name: str) -> None:
        for pod in self.bound:
            if pod.spec.nodeName == node_name:
                self.look(pod)

    async def _start(self, pod: Pod, node: ManagedNode) -> None:
        if pod.metadata.uid not in self._started:
            return  # gone before its turn came: nobody would take back what it holds
        requests = pod_requests(pod)
        executed = self._execution.wants(pod)
        uid, ip = pod.metadata.uid, pod.status.podIP
        if uid in self._halted:
            self._halted.discard(uid)
            node.held[uid] = requests
            if not await self._prepared(pod):
                return
            if executed:
                await self._execution.start(pod, ip, node.ip)
                return
            await asyncio.sleep(self._start_seconds)
            await self._write(pod, running_status(pod, ip, node.ip, restarts=pod.restarts + 1))
            await self._came_up(pod)
            return
        if pod.status.phase == "Running":
            node.held[pod.metadata.uid] = requests
            if executed:
                await self._execution.start(pod, pod.status.podIP, node.ip)
            else:
                await self._came_up(pod)
            return
        others = [held for uid, held in node.held.items() if uid != pod.metadata.uid]
        refused = admit(requests, others, node.allocatable)
        if refused is not None:
            log.warning("node %s refuses %s: %s", node.name, pod.path, refused.message)
            status = {
                "phase": "Failed",
                "reason": refused.reason,
                "message": refused.message,
                "startTime": timestamp(),
            }
            await self._write(pod, status)
            return
        node.held[pod.metadata.uid] = requests
        if not await self._prepared(pod):
            return
        ip = node.ip if pod.spec.hostNetwork or node.fargate else self._addresses.take(node.cidr)
        if executed:
            await self._execution.start(pod, ip, node.ip)
            return
        await asyncio.sleep(self._start_seconds)
        if pod.metadata.uid not in self._stopping:
            await self._write(pod, running_status(pod, ip, node.ip))
            await self._came_up(pod)

    async def _prepared(self, pod: Pod) -> bool:
        """Wait for the devices that a pod claims; False: it ends before."""
        uid = pod.metadata.uid
        while pod.claims_devices and not await self.prepare(pod):
            await asyncio.sleep(_PREPARE_SECONDS)
            if uid not in self._started or uid in self._stopping:
                return False
        return True

    async def _came_up(self, pod: Pod) -> None:
        """What follows once the containers run: others hear of it, and what only sleeps ends."""
        await self.on_running(pod)
        seconds = seconds_to_end(pod)
        if seconds is None:
            return
        began = pod.status.startTime.timestamp() if pod.status.startTime else time.time()
        await asyncio.sleep(max(0.0, began + seconds - time.time()))
        if pod.metadata.uid in self._started and pod.metadata.uid not in self._stopping:
            await self._write(pod, {"phase": "Succeeded", **success_status(pod)})

    async def _until_due(self, uid: str) -> None:
        """Wait for the end of a pod, or until it is gone."""
        while (left := self._due.get(uid, 0.0) - time.monotonic()) > 0:
            hurried = self._hurried[uid]
            hurried.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(hurried.wait(), left)

    def _end_seconds(self, pod: Pod) -> float:
        """Seconds that a simulated pod takes to end: its hooks', and a moment, within its grace period."""
        grace = float(pod.metadata.deletionGracePeriodSeconds or 0)
        return min(grace, pre_stop_seconds(pod) + self._stop_seconds)

    async def _write(self, pod: Pod, status: dict[str, Any]) -> None:
        if status.get("phase") in ENDED_PHASES:
            # As soon as kube-scheduler has read that a pod ended, it gives the room to another one.
            self._give_back_room(pod)
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        path = f"{pod.path}/status"
        await persist(lambda: ignoring(self._api.patch(path, body, kind="strategic"), 404, 409))

    async def _stop(self, pod: Pod) -> None:
        grace = float(pod.metadata.deletionGracePeriodSeconds or 0)
        uid = pod.metadata.uid
        if self._execution.wants(pod):
            await self._execution.stop(uid, grace)
        elif not pod.ended:
            await self._until_due(uid)
        if not pod.ended:
            # Kubelets say how a deleted pod ended before it goes (since Kubernetes 1.27); Jobs wait for that.
            await self._write(pod, {"phase": _last_phase(pod)})
        await self._remove(pod)

    async def _remove(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        await persist(lambda: ignoring(self._api.delete(pod.path, grace_seconds=0, uid=uid), 404, 409))

    async def sync(self, node_name: str) -> None:
        """Say again that pods are ready of which others wrote that they are not: their kubelet knows."""
        for uid, pod in list(self._doubted.get(node_name, {}).items()):
            if pod.metadata.deletionTimestamp is not None or uid in self._halted:
                continue
            if self._execution.wants(pod):
                self._execution.say_again(uid)
            else:
                await self._write(pod, {"conditions": pod_conditions(timestamp(), ready=True)})

    async def halt(self, node_name: str) -> None:
        """Stop the containers of a node that goes down; they start anew once it is added again."""
        for pod in self.bound:
            uid = pod.metadata.uid
            if pod.spec.nodeName != node_name or uid in self._stopping or pod.status.phase != "Running":
                continue
            self._halted.add(uid)
            self._started.discard(uid)
            await self._execution.stop(uid, 0)
            await self._write(pod, {"conditions": pod_conditions(timestamp(), ready=False)})

    async def remove_all(self, node_name: str) -> None:
        """Delete the pods of a node that is gone, without grace."""
        for pod in self.bound:
            if pod.spec.nodeName == node_name:
                await self._execution.stop(pod.metadata.uid, 0)
                await self._remove(pod)

    def _handle_gone(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self._started.discard(uid)
        self._stopping.discard(uid)
        self._due.pop(uid, None)
        if (hurried := self._hurried.pop(uid, None)) is not None:
            hurried.set()
        self._halted.discard(uid)
        self._doubted.get(pod.spec.nodeName, {}).pop(uid, None)
        self._give_back_room(pod)
        if pod.status.podIP and not pod.spec.hostNetwork:
            self._addresses.release(pod.status.podIP)
        if self._execution.wants(pod):
            # Somebody deleted it without grace: the process must not outlive the object.
            self._tasks.start(self._execution.stop(uid, 0), f"end of {pod.path}")
        self.on_gone(pod)

    def _give_back_room(self, pod: Pod) -> None:
        if (node := self._registry.get(pod.spec.nodeName)) is not None:
            node.held.pop(pod.metadata.uid, None)


async def _do_nothing(_pod: Pod) -> None:
    """What follows when a pod runs, unless told otherwise."""


async def _is_ready(_pod: Pod) -> bool:
    """Whether what a pod claims is ready for it, unless told otherwise."""
    return True


def pod_conditions(now: str, *, ready: bool) -> list[dict[str, str]]:
    """Return the conditions that a kubelet writes."""
    states = [
        ("PodReadyToStartContainers", True),
        ("Initialized", True),
        ("Ready", ready),
        ("ContainersReady", ready),
    ]
    return [
        {"type": kind, "status": "True" if holds else "False", "lastTransitionTime": now}
        for kind, holds in states
    ]


def running_status(pod: Pod, ip: str, host_ip: str, restarts: int = 0) -> dict[str, Any]:
    """Return the status of a pod whose containers all run, and are ready as far as they can be."""
    now = timestamp()
    ready = all(container.gets_ready for container in pod.spec.containers)
    running, completed = {"running": {"startedAt": now}}, {"terminated": _completed_status(now)}
    return {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": now,
        "conditions": pod_conditions(now, ready=ready),
        "initContainerStatuses": [
            container_status(each.name, each.image, running if each.restartPolicy == "Always" else completed)
            for each in pod.spec.initContainers
        ],
        "containerStatuses": [
            container_status(each.name, each.image, running, ready=each.gets_ready, restarts=restarts)
            for each in pod.spec.containers
        ],
    }


def success_status(pod: Pod) -> dict[str, Any]:
    """Return what the status of a pod says besides whose containers have ended well."""
    now = timestamp()
    ended = [{"type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}]
    ended += [
        {"type": "ContainersReady", "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
    ]
    return {
        "conditions": ended,
        "containerStatuses": [
            container_status(each.name, each.image, {"terminated": _completed_status(now)}, ready=False)
            for each in pod.spec.containers
        ],
    }


def _last_phase(pod: Pod) -> str:
    """How a deleted pod ends: servers end well when they are asked to, what runs to an end does not."""
    served = pod.status.phase == "Running" and pod.spec.restartPolicy == "Always"
    return "Succeeded" if served else "Failed"


def _completed_status(now: str) -> dict[str, Any]:
    return {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
