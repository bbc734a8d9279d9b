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

An object that is too large or that cannot be read concerns nobody but itself: what was known of it stays, or
what is certain of it is handed on (`WatchedKind.broken`), and the watch goes on behind it.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
import structlog

from nodeless.api.errors import problem_of
from nodeless.kube.errors import AnswerTooLarge, ApiError, ApiUnavailable
from nodeless.kube.heads import head_of
from nodeless.kube.lines import CutLine
from nodeless.kube.messages import ObjectTooLarge, Page, Status, full_name, open_message
from nodeless.model.events import Event
from nodeless.model.quarantine import ProcessMustEnd

if TYPE_CHECKING:
    from nodeless.kube.client import ApiClient

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: What a server answers that does not know, or not allow, the options of a streaming list.
_INVALID_OPTIONS = 422
_FORBIDDEN = 403
_EXPIRED = 410
_PAGE = 500
_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
#: Seconds; a watch that ends sooner, and without a word, has failed (client-go).
_SHORTEST_WATCH = 1.0
#: While a kind of others is not served.
_LONGEST_ABSENT_DELAY = 30.0
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
    broken: Callable[[bytes, Mapping[str, Any], str], tuple[str, tuple[E, ...]]] | None = None
    """As `decode`, of an object that cannot be read: its JSON, the members that can be read (`metadata` above
    all), and what is wrong with it. None: what was known of it before stays."""
    optional: bool = False
    """A cluster may do without this kind: when it is not served, there are simply none of them."""
    foreign: bool = False
    """It is of others, and few need it: a cluster where it must not be watched has none of them, and where it
    is optional and not served nobody is warned."""
    label_selector: str = ""
    older_path: str = ""
    """Where an older version serves the same objects; watched where the newer one is not served."""
    install: str = "install the CRDs (kubectl apply -f controller/crds)"
    """What to do where it is not served."""


Watched: TypeAlias = WatchedKind[Event]
"""A kind that is part of the cluster's state."""


