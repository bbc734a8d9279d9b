"""Fargate's scheduler: a pod that a profile claimed gets a node of its own.

It watches the pods whose scheduler is `fargate-scheduler` (the webhook wrote that), makes the micro-VM's
Node, binds the pod through the binding API, and removes the Node with the pod. Running the pod is `pods` and
`execution`.
"""

import asyncio
import logging
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from localenv.kubelets.addresses import AddressPool
from localenv.kubelets.capacity import DEFAULT_DISK, fargate_size
from localenv.kubelets.clock import timestamp
from localenv.kubelets.cloud import Cloud
from localenv.kubelets.cluster import Cluster
from localenv.kubelets.events import publish_warning
from localenv.kubelets.fargate_profiles import COMPUTE_TYPE, PROFILE_KEY, SCHEDULER, unsupported_fields
from localenv.kubelets.nodes import addresses, conditions, node_info, resources_as_json
from localenv.kubelets.objects import Node, Pod, pod_requests
from localenv.kubelets.pods import PODS_PATH
from localenv.kubelets.quantities import Resources, parse_quantity, parse_resources
from localenv.kubelets.registry import ManagedNode, Registry, Tasks
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist
from localenv.kubernetes.reflector import Reflector

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
_HELD_POD = "eks.amazonaws.com/pod"


class Fargate:
    """Pods of Fargate profiles and their nodes.

    Args:
        boot_seconds: from the pod's creation to its node.
    """

    def __init__(
        self,
        api: AsyncKubernetesApi,
        cloud: Cloud,
        cluster: Cluster,
        registry: Registry,
        *,
        nodes: Reflector[Node],
        pool: AddressPool,
        boot_seconds: float,
    ) -> None:
        self._api = api
        self._cloud = cloud
        self._cluster = cluster
        self._registry = registry
        self._nodes = nodes
        self._pool = pool
        self._boot_seconds = boot_seconds
        self._next_subnet = 0
        self._tasks = Tasks()
        self._placing: dict[str, asyncio.Task[None]] = {}
        self.claimed = Reflector(
            api,
            PODS_PATH,
            Pod,
            field_selector=f"spec.schedulerName={SCHEDULER}",
            on_change=self._look,
            on_delete=self._handle_gone,
        )

    def adopt(self) -> None:
        """Take charge again of the nodes that an earlier simulator made; remove those without a pod."""
        bound = {pod.spec.nodeName for pod in self.claimed if pod.spec.nodeName}
        for node in self._nodes:
            if node.metadata.labels.get(COMPUTE_TYPE) != "fargate":
                continue
            name = node.metadata.name
            if name in bound:
                ip = ".".join(name.removeprefix("fargate-ip-").partition(".")[0].split("-"))
                self._join(name, ip, parse_resources(node.status.allocatable))
                self._registry.beat(name)
            elif name not in self._registry:
                self._tasks.start(self._delete_node(name), f"deletion of {name}")

    def _look(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if pod.spec.nodeName or pod.metadata.deletionTimestamp is not None or uid in self._placing:
            return
        self._placing[uid] = self._tasks.start(self._place(pod), f"placing of {pod.path}")

    def _handle_gone(self, pod: Pod) -> None:
        if task := self._placing.pop(pod.metadata.uid, None):
            task.cancel()
        if pod.spec.nodeName:
            self._registry.remove(pod.spec.nodeName)
            self._tasks.start(self._delete_node(pod.spec.nodeName), f"deletion of {pod.spec.nodeName}")

    async def _delete_node(self, name: str) -> None:
        await persist(lambda: ignoring(self._api.delete(f"/api/v1/nodes/{name}"), 404))

    async def _place(self, pod: Pod) -> None:
        document = await persist(lambda: ignoring(self._api.get(pod.path), 404))
        if document is None:
            return
        if refused := unsupported_fields(document):
            await self._refuse(
                pod, f"Pod not supported on Fargate: fields not supported: {', '.join(refused)}"
            )
            return
        try:
            vcpu, memory = fargate_size(pod_requests(pod))
        except ValueError as error:
            await self._refuse(pod, f"Pod not supported on Fargate: {error}")
            return
        await asyncio.sleep(self._boot_seconds)
        cidr, zone = await self._subnet(pod)
        ip = self._pool.take(cidr)
        name = f"fargate-ip-{ip.replace('.', '-')}.{self._cloud.region}.compute.internal"
        size: Resources = {
            "cpu": vcpu,
            "memory": memory,
            "ephemeral-storage": DEFAULT_DISK,
            "pods": parse_quantity(1),
        }
        body = _node(name, ip, zone, region=self._cloud.region, size=size, uid=pod.metadata.uid)
        self._join(name, ip, size)
        await persist(lambda: ignoring(self._api.create(body, path="/api/v1/nodes"), 409))
        self._registry.beat(name)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": pod.metadata.name,
                "namespace": pod.metadata.namespace,
                "uid": pod.metadata.uid,
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": name},
        }
        path = f"{pod.path}/binding"
        bound = await persist(lambda: ignoring(self._api.create(binding, path=path), 404, 409))
        if bound is None:
            self._registry.remove(name)
            await self._delete_node(name)
            return
        log.info("pod %s runs on Fargate node %s", pod.path, name)

    def _join(self, name: str, ip: str, size: Resources) -> None:
        self._pool.hold(ip)
        self._registry.add(ManagedNode(name=name, ip=ip, cidr="", allocatable=size, fargate=True))

    async def _subnet(self, pod: Pod) -> tuple[str, str]:
        """Return CIDR and zone of the profile's next subnet, waiting for one to exist."""
        wanted = pod.metadata.labels.get(PROFILE_KEY, "")
        while True:
            profile = self._cluster.profiles.get(wanted)
            subnets = profile.subnets if profile else ()
            if subnets:
                self._next_subnet += 1
                try:
                    return await self._cloud.subnet(subnets[self._next_subnet % len(subnets)])
                except (ClientError, BotoCoreError) as error:
                    log.warning("Fargate profile %s: %s", wanted, error)
            else:
                log.warning("pod %s waits: Fargate profile %r has no subnets", pod.path, wanted)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _refuse(self, pod: Pod, message: str) -> None:
        log.warning("%s: %s", pod.path, message)
        await publish_warning(
            self._api, pod, "FailedScheduling", message, component=SCHEDULER, action="Scheduling"
        )


def _node(name: str, ip: str, zone: str, *, region: str, size: Resources, uid: str) -> dict[str, Any]:
    machine = uid.replace("-", "")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_HELD_POD: uid},
            "labels": {
                COMPUTE_TYPE: "fargate",
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": zone,
                "topology.kubernetes.io/region": region,
                "failure-domain.beta.kubernetes.io/zone": zone,
                "failure-domain.beta.kubernetes.io/region": region,
            },
        },
        "spec": {
            "providerID": f"aws:///{zone}/{machine[:10]}-{machine}/{name}",
            "taints": [{"key": COMPUTE_TYPE, "value": "fargate", "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": resources_as_json(size),
            "allocatable": resources_as_json(size),
            "addresses": addresses(ip, name),
            "conditions": conditions(timestamp(), ready=True),
            "nodeInfo": node_info("amd64", "Amazon Linux 2023", machine),
        },
    }
