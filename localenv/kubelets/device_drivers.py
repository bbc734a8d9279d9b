"""DRA drivers on nodes: their daemons' pods publish the node's devices, and pods wait for what they claim.

A driver is its container in a pod that runs on the node, as its chart has it; nothing else makes devices
known. Its slices go with the node, and with the driver, as the kubelet deletes them a while after the last
pod of a driver has gone. Before the containers of a pod start, its claims have to be allocated to
it, by drivers that are there: else the pod waits, and an event says why, in the kubelet's words
(`pkg/kubelet/cm/dra`).
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from localenv.kubelets.cloud import Cloud
from localenv.kubelets.devices import (
    CLASSES,
    EFA,
    NEURON,
    NVIDIA,
    Device,
    Hardware,
    find_devices,
    resource_slices,
)
from localenv.kubelets.events import publish_warning
from localenv.kubelets.objects import Container, Pod
from localenv.kubelets.registry import Tasks
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist

log = logging.getLogger(__name__)

_API = "/apis/resource.k8s.io/v1"
#: By driver, its container and the end of its image's repository.
_CONTAINERS = {
    NVIDIA: ("gpus", r"(dra-driver-nvidia-gpu|k8s-dra-driver-gpu)"),
    NEURON: ("", r"neuron-dra-driver"),
    EFA: ("dranet", r"dranet"),
}
#: From the end of a driver's last pod on a node to the end of its slices; a kubelet takes 30.
_WIPING_SECONDS = 1.0
_RETRY_SECONDS = 0.5


class DeviceDrivers:
    """The drivers that run on nodes of ours."""

    def __init__(self, api: AsyncKubernetesApi, cloud: Cloud) -> None:
        self._api = api
        self._cloud = cloud
        self._pods: dict[tuple[str, str], set[str]] = {}
        """By node and driver, uids of the pods that run it there."""
        self._tasks = Tasks()

    async def installed(self) -> frozenset[str]:
        """The drivers whose DeviceClasses the cluster has: no device plugin serves their devices."""
        found = await persist(lambda: self._api.get(f"{_API}/deviceclasses"))
        names = {one["metadata"]["name"] for one in found["items"]}
        return frozenset(driver for driver, name in CLASSES.items() if name in names)

    async def came_up(self, pod: Pod) -> None:
        """Publish what the drivers of a pod find on its node."""
        for driver in drivers_of(pod.spec.containers):
            self._pods.setdefault((pod.spec.nodeName, driver), set()).add(pod.metadata.uid)
            await self._publish(pod.spec.nodeName, driver)

    def gone(self, pod: Pod) -> None:
        """Take note of a pod that is no more; the slices of its drivers follow."""
        for driver in drivers_of(pod.spec.containers):
            key = (pod.spec.nodeName, driver)
            self._pods.get(key, set()).discard(pod.metadata.uid)
            self._tasks.start(self._wipe(*key), f"devices of {driver} on {pod.spec.nodeName}")

    async def prepare(self, pod: Pod) -> bool:
        """Whether all that a pod claims is allocated to it, by drivers of its node; if not, it is told."""
        fault = await persist(lambda: self._fault(pod))
        if fault:
            log.info("node %s does not start %s yet: %s", pod.spec.nodeName, pod.path, fault)
            message = f"Failed to prepare dynamic resources: prepare dynamic resources: {fault}"
            await publish_warning(
                self._api,
                pod,
                "FailedPrepareDynamicResources",
                message,
                component="kubelet",
                action="PrepareDynamicResources",
            )
        return not fault

    async def _publish(self, node_name: str, driver: str) -> None:
        node = await persist(lambda: ignoring(self._api.get(f"/api/v1/nodes/{node_name}"), 404))
        if node is None:
            return
        devices = await self._find(node_name, node["spec"].get("providerID", ""), driver)
        if devices is None:
            log.info("node %s: the driver %s finds no device of its own", node_name, driver)
            return
        for one in resource_slices(driver, node_name, node["metadata"]["uid"], devices):
            path = f"{_API}/resourceslices/{one['metadata']['name']}"

            async def apply(body: dict[str, Any] = one, path: str = path) -> None:
                await self._api.apply(body, path=path, field_manager=driver)

            await persist(apply)
        log.info("node %s: the driver %s publishes %d devices", node_name, driver, len(devices))

    async def _find(self, node_name: str, provider_id: str, driver: str) -> Sequence[Device] | None:
        """What a driver finds in a node's instance; None: nothing that it serves."""
        instance_id = provider_id.rpartition("/")[2]
        while instance_id.startswith("i-"):
            try:
                instance = await self._cloud.instance(instance_id)
                if instance is None:
                    return None
                record = await self._cloud.instance_type(instance.type)
                lost = await self._cloud.lost_devices(instance)
            except (ClientError, BotoCoreError) as error:
                log.info("AWS does not answer a driver: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            hardware = Hardware(node_name, instance.type, record, instance.efa_interfaces)
            found = find_devices(driver, hardware)
            return None if found is None else found[: max(0, len(found) - lost)]
        return None

    async def _wipe(self, node_name: str, driver: str) -> None:
        await asyncio.sleep(_WIPING_SECONDS)
        if self._pods.get((node_name, driver)):
            return  # another pod of it has come up
        self._pods.pop((node_name, driver), None)
        selector = f"spec.nodeName={node_name},spec.driver={driver}"
        found = await persist(
            lambda: self._api.request("GET", f"{_API}/resourceslices", query={"fieldSelector": selector})
        )
        for one in found["items"]:
            path = f"{_API}/resourceslices/{one['metadata']['name']}"

            async def delete(path: str = path) -> None:
                await ignoring(self._api.delete(path), 404)

            await persist(delete)

    async def _fault(self, pod: Pod) -> str:
        """Why a pod's claims are not ready for it; empty: they are."""
        document = await ignoring(self._api.get(pod.path), 404)
        if document is None:
            return ""
        generated = {
            one["name"]: one.get("resourceClaimName")
            for one in document["status"].get("resourceClaimStatuses") or ()
        }
        for named in document["spec"].get("resourceClaims") or ():
            name = named.get("resourceClaimName")
            if name is None:
                if named["name"] not in generated:
                    return (
                        f"pod {pod.metadata.name}: pod claim {named['name']}: the ResourceClaim has not "
                        "been created yet"
                    )
                name = generated[named["name"]]
            if name is not None and (fault := await self._fault_of_claim(pod, name)):
                return fault
        served = document["status"].get("extendedResourceClaimStatus")
        return await self._fault_of_claim(pod, served["resourceClaimName"]) if served else ""

    async def _fault_of_claim(self, pod: Pod, name: str) -> str:
        path = f"{_API}/namespaces/{pod.metadata.namespace}/resourceclaims/{name}"
        claim = await ignoring(self._api.get(path), 404)
        if claim is None:
            return f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
        status = claim.get("status") or {}
        if pod.metadata.uid not in {one["uid"] for one in status.get("reservedFor") or ()}:
            return (
                f"pod {pod.metadata.name} ({pod.metadata.uid}) is not allowed to use ResourceClaim {name} "
                f"({claim['metadata']['uid']})"
            )
        allocation = status.get("allocation")
        if allocation is None:
            return f"ResourceClaim {name}: claim not allocated"
        for one in allocation.get("devices", {}).get("results") or ():
            if not self._pods.get((pod.spec.nodeName, one["driver"])):
                return f"DRA driver {one['driver']} is not registered"
        return ""


def drivers_of(containers: list[Container]) -> list[str]:
    """The drivers that a pod's containers are."""
    return [
        driver
        for driver, (name, repository) in _CONTAINERS.items()
        if any(
            name in ("", container.name) and re.search(rf"(^|/){repository}(:|@|$)", container.image)
            for container in containers
        )
    ]
