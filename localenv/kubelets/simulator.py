"""All parts of the simulated data plane, started in order and followed until told to end.

Order: the proxy first (the API server may call webhooks of the cluster at once), then the collections, then
    the webhook, then what acts. A file `ready` in the directory says that all of it stands, and by how
    much the addresses of its pods are shifted.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localenv.kubelets.addresses import AddressPool, reserved_network
from localenv.kubelets.cloud import Cloud
from localenv.kubelets.cluster import Cluster
from localenv.kubelets.device_drivers import DeviceDrivers
from localenv.kubelets.execution import Executor
from localenv.kubelets.fargate import Fargate
from localenv.kubelets.instances import Instances
from localenv.kubelets.objects import Node, Pod, ServiceAccount
from localenv.kubelets.pod_identity_agent import PodIdentityAgent
from localenv.kubelets.pods import Pods
from localenv.kubelets.registry import Registry
from localenv.kubelets.service_proxy import ServiceProxy
from localenv.kubelets.volume_driver import VolumeDriver
from localenv.kubelets.volume_provisioner import VolumeProvisioner
from localenv.kubelets.webhook import Webhook
from localenv.kubernetes.aio import AsyncKubernetesApi
from localenv.kubernetes.reflector import Reflector

log = logging.getLogger(__name__)

READY_FILE = "ready"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment decides; times in seconds.

    Attributes:
        boot_seconds: from an instance's launch to a node that is Ready; it registers after two thirds.
        pod_start_seconds: from a pod's binding to Running, for pods that are not executed.
        pod_stop_seconds: the longest that such a pod takes to end.
        executed_images: repositories whose containers are executed.
    """

    kubeconfig: Path
    aws_endpoint: str
    region: str
    directory: Path
    proxy_socket: Path
    boot_seconds: float = 2.0
    fargate_boot_seconds: float = 1.0
    pod_start_seconds: float = 0.2
    pod_stop_seconds: float = 1.0
    executed_images: Sequence[str] = ()


async def simulate(settings: Settings) -> None:
    """Run until cancelled."""
    with reserved_network() as shift:
        log.info("pods are reached on this machine in 127.0.0.0/8, second octet plus %d", shift)
        await _simulate(settings, shift)


async def _simulate(settings: Settings, shift: int) -> None:
    api = AsyncKubernetesApi.from_kubeconfig(settings.kubeconfig)
    cloud = Cloud(settings.aws_endpoint, settings.region)
    cluster = Cluster(cloud, api.endpoint)
    registry = Registry(api)
    addresses = AddressPool()
    executor = Executor(api, registry, settings.directory, settings.executed_images)
    pods = Pods(
        api,
        registry,
        executor,
        addresses,
        start_seconds=settings.pod_start_seconds,
        stop_seconds=settings.pod_stop_seconds,
    )
    volumes, drivers = VolumeDriver(api), DeviceDrivers(api, cloud)

    async def came_up(pod: Pod) -> None:
        await volumes.came_up(pod)
        await drivers.came_up(pod)

    pods.on_running, pods.on_gone, pods.prepare = came_up, drivers.gone, drivers.prepare
    # The nodes report their deletions to `instances`, which is made after them.
    nodes: Reflector[Node] = Reflector(
        api,
        "/api/v1/nodes",
        Node,
        on_delete=lambda node: instances.node_deleted(node),  # noqa: PLW0108 - bound later
    )
    instances = Instances(
        api,
        cloud,
        cluster,
        registry,
        nodes=nodes,
        pods=pods,
        drivers=drivers,
        boot_seconds=settings.boot_seconds,
    )
    fargate = Fargate(
        api, cloud, cluster, registry, nodes=nodes, pool=addresses, boot_seconds=settings.fargate_boot_seconds
    )
    accounts = Reflector(api, "/api/v1/serviceaccounts", ServiceAccount)
    proxy = ServiceProxy(api, settings.proxy_socket)
    agent = PodIdentityAgent(cloud, cluster)
    webhook = Webhook(api, cluster, accounts, agent, settings.region, settings.directory)
    provisioner = VolumeProvisioner(api, cloud)
    followed = (nodes, pods.bound, fargate.claimed, accounts, *provisioner.reflectors)
    reflectors: list[Reflector[Any]] = list(followed)
    await proxy.start()
    try:
        async with asyncio.TaskGroup() as group:
            for reflector in reflectors:
                group.create_task(reflector.run())
            group.create_task(cluster.run())
            for reflector in reflectors:
                await reflector.synced.wait()
            await agent.start()
            await webhook.start()
            fargate.adopt()
            group.create_task(instances.run())
            group.create_task(provisioner.run())
            log.info("ready")
            (settings.directory / READY_FILE).write_text(str(shift))
    finally:
        await executor.stop_all()
        await webhook.stop()
        await agent.stop()
        await proxy.stop()
        await api.close()
