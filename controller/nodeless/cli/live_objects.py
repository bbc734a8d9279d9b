"""Objects of a running cluster by name, as documents: what `kubectl get -o yaml` would show of them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from nodeless.api.kinds import ALL, KIND_OF_NAME, NODE_CLAIM, Kind
from nodeless.cli.manifests.documents import Document, readable_documents
from nodeless.cli.manifests.yaml_writer import yaml_text
from nodeless.explain.words import listed
from nodeless.kube import ApiClient, ApiError
from nodeless.model.workloads import kind_called

#: Kinds of which objects can be asked for.
KINDS = tuple(KIND_OF_NAME)
_MISSING = 404


def live_objects(names: Sequence[str]) -> tuple[list[Document], list[Document], list[str]]:
    """Objects of the cluster that the environment names.

    Args:
        names: Each as `Kind/name`.

    Returns:
        Them, each as a document that has its name for a file; the others of these kinds, all pools and node
        classes, which are around them; and a line for each that is not there.

    Raises:
        ApiUnavailable, ApiError: The API server cannot be reached, or refuses.
    """
    return asyncio.run(_objects(list(dict.fromkeys(names))))


async def _objects(names: Sequence[str]) -> tuple[list[Document], list[Document], list[str]]:
    asked = {kind_called(name.partition("/")[0]) for name in names}
    client = await ApiClient.connect()
    try:
        # Claims are many, and no rule compares them.
        kinds = [kind for kind in ALL if kind is not NODE_CLAIM or kind.kind in asked]
        there = {f"{kind.kind}/{_name(item)}": item for kind in kinds for item in await _all(client, kind)}
    finally:
        await client.close()
    found = [_document(name, there[name]) for name in names if name in there]
    around = [_document(name, item) for name, item in there.items() if name not in names]
    return found, around, [_missing(name, there) for name in names if name not in there]


async def _all(client: ApiClient, kind: Kind) -> list[dict[str, Any]]:
    """The objects of a kind, as if each had been asked for; none where the cluster does not serve it."""
    try:
        items = await client.list(kind.path())
    except ApiError as error:
        if error.status != _MISSING:
            raise
        return []
    return [{**item, "apiVersion": kind.api_version, "kind": kind.kind} for item in items]


def _document(name: str, item: Mapping[str, Any]) -> Document:
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    # kubectl's order.
    shown = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata}
    rest = {key: value for key, value in item.items() if key not in shown}
    (document,), _ = readable_documents(name, yaml_text({**shown, **rest}))
    return document


def _missing(name: str, there: Mapping[str, Any]) -> str:
    kind = name.partition("/")[0]
    others = [other for other in sorted(there) if other.startswith(f"{kind}/")]
    return f"{name}: there is no such object; hint: there is {listed(others) or 'none'}"


def _name(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["name"])
