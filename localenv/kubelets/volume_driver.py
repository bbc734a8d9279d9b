"""The node half of the EBS CSI driver: a node with its daemon says where volumes are and how many fit.

A real kubelet learns this from the driver's socket; here the pod's container stands for it. Volumes are
made by `volume_provisioner`; nothing attaches them.
"""

import logging
import re

from localenv.kubelets.objects import Container, Pod
from localenv.kubernetes import ApiError
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist

log = logging.getLogger(__name__)

DRIVER = "ebs.csi.aws.com"
ZONE = "topology.ebs.csi.aws.com/zone"
#: The driver's container in EKS's manifest.
_CONTAINER = "ebs-plugin"
#: What a Nitro instance has left of 28 attachments beside its root volume and one network interface.
_ATTACHMENTS = 26
_LIMIT = re.compile(r"--volume-attach-limit=(\d+)")


class VolumeDriver:
    """Registers the driver on each node where its daemon comes up."""

    def __init__(self, api: AsyncKubernetesApi) -> None:
        self._api = api

    async def came_up(self, pod: Pod) -> None:
        """Register the driver, when this pod is it."""
        container = next(
            (container for container in pod.spec.containers if container.name == _CONTAINER), None
        )
        if container is None:
            return
        name = pod.spec.nodeName
        node = await persist(lambda: ignoring(self._api.get(f"/api/v1/nodes/{name}"), 404))
        if node is None:
            return
        zone, instance = node["spec"].get("providerID", "").split("/")[-2:]
        try:
            await persist(lambda: self._register(name, node["metadata"]["uid"], instance, container))
            labels = {"metadata": {"labels": {ZONE: zone}}}
            await persist(lambda: ignoring(self._api.patch(f"/api/v1/nodes/{name}", labels), 404))
        except ApiError as error:
            log.warning("node %s: the driver %s does not register: %s", name, DRIVER, error)

    async def _register(self, name: str, uid: str, instance: str, container: Container) -> None:
        driver = {
            "name": DRIVER,
            "nodeID": instance,
            "topologyKeys": [ZONE, "topology.kubernetes.io/zone"],
            "allocatable": {"count": attachments(container)},
        }
        body = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {
                "name": name,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
            },
            "spec": {"drivers": [driver]},
        }
        await self._api.apply(body, path=f"/apis/storage.k8s.io/v1/csinodes/{name}", field_manager="kubelet")


def attachments(container: Container) -> int:
    """Volumes that a node takes: what the driver's arguments say, else what the hardware leaves."""
    found = _LIMIT.search(" ".join([*container.command, *container.args]))
    return int(found[1]) if found else _ATTACHMENTS
