"""From the API server to the model: list and watch, decoded into events.

`client` speaks HTTP to the API server (authentication by the `kubernetes` library, raw
JSON), `reflector` keeps one kind in sync, `decoding` turns JSON into model objects,
`kinds` says which kinds are watched and how. Nothing here decides anything.

The client is loaded when it is first asked for: it takes a second to load, and most commands need no cluster.
"""

from typing import TYPE_CHECKING

from nodeless.watch.config_maps import ConfigMapEvent, ConfigMapGone, ConfigMapSeen, watched_config_map
from nodeless.watch.errors import ApiError, ApiUnavailable
from nodeless.watch.kinds import watched_kinds
from nodeless.watch.reflector import Reflector, Watched
from nodeless.watch.throttling import TokenBucket

if TYPE_CHECKING:
    from nodeless.watch.client import ApiClient

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
    from nodeless.watch.client import ApiClient  # noqa: PLC0415

    return ApiClient
