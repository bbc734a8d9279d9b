"""Capacity buffers as pods: placeholders that join a pass, take the last places, and exist nowhere else.

A buffer asks for as many placeholders as the larger of its replicas and its percentage of the workload
(at least one where both factors are positive), and no more than its limits hold; limits alone say how
many fit into them. Their names hold a character that no name of Kubernetes may have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from immutables import Map

from nodeless.model.buffers import (
    ACTIVE_CAPACITY,
    API_VERSION,
    KIND,
    POD_TEMPLATE,
    CapacityBuffer,
    PodSource,
)
from nodeless.model.pods import Owner, Pod
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.requests import request_of, with_requests

#: Placeholders of one buffer, and of the buffers of one namespace, at most; more is a slip of the finger.
MOST_PLACEHOLDERS = 10_000
#: Placeholders of all buffers at most, divided evenly among namespaces that ask for more together.
MOST_IN_ALL = 20_000
_SEPARATOR = "~"
#: Placeholders come after every pod that waits, however old that is.
_LAST = 2.0**40


class BufferReason(StrEnum):
    """Reasons of a buffer's conditions, Resolved and those of its provisioning."""

    RESOLVED = "Resolved"
    POD_TEMPLATE_NOT_FOUND = "PodTemplateNotFound"
    SCALABLE_REF_NOT_FOUND = "ScalableRefNotFound"
    RESOLUTION_FAILED = "ResolutionFailed"
    FITS_EXISTING_CAPACITY = "FitsExistingCapacity"
    REQUIRES_NEW_CAPACITY = "RequiresNewCapacity"
    NOT_READY_FOR_PROVISIONING = "NotReadyForProvisioning"
    BUFFER_EMPTY = "BufferEmpty"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a buffer asks for now, or why that is not known; `reason` is that of its condition."""

    reason: BufferReason
    message: str = ""
    source: PodSource | None = None
    replicas: int = 0
    held_back: str = ""
    """Why it gets fewer placeholders than it asks for; empty: it does not."""


def resolutions(snapshot: Snapshot) -> dict[str, Resolution]:
    """What each buffer gets, by its key: what it asks for, as far as all of them together are within bounds.

    In a namespace the buffers are served in the order of their names.
    """
    found = {key: resolution(snapshot, buffer) for key, buffer in sorted(snapshot.capacity_buffers.items())}
    living = [key for key in found if snapshot.capacity_buffers[key].deletion_timestamp is None]
    asked: dict[str, int] = {}
    for key in living:
        namespace = snapshot.capacity_buffers[key].namespace
        asked[namespace] = min(asked.get(namespace, 0) + found[key].replicas, MOST_PLACEHOLDERS)
    left = _shared(asked, MOST_IN_ALL)
    for key in living:
        one, namespace = found[key], snapshot.capacity_buffers[key].namespace
        given = min(one.replicas, left[namespace])
        left[namespace] -= given
        if given < one.replicas:
            text = (
                f"gets {given} of the {one.replicas} placeholders that it asks for: the buffers of a "
                f"namespace have at most {MOST_PLACEHOLDERS} together, those of all namespaces {MOST_IN_ALL}"
            )
            found[key] = replace(one, replicas=given, held_back=text)
    return found


def _shared(asked: Mapping[str, int], most: int) -> dict[str, int]:
    """What each gets of `most`: nobody less than another who asks for no more."""
    shares: dict[str, int] = {}
    for position, (name, number) in enumerate(sorted(asked.items(), key=lambda entry: (entry[1], entry[0]))):
        shares[name] = min(number, most // (len(asked) - position))
        most -= shares[name]
    return shares


def resolution(snapshot: Snapshot, buffer: CapacityBuffer) -> Resolution:
    """Look up what a buffer names, and count its placeholders."""
    if buffer.strategy != ACTIVE_CAPACITY:
        return Resolution(
            BufferReason.RESOLUTION_FAILED,
            f"provisioningStrategy {buffer.strategy} is not known; use {ACTIVE_CAPACITY}",
        )
    if not buffer.source:
        wrong = f"kind {buffer.source_kind} cannot be used" if buffer.source_kind else "nothing is named"
        hint = "name a podTemplateRef, or a scalableRef to a Deployment, ReplicaSet or StatefulSet of apps"
        return Resolution(BufferReason.RESOLUTION_FAILED, f"{wrong}; hint: {hint}")
    source = snapshot.pod_sources.get(buffer.source)
    if source is None:
        reason = (
            BufferReason.POD_TEMPLATE_NOT_FOUND
            if buffer.source_kind == POD_TEMPLATE
            else BufferReason.SCALABLE_REF_NOT_FOUND
        )
        return Resolution(reason, f"{buffer.source} does not exist")
    if source.shape.invalid:
        return Resolution(
            BufferReason.RESOLUTION_FAILED,
            f"the pods of {buffer.source} cannot be read: {source.shape.invalid}",
        )
    return Resolution(BufferReason.RESOLVED, "", source, _wanted(buffer, source))


def placeholders(snapshot: Snapshot) -> Iterator[Pod]:
    """The placeholders of every buffer that can be resolved, by buffer."""
    for key, found in resolutions(snapshot).items():
        buffer = snapshot.capacity_buffers[key]
        if found.source is None or buffer.deletion_timestamp is not None:
            continue
        shape = replace(found.source.shape, placeholder=True)
        owner = Owner(API_VERSION, KIND, buffer.name, uid=buffer.uid or buffer.key, controller=True)
        for number in range(found.replicas):
            name = f"{buffer.name}{_SEPARATOR}{number}"
            yield Pod(
                uid=f"{buffer.uid or buffer.key}{_SEPARATOR}{number}",
                namespace=buffer.namespace,
                name=name,
                shape=shape,
                labels=found.source.labels,
                annotations=found.source.annotations,
                owners=(owner,),
                unschedulable=True,
                created_at=_LAST,
            )


def with_placeholders(snapshot: Snapshot) -> Snapshot:
    """The cluster with the placeholders as pods that wait, and without buffers and provisioning requests."""
    snapshot = with_requests(snapshot)
    if not snapshot.capacity_buffers:
        return snapshot
    pods = snapshot.pods.update({pod.key: pod for pod in placeholders(snapshot)})
    return replace(snapshot, pods=pods, capacity_buffers=Map())


def buffer_of(pod: str) -> str:
    """The key of the buffer whose placeholder a pod key is; empty for a pod of the cluster."""
    buffer, separator, _ = pod.rpartition(_SEPARATOR)
    return buffer if separator else ""


def is_placeholder(pod: str) -> bool:
    """Whether a pod key is of a placeholder, of a buffer or of a provisioning request."""
    return bool(buffer_of(pod) or request_of(pod))


def _wanted(buffer: CapacityBuffer, source: PodSource) -> int:
    given = [] if buffer.replicas is None else [buffer.replicas]
    if buffer.percentage is not None and source.kind != POD_TEMPLATE:
        given.append(-(-buffer.percentage * source.replicas // 100))
    requests = dict(source.shape.requests)
    held = [limit // requests[name] for name, limit in buffer.limits.items() if requests.get(name, 0) > 0]
    if not given and not held:
        return 0
    return max(0, min([*held, max(given, default=MOST_PLACEHOLDERS), MOST_PLACEHOLDERS]))
