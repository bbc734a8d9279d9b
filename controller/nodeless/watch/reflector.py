"""Keep one kind in sync with the API server: a streaming list, then a watch, forever.

Not every server streams lists: it is off by default before Kubernetes 1.32, and in 1.33
(https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list).
One that refuses to is asked for pages instead, and then for a watch from their version on.

Rules that hold here, all observed on a real API server:

- never resume from the version of an initial event (they arrive in key order); only from
  the end bookmark and from what follows it
- a stream may end at any time without a reason; before the end bookmark that means: start
  the list anew, after it: resume
- `410 Expired` comes with HTTP status 200 as an ERROR event: start the list anew
- after a new list, what we knew and it does not contain is gone
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec
import structlog

from nodeless.model.events import Event
from nodeless.watch.errors import ApiError, ApiUnavailable

if TYPE_CHECKING:
    from nodeless.watch.client import ApiClient

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: What a server answers that does not know, or not allow, the options of a streaming list.
_INVALID_OPTIONS = 422
_EXPIRED = 410
_PAGE = "500"
_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
#: Seconds, at least and at most, after which the server ends a watch. It goes on where it ended; a short
#: period costs a request, and bounds the time for which a dead connection can pass for a quiet one.
PERIOD: tuple[int, ...] = (20, 30)
_LONGEST_PERIOD = 600
#: After so many answers in a row that an optional kind is not served, some three seconds, there is none.
_ABSENT_ANSWERS = 5
#: Not the process-wide source, which others may have seeded or watch.
_CHANCE = random.Random()  # noqa: S311 - spreads reconnects


E = TypeVar("E")


@dataclass(frozen=True)
class WatchedKind(Generic[E]):
    """A kind to keep in sync, as events of type `E`.

    `decode` turns one object's JSON into its key and the events that say "seen"; `gone` makes the
    event that says the opposite, from the key.
    """

    name: str
    path: str
    decode: Callable[[bytes], tuple[str, tuple[E, ...]]]
    gone: Callable[[str], E]
    field_selector: str = ""
    optional: bool = False
    """A cluster may do without this kind: when it is not served, there are simply none of them."""


Watched: TypeAlias = WatchedKind[Event]
"""A kind that is part of the cluster's state."""


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's spelling
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct):
    metadata: _Metadata


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


class _PageMetadata(msgspec.Struct, rename={"continues": "continue"}):
    resourceVersion: str = ""  # noqa: N815 - the API's spelling
    continues: str = ""


class _Page(msgspec.Struct):
    metadata: _PageMetadata
    items: list[msgspec.Raw] = []


class _Restart(Exception):
    """The list must start anew."""


def _drop(_logger: Any, _method: str, _line: Any) -> Any:
    raise structlog.DropEvent


