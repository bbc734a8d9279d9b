"""The kinds that the controller watches, and how each becomes events."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nodeless.api import reading
from nodeless.api.errors import problem_of
from nodeless.api.foreign_kinds import is_of_another_provider, is_served_by_others
from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_CLAIM, NODE_POOL, PROVISIONER
from nodeless.api.metadata import Metadata, read_metadata
from nodeless.api.reading_parts import conditions_of
from nodeless.api.times import parse_life_span
from nodeless.kube import documents
from nodeless.kube.decoding import (
    decode_daemon_set,
    decode_namespace,
    decode_node,
    decode_pod,
    outline_pod,
)
from nodeless.kube.devices import watched_devices
from nodeless.kube.disruption import decode_budget
from nodeless.kube.reflector import Watched
from nodeless.kube.storage import (
    decode_attachment,
    decode_csi_node,
    decode_storage_class,
    decode_volume,
    decode_volume_claim,
)
from nodeless.model import events
from nodeless.model.labels import TEARDOWN_DRAIN
from nodeless.model.pools import NodeClass, Pool, Reference

Report = Callable[[dict[str, Any], Exception], None]
"""Told of a user's object that cannot be read, with what is wrong with it."""
Decoded = tuple[str, tuple[events.Event, ...]]
Decode = Callable[[bytes], Decoded]


def watched_kinds(report_invalid: Report, *, container_requests: bool = False) -> tuple[Watched, ...]:
    """Everything that the cluster's snapshot is made of; on demand with what each container requests."""
    return (
        Watched(
            "pods",
            "/api/v1/pods",
            _pod_with_containers if container_requests else _pod,
            events.PodGone,
            broken=_broken_pod,
        ),
        Watched("nodes", "/api/v1/nodes", _node, events.NodeGone),
        Watched("daemonsets", "/apis/apps/v1/daemonsets", _daemon_set, events.DaemonSetGone),
        Watched("namespaces", "/api/v1/namespaces", _namespace, events.NamespaceGone),
        *watched_pools(report_invalid),
        *(
            Watched(
                kind.plural,
                kind.path(),
                _class_decoder(report_invalid),
                events.NodeClassGone,
                broken=lambda _raw, head, problem: _broken_class(head, problem),
                optional=True,
            )
            for kind in (AWS_NODE_TEMPLATE, EC2_NODE_CLASS)
        ),
        Watched(
            "nodeclaims",
            NODE_CLAIM.path(),
            _claim_decoder(report_invalid),
            events.ClaimGone,
            broken=_broken_claim,
        ),
        Watched(
            "poddisruptionbudgets",
            "/apis/policy/v1/poddisruptionbudgets",
            decode_budget,
            events.PodDisruptionBudgetGone,
        ),
        *_storage_kinds(),
        *watched_devices(),
    )


def _storage_kinds() -> tuple[Watched, ...]:
    """What tells where a pod's volumes can be reached, and how many a node can attach."""
    return (
        Watched(
            "persistentvolumeclaims",
            "/api/v1/persistentvolumeclaims",
            _volume_claim,
            events.VolumeClaimGone,
        ),
        Watched("persistentvolumes", "/api/v1/persistentvolumes", _volume, events.VolumeGone),
        Watched(
            "storageclasses",
            "/apis/storage.k8s.io/v1/storageclasses",
            _storage_class,
            events.StorageClassGone,
        ),
        Watched(
            "volumeattachments",
            "/apis/storage.k8s.io/v1/volumeattachments",
            _attachment,
            events.VolumeAttachmentGone,
        ),
        Watched("csinodes", "/apis/storage.k8s.io/v1/csinodes", _csi_node, events.CsiNodeGone),
    )


def watched_pools(report_invalid: Report) -> tuple[Watched, ...]:
    """The pools of both generations alone."""
    return tuple(
        Watched(
            kind.plural,
            kind.path(),
            _pool_decoder(report_invalid),
            events.PoolGone,
            broken=lambda _raw, head, problem: _broken_pool(head, problem),
            optional=True,
        )
        for kind in (PROVISIONER, NODE_POOL)
    )


