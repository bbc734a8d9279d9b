"""What pods of operators' objects have in common that name parts of a pod in places of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodeless.cli.manifests.members import member_below, metadata_of

#: Members of a pod's spec by which it finds a node, under the names that Kubernetes has for them.
PLACING = (
    "affinity",
    "hostNetwork",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
)


def members_of(
    holder: Mapping[str, Any], path: str, names: Sequence[str] = PLACING
) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """Those members of a pod's spec that an object has at `path`, and where a fault of each is."""
    members = {name: holder[name] for name in names if holder.get(name) is not None}
    return members, tuple((f"spec.{name}", f"{path}.{name}") for name in members)


def object_below(holder: Mapping[str, Any], path: str, member: str) -> Mapping[str, Any]:
    """An object that may be left out, empty then. Raises Unusable for anything else."""
    return {} if holder.get(member) is None else member_below(holder, path, member)


def with_labels(metadata: Any, labels: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of a pod template with labels that the operator writes on its pods."""
    given = metadata_of({"metadata": metadata})
    own = given.get("labels")
    return {**given, "labels": {**(own if isinstance(own, Mapping) else {}), **labels}}
