"""From the documents to the model: claims on volumes, volumes, their classes, CSI nodes.

Drivers that were once part of Kubernetes go by the CSI driver that took their place
(https://kubernetes.io/docs/concepts/storage/volumes/#csi-migration).
"""

import msgspec

from nodeless.api.times import parse_time
from nodeless.kube import storage_documents as documents
from nodeless.kube.decoding import selector_term
from nodeless.model.labels import HOSTNAME, REGION, ZONE, canonical_key
from nodeless.model.pods import NodeSelectorTerm
from nodeless.model.requirements import IN, Requirement
from nodeless.model.volumes import CsiNode, PersistentVolumeClaim, StorageClass, Volume, VolumeAttachment

EBS_DRIVER = "ebs.csi.aws.com"
_TRANSLATED = {"kubernetes.io/aws-ebs": EBS_DRIVER}
_ONE_POD = "ReadWriteOncePod"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
#: Separates the zones in a volume's zone label.
_ZONES_SEPARATOR = "__"

_CLAIM = msgspec.json.Decoder(documents.VolumeClaim)
_VOLUME = msgspec.json.Decoder(documents.Volume)
_CLASS = msgspec.json.Decoder(documents.StorageClass)
_ATTACHMENT = msgspec.json.Decoder(documents.VolumeAttachment)
_CSI_NODE = msgspec.json.Decoder(documents.CsiNode)


def decode_volume_claim(raw: bytes) -> PersistentVolumeClaim:
    """A PersistentVolumeClaim from its JSON. Raises msgspec.DecodeError."""
    document = _CLAIM.decode(raw)
    metadata, spec = document.metadata, document.spec
    return PersistentVolumeClaim(
        namespace=metadata.namespace,
        name=metadata.name,
        storage_class=spec.storageClassName,
        volume_name=spec.volumeName,
        bound=bool(spec.volumeName) and _BIND_COMPLETED in metadata.annotations,
        phase=document.status.phase,
        one_pod=_ONE_POD in (spec.accessModes or ()),
        deletion_timestamp=_time(metadata.deletionTimestamp),
    )


def decode_volume(raw: bytes) -> Volume:
    """A PersistentVolume from its JSON; where only a host can reach it, that host is not asked for."""
    document = _VOLUME.decode(raw)
    metadata, spec = document.metadata, document.spec
    required = spec.nodeAffinity.required if spec.nodeAffinity is not None else None
    terms = [selector_term(term) for term in required.nodeSelectorTerms] if required is not None else []
    if spec.local is not None or spec.hostPath is not None:
        terms = [_without_host(term) for term in terms]
    labeled = _zone_labels(metadata.labels)
    if labeled:
        terms = [
            NodeSelectorTerm((*term.expressions, *labeled), term.match_fields)
            for term in terms or [NodeSelectorTerm(())]
        ]
    return Volume(
        name=metadata.name,
        driver=_driver_of(spec),
        terms=tuple(terms),
        storage_class=spec.storageClassName,
        deletion_timestamp=_time(metadata.deletionTimestamp),
    )


def decode_storage_class(raw: bytes) -> StorageClass:
    """A StorageClass from its JSON."""
    document = _CLASS.decode(raw)
    metadata = document.metadata
    return StorageClass(
        name=metadata.name,
        driver=_TRANSLATED.get(document.provisioner, document.provisioner),
        binding_mode=document.volumeBindingMode,
        terms=tuple(
            NodeSelectorTerm(
                tuple(
                    Requirement.of(match_label_expression.key, IN, match_label_expression.values)
                    for match_label_expression in term.matchLabelExpressions
                )
            )
            for term in document.allowedTopologies
        ),
        default=any(metadata.annotations.get(name) == "true" for name in _DEFAULT_CLASS),
        created_at=_time(metadata.creationTimestamp) or 0.0,
    )


def decode_attachment(raw: bytes) -> VolumeAttachment:
    """A VolumeAttachment from its JSON. Raises msgspec.DecodeError."""
    document = _ATTACHMENT.decode(raw)
    spec = document.spec
    return VolumeAttachment(document.metadata.name, spec.nodeName, spec.source.persistentVolumeName or "")


def decode_csi_node(raw: bytes) -> CsiNode:
    """A CSINode from its JSON; a driver without a count has no limit."""
    document = _CSI_NODE.decode(raw)
    return CsiNode(
        document.metadata.name,
        tuple(
            (driver.name, driver.allocatable.count if driver.allocatable is not None else None)
            for driver in document.spec.drivers or ()
        ),
    )


def _driver_of(spec: documents.VolumeSpec) -> str:
    if spec.csi is not None:
        return spec.csi.driver
    return EBS_DRIVER if spec.awsElasticBlockStore is not None else ""


def _without_host(term: NodeSelectorTerm) -> NodeSelectorTerm:
    """A local volume's host may be gone for good; its pod would wait for it for ever."""
    return NodeSelectorTerm(
        tuple(expression for expression in term.expressions if expression.key != HOSTNAME), term.match_fields
    )


def _zone_labels(labels: dict[str, str]) -> tuple[Requirement, ...]:
    """Zone and region of a volume that says them by label (kube-scheduler's plugin VolumeZone)."""
    return tuple(
        Requirement.of(key, IN, value.split(_ZONES_SEPARATOR))
        for key, value in sorted(labels.items())
        if canonical_key(key) in (ZONE, REGION)
    )


def _time(text: str | None) -> float | None:
    return None if text is None else parse_time(text)
