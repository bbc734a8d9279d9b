"""The API server's version, and whether it is new enough for the webhook (KUBERNETES_MIN_VERSION)."""

from nodeless.cloudprovider import CloudError
from nodeless.kube import ApiClient, ApiError, ApiUnavailable
from nodeless.operator.setting_values import UnusableValue, version


class OldServerError(Exception):
    """The API server is older than KUBERNETES_MIN_VERSION."""


async def server_version(client: ApiClient) -> str:
    """The API server's version as `major.minor`.

    Raises:
        CloudError: It does not tell, or tells none.
    """
    try:
        reported = str((await client.get("/version")).get("gitVersion", ""))
    except (ApiError, ApiUnavailable) as error:
        raise CloudError(
            f"the API server's version cannot be read: {error}", "nodeless asks again"
        ) from error
    try:
        major, minor, _ = version(reported)
    except UnusableValue as error:
        hint = "set nodeless.eksControlPlane (EKS_CONTROL_PLANE) to true: nodeless then asks EKS"
        raise CloudError(f"the API server's version {reported!r} {error.problem}", hint) from error
    return f"{major}.{minor}"


async def check_server_version(client: ApiClient, oldest: tuple[int, int, int]) -> None:
    """Ask the API server for its version.

    Raises:
        OldServerError: It is older than `oldest`.
        ApiError, ApiUnavailable: It does not tell.
    """
    reported = str((await client.get("/version")).get("gitVersion", ""))
    try:
        found = version(reported)
    except UnusableValue:
        return  # A server that was built by hand is its builder's care.
    if found < oldest:
        wanted = ".".join(map(str, oldest))
        raise OldServerError(
            f"the API server is {reported}, KUBERNETES_MIN_VERSION requires {wanted} or later; "
            "hint: upgrade the cluster, or set KUBERNETES_MIN_VERSION lower"
        )