class Failures(Protocol):
    """Told of objects that cannot be read or taken in: `metadata` as far as it is known."""

    def record_unread(self, kind: str, metadata: Mapping[str, Any], error: Exception) -> object:
        """An object of a kind (as `WatchedKind.name`) was left out."""

    def record_read(self, kind: str, metadata: Mapping[str, Any]) -> object:
        """One that was left out can be read again, or is gone."""


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
        failures: Failures | None = None,
        period: tuple[int, ...] = PERIOD,
    ) -> None:
        """A watch of one kind.

        Args:
            client: The API server.
            watched: The kind.
            handle: Called with every event.
            quiet: The log does not speak of it.
            failures: Called with objects that cannot be read; None: the log says so.
            period: Seconds after which a quiet watch is begun anew: at least, at most.
        """
        self.watched = watched
        self._failures = failures
        #: Objects that cannot be read now, as `namespace/name`.
        self._left_out: set[str] = set()
        self.synced = asyncio.Event()
        self.problem: str | None = None
        self._client = client
        self._handle = handle
        self._path, self._other_path = watched.path, watched.older_path
        self._known: set[str] = set()
        self._version = ""
        self._absent = 0
        self._shortest_period = self._period = period
        self._streams_lists = True
        # A second watch of one kind leaves it to the first to speak.
        log = structlog.get_logger() if not quiet else structlog.wrap_logger(None, processors=[_drop])
        self._log = log.bind(logger="watch").bind(kind=watched.name)

    @property
    def is_done_without(self) -> bool:
        """Whether it is a kind of others that the cluster does not serve, as most do not."""
        return bool(self._absent) and self.watched.foreign and self.watched.optional

    async def run(self) -> None:
        """Sync until cancelled. Problems are logged once each, and cured by trying again."""
        delay, loop = _FIRST_DELAY, asyncio.get_running_loop()
        while True:
            failed, began = True, loop.time()
            try:
                # A server or a proxy that ends each watch at once must not be asked at once again.
                failed = not await self._follow() and loop.time() - began < _SHORTEST_WATCH
            except _Restart:
                self._version = ""
            except ApiUnavailable as error:
                self._report(f"cannot watch {self.watched.name}: {error}")
            except ApiError as error:
                if self._refuses_to_stream(error):
                    self._streams_lists = False
                    continue
                self._version = ""
                if error.status == 404 and self._other_path:
                    self._path, self._other_path = self._other_path, self._path
                self._count_absent(error)
                # 429: the server is still building its cache of a kind that is new.
                if error.status != 429:
                    self._report(self._explain(error))
            except ProcessMustEnd:
                raise
            except Exception as error:  # whatever came: the others' watches go on, and this one anew
                self._version = ""
                self._report(f"cannot watch {self.watched.name}: {problem_of(error)}")
            # Jitter spreads the reconnects of many watches after a restart of the API server.
            await asyncio.sleep(delay * (0.5 + _CHANCE.random()))
            longest = _LONGEST_ABSENT_DELAY if self._absent and self.watched.foreign else _LONGEST_DELAY
            delay = min(delay * 2, longest) if failed else _FIRST_DELAY

    def _refuses_to_stream(self, error: ApiError) -> bool:
        """Whether the server answers so to a streaming list, and not to the watch that comes after one."""
        return error.status == _INVALID_OPTIONS and self._streams_lists and not self._version

    def _count_absent(self, error: ApiError) -> None:
        """Let the others go on without a kind that is not served. What was known of it before is kept.

        Not at once: an API server that has just started serves its custom kinds a moment later.
        """
        absent = error.status == 404 and self.watched.optional
        absent |= error.status == _FORBIDDEN and self.watched.foreign
        self._absent = self._absent + 1 if absent else 0
        if self._absent >= _ABSENT_ANSWERS and not self.synced.is_set():
            if not self.watched.foreign:
                self._log.warning(f"going on without {self.watched.name}: the cluster does not serve them")
            self.synced.set()

    def _explain(self, error: ApiError) -> str:
        if error.status == 404:
            paths = " or ".join(filter(None, (self.watched.path, self.watched.older_path)))
            return f"the cluster does not serve {paths}; hint: {self.watched.install}"
        if error.status == 403:
            return f"not allowed to watch {self.watched.name}: {error.message}; hint: check the ClusterRole"
        return f"cannot watch {self.watched.name}: {error}"

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            # Of a kind of others, that it is not served is how most clusters are.
            (self._log.debug if self.is_done_without else self._log.warning)(problem)
        self.problem = problem

    async def _list(self) -> None:
        """Take in all objects page by page; what was known and is in none is gone."""
        listing: set[str] = set()
        query, size = {"limit": str(_PAGE)}, _PAGE
        if self.watched.field_selector:
            query["fieldSelector"] = self.watched.field_selector
        if self.watched.label_selector:
            query["labelSelector"] = self.watched.label_selector
        while True:
            try:
                answer = await self._client.ask("GET", self._path, query=query)
            except AnswerTooLarge:
                if size == 1:
                    raise
                # Large objects beside each other: fewer at a time.
                size = max(size // 4, 1)
                query["limit"] = str(size)
                continue
            except ApiError as error:
                if error.status == _EXPIRED:
                    raise _Restart from error
                raise
            page = msgspec.json.decode(answer, type=Page)
            for item in page.items:
                listing |= self._take("ADDED", bytes(item), None)
            if not page.metadata.continues:
                break
            query["continue"] = page.metadata.continues
        self._complete_list(listing, page.metadata.resourceVersion)

    def _complete_list(self, listing: set[str], version: str) -> None:
        """The list is complete."""
        self._version = version
        for key in sorted(self._known - listing):
            self._forget(key)
        self.synced.set()
        self._period = self._shortest_period

    def _take(self, type_: str, raw: bytes, metadata: Mapping[str, Any] | None) -> set[str]:
        """Hand on one object as it is now; gives back its keys, if it has any.

        This is the boundary around one object: whatever it is like, the next one comes through.
        """
        try:
            if isinstance(raw, CutLine):
                raise ObjectTooLarge(raw)
            key = self._apply(type_, raw)
        except ProcessMustEnd:
            raise
        except Exception as error:
            head = head_of(raw)
            head = head["object"] if isinstance(head.get("object"), dict) else head
            given = head.get("metadata")
            certain = metadata or (given if isinstance(given, dict) else {})
            return self._unreadable(type_, raw, head, certain, error)
        if self._left_out:
            self._readable_again(key)
        return {key}

    async def _follow(self) -> bool:
        """List, where need be, and watch to the end of one stream; whether anything came by it."""
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
        if self.watched.label_selector:
            query["labelSelector"] = self.watched.label_selector
        if listing is None:
            query["resourceVersion"] = self._version
        else:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        heard = False
        async with self._client.stream(self._path, query) as lines:
            async for line in lines:
                heard = True
                if self.problem is not None:
                    self._log.info(f"watching {self.watched.name} again")
                    self.problem = None
                listing = self._receive(line, listing)
        if listing is not None:
            # Perhaps there is more than fits into the time: the next attempt gets twice of it.
            self._period = tuple(min(2 * each, _LONGEST_PERIOD) for each in self._period)
            raise _Restart
        return heard

    def _receive(self, line: bytes, listing: set[str] | None) -> set[str] | None:
        """Handle one line; gives back the keys listed so far, None once the list is complete."""
        type_, raw, metadata = open_message(line)
        if type_ == "ERROR":
            status = msgspec.json.decode(raw, type=Status)
            if status.code == 410:
                raise _Restart
            raise ApiError(status.code, status.reason, status.message)
        version = str(metadata.get("resourceVersion") or "")
        if type_ == "BOOKMARK":
            if listing is None or (metadata.get("annotations") or {}).get(_INITIAL_EVENTS_END) != "true":
                self._version = version
                return listing
            self._complete_list(listing, version)
            return None
        keys = self._take(type_, raw, metadata)
        if listing is None:
            self._version = version or self._version
        else:
            listing |= keys
        return listing

    def _unreadable(
        self,
        type_: str,
        raw: bytes,
        head: Mapping[str, Any],
        metadata: Mapping[str, Any],
        error: Exception,
    ) -> set[str]:
        """Take in what is certain of an object that cannot be read now; gives back its keys, if it is known.

        It must not end the process, which would meet it again at once.
        """
        name = full_name(metadata)
        if self._failures is None:
            self._log.error(f"an object cannot be read and is left out: {problem_of(error)}", object=name)
        elif type_ != "DELETED":
            self._failures.record_unread(self.watched.name, metadata, error)
        self._left_out.add(name)
        keys = self._keys_of(name, head)
        if type_ == "DELETED":
            self._readable_again(name)
            for key in keys:
                self._forget(key)
            return keys
        return keys | self._handle_outline(raw, head, problem_of(error))

    def _keys_of(self, name: str, head: Mapping[str, Any]) -> set[str]:
        """The keys by which an object is known: `namespace/name`, `name` or `Kind/name`."""
        kind = head.get("kind")
        if isinstance(kind, str):
            return {name, f"{kind}/{name}"} & self._known
        return {key for key in self._known if key == name or key.partition("/")[2] == name}

    def _handle_outline(self, raw: bytes, head: Mapping[str, Any], problem: str) -> set[str]:
        """Hand on what is certain of an object, where its kind knows how."""
        if self.watched.broken is None:
            return set()
        try:
            key, seen = self.watched.broken(raw, head, problem)
            for event in seen:
                self._handle(event)
        except ProcessMustEnd:
            raise
        except Exception as error:
            self._log.debug(f"nothing is certain of an object: {problem_of(error)}")
            return set()
        self._known.add(key)
        return {key}

    def _readable_again(self, key: str) -> None:
        for name in {key, key.partition("/")[2]} & self._left_out:
            self._left_out.discard(name)
            if self._failures is not None:
                namespace, _, short = name.rpartition("/")
                self._failures.record_read(self.watched.name, {"namespace": namespace, "name": short})

    def _apply(self, type_: str, raw: bytes) -> str:
        key, seen = self.watched.decode(raw)
        if type_ == "DELETED":
            self._forget(key)
            return key
        self._known.add(key)
        for event in seen:
            self._handle(event)
        return key

    def _forget(self, key: str) -> None:
        self._known.discard(key)
        self._handle(self.watched.gone(key))
