"""The provisioner of the EBS CSI driver: a volume for each claim that asks for one, in the zone of its node.

As the driver's external-provisioner does: for a class that waits for its consumer the scheduler selects the
node, whose zone the driver's daemon has named (`volume_driver`); a node without the driver gets no volume.
The volume is made by EC2's CreateVolume with the driver's tags, and deleted with a claim whose class says so.
Volumes are not attached: pods run beside them, and no VolumeAttachment is made.
"""

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from localenv.kubelets.quantities import parse_quantity
from localenv.kubelets.volume_driver import DRIVER, ZONE
from localenv.kubernetes import ApiError, Object
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring
from localenv.kubernetes.reflector import Metadata, Reflector

log = logging.getLogger(__name__)

_CLAIMS, _VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
_GIB = 2**30
#: Seconds after which what could not be done is tried again.
_RETRY_SECONDS = 2.0


class _Spec(msgspec.Struct, gc=False):
    volumeName: str = ""  # noqa: N815 - the API's name
    storageClassName: str | None = None  # noqa: N815 - the API's name
    persistentVolumeReclaimPolicy: str = ""  # noqa: N815 - the API's name


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class Stored(msgspec.Struct, gc=False):
    """A claim or a volume, as far as the provisioner looks at it."""

    metadata: Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Disks(Protocol):
    """The volumes of EC2."""

    async def make_volume(self, zone: str, gibibytes: int, kind: str, tags: Mapping[str, str]) -> str: ...

    async def delete_volume(self, volume_id: str) -> None: ...


class NoVolumeError(Exception):
    """A claim cannot get its volume now."""


_FAULTS = (
    NoVolumeError,
    ApiError,
    ClientError,
    BotoCoreError,
    OSError,
    KeyError,
    ValueError,
)


