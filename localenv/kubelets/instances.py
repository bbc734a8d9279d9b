"""EC2 instances become Nodes, and Nodes go with their instances: kubelet and cloud-controller-manager in one.

An instance is due at its launch time plus the boot time, so a restarted simulator decides alike. What keeps
an instance out is what keeps a real one out: no bootstrap in its user data, another cluster, a wrong CA,
labels that the kubelet refuses, a role that the cluster does not know. Each reason is logged once. A Node
that is deleted while its instance runs stays deleted: kubelets register at start only. A node that was taken
for lost is Ready again at its next heartbeat; a rebooted one comes back with another boot id. Next: `pods`.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from http.client import HTTPException
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from localenv.certificates import same_certificates
from localenv.kubelets.authorization import Authorization
from localenv.kubelets.bootstrap import Bootstrap, UserDataError
from localenv.kubelets.capacity import DEFAULT_DISK, instance_store
from localenv.kubelets.clock import timestamp
from localenv.kubelets.cloud import Cloud
from localenv.kubelets.cluster import Cluster
from localenv.kubelets.device_drivers import DeviceDrivers
from localenv.kubelets.nodes import (
    UNINITIALIZED,
    Instance,
    boot_id,
    cloud_labels,
    conditions,
    registration,
)
from localenv.kubelets.objects import Node
from localenv.kubelets.pods import Pods
from localenv.kubelets.quantities import parse_resources
from localenv.kubelets.registry import ManagedNode, Registry, Tasks
from localenv.kubelets.user_data import parse_user_data
from localenv.kubernetes import ApiError
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist
from localenv.kubernetes.reflector import Reflector

T = TypeVar("T")

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.3
#: So many times as long as a poll took is the next one waited for: a tenth of a core in a large cluster.
_PAUSE = 9
#: However long a poll took: an AWS that stood still for a minute is asked again soon.
_LONGEST_PAUSE = 5.0
_RETRY_SECONDS = 0.5
_VACANCY_SECONDS = 0.1
_LAST_RETRY_SECONDS = 5.0
#: The reason of conditions that the node lifecycle controller writes when it hears nothing of a kubelet.
_LOST = "NodeStatusUnknown"
#: Where Bottlerocket mounts its data volume.
_DATA_DEVICE = "/dev/xvdb"
#: The part of the time from an instance's launch to a node that is Ready after which its kubelet registers;
#: the rest is for the network plugin. AWS measured 19 s of 30 s, and 20 s of 24 s (README of
#: awslabs/node-latency-for-k8s).
_REGISTERED = 2 / 3
#: States of an instance whose kubelet may run.
_UP = ("pending", "running")
_EMPTY_CIDR = "100.64.0.0/10"
_FAILURES = (ClientError, BotoCoreError)


class Instances:
    """All instances of the local AWS that bootstrap into this cluster."""

    def __init__(
        self,
        api: AsyncKubernetesApi,
        cloud: Cloud,
        cluster: Cluster,
        registry: Registry,
        *,
        nodes: Reflector[Node],
        pods: Pods,
        drivers: DeviceDrivers,
        boot_seconds: float,
    ) -> None:
        self._api = api
        self._cloud = cloud
        self._cluster = cluster
        self._authorization = Authorization(api, cloud, cluster)
        self._registry = registry
        self._nodes = nodes
        self._pods = pods
        self._drivers = drivers
        self._boot_seconds = boot_seconds
        self._seen: dict[str, Instance] = {}
        self._boots: dict[str, asyncio.Task[None]] = {}
        self._joined: dict[str, str] = {}
        self._reboots: dict[str, int] = {}
        registry.on_beat = self._sync
        self._tasks = Tasks()

    async def run(self) -> None:
        """Follow the instances for ever; the pause grows with the size of the answer, not with an outage.

        Machines are launched in bursts: who has just seen a new one looks again soon.
        """
        clock = asyncio.get_running_loop().time
        while True:
            begun = clock()
            pause = _POLL_SECONDS
            try:
                if not await self._poll():
                    pause = min(max(pause, _PAUSE * (clock() - begun)), _LONGEST_PAUSE)
            except _FAILURES as error:
                log.warning("DescribeInstances: %s", error)
            except (ApiError, OSError, HTTPException, ValueError) as error:
                log.warning("following instances: %s", error)
            await asyncio.sleep(pause)

    async def _poll(self) -> bool:
        """Look once; whether there are new instances."""
        known_before = len(self._seen)
        current = {instance.id: instance for instance in await self._cloud.instances()}
        for instance in current.values():
            known = self._seen.get(instance.id)
            self._seen[instance.id] = instance
            if known is None:
                self._boots[instance.id] = self._tasks.start(self._boot(instance), f"boot of {instance.id}")
            elif known.state != instance.state and instance.id in self._joined:
                self._follow_state(instance)
        new = len(self._seen) > known_before
        for instance_id in [each for each in self._seen if each not in current]:
            if await self._cloud.is_terminated(instance_id):
                instance = self._seen.pop(instance_id)
                self._tasks.start(self._end(instance), f"end of {instance_id}")
        self._delete_orphans(current)
        for instance_id, number in (await self._cloud.reboots()).items():
            rebooted, name = self._seen.get(instance_id), self._joined.get(instance_id)
            if rebooted is not None and name is not None and self._reboots.get(instance_id, 0) < number:
                self._reboots[instance_id] = number
                work = self._reboot(rebooted, name, number)
                self._boots[instance_id] = self._tasks.start(work, f"reboot of {instance_id}")
        return new

    async def _reboot(self, instance: Instance, name: str, number: int) -> None:
        """Down and up again; a boot fault keeps it down for longer, or for ever."""
        node = self._registry.get(name)
        if node is None:
            return
        log.info("instance %s reboots: kubelet of %s falls silent", instance.id, name)
        self._registry.remove(name)
        await self._say(name, {"conditions": conditions(timestamp(), ready=False)})
        await self._pods.halt(name)
        late, joins = await self._cloud.boot(instance)
        if not joins:
            log.warning("instance %s does not come back from its reboot: fault", instance.id)
            return
        await asyncio.sleep(self._boot_seconds + late)
        self._registry.add(replace(node, held={}))
        self._registry.beat(name)
        back = {"nodeInfo": {"bootID": boot_id(instance.id, number)}}
        await self._say(name, back | {"conditions": conditions(timestamp(), ready=True)})
        log.info("instance %s is back as node %s", instance.id, name)

    async def _say(self, name: str, status: dict[str, Any]) -> None:
        path, body = f"/api/v1/nodes/{name}/status", {"status": status}
        await persist(lambda: ignoring(self._api.patch(path, body, kind="strategic"), 404))

    async def _sync(self, name: str) -> None:
        """A kubelet's heartbeat: what the control plane took for lost while it heard nothing is not."""
        node = self._nodes.get("", name)
        if node is not None and any(condition.reason == _LOST for condition in node.status.conditions):
            log.info("node %s was taken for lost: it is Ready", name)
            await self._say(name, {"conditions": conditions(timestamp(), ready=True)})
        await self._pods.sync(name)

    def _follow_state(self, instance: Instance) -> None:
        name = self._joined[instance.id]
        if instance.state == "running":
            self._registry.beat(name)
        else:
            log.info("instance %s is %s: kubelet of %s falls silent", instance.id, instance.state, name)
            self._registry.silence(name)

    def _delete_orphans(self, current: Mapping[str, Instance]) -> None:
        """Delete Nodes left by instances that ended while nobody looked."""
        if not self._nodes.synced.is_set():
            return
        for node in self._nodes:
            instance_id = node.spec.providerID.rpartition("/")[2]
            known = instance_id in current or instance_id in self._seen
            if instance_id.startswith("i-") and not known and node.metadata.deletionTimestamp is None:
                self._tasks.start(self._delete_orphan(node, instance_id), f"orphan {instance_id}")

    async def _delete_orphan(self, node: Node, instance_id: str) -> None:
        if not await self._cloud.is_terminated(instance_id):
            return
        name, uid = node.metadata.name, node.metadata.uid
        log.info("node %s has lost its instance %s", name, instance_id)
        await persist(lambda: ignoring(self._api.delete(f"/api/v1/nodes/{name}", uid=uid), 404, 409))

    async def _boot(self, instance: Instance) -> None:
        bootstrap = await self._bootstrap(instance)
        if bootstrap is None:
            return
        late, joins = await self._cloud.boot(instance)
        if not joins:
            log.warning("instance %s never joins: fault", instance.id)
            return
        registered_at, ready_at = boot_times(instance.launch_time + late, self._boot_seconds)
        await asyncio.sleep(max(0.0, registered_at - time.time()))
        await self._wait_until_authorized(instance)
        await self._wait_until_vacated(instance)
        record = await _ask_until_answered(lambda: self._cloud.instance_type(instance.type))
        cidr = _EMPTY_CIDR
        if instance.subnet_id:
            cidr = (await _ask_until_answered(lambda: self._cloud.subnet(instance.subnet_id)))[0]
        reboots = (await self._cloud.reboots()).get(instance.id, 0)
        self._reboots[instance.id] = reboots
        disk = await self._disk(instance, bootstrap, record)
        drivers = await self._drivers.installed()
        body = registration(instance, record, bootstrap, reboots, disk, drivers)
        name = instance.private_dns_name
        allocatable = parse_resources(body["status"]["allocatable"])
        self._registry.add(ManagedNode(name=name, ip=instance.private_ip, cidr=cidr, allocatable=allocatable))
        self._joined[instance.id] = name
        await self._register(name, body)
        self._registry.beat(name)
        await self._initialize(name, instance)
        await asyncio.sleep(max(0.0, ready_at - time.time()))
        while self._seen.get(instance.id, instance).state not in _UP:  # noqa: ASYNC110 (its states are polled)
            await asyncio.sleep(_RETRY_SECONDS)
        # The Node may be older than this process, and the boot younger than the Node.
        info = {"nodeInfo": body["status"]["nodeInfo"]}
        await self._say(name, info | {"conditions": conditions(timestamp(), ready=True)})
        log.info("instance %s joined as node %s", instance.id, name)
        if (latest := self._seen.get(instance.id)) is not None and latest.state not in _UP:
            self._follow_state(latest)

    async def _disk(self, instance: Instance, bootstrap: Bootstrap, record: Mapping[str, Any]) -> Decimal:
        """Bytes of the volume where the kubelet keeps what is ephemeral: Bottlerocket has one for data."""
        if bootstrap.instance_store_raid and (inside := instance_store(record)) is not None:
            return inside
        volumes = dict(instance.volumes)
        device = _DATA_DEVICE if bootstrap.family == "Bottlerocket" else instance.root_device
        volume = volumes.get(device) or volumes.get(instance.root_device)
        return DEFAULT_DISK if volume is None else await _ask_until_answered(lambda: self._cloud.disk(volume))

    async def _bootstrap(self, instance: Instance) -> Bootstrap | None:
        try:
            bootstrap = parse_user_data(await _ask_until_answered(lambda: self._cloud.user_data(instance.id)))
            if bootstrap.endpoint is None or bootstrap.certificate_authority is None:
                bootstrap = await self._describe_cluster(bootstrap)
            self._check_destination(bootstrap)
        except (UserDataError, ValueError) as error:
            log.warning("instance %s never joins: %s", instance.id, error)
            return None
        return bootstrap

    async def _describe_cluster(self, bootstrap: Bootstrap) -> Bootstrap:
        record = await _ask_until_answered(lambda: self._cluster.describe_cluster(bootstrap.cluster_name))
        if record is None:
            raise UserDataError(f"eks:DescribeCluster knows no cluster {bootstrap.cluster_name!r}")
        return replace(
            bootstrap,
            endpoint=bootstrap.endpoint or record["endpoint"],
            certificate_authority=bootstrap.certificate_authority or record["certificateAuthority"]["data"],
        )

    def _check_destination(self, bootstrap: Bootstrap) -> None:
        endpoint = bootstrap.endpoint or ""
        if not self._cluster.is_endpoint(endpoint):
            raise UserDataError(f"it bootstraps into {endpoint}, which is another cluster")
        try:
            same = same_certificates(bootstrap.certificate_authority or "", self._api.authority)
        except ValueError as error:
            raise UserDataError(f"its cluster CA is not a certificate: {error}") from None
        if not same:
            raise UserDataError(
                "its cluster CA is not the cluster's; hint: give certificateAuthority.data as it is"
            )

    async def _wait_until_authorized(self, instance: Instance) -> None:
        """Wait until the instance may join, as its kubelet does, with back-off."""
        last, pause = "", _RETRY_SECONDS
        while True:
            latest = self._seen.get(instance.id, instance)  # a profile may be associated after the launch
            try:
                reason = await self._authorization.refusal(latest)
            except (*_FAILURES, ApiError, OSError, ValueError) as error:
                reason = f"asking failed: {error}"
            if reason is None:
                return
            if reason != last:
                log.warning("instance %s is not authorized to join: %s", instance.id, reason)
                last, pause = reason, _RETRY_SECONDS
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LAST_RETRY_SECONDS)

    async def _wait_until_vacated(self, instance: Instance) -> None:
        """Wait until nothing is left of an earlier instance with this address, and so with this name.

        What ends with that one, its Node and its pods, is found by name.
        """
        name, said = instance.private_dns_name, False
        while self._is_taken(name, instance):
            if not said:
                log.info("instance %s waits: node %s is still an earlier instance's", instance.id, name)
                said = True
            await asyncio.sleep(_VACANCY_SECONDS)

    def _is_taken(self, name: str, instance: Instance) -> bool:
        node = self._nodes.get("", name)
        if node is not None and node.spec.providerID != instance.provider_id:
            return True
        return any(each == name and other != instance.id for other, each in self._joined.items())

    async def _register(self, name: str, body: dict[str, Any]) -> None:
        body["status"]["conditions"] = conditions(timestamp(), ready=False)
        while True:
            created = await persist(lambda: ignoring(self._api.create(body, path="/api/v1/nodes"), 409))
            if created is not None:
                return
            existing = await persist(lambda: ignoring(self._api.get(f"/api/v1/nodes/{name}"), 404))
            if existing is not None and existing["spec"].get("providerID") == body["spec"]["providerID"]:
                return
            await asyncio.sleep(_RETRY_SECONDS)  # somebody else made a Node of this name

    async def _initialize(self, name: str, instance: Instance) -> None:
        """Act as the cloud-controller-manager: labels, and the taint goes."""
        path = f"/api/v1/nodes/{name}"
        while True:
            node = await persist(lambda: ignoring(self._api.get(path), 404))
            if node is None:
                return
            # Taints are one atomic list: the version guards against the other writers.
            taints = [taint for taint in node["spec"].get("taints", []) if taint["key"] != UNINITIALIZED]
            patch = {
                "metadata": {
                    "resourceVersion": node["metadata"]["resourceVersion"],
                    "labels": cloud_labels(instance),
                },
                "spec": {"taints": taints},
            }
            if await self._patch(path, patch):
                return

    async def _patch(self, path: str, patch: dict[str, Any]) -> bool:
        try:
            await persist(lambda: self._api.patch(path, patch, kind="strategic"))
        except ApiError as error:
            if error.status == 409:
                return False
            if error.status != 404:
                raise
        return True

    async def _end(self, instance: Instance) -> None:
        if task := self._boots.pop(instance.id, None):
            task.cancel()
        self._reboots.pop(instance.id, None)
        name = self._joined.get(instance.id)
        if name is None:
            return
        log.info("instance %s is terminated: node %s goes", instance.id, name)
        self._registry.remove(name)
        try:
            await persist(lambda: ignoring(self._api.delete(f"/api/v1/nodes/{name}"), 404))
            await self._pods.remove_all(name)
        finally:
            del self._joined[instance.id]

    def node_deleted(self, node: Node) -> None:
        """Take note that a Node object is gone: its pods go too, at once instead of in pod GC's time."""
        name = node.metadata.name
        if name in self._registry:
            self._registry.remove(name)
        self._tasks.start(self._pods.remove_all(name), f"pods of deleted node {name}")


def boot_times(launched: float, seconds: float) -> tuple[float, float]:
    """Return when the kubelet registers its node, and when that is Ready, of a boot that takes so long."""
    return launched + _REGISTERED * seconds, launched + seconds


async def _ask_until_answered(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call of AWS until it answers: a boot script does likewise."""
    while True:
        try:
            return await call()
        except _FAILURES as error:
            log.info("AWS does not answer an instance: %s", error)
        await asyncio.sleep(_RETRY_SECONDS)
