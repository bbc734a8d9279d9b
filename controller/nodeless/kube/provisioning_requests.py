"""Provisioning requests as the API server tells of them; watched where they are turned on.

Cluster Autoscaler's definition serves v1 since its version 1.31; where an older one is installed, v1beta1 is
watched.
"""

import msgspec

from nodeless.api.reading_parts import conditions_of
from nodeless.api.times import parse_time
from nodeless.kube import documents
from nodeless.kube.buffers import watched_buffers, watched_templates
from nodeless.kube.reflector import Watched
from nodeless.model import events
from nodeless.model.buffers import POD_TEMPLATE
from nodeless.model.provisioning_requests import (
    API_VERSION,
    OLDER_API_VERSION,
    ProvisioningRequest,
    RequestedPods,
)

#: Where requests are served. Those written by v1beta1 are told by v1 as well, with the same fields.
REQUESTS = f"/apis/{API_VERSION}/provisioningrequests"
#: The older version, as it may stand in files, and as clusters with an older definition serve it alone.
REQUESTS_V1BETA1 = f"/apis/{OLDER_API_VERSION}/provisioningrequests"
_INSTALL = "install Cluster Autoscaler's definition of ProvisioningRequest, as for Kueue"
_REQUEST = msgspec.json.Decoder(documents.ProvisioningRequest)
Decoded = tuple[str, tuple[events.Event, ...]]


def watched_requests(path: str = REQUESTS) -> Watched:
    """Provisioning requests; a cluster may do without the definition."""
    return Watched(
        "provisioningrequests",
        path,
        _request,
        events.ProvisioningRequestGone,
        optional=True,
        older_path=REQUESTS_V1BETA1 if path == REQUESTS else "",
        install=_INSTALL,
    )


def collection_of(request: ProvisioningRequest) -> str:
    """The path of all requests, by the version that the cluster serves this one by."""
    return REQUESTS_V1BETA1 if request.api_version == OLDER_API_VERSION else REQUESTS


def watched_placeholders(buffers: bool, requests: bool) -> tuple[Watched, ...]:
    """What placeholders depend on: of capacity buffers, of provisioning requests, or of both."""
    asking = (watched_requests(),) if requests else ()
    if buffers:
        return (*asking, *watched_buffers())
    return (*asking, watched_templates()) if requests else ()


def decode_request(raw: bytes) -> ProvisioningRequest:
    """A request from its JSON. Raises msgspec.DecodeError, ValueError."""
    document = _REQUEST.decode(raw)
    metadata, spec = document.metadata, document.spec
    manifest = msgspec.json.decode(raw)
    details = (manifest.get("status") or {}).get("provisioningClassDetails") or {}
    return ProvisioningRequest(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        provisioning_class=spec.provisioningClassName,
        pod_sets=tuple(
            RequestedPods(f"{POD_TEMPLATE}/{metadata.namespace}/{each.podTemplateRef.name}", each.count)
            for each in spec.podSets
        ),
        parameters=tuple(sorted((spec.parameters or {}).items())),
        created_at=parse_time(metadata.creationTimestamp) if metadata.creationTimestamp else 0.0,
        deletion_timestamp=parse_time(metadata.deletionTimestamp) if metadata.deletionTimestamp else None,
        conditions=conditions_of(manifest),
        details=tuple(sorted((name, str(value)) for name, value in details.items())),
        api_version=OLDER_API_VERSION if manifest.get("apiVersion") == OLDER_API_VERSION else API_VERSION,
    )


def _request(raw: bytes) -> Decoded:
    request = decode_request(raw)
    return request.key, (events.ProvisioningRequestSeen(request),)
