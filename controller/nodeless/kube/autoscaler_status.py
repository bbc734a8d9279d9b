"""What Cluster Autoscaler writes about its groups: the ConfigMap `cluster-autoscaler-status`.

Since version 1.30 its `status` is YAML, with names and bounds of each group; before, it was a text for people
with the same figures (kubernetes/autoscaler, `clusterstate/api`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from nodeless.kube.errors import ApiError
from nodeless.model.neighbors import AUTOSCALER_STATUS, ScalingGroup

if TYPE_CHECKING:
    from nodeless.kube.client import ApiClient

_NOT_FOUND = 404
_NAME = re.compile(r"^\s+Name:\s+(\S+)\s*$")
_BOUNDS = re.compile(r"\(minSize=(\d+), maxSize=(\d+)\)")
#: Characters of a status that is looked at: some thousand groups.
_LONGEST = 1_000_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


async def read_groups(client: "ApiClient", namespace: str) -> tuple[ScalingGroup, ...]:
    """The groups that the autoscaler in a namespace says it has; none where it says nothing.

    Raises:
        ApiError, ApiUnavailable: The API server refuses, or cannot be reached.
    """
    try:
        document = await client.get(f"/api/v1/namespaces/{namespace}/configmaps/{AUTOSCALER_STATUS}")
    except ApiError as error:
        if error.status != _NOT_FOUND:
            raise
        return ()
    return groups_of(document)


def is_status(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is that ConfigMap."""
    metadata = manifest.get("metadata")
    named = isinstance(metadata, Mapping) and metadata.get("name") == AUTOSCALER_STATUS
    return named and manifest.get("kind") == "ConfigMap"


def groups_of(manifest: Mapping[str, Any]) -> tuple[ScalingGroup, ...]:
    """The groups of such a ConfigMap, by name; none where it cannot be read."""
    data = manifest.get("data")
    text = data.get("status") if isinstance(data, Mapping) else None
    if not isinstance(text, str) or len(text) > _LONGEST:
        return ()
    try:
        # The loader is one of the safe ones.
        document = yaml.load(text, Loader=_LOADER)  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError):
        document = None
    listed = document.get("nodeGroups") if isinstance(document, Mapping) else None
    found = _read_list(listed) if isinstance(listed, list) else _read_text(text)
    return tuple(sorted(set(found)))


def _read_list(groups: list[Any]) -> Iterator[ScalingGroup]:
    for group in groups:
        name = group.get("name") if isinstance(group, Mapping) else None
        if not isinstance(name, str) or not name:
            continue
        health = group.get("health")
        bounds = health if isinstance(health, Mapping) else {}
        yield ScalingGroup(name, _number(bounds.get("minSize")), _number(bounds.get("maxSize")))


def _read_text(text: str) -> Iterator[ScalingGroup]:
    _, _, groups = text.partition("NodeGroups:")
    name = ""
    for line in groups.splitlines():
        if found := _NAME.match(line):
            name = found[1]
        elif name and (bounds := _BOUNDS.search(line)):
            yield ScalingGroup(name, int(bounds[1]), int(bounds[2]))
            name = ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