class VolumeProvisioner:
    """Makes and deletes volumes until cancelled.

    Attributes:
        reflectors: What it follows; to be run beside it.
    """

    def __init__(self, api: AsyncKubernetesApi, disks: Disks) -> None:
        self._api = api
        self._disks = disks
        self._changed = asyncio.Event()
        self._last_error: dict[str, str] = {}
        self._claims = Reflector(api, _CLAIMS, Stored, on_change=self._look)
        self._volumes = Reflector(api, _VOLUMES, Stored, on_change=self._look)
        self.reflectors = (self._claims, self._volumes)

    def _look(self, _changed: Stored) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Bring each claim and volume on; a fault stays with its object and is tried again."""
        while True:
            self._changed.clear()
            faults = [await self._bring_on(each) for each in (*self._claims, *self._volumes)]
            try:
                async with asyncio.timeout(_RETRY_SECONDS if any(faults) else None):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _bring_on(self, stored: Stored) -> bool:
        """Do what one object needs; whether that failed."""
        uid = stored.metadata.uid
        try:
            if _wants_volume(stored):
                await self._provision(stored)
            elif _is_over(stored):
                await self._delete(stored)
        except _FAULTS as error:
            if self._last_error.get(uid) != str(error):
                log.warning("%s %s: %s", stored.metadata.namespace, stored.metadata.name, error)
            self._last_error[uid] = str(error)
            return True
        self._last_error.pop(uid, None)
        return False

    async def _provision(self, claim: Stored) -> None:
        metadata = claim.metadata
        name = f"pvc-{metadata.uid}"
        if self._volumes.get("", name) is not None:
            return
        kind = await self._api.get(f"/apis/storage.k8s.io/v1/storageclasses/{claim.spec.storageClassName}")
        document = await self._api.get(
            f"/api/v1/namespaces/{metadata.namespace}/persistentvolumeclaims/{metadata.name}"
        )
        zone = await self._zone(metadata.annotations.get(_SELECTED_NODE, ""), kind)
        size = math.ceil(parse_quantity(document["spec"]["resources"]["requests"]["storage"]) / _GIB)
        volume_type = (kind.get("parameters") or {}).get("type") or "gp3"
        volume_id = await self._disks.make_volume(zone, size, volume_type, _tags(metadata, name))
        body = volume_of(name, document, kind, volume_id=volume_id, zone=zone, gibibytes=size)
        await ignoring(self._api.create(body, path=_VOLUMES), 409)

    async def _zone(self, node: str, kind: Object) -> str:
        """Where the volume is to be: in the zone of the selected node, or in any that the class allows."""
        found = await self._api.get("/apis/storage.k8s.io/v1/csinodes")
        names = [each["metadata"]["name"] for each in found["items"] if _has_driver(each)]
        nodes = [await self._api.get(f"/api/v1/nodes/{name}") for name in names if node in ("", name)]
        zones = [each["metadata"]["labels"].get(ZONE, "") for each in nodes]
        allowed = allowed_zones(kind)
        usable = sorted({zone for zone in zones if zone and (allowed is None or zone in allowed)})
        if not usable:
            where = f"node {node}" if node else "any node"
            raise NoVolumeError(f"the driver {DRIVER} names no zone of {where} that the class allows")
        return str(usable[0])

    async def _delete(self, volume: Stored) -> None:
        path = f"{_VOLUMES}/{volume.metadata.name}"
        document = await ignoring(self._api.get(path), 404)
        if document is None:
            return
        await self._disks.delete_volume(document["spec"]["csi"]["volumeHandle"])
        await ignoring(self._api.delete(path), 404)
        others = [each for each in document["metadata"].get("finalizers") or [] if each != _FINALIZER]
        await ignoring(self._api.patch(path, {"metadata": {"finalizers": others}}), 404)


def volume_of(name: str, claim: Object, kind: Object, *, volume_id: str, zone: str, gibibytes: int) -> Object:
    """The PersistentVolume of a claim: bound to it, and to its zone by the driver's label."""
    metadata, wanted = claim["metadata"], claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": {_PROVISIONED_BY: DRIVER},
            "finalizers": [_FINALIZER],
        },
        "spec": {
            "accessModes": wanted["accessModes"],
            "capacity": {"storage": f"{gibibytes}Gi"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")},
            },
            "csi": {
                "driver": DRIVER,
                "volumeHandle": volume_id,
                "fsType": (kind.get("parameters") or {}).get("csi.storage.k8s.io/fstype") or "ext4",
            },
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
                    ]
                }
            },
            "persistentVolumeReclaimPolicy": kind.get("reclaimPolicy") or "Delete",
            "storageClassName": kind["metadata"]["name"],
            "volumeMode": wanted.get("volumeMode") or "Filesystem",
            **({"mountOptions": kind["mountOptions"]} if kind.get("mountOptions") else {}),
        },
    }


def allowed_zones(kind: Object) -> frozenset[str] | None:
    """The zones that a class allows; None: all."""
    terms: Sequence[Mapping[str, Any]] = kind.get("allowedTopologies") or ()
    if not terms:
        return None
    return frozenset(
        zone
        for term in terms
        for each in term.get("matchLabelExpressions") or ()
        if each["key"] in (ZONE, "topology.kubernetes.io/zone")
        for zone in each["values"]
    )


def _wants_volume(stored: Stored) -> bool:
    metadata = stored.metadata
    return (
        metadata.annotations.get(_PROVISIONER) == DRIVER
        and not stored.spec.volumeName
        and metadata.deletionTimestamp is None
    )


def _is_over(stored: Stored) -> bool:
    return (
        stored.metadata.annotations.get(_PROVISIONED_BY) == DRIVER
        and stored.status.phase == "Released"
        and stored.spec.persistentVolumeReclaimPolicy == "Delete"
    )


def _has_driver(csi_node: Object) -> bool:
    return any(each["name"] == DRIVER for each in csi_node["spec"].get("drivers") or ())


def _tags(claim: Metadata, name: str) -> dict[str, str]:
    return {
        "CSIVolumeName": name,
        "ebs.csi.aws.com/cluster": "true",
        "kubernetes.io/created-for/pv/name": name,
        "kubernetes.io/created-for/pvc/name": claim.name,
        "kubernetes.io/created-for/pvc/namespace": claim.namespace,
    }
