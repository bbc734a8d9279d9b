"""Whether the API server is new enough for the webhook, as KUBERNETES_MIN_VERSION has it."""

from nodeless.app.setting_values import UnusableValue, version
from nodeless.watch import ApiClient


class OldServerError(Exception):
    """The API server is older than KUBERNETES_MIN_VERSION."""


async def check_server_version(client: ApiClient, oldest: tuple[int, int, int]) -> None:
    """Ask the API server for its version.

    Raises:
        OldServerError: It is older than `oldest`.
        ApiError, ApiUnavailable: It does not tell.
    """
    told = str((await client.get("/version")).get("gitVersion", ""))
    try:
        found = version(told)
    except UnusableValue:
        return  # A server that was built by hand is its builder's care.
    if found < oldest:
        wanted = ".".join(map(str, oldest))
        raise OldServerError(
            f"the API server is {told}, KUBERNETES_MIN_VERSION asks for {wanted} or later; "
            "hint: upgrade the cluster, or set KUBERNETES_MIN_VERSION lower"
        )
