"""The parts of storage objects that we read, as msgspec structs; field names are the API's."""

import msgspec

from nodeless.kube.documents import ClaimSpec, Metadata, NodeSelector


class ClaimStatus(msgspec.Struct):
    phase: str = "Pending"


class VolumeClaim(msgspec.Struct):
    metadata: Metadata
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class CsiSource(msgspec.Struct):
    driver: str = ""


class VolumeNodeAffinity(msgspec.Struct):
    required: NodeSelector | None = None


class VolumeSpec(msgspec.Struct):
    csi: CsiSource | None = None
    awsElasticBlockStore: dict[str, object] | None = None
    local: dict[str, object] | None = None
    hostPath: dict[str, object] | None = None
    storageClassName: str = ""
    nodeAffinity: VolumeNodeAffinity | None = None


class Volume(msgspec.Struct):
    metadata: Metadata
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)


class TopologyExpression(msgspec.Struct):
    key: str
    values: list[str] = []


class TopologyTerm(msgspec.Struct):
    matchLabelExpressions: list[TopologyExpression] = []


class StorageClass(msgspec.Struct):
    metadata: Metadata
    provisioner: str = ""
    volumeBindingMode: str = "Immediate"
    allowedTopologies: list[TopologyTerm] = []


class AttachmentSource(msgspec.Struct):
    persistentVolumeName: str | None = None


class AttachmentSpec(msgspec.Struct):
    nodeName: str = ""
    source: AttachmentSource = msgspec.field(default_factory=AttachmentSource)


class VolumeAttachment(msgspec.Struct):
    metadata: Metadata
    spec: AttachmentSpec = msgspec.field(default_factory=AttachmentSpec)


class DriverResources(msgspec.Struct):
    count: int | None = None


class CsiDriver(msgspec.Struct):
    name: str
    allocatable: DriverResources | None = None


class CsiNodeSpec(msgspec.Struct):
    drivers: list[CsiDriver] | None = None


class CsiNode(msgspec.Struct):
    metadata: Metadata
    spec: CsiNodeSpec = msgspec.field(default_factory=CsiNodeSpec)
