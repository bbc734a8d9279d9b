"""From the API server to the model: list and watch, decoded into events.

`client` speaks HTTP to the API server (authentication by the `kubernetes` library, raw
JSON), `reflector` keeps one kind in sync, `decoding` turns JSON into model objects,
`kinds` says which kinds are watched and how. Nothing here decides anything.
"""

from nodeless.watch.client import ApiClient, ApiError, ApiUnavailable
from nodeless.watch.config_maps import ConfigMapEvent, ConfigMapGone, ConfigMapSeen, watched_config_map
from nodeless.watch.kinds import watched_kinds
from nodeless.watch.reflector import Reflector, Watched
from nodeless.watch.throttling import TokenBucket

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
