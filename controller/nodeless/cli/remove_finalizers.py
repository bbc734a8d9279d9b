"""What holds a cluster's objects when their controller is gone for good: finalizers, and webhooks that fail.

Nobody takes the finalizers off then, and nobody else can: the API server asks the dead controller's webhooks
about every change of a pool. So these go first. An administrator does it by `nodeless sweep --finalizers`,
when the instances are gone; whoever comes back later makes the webhooks anew by `pulumi up`.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from nodeless.api.foreign_kinds import is_of_another_provider
from nodeless.api.kinds import ALL
from nodeless.controllers.executor.teardown_guard import GUARD_NAME
from nodeless.kube import ApiClient, ApiError
from nodeless.model.labels import (
    NODE_CLASS_FINALIZER,
    TEARDOWN_FINALIZER,
    TERMINATION_FINALIZER,
)
from nodeless.model.nodes import is_node_of_others
from nodeless.model.object_names import LEASE_NAME
from nodeless.operator.timing import TIMING
from nodeless.webhook.injection import CONFIGURATIONS

_OURS = {TERMINATION_FINALIZER, NODE_CLASS_FINALIZER, TEARDOWN_FINALIZER}
_ATTEMPTS = 5
_CONFLICT, _MISSING = 409, 404


async def living_leader(client: ApiClient, namespace: str) -> str:
    """Which replica of a controller renews its lease; "" when none does. Takes three times its period."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE_NAME}"
    try:
        before = await client.get(path)
        holder = str(before["spec"].get("holderIdentity") or "")
        if not holder:
            return ""
        await asyncio.sleep(3 * TIMING.lease_retry)
        after = await client.get(path)
    except ApiError as error:
        if error.status != _MISSING:
            raise
        return ""
    renewed = before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]
    return str(after["spec"].get("holderIdentity") or "") if renewed else ""


async def held(client: ApiClient, namespace: str) -> list[str]:
    """The objects with a finalizer of the controller, as `Kind/name`, the guard last."""
    return [f"{kind}/{each['metadata']['name']}" async for kind, _, each in _held(client, namespace)]


async def remove_finalizers(client: ApiClient, namespace: str) -> list[str]:
    """Deletes the webhook configurations and takes every finalizer of the controller off.

    Returns:
        The objects let go of, as `Kind/name`, the guard last.
    """
    for path in CONFIGURATIONS:
        try:
            await client.delete(path)
        except ApiError as error:
            if error.status != _MISSING:
                raise
    released = []
    async for kind, path, each in _held(client, namespace):
        await _release(client, path, each)
        released.append(f"{kind}/{each['metadata']['name']}")
    return released


async def _held(client: ApiClient, namespace: str) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
    """Kind, path and document of each object with a finalizer of ours.

    Objects of EKS Auto Mode and of other providers carry Karpenter's, too, and their own controllers live:
    they take it off.
    """
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    collections = [(kind.kind, kind.path()) for kind in ALL]
    for kind, path in (*collections, ("Node", "/api/v1/nodes")):
        for each in await _listed(client, path):
            others = is_of_another_provider(each) or _is_node_of_others(each)
            if not others and _OURS & {*(each["metadata"].get("finalizers") or ())}:
                yield kind, f"{path}/{each['metadata']['name']}", each
    for each in await _listed(client, config_maps, fieldSelector=f"metadata.name={GUARD_NAME}"):
        if _OURS & {*(each["metadata"].get("finalizers") or ())}:
            yield "ConfigMap", f"{config_maps}/{GUARD_NAME}", each


def _is_node_of_others(document: dict[str, Any]) -> bool:
    labels, spec = document["metadata"].get("labels") or {}, document.get("spec") or {}
    return is_node_of_others(labels, str(spec.get("providerID") or ""))


async def _listed(client: ApiClient, path: str, **query: str) -> list[dict[str, Any]]:
    """The items of a collection; none where the kind is not served any more."""
    try:
        return await client.list(path, **query)
    except ApiError as error:
        if error.status != _MISSING:
            raise
        return []


async def _release(client: ApiClient, path: str, document: dict[str, Any]) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        metadata = document["metadata"]
        others = [entry for entry in metadata.get("finalizers") or () if entry not in _OURS]
        # The version guards the list, which others write too.
        wanted = {"resourceVersion": metadata["resourceVersion"], "finalizers": others}
        try:
            await client.patch(path, {"metadata": wanted})
            return
        except ApiError as error:
            if error.status == _MISSING:
                return
            if error.status != _CONFLICT or attempt == _ATTEMPTS:
                raise
            document = await client.get(path)
