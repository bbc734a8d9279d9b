"""Tells the API server whom to trust: path and CA bundle of our webhook configurations.

The configurations are made by whoever installs the controller; only these two members
are the controller's, and they are put back when something else rewrites the object.
"""

import base64
from typing import Any

from nodeless.webhook.access import Api, Json, find, status_of

_GROUP = "/apis/admissionregistration.k8s.io/v1"
_MUTATING = f"{_GROUP}/mutatingwebhookconfigurations"
_VALIDATING = f"{_GROUP}/validatingwebhookconfigurations"
_JSON_PATCH = "application/json-patch+json"
_ATTEMPTS = 5

CONFIGURATIONS = {
    f"{_MUTATING}/defaulting.webhook.karpenter.sh": "/default/karpenter.sh",
    f"{_MUTATING}/defaulting.webhook.karpenter.k8s.aws": "/default/karpenter.k8s.aws",
    f"{_VALIDATING}/validation.webhook.karpenter.sh": "/validate/karpenter.sh",
    f"{_VALIDATING}/validation.webhook.karpenter.k8s.aws": "/validate/karpenter.k8s.aws",
    f"{_VALIDATING}/validation.webhook.config.karpenter.sh": "/validate/config.karpenter.sh",
}
"""API path of each configuration, and the path on our server that it asks."""


class InjectionContentionError(Exception):
    """A configuration changed each time that we tried to write our part of it."""


async def inject_ca_bundle(api: Api, bundle: bytes) -> list[str]:
    """Write the bundle and our paths into every configuration that lacks them.

    Args:
        api: The API server.
        bundle: PEM certificates to trust.

    Returns:
        The names of the configurations that do not exist.

    Raises:
        InjectionContentionError: Somebody else keeps changing a configuration.
    """
    encoded = base64.b64encode(bundle).decode()
    missing = []
    for path, endpoint in CONFIGURATIONS.items():
        if not await _inject(api, path, encoded, endpoint):
            missing.append(path.rpartition("/")[2])
    return missing


async def _inject(api: Api, path: str, bundle: str, endpoint: str) -> bool:
    """Whether the configuration exists."""
    for _ in range(_ATTEMPTS):
        configuration = await find(api, path)
        if configuration is None:
            return False
        changes = changes_for(configuration, bundle, endpoint)
        if not changes:
            return True
        try:
            await api.patch(path, changes, content_type=_JSON_PATCH)
        except Exception as error:
            if status_of(error) not in (404, 409, 422):  # gone or changed while we looked: look again
                raise
    raise InjectionContentionError(
        f"{path} changed under each of {_ATTEMPTS} attempts to write the webhook's CA bundle into it"
    )


def changes_for(configuration: Json, bundle: str, endpoint: str) -> list[Json]:
    """The JSON patch that brings a configuration up to date; it applies to just this state of the object."""
    changes: list[Json] = []
    for position, webhook in enumerate(configuration.get("webhooks") or ()):
        client: dict[str, Any] = webhook.get("clientConfig") or {}
        where = f"/webhooks/{position}/clientConfig"
        if client.get("caBundle") != bundle:
            changes.append({"op": "add", "path": f"{where}/caBundle", "value": bundle})
        if "service" in client and client["service"].get("path") != endpoint:
            changes.append({"op": "add", "path": f"{where}/service/path", "value": endpoint})
    if not changes:
        return []
    version = configuration["metadata"]["resourceVersion"]
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, *changes]
