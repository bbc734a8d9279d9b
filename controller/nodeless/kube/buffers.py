"""Capacity buffers and what they may name: PodTemplates and workloads of group `apps`."""

from collections.abc import Callable

import msgspec

from nodeless.api.reading_parts import conditions_of
from nodeless.api.times import parse_time
from nodeless.kube import documents
from nodeless.kube.decoding import shape_of
from nodeless.kube.reflector import Watched
from nodeless.model import events
from nodeless.model.buffers import (
    ACTIVE_CAPACITY,
    API_VERSION,
    POD_TEMPLATE,
    SCALABLE_KINDS,
    CapacityBuffer,
    PodSource,
)
from nodeless.model.labels import GANG_SIZE, LOST_WORK
from nodeless.model.resources import parse_resources

#: Where buffers are served.
BUFFERS = f"/apis/{API_VERSION}/capacitybuffers"
_APPS = "apps"
#: By these a pod says how much work an interruption loses, and of how many pods.
_LOST_WORK = (LOST_WORK, GANG_SIZE)
_BUFFER = msgspec.json.Decoder(documents.CapacityBuffer)
_TEMPLATE = msgspec.json.Decoder(documents.PodTemplateObject)
_SCALABLE = msgspec.json.Decoder(documents.Scalable)
Decoded = tuple[str, tuple[events.Event, ...]]


def watched_buffers() -> tuple[Watched, ...]:
    """What room for capacity buffers depends on; a cluster may do without the definition."""
    return (
        Watched("capacitybuffers", BUFFERS, _buffer, events.CapacityBufferGone, optional=True),
        watched_templates(),
        *(
            Watched(
                f"{kind.lower()}s",
                f"/apis/{_APPS}/v1/{kind.lower()}s",
                _scalable_decoder(kind),
                events.PodSourceGone,
            )
            for kind in SCALABLE_KINDS
        ),
    )


def watched_templates() -> Watched:
    """PodTemplates, which capacity buffers and provisioning requests may name."""
    return Watched("podtemplates", "/api/v1/podtemplates", _template, events.PodSourceGone)


def decode_buffer(raw: bytes) -> CapacityBuffer:
    """A buffer from its JSON. Raises msgspec.DecodeError, QuantityError."""
    document = _BUFFER.decode(raw)
    metadata, spec = document.metadata, document.spec
    manifest = msgspec.json.decode(raw)
    kind, name = _reference_of(spec)
    known = kind in (POD_TEMPLATE, *SCALABLE_KINDS) and name
    status = {name: value for name, value in (manifest.get("status") or {}).items() if name != "conditions"}
    return CapacityBuffer(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        source=f"{kind}/{metadata.namespace}/{name}" if known else "",
        source_kind=kind,
        strategy=spec.provisioningStrategy or ACTIVE_CAPACITY,
        replicas=spec.replicas,
        percentage=spec.percentage,
        limits=parse_resources(spec.limits),
        created_at=parse_time(metadata.creationTimestamp) if metadata.creationTimestamp else 0.0,
        deletion_timestamp=parse_time(metadata.deletionTimestamp) if metadata.deletionTimestamp else None,
        conditions=conditions_of(manifest),
        reported=status,
    )


def _reference_of(spec: documents.CapacityBufferSpec) -> tuple[str, str]:
    """Kind and name of what a buffer names; the kind with its group where it is none that we know."""
    if spec.podTemplateRef is not None:
        return POD_TEMPLATE, spec.podTemplateRef.name
    if spec.scalableRef is None:
        return "", ""
    reference = spec.scalableRef
    if reference.apiGroup == _APPS and reference.kind in SCALABLE_KINDS:
        return reference.kind, reference.name
    return f"{reference.kind}.{reference.apiGroup}".rstrip("."), reference.name


def _buffer(raw: bytes) -> Decoded:
    buffer = decode_buffer(raw)
    return buffer.key, (events.CapacityBufferSeen(buffer),)


def _template(raw: bytes) -> Decoded:
    document = _TEMPLATE.decode(raw)
    return _source_event(POD_TEMPLATE, document.metadata, document.template, 0)


def _scalable_decoder(kind: str) -> Callable[[bytes], Decoded]:
    def decode(raw: bytes) -> Decoded:
        document = _SCALABLE.decode(raw)
        return _source_event(kind, document.metadata, document.spec.template, document.spec.replicas)

    return decode


def _source_event(
    kind: str, metadata: documents.Metadata, template: documents.SourceTemplate, replicas: int
) -> Decoded:
    source = PodSource(
        kind,
        metadata.namespace,
        metadata.name,
        shape_of(template.spec, labels=template.metadata.labels),
        template.metadata.labels,
        replicas,
        metadata.generation,
        {key: value for key, value in template.metadata.annotations.items() if key in _LOST_WORK},
    )
    return source.key, (events.PodSourceSeen(source),)