def _pod(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    pod = decode_pod(raw)
    return pod.key, (events.PodSeen(pod),)


def _pod_with_containers(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    pod = decode_pod(raw, container_requests=True)
    return pod.key, (events.PodSeen(pod),)


def _broken_pod(raw: bytes, _head: Mapping[str, Any], problem: str) -> Decoded:
    pod = outline_pod(raw, problem)
    return pod.key, (events.PodSeen(pod),)


def _node(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    node = decode_node(raw)
    return node.name, (events.NodeSeen(node),)


def _daemon_set(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    daemon_set = decode_daemon_set(raw)
    return daemon_set.key, (events.DaemonSetSeen(daemon_set),)


def _namespace(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    namespace = decode_namespace(raw)
    return namespace.name, (events.NamespaceSeen(namespace),)


def _claim_decoder(report_invalid: Report) -> Decode:
    """A claim that cannot be read is still seen: its instance must not pass for one without a claim.

    One of EKS Auto Mode, or of another provider, is not: it is not ours to carry out.
    """

    def decode(raw: bytes) -> Decoded:
        manifest = msgspec.json.decode(raw)
        if is_of_another_provider(manifest):
            return read_metadata(manifest).name, ()
        claim = reading.read_any_claim(manifest, lambda error: report_invalid(manifest, error))
        return claim.name, (events.ClaimSeen(claim),)

    return decode


def _broken_claim(_raw: bytes, head: Mapping[str, Any], problem: str) -> Decoded:
    claim = reading.read_broken_claim(head, problem)
    return claim.name, (events.ClaimSeen(claim),)


def _volume_claim(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    claim = decode_volume_claim(raw)
    return claim.key, (events.VolumeClaimSeen(claim),)


def _volume(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    volume = decode_volume(raw)
    return volume.name, (events.VolumeSeen(volume),)


def _storage_class(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    storage_class = decode_storage_class(raw)
    return storage_class.name, (events.StorageClassSeen(storage_class),)


def _attachment(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    attachment = decode_attachment(raw)
    return attachment.name, (events.VolumeAttachmentSeen(attachment),)


def _csi_node(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    node = decode_csi_node(raw)
    return node.name, (events.CsiNodeSeen(node),)


def _pool_decoder(report_invalid: Report) -> Decode:
    """An invalid pool is still seen: its nodes stay, and its deletion must still be waited for.

    One of another provider gets no status and no finalizer of ours. That of EKS Auto Mode is known as such.
    """

    def decode(raw: bytes) -> Decoded:
        manifest = msgspec.json.decode(raw)
        if is_served_by_others(manifest):
            other = reading.read_neighbor_pool(manifest)
            return other.key, (events.NeighborPoolSeen(other),)
        if is_of_another_provider(manifest):
            return str(_reference(manifest, read_metadata(manifest))), ()
        try:
            pool, inline_class = reading.read_pool(manifest)
        except Exception as error:  # whatever is wrong with it, it is that pool's trouble alone
            report_invalid(manifest, error)
            return _broken_pool(manifest, problem_of(error))
        return pool.key, (events.PoolSeen(pool, inline_class),)

    return decode


def _broken_pool(manifest: Mapping[str, Any], problem: str) -> Decoded:
    metadata = read_metadata(manifest)
    pool = Pool(
        reference=_reference(manifest, metadata),
        node_class=Reference(AWS_NODE_TEMPLATE.kind, ""),
        generation=metadata.generation,
        deletion_timestamp=metadata.deletion_timestamp,
        finalizers=metadata.finalizers,
        invalid=problem,
        conditions=conditions_of(manifest),
    )
    return pool.key, (events.PoolSeen(pool, None),)


def _class_decoder(report_invalid: Report) -> Decode:
    def decode(raw: bytes) -> Decoded:
        manifest = msgspec.json.decode(raw)
        try:
            node_class = reading.read_node_class(manifest)
        except Exception as error:  # whatever is wrong with it, it is that class' trouble alone
            report_invalid(manifest, error)
            return _broken_class(manifest, problem_of(error))
        return node_class.key, (events.NodeClassSeen(node_class),)

    return decode


def _broken_class(manifest: Mapping[str, Any], problem: str) -> Decoded:
    metadata = read_metadata(manifest)
    node_class = NodeClass(
        reference=_reference(manifest, metadata),
        generation=metadata.generation,
        deletion_timestamp=metadata.deletion_timestamp,
        invalid=problem,
        conditions=conditions_of(manifest),
        finalizers=tuple(metadata.finalizers),
    )
    return node_class.key, (events.NodeClassSeen(node_class),)


def _reference(manifest: Mapping[str, Any], metadata: Metadata) -> Reference:
    return Reference(manifest["kind"], metadata.name, metadata.uid)


class _GuardDocument(msgspec.Struct):
    metadata: documents.Metadata
    data: dict[str, str] = {}


_GUARD = msgspec.json.Decoder(_GuardDocument)


def watched_guard(namespace: str, name: str) -> Watched:
    """The teardown guard: one ConfigMap that belongs to the stack, and says how long a drain may take."""

    def decode(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
        document = _GUARD.decode(raw)
        metadata = document.metadata
        # The guards of earlier releases have it among their data.
        drain = metadata.annotations.get(TEARDOWN_DRAIN) or document.data.get("drainTimeout", "")
        try:
            seconds = parse_life_span(drain) if drain else None
        except ValueError:
            # A destruction ends even so.
            seconds = None
        return metadata.name, (events.GuardSeen(metadata.deletionTimestamp is not None, seconds),)

    return Watched(
        "teardown guard",
        f"/api/v1/namespaces/{namespace}/configmaps",
        decode,
        events.GuardGone,
        field_selector=f"metadata.name={name}",
    )
