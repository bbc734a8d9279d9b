"""The parts of an object's metadata that we act on, read from its manifest.

Its form is checked in `schema_validation`; what is missing reads as empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeless.api.times import parse_time
from nodeless.model.pods import Owner


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata of one object; times in seconds since the epoch."""

    name: str
    uid: str
    resource_version: str
    generation: int
    labels: dict[str, str]
    annotations: dict[str, str]
    finalizers: tuple[str, ...]
    owners: tuple[Owner, ...]
    created_at: float
    deletion_timestamp: float | None


def read_metadata(manifest: Mapping[str, Any]) -> Metadata:
    """The metadata of a manifest whose form is known to be right."""
    metadata = manifest.get("metadata") or {}
    created, deleted = metadata.get("creationTimestamp"), metadata.get("deletionTimestamp")
    return Metadata(
        name=metadata.get("name") or "",
        uid=metadata.get("uid") or "",
        resource_version=metadata.get("resourceVersion") or "",
        generation=metadata.get("generation") or 0,
        labels=dict(metadata.get("labels") or {}),
        annotations=dict(metadata.get("annotations") or {}),
        finalizers=tuple(metadata.get("finalizers") or ()),
        owners=tuple(_owner(owner) for owner in metadata.get("ownerReferences") or ()),
        created_at=parse_time(created) if created else 0.0,
        deletion_timestamp=parse_time(deleted) if deleted else None,
    )


def _owner(owner: Mapping[str, Any]) -> Owner:
    return Owner(
        api_version=str(owner.get("apiVersion") or ""),
        kind=str(owner.get("kind") or ""),
        name=str(owner.get("name") or ""),
        uid=str(owner.get("uid") or ""),
        controller=bool(owner.get("controller")),
    )
