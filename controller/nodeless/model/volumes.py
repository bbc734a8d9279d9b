"""Persistent volumes, the claims on them, their classes, and what a node can attach."""

from dataclasses import dataclass

from nodeless.model.pods import NodeSelectorTerm

#: Binding mode of a class whose volumes are made only once a pod has a node.
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
_ATTACHMENTS = "attachable-volumes-csi-"


def attachments(driver: str) -> str:
    """The resource that counts volumes of a CSI driver on a node (kube-scheduler's name of it)."""
    return _ATTACHMENTS + driver


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """A PersistentVolumeClaim."""

    namespace: str
    name: str
    storage_class: str | None = None
    """None: the default class; empty: none, only a volume that exists will do."""
    volume_name: str = ""
    bound: bool = False
    """The control plane has completed the binding to `volume_name`."""
    phase: str = "Pending"
    one_pod: bool = False
    """Its access modes have `ReadWriteOncePod`: only one pod at a time may use it."""
    deletion_timestamp: float | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume."""

    name: str
    driver: str = ""
    """CSI driver that attaches it; empty for volumes that are not attached (NFS and the like)."""
    terms: tuple[NodeSelectorTerm, ...] = ()
    """Alternatives: where it can be reached; none: everywhere."""
    storage_class: str = ""
    deletion_timestamp: float | None = None


@dataclass(frozen=True, slots=True)
class StorageClass:
    name: str
    driver: str = ""
    """CSI driver that makes its volumes."""
    binding_mode: str = "Immediate"
    terms: tuple[NodeSelectorTerm, ...] = ()
    """Alternatives: where its volumes may be made; none: anywhere."""
    default: bool = False
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """A PersistentVolume attached to a node (`storage.k8s.io` VolumeAttachment)."""

    name: str
    node_name: str
    volume: str
    """Name of the PersistentVolume; empty for one that stands in a pod's spec."""


@dataclass(frozen=True, slots=True)
class CsiNode:
    """What the CSI drivers of a node say (`storage.k8s.io` CSINode)."""

    name: str
    """Of the node."""
    limits: tuple[tuple[str, int | None], ...] = ()
    """(driver, volumes that it can attach to the node); None: no limit."""