class Reflector(Generic[E]):
    """One running sync: `handle` gets each event, in order; `synced` is set after the first list."""

    def __init__(
        self,
        client: "ApiClient",
        watched: WatchedKind[E],
        handle: Callable[[E], None],
        *,
        quiet: bool = False,
    ) -> None:
        self.watched = watched
        self.synced = asyncio.Event()
        self.problem: str | None = None
        self._client = client
        self._handle = handle
        self._known: set[str] = set()
        self._version = ""
        self._absent = 0
        self._period = PERIOD
        self._streams_lists = True
        self._envelope = msgspec.json.Decoder(_Envelope)
        self._bookmark = msgspec.json.Decoder(_Bookmark)
        # A second watch of one kind leaves it to the first to speak.
        log = structlog.get_logger() if not quiet else structlog.wrap_logger(None, processors=[_drop])
        self._log = log.bind(logger="watch").bind(kind=watched.name)

    async def run(self) -> None:
        """Sync until cancelled. Problems are logged once each, and cured by trying again."""
        delay = _FIRST_DELAY
        while True:
            try:
                await self._follow()
                delay = _FIRST_DELAY
            except _Restart:
                self._version = ""
            except ApiUnavailable as error:
                self._report(f"cannot watch {self.watched.name}: {error}")
            except ApiError as error:
                if self._refuses_to_stream(error):
                    self._streams_lists = False
                    continue
                self._version = ""
                self._count_absent(error)
                # 429: the server is still building its cache of a kind that is new.
                if error.status != 429:
                    self._report(self._explain(error))
            # Jitter spreads the reconnects of many watches after a restart of the API server.
            await asyncio.sleep(delay * (0.5 + _CHANCE.random()))
            delay = min(delay * 2, _LONGEST_DELAY) if self.problem else _FIRST_DELAY

    def _refuses_to_stream(self, error: ApiError) -> bool:
        """Whether the server answers so to a streaming list, and not to the watch that comes after one."""
        return error.status == _INVALID_OPTIONS and self._streams_lists and not self._version

    def _count_absent(self, error: ApiError) -> None:
        """Let the others go on without a kind that is not served. What was known of it before is kept.

        Not at once: an API server that has just started serves its custom kinds a moment later.
        """
        self._absent = self._absent + 1 if error.status == 404 and self.watched.optional else 0
        if self._absent >= _ABSENT_ANSWERS and not self.synced.is_set():
            self._log.warning(f"going on without {self.watched.name}: the cluster does not serve them")
            self.synced.set()

    def _explain(self, error: ApiError) -> str:
        if error.status == 404:
            return (
                f"the cluster does not serve {self.watched.path}"
                "; hint: install the CRDs (kubectl apply -f controller/crds)"
            )
        if error.status == 403:
            return f"not allowed to watch {self.watched.name}: {error.message}; hint: check the ClusterRole"
        return f"cannot watch {self.watched.name}: {error}"

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            self._log.warning(problem)
        self.problem = problem

    async def _list(self) -> None:
        """Take in all objects page by page; what was known and is in none is gone."""
        listing: set[str] = set()
        query = {"limit": _PAGE}
        if self.watched.field_selector:
            query["fieldSelector"] = self.watched.field_selector
        while True:
            try:
                answer = await self._client.ask("GET", self.watched.path, query=query)
            except ApiError as error:
                if error.status == _EXPIRED:
                    raise _Restart from error
                raise
            page = msgspec.json.decode(answer, type=_Page)
            for item in page.items:
                listing |= self._take("ADDED", bytes(item))
            if not page.metadata.continues:
                break
            query["continue"] = page.metadata.continues
        self._listed(listing, page.metadata.resourceVersion)

    def _listed(self, listing: set[str], version: str) -> None:
        """The list is complete."""
        self._version = version
        for key in sorted(self._known - listing):
            self._gone(key)
        self.synced.set()
        self._period = PERIOD

    def _take(self, type_: str, raw: bytes) -> set[str]:
        """Hand on one object as it is now; gives back its key, if it has one."""
        try:
            return {self._apply(type_, raw)}
        except (msgspec.MsgspecError, ValueError) as error:
            return self._unreadable(type_, self._bookmark.decode(raw).metadata, error)

    async def _follow(self) -> None:
        if not self._version and not self._streams_lists:
            await self._list()
        listing: set[str] | None = None if self._version else set()
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_CHANCE.randint(*self._period)),
        }
        if self.watched.field_selector:
            query["fieldSelector"] = self.watched.field_selector
        if listing is None:
            query["resourceVersion"] = self._version
        else:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with self._client.stream(self.watched.path, query) as lines:
            async for line in lines:
                if self.problem is not None:
                    self._log.info(f"watching {self.watched.name} again")
                    self.problem = None
                listing = self._receive(line, listing)
        if listing is not None:
            # Perhaps there is more than fits into the time: the next attempt gets twice of it.
            self._period = tuple(min(2 * each, _LONGEST_PERIOD) for each in self._period)
            raise _Restart

    def _receive(self, line: bytes, listing: set[str] | None) -> set[str] | None:
        """Handle one line; gives back the keys listed so far, None once the list is complete."""
        envelope = self._envelope.decode(line)
        raw = bytes(envelope.object)
        if envelope.type == "ERROR":
            status = msgspec.json.decode(raw, type=_Status)
            if status.code == 410:
                raise _Restart
            raise ApiError(status.code, status.reason, status.message)
        metadata = self._bookmark.decode(raw).metadata
        if envelope.type == "BOOKMARK":
            if listing is None or metadata.annotations.get(_INITIAL_EVENTS_END) != "true":
                self._version = metadata.resourceVersion
                return listing
            self._listed(listing, metadata.resourceVersion)
            return None
        keys = self._take(envelope.type, raw)
        if listing is None:
            self._version = metadata.resourceVersion
        else:
            listing |= keys
        return listing

    def _unreadable(self, type_: str, metadata: _Metadata, error: Exception) -> set[str]:
        """Stay with what we knew of an object that cannot be read now; gives back its key, if it was known.

        It must not end the process, which would meet it again at once.
        """
        name = f"{metadata.namespace}/{metadata.name}".removeprefix("/")
        self._log.error(f"an object cannot be read and is left out: {error}", object=name)
        # Keys are `namespace/name`, `name` or `Kind/name`.
        keys = {key for key in self._known if key == name or key.partition("/")[2] == name}
        if type_ == "DELETED":
            for key in keys:
                self._gone(key)
        return keys

    def _apply(self, type_: str, raw: bytes) -> str:
        key, seen = self.watched.decode(raw)
        if type_ == "DELETED":
            self._gone(key)
            return key
        self._known.add(key)
        for event in seen:
            self._handle(event)
        return key

    def _gone(self, key: str) -> None:
        self._known.discard(key)
        self._handle(self.watched.gone(key))
