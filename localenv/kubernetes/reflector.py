"""A collection of the API server kept in memory, and its changes reported as they arrive.

Streaming list first (`sendInitialEvents`), then the watch goes on from the last version seen; an end of
stream without reason resumes, an expired version lists again. Decoding is partial: the type given names the
fields that count. A killed API server is waited for with back-off.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from localenv.kubernetes.aio import AsyncKubernetesApi
from localenv.kubernetes.connection import ApiError, ApiUnreachable

log = logging.getLogger(__name__)

_BACKOFF_SECONDS = 2.0
_WATCH_SECONDS = (300, 600)


class Metadata(msgspec.Struct, gc=False):
    """Object metadata, as far as kubelets look at it."""

    name: str
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's name
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    deletionTimestamp: str | None = None  # noqa: N815 - the API's name
    deletionGracePeriodSeconds: int | None = None  # noqa: N815 - the API's name


class HasMetadata(Protocol):
    """What every stored object has."""

    metadata: Metadata


O = TypeVar("O", bound=HasMetadata)  # noqa: E741 - O for object


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: "_BookmarkMetadata"


class _BookmarkMetadata(msgspec.Struct):
    resourceVersion: str  # noqa: N815 - the API's name
    annotations: dict[str, str] = {}


class _Expired(Exception):
    """The version is too old: list again."""


class Reflector(Generic[O]):
    """Objects at `path` by (namespace, name).

    Attributes:
        synced: set once the first list is complete.
    """

    def __init__(
        self,
        api: AsyncKubernetesApi,
        path: str,
        kind: type[O],
        *,
        field_selector: str = "",
        on_change: Callable[[O], None] | None = None,
        on_delete: Callable[[O], None] | None = None,
    ) -> None:
        self._api = api
        self._path = path
        self._decoder = msgspec.json.Decoder(kind)
        self._events = msgspec.json.Decoder(_Event)
        self._bookmarks = msgspec.json.Decoder(_Bookmark)
        self._field_selector = field_selector
        self._on_change = on_change
        self._on_delete = on_delete
        self._objects: dict[tuple[str, str], O] = {}
        self._version = ""
        self.synced = asyncio.Event()

    def __iter__(self) -> Iterator[O]:
        return iter(list(self._objects.values()))

    def get(self, namespace: str, name: str) -> O | None:
        """Return the object of that name, None if there is none."""
        return self._objects.get((namespace, name))

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        while True:
            try:
                await self._stream()
                continue
            except _Expired:
                self._version = ""
                continue
            except ApiError as error:
                if error.status == 410:
                    self._version = ""
                log.warning("watch of %s: %s", self._path, error)
            except ApiUnreachable as error:
                log.info("watch of %s interrupted: %r", self._path, error)
            await asyncio.sleep(random.uniform(_BACKOFF_SECONDS / 8, _BACKOFF_SECONDS))

    async def _stream(self) -> None:
        listing = not self._version
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*_WATCH_SECONDS)),
        }
        if listing:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        else:
            query["resourceVersion"] = self._version
        if self._field_selector:
            query["fieldSelector"] = self._field_selector
        seen: set[tuple[str, str]] | None = set() if listing else None
        async with self._api.stream(self._path, query, silence=_WATCH_SECONDS[1] + 30) as lines:
            async for line in lines:
                seen = self._take(self._events.decode(line), seen)

    def _take(self, event: _Event, seen: set[tuple[str, str]] | None) -> set[tuple[str, str]] | None:
        if event.type == "ERROR":
            raise _Expired
        if event.type == "BOOKMARK":
            bookmark = self._bookmarks.decode(event.object)
            self._version = bookmark.metadata.resourceVersion
            if bookmark.metadata.annotations.get("k8s.io/initial-events-end") == "true" and seen is not None:
                self._finish_list(seen)
                return None
            return seen
        changed = self._decoder.decode(event.object)
        key = (changed.metadata.namespace, changed.metadata.name)
        if seen is None:
            self._version = changed.metadata.resourceVersion
        else:
            seen.add(key)  # versions of the initial events come in key order: never resume from them
        if event.type == "DELETED":
            self._forget(key, changed)
        else:
            self._objects[key] = changed
            if self._on_change is not None:
                self._on_change(changed)
        return seen

    def _finish_list(self, seen: set[tuple[str, str]]) -> None:
        for key in [key for key in self._objects if key not in seen]:
            self._forget(key, self._objects[key])
        self.synced.set()

    def _forget(self, key: tuple[str, str], last: O) -> None:
        self._objects.pop(key, None)
        if self._on_delete is not None:
            self._on_delete(last)
