"""Statuses of the objects that ask for room: capacity buffers and provisioning requests."""

from collections.abc import Mapping

from structlog.typing import FilteringBoundLogger

from nodeless.kube import ApiClient, ApiError, ApiUnavailable
from nodeless.model.buffers import CapacityBuffer
from nodeless.model.provisioning_requests import ProvisioningRequest

_GONE_OR_ANOTHER = (404, 409)


async def write_status(
    client: ApiClient,
    collection: str,
    asker: CapacityBuffer | ProvisioningRequest,
    status: Mapping[str, object],
    log: FilteringBoundLogger,
) -> bool:
    """Write a status, and say whether that was done; what was not is logged, and the next pass tries again.

    It goes to the object with this UID: one of the same name that came meanwhile is left alone.

    Args:
        client: The API server.
        collection: The path of all objects of the kind.
        asker: The object.
        status: What is new of its status.
        log: Where to say what was not written.
    """
    group, _, plural = collection.rpartition("/")
    path = f"{group}/namespaces/{asker.namespace}/{plural}/{asker.name}/status"
    try:
        await client.patch(path, {"metadata": {"uid": asker.uid}, "status": status})
    except (ApiError, ApiUnavailable) as error:
        if not isinstance(error, ApiError) or error.status not in _GONE_OR_ANOTHER:
            log.warning(f"status of {plural} {asker.key} was not written: {error}")
        return False
    return True
