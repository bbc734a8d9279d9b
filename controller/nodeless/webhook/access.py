"""What admission needs of the API server: a few calls, whoever makes them."""

from typing import Any, Protocol

Json = dict[str, Any]


class Api(Protocol):
    """The part of `nodeless.kube.ApiClient` that is used here; a refusal carries its HTTP `status`."""

    async def get(self, path: str) -> Json: ...
    async def create(self, path: str, body: Json) -> Json: ...
    async def replace(self, path: str, body: Json) -> Json: ...
    async def patch(self, path: str, body: Any, *, content_type: str = ...) -> Json: ...


def status_of(error: BaseException) -> int:
    """The HTTP status that the API server refused with; 0 when it was not the server's refusal."""
    status = getattr(error, "status", 0)
    return status if isinstance(status, int) else 0


async def find(api: Api, path: str) -> Json | None:
    """The object at a path, or None when there is none."""
    try:
        return await api.get(path)
    except Exception as error:
        if status_of(error) == 404:
            return None
        raise
