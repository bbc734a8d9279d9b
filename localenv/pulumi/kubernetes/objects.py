"""What Pulumi's inputs say about Kubernetes objects: identity, and which change needs a new object.

Pure; the calls stand in `kubernetes.provider`, the waiting in `kubernetes.waiting`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localenv.pulumi import wire
from localenv.pulumi.kubernetes.replacement import OF_ANY_KIND, Mutable, replacing_paths
from localenv.pulumi.resources import Checked, Difference, Fault, Inputs, Proposal

#: As the real provider marks objects whose name it made up.
AUTONAMED = "pulumi.com/autonamed"

#: Another kind or version is another object; the place is on the provider's own list.
_KIND = ("apiVersion", "kind")
#: What the API server writes into the metadata of an object.
_WRITTEN_BY_SERVER = frozenset(
    {"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation"}
    | {"managedFields", "resourceVersion", "selfLink", "uid"}
)
#: Groups that the API server serves by itself: a kind unknown there will not appear later.
_BUILT_IN_SUFFIX = ".k8s.io"


def check(token: str, inputs: Inputs, proposal: Proposal) -> Checked:
    """The inputs with a name, and what is wrong with them without asking the server."""
    if "apiVersion" not in inputs or "kind" not in inputs or token.endswith("Patch"):
        return Checked(dict(inputs), (Fault("", unknown_type(token)),))
    named = dict(inputs)
    metadata = dict(inputs.get("metadata") or {})
    if wire.is_unknown(inputs.get("metadata")) and not isinstance(inputs.get("metadata"), Mapping):
        return Checked(named)
    if "name" not in metadata and "generateName" not in metadata:
        old = proposal.olds.get("metadata", {})
        before = old.get("name") if AUTONAMED in (old.get("annotations") or {}) else None
        metadata["name"] = before or proposal.physical_name(8)
        metadata["annotations"] = dict(metadata.get("annotations") or {}) | {AUTONAMED: "true"}
    named["metadata"] = metadata
    return Checked(named)


def compare(old: Inputs, new: Inputs, mutable: Mutable) -> Difference:
    """What separates two sets of inputs; replaced by kind, or by a path on the real provider's list.

    The old object goes first where the new one must have its name, in its namespace.
    """
    changed = tuple(key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key))
    replaces = tuple(
        path for path in (*_KIND, *replacing_paths(new, mutable)) if _differs(old, new, path.split("."))
    )
    same_place = not any(path in replaces for path in (*_KIND, *OF_ANY_KIND))
    return Difference(
        changed, replaces, delete_first=bool(replaces) and same_place and not _is_autonamed(new)
    )


def force_replacement(difference: Difference, new: Inputs) -> Difference:
    """The difference of an object that is to be replaced whatever has changed."""
    changed = tuple(sorted({*difference.changed, "metadata"}))
    return Difference(changed, (*difference.replaces, "metadata"), delete_first=not _is_autonamed(new))


def _is_autonamed(inputs: Inputs) -> bool:
    return AUTONAMED in (inputs.get("metadata", {}).get("annotations") or {})


def kind_of(token: str, inputs: Inputs) -> tuple[str, str]:
    """The apiVersion and kind of an object; of one that is imported, by its type token."""
    if "apiVersion" in inputs:
        return str(inputs["apiVersion"]), str(inputs["kind"])
    _, version, kind = token.split(":")
    return version.removeprefix("core/"), kind


def inputs_of(live: Mapping[str, Any]) -> dict[str, Any]:
    """What a program would give to make an object: all but what the API server writes."""
    metadata = {key: value for key, value in live["metadata"].items() if key not in _WRITTEN_BY_SERVER}
    return {key: value for key, value in live.items() if key != "status"} | {"metadata": metadata}


def identity(obj: Mapping[str, Any], *, namespaced: bool) -> str:
    """`namespace/name`, or the name alone: the id as the real provider gives it."""
    metadata = obj["metadata"]
    name = str(metadata["name"])
    return f"{metadata.get('namespace') or 'default'}/{name}" if namespaced else name


def is_built_in(api_version: str) -> bool:
    """Whether the group belongs to Kubernetes itself rather than to a CustomResourceDefinition."""
    group = api_version.partition("/")[0] if "/" in api_version else ""
    return "." not in group or group.endswith(_BUILT_IN_SUFFIX)


def unknown_type(token: str) -> str:
    """The message about a type that is not a Kubernetes object."""
    return (
        f"resource type {token} is not known to the local cluster"
        "\nhint: objects of every kind the API server serves work, and Helm releases;"
        " lists, patches, charts and YAML files do not"
    )


def _differs(old: Any, new: Any, path: list[str]) -> bool:
    """Whether something at or below a path differs; `name[*]` stands for each item of a list."""
    if path == ["metadata", "namespace"]:
        return (_at(old, path) or "default") != (_at(new, path) or "default")
    for index, step in enumerate(path):
        if step.endswith("[*]"):
            before, after = (_at(each, [*path[:index], step[:-3]]) or [] for each in (old, new))
            return any(_differs(*pair, path[index + 1 :]) for pair in zip(before, after, strict=False))
    return bool(_at(old, path) != _at(new, path))


def _at(obj: Any, path: list[str]) -> Any:
    found: Any = obj
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
