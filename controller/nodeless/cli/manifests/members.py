"""Members of a manifest that is not ours, with the fault where one is not what it has to be."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from nodeless.cli.manifests.documents import Document

#: More pods of an object than any cluster has nodes for: a slip of the finger.
MOST_REPLICAS = 1_000_000
DEFAULT_NAMESPACE = "default"
#: Kinds that plans read and that are in no namespace, besides those of our own groups.
CLUSTER_SCOPED = frozenset(
    {"CSINode", "Namespace", "Node", "PersistentVolume", "PriorityClass", "StorageClass", "VolumeAttachment"}
)
_OURS = ("karpenter.sh", "karpenter.k8s.aws")


class Unusable(ValueError):
    """An object that cannot be read; `path` is the member at fault, `others` are further faults of it."""

    def __init__(self, path: str, message: str, others: Iterable["Unusable"] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.others = tuple(others)

    def every(self) -> tuple["Unusable", ...]:
        """All faults that were found, this one first."""
        return (self, *self.others)


def group_of(manifest: Mapping[str, Any]) -> str:
    """The API group, empty for that of Pods, and where none is given."""
    group, slash, _ = str(manifest.get("apiVersion") or "").partition("/")
    return group if slash else ""


def is_kind(manifest: Mapping[str, Any], group: str, *kinds: str) -> bool:
    """Whether an object is of one of these kinds of an API group, in whatever version."""
    return group_of(manifest) == group and manifest.get("kind") in kinds


def metadata_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata, empty where there is none."""
    metadata = manifest.get("metadata")
    return dict(metadata) if isinstance(metadata, Mapping) else {}


def namespace_of(manifest: Mapping[str, Any]) -> str:
    """The namespace, `default` where none is given."""
    return str(metadata_of(manifest).get("namespace") or DEFAULT_NAMESPACE)


def key_of(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name, by which other objects name one of a kind."""
    return namespace_of(manifest), str(metadata_of(manifest).get("name"))


def status_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of an object of a dump, empty where there is none."""
    status = manifest.get("status")
    return status if isinstance(status, Mapping) else {}


def in_namespace(document: Document, namespace: str) -> Document:
    """An object that names no namespace in the one given, as kubectl's `-n` has it."""
    manifest = document.value
    if not isinstance(manifest, dict) or manifest.get("kind") in CLUSTER_SCOPED:
        return document
    metadata = manifest.get("metadata") or {}
    if group_of(manifest) in _OURS or not isinstance(metadata, dict) or metadata.get("namespace"):
        return document
    return replace(document, value={**manifest, "metadata": {**metadata, "namespace": namespace}})


def name_of(manifest: Mapping[str, Any]) -> str:
    """The name, or what it begins with. Raises Unusable for an object without either."""
    metadata = metadata_of(manifest)
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    if not name:
        raise Unusable("metadata", "metadata.name: is required")
    return name


def mapping_at(manifest: Any, path: str) -> Mapping[str, Any]:
    """The object at a path such as `spec.template`. Raises Unusable where there is none."""
    found = manifest
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        raise Unusable(
            path, f"{path}: is required" if found is None else f"{path}: {found!r} is not an object"
        )
    return found


def member_below(holder: Mapping[str, Any], path: str, member: str) -> Mapping[str, Any]:
    """The object at `member` of the object at `path`. Raises Unusable with the whole path."""
    try:
        return mapping_at(holder, member)
    except Unusable as error:
        raise Unusable(f"{path}.{error.path}", f"{path}.{error}") from None


def list_at(holder: Mapping[str, Any], member: str, path: str) -> list[Mapping[str, Any]]:
    """The objects of a list that may be left out. Raises Unusable for anything else."""
    found = holder.get(member)
    if found is None:
        return []
    if not isinstance(found, list):
        raise Unusable(f"{path}.{member}", f"{path}.{member}: {found!r} is not a list")
    for index, item in enumerate(found):
        if not isinstance(item, Mapping):
            place = f"{path}.{member}[{index}]"
            raise Unusable(place, f"{place}: {item!r} is not an object")
    return found


def number_at(holder: Mapping[str, Any], member: str, path: str, default: int = 1) -> int:
    """The number of pods that a member of the object at `path` gives. Raises Unusable."""
    found = holder.get(member)
    return default if found is None else checked_number(found, f"{path}.{member}")


def checked_number(found: Any, path: str) -> int:
    """A number of pods. Raises Unusable for what is none, and for one that no cluster has room for."""
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MOST_REPLICAS:
        raise Unusable(path, f"{path}: {found!r} is not a number of pods; hint: 0 to {MOST_REPLICAS}")
    return found


def text_at(holder: Mapping[str, Any], member: str, path: str, default: str = "") -> str:
    """The text of a member. Raises Unusable where it is none, and where it is missing without a default."""
    found = holder.get(member)
    place = f"{path}.{member}"
    if found is None and default:
        return default
    if not isinstance(found, str) or not found:
        raise Unusable(
            place, f"{place}: is required" if found is None else f"{place}: {found!r} is not a name"
        )
    return found


def has_condition(manifest: Mapping[str, Any], *types: str, statuses: Collection[str] = ("True",)) -> bool:
    """Whether an object of a dump has a condition of one of these types, with one of these statuses."""
    conditions = status_of(manifest).get("conditions")
    return any(
        isinstance(condition, Mapping)
        and condition.get("type") in types
        and condition.get("status") in statuses
        for condition in (conditions if isinstance(conditions, list) else ())
    )


def managed_elsewhere(spec: Mapping[str, Any], controller: str) -> str:
    """Why no pods come of an object whose `managedBy` names another than its usual controller; else empty."""
    named = spec.get("managedBy")
    if named in (None, "", controller):
        return ""
    return f"{named} runs it elsewhere, or with other objects (managedBy)"
