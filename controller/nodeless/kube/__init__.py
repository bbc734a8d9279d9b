"""From the API server to the model: list and watch, decoded into events.

`client` speaks HTTP to the API server (authentication by the `kubernetes` library, raw
JSON), `reflector` keeps one kind in sync, `decoding` turns JSON into model objects,
`kinds` says which kinds are watched and how. Nothing here decides anything.

The client is loaded when it is first asked for: it takes a second to load, and most commands need no cluster.
"""

from typing import TYPE_CHECKING

from nodeless.kube.config_maps import ConfigMapEvent, ConfigMapGone, ConfigMapSeen, watched_config_map
from nodeless.kube.errors import ApiError, ApiUnavailable
from nodeless.kube.kinds import watched_kinds
from nodeless.kube.reflector import Reflector, Watched
from nodeless.kube.throttling import TokenBucket

if TYPE_CHECKING:
    from nodeless.kube.client import ApiClient

__all__ = [
    "ApiClient",
    "ApiError",
    "ApiUnavailable",
    "ConfigMapEvent",
    "ConfigMapGone",
    "ConfigMapSeen",
    "Reflector",
    "TokenBucket",
    "Watched",
    "watched_config_map",
    "watched_kinds",
]


def __getattr__(name: str) -> object:
    if name != "ApiClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nodeless.kube.client import ApiClient  # noqa: PLC0415

    return ApiClient
