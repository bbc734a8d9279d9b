"""A small asynchronous client of the API server: JSON in, JSON out.

Configuration and authentication come from the `kubernetes` library ($KUBECONFIG, else
the pod's service account); requests go over one aiohttp session, because typed models
cost ten times the processor time on the paths that matter.
"""

import base64
import os
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypedDict
from urllib.parse import urlsplit

import aiohttp
import msgspec
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException

from nodeless.kube.errors import AnswerTooLarge, ApiError, ApiUnavailable
from nodeless.kube.kubeconfig import proxy_of, read_kubeconfigs
from nodeless.kube.lanes import Lane, Pauses, lane_of
from nodeless.kube.lines import lines_of
from nodeless.kube.throttling import TokenBucket

Json = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_TIMEOUT = aiohttp.ClientTimeout(total=30)
#: Seconds that a watch may be silent after the server was asked to end it.
SILENCE_SECONDS = 5.0
#: The kernel asks a peer that has been silent for five seconds every two, and gives it up after three
#: questions, or when what was sent stays unacknowledged for as long (milliseconds).
_KEEPALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 11_000}
#: Seconds for which a connection without a request is kept: the API server closes it after 90, and to open
#: another one takes more processor time than several requests.
_IDLE_SECONDS = 60.0
#: Bytes that are read ahead of us on a connection.
_READ_BUFFER = 1024 * 1024
#: Bytes of an answer that are read: seven objects of the largest kind that etcd's default lets in.
MOST_ANSWER_BYTES = 64 * 1024 * 1024
USER_AGENT = "nodeless"
#: Refusals of the server's priority and fairness after which a request is given up.
_MOST_REFUSALS = 5
_TOO_MANY_REQUESTS = 429
_CREDENTIALS = re.compile(r"//[^/@\s]*@")
#: What a request that gets no answer is counted as (client-go's word).
_NO_ANSWER = "<error>"

RequestObserver = Callable[[str, str, str], None]
"""Told of each request: method, status, host."""
WaitObserver = Callable[[str, str, float], None]
"""Told of each request that may be limited: method, host, seconds that it waited for its turn."""
DateObserver = Callable[[str | None, float], object]
"""Told of each answer: its Date, and the seconds that it took."""


class _Route(TypedDict):
    """How a request reaches the API server."""

    proxy: str | None
    server_hostname: str | None


def _ignore(*_request: object) -> None:
    """Nobody listens."""


class ApiClient:
    """The connections to one API server, in lanes (`nodeless.kube.lanes`)."""

    def __init__(
        self, configuration: Configuration, token_file: Path | None = None, silence: float = SILENCE_SECONDS
    ) -> None:
        self._silence = silence
        self._configuration = configuration
        self._route: _Route = {
            "proxy": configuration.proxy,
            "server_hostname": configuration.tls_server_name,
        }
        self._token_file = token_file
        self._sessions: dict[Lane, aiohttp.ClientSession] = {}
        self._pauses = Pauses()
        self._limit: TokenBucket | None = None
        self._eviction_limit: TokenBucket | None = None
        self._on_request: RequestObserver = _ignore
        self._on_wait: WaitObserver = _ignore
        self._on_date: DateObserver = _ignore

    def observe(self, on_request: RequestObserver, on_wait: WaitObserver) -> None:
        """Have every request told from now on."""
        self._on_request, self._on_wait = on_request, on_wait

    def observe_time(self, on_date: DateObserver) -> None:
        """Have the date of every answer told from now on."""
        self._on_date = on_date

    def limit(self, bucket: TokenBucket | None) -> None:
        """Have requests, but those for leases, take their turns from a bucket; None: no limit any more.

        Evictions have no more than half of it: what is refused again and again holds nothing else up.
        """
        self._limit = bucket
        self._eviction_limit = bucket.share(0.5) if bucket is not None else None

    async def _take_turn(self, method: str, lane: Lane) -> None:
        await self._pauses.over(lane)
        if self._limit is None or lane is Lane.LEASE:
            return
        waited = 0.0
        if lane is Lane.EVICTIONS and self._eviction_limit is not None:
            waited = await self._eviction_limit.take()
        self._on_wait(method, self._address, waited + await self._limit.take())

    @classmethod
    async def connect(cls, silence: float = SILENCE_SECONDS) -> Self:
        """From $KUBECONFIG when set, else the pod's service account.

        Args:
            silence: Seconds that a watch may be silent after the server was asked to end it.

        Raises:
            ApiUnavailable: There is neither.
        """
        configuration = Configuration()
        token_file = None
        kubeconfig = os.environ.get("KUBECONFIG")
        try:
            if kubeconfig:
                given = read_kubeconfigs(kubeconfig)
                token_file = given.token_file()
                await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                    config_file=given.paths, context=given.context, client_configuration=configuration
                )
                _check_credentials(given.credential_command(), configuration)
                configuration.proxy = configuration.proxy or proxy_of(configuration.host)
                _check_proxy(configuration.proxy)
            else:
                kubernetes_config.load_incluster_config(  # type: ignore[no-untyped-call]
                    client_configuration=configuration
                )
        except (ConfigException, OSError) as error:
            where = "" if kubeconfig else "KUBECONFIG is not set, and this is no pod with a service account: "
            raise ApiUnavailable(
                f"no way to the cluster: {where}{str(error).removesuffix('.')}"
                "; hint: run in a pod with a service account, or set KUBECONFIG"
            ) from error
        return cls(configuration, token_file, silence)

    @property
    def host(self) -> str:
        return str(self._configuration.host)

    @property
    def certificate_authority(self) -> str:
        """Base64 of the PEM that the API server's certificate is checked by; empty when none is named."""
        file = self._configuration.ssl_ca_cert
        return base64.b64encode(Path(file).read_bytes()).decode() if file else ""

    @property
    def _address(self) -> str:
        """Host and port, as requests are counted by."""
        return urlsplit(self.host).netloc

    def _open(self, lane: Lane) -> aiohttp.ClientSession:
        session = self._sessions.get(lane)
        if session is None or session.closed:
            session = self._sessions[lane] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=_ssl_context(self._configuration),
                    limit=lane.connections,
                    keepalive_timeout=_IDLE_SECONDS,
                    socket_factory=_watched_socket,
                ),
                read_bufsize=_READ_BUFFER,
                timeout=_TIMEOUT,
                trust_env=False,
            )
        return session

    async def _headers(self, content_type: str | None = None) -> dict[str, str]:
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json"}
        if content_type is not None:
            headers["Content-Type"] = content_type
        if self._token_file is not None:
            headers["Authorization"] = f"Bearer {self._token_file.read_text().strip()}"
        else:
            token = await self._configuration.get_api_key_with_prefix("BearerToken")
            if token:
                headers["Authorization"] = token
        return headers

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Json:
        """One call. Raises ApiError for a refusal, ApiUnavailable when there is no answer."""
        answer = await self.ask(method, path, body, content_type=content_type, query=query)
        document = msgspec.json.decode(answer) if answer else {}
        return document if isinstance(document, dict) else {"value": document}

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """The same, with the answer as it came.

        What priority and fairness refuses was not carried out: it is asked again when the lane may go on.
        """
        data = None if body is None else msgspec.json.encode(body)
        lane = lane_of(method, path)
        for refusals in range(_MOST_REFUSALS + 1):
            await self._take_turn(method, lane)
            try:
                return await self._ask_once(lane, method, path, data, content_type, query)
            except _Throttled as error:
                self._pauses.pause(lane, error.retry_after)
                if refusals == _MOST_REFUSALS:
                    raise
        raise AssertionError("the last refusal is raised")

    async def _ask_once(
        self,
        lane: Lane,
        method: str,
        path: str,
        data: bytes | None,
        content_type: str,
        query: Mapping[str, str] | None,
    ) -> bytes:
        asked = time.monotonic()
        try:
            async with self._open(lane).request(
                method,
                self.host + path,
                data=data,
                params=query,
                headers=await self._headers(content_type if data is not None else None),
                **self._route,
            ) as response:
                self._on_date(response.headers.get("Date"), time.monotonic() - asked)
                answer = await _read(response, f"{method} {self.host}{path}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._on_request(method, _NO_ANSWER, self._address)
            raise ApiUnavailable(f"{method} {self.host}{path}: {_problem(error)}") from error
        self._on_request(method, str(response.status), self._address)
        if response.status >= 400:
            raise _refusal(response, answer)
        return answer

    async def get(self, path: str) -> Json:
        return await self.request("GET", path)

    async def list(self, path: str, **query: str) -> list[Json]:
        """All items, in pages of 500 and less where they are large."""
        items: list[Json] = []
        token, size = "", 500
        while True:
            try:
                paging = {"limit": str(size), "continue": token}
                page = await self.request("GET", path, query={**query, **paging})
            except AnswerTooLarge:
                if size == 1:
                    raise
                size = max(size // 4, 1)
                continue
            items += page.get("items") or []
            token = page.get("metadata", {}).get("continue", "")
            if not token:
                return items

    async def create(self, path: str, body: Json) -> Json:
        return await self.request("POST", path, body)

    async def replace(self, path: str, body: Json) -> Json:
        return await self.request("PUT", path, body)

    async def patch(self, path: str, body: Any, *, content_type: str = MERGE_PATCH, **query: str) -> Json:
        return await self.request("PATCH", path, body, content_type=content_type, query=query)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
    ) -> Json:
        options: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if propagation is not None:
            options["propagationPolicy"] = propagation
        return await self.request("DELETE", path, options)

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch; `timeoutSeconds` in the query says when the server is to end it.

        A line that is too long comes as a `CutLine` (`nodeless.kube.lines`).

        A dead connection is noticed: the server sends a bookmark before it ends a watch, so silence beyond
        that time means that nothing comes through any more.

        Raises:
            ApiError, ApiUnavailable: It is refused, or there is no answer, or no sign of life.
        """
        silence = int(query["timeoutSeconds"]) + self._silence
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence)
        await self._take_turn("GET", Lane.WATCHES)
        code = _NO_ANSWER
        try:
            async with self._open(Lane.WATCHES).get(
                self.host + path,
                params=query,
                headers=await self._headers(),
                timeout=timeout,
                **self._route,
            ) as response:
                code = str(response.status)
                if response.status >= 400:
                    refusal = _refusal(response, await _read(response, path))
                    if isinstance(refusal, _Throttled):
                        self._pauses.pause(Lane.WATCHES, refusal.retry_after)
                    raise refusal
                yield lines_of(response.content.iter_any())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnavailable(f"watch {self.host}{path}: {_problem(error)}") from error
        finally:
            self._on_request("GET", code, self._address)

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()


class _Throttled(ApiError):
    """A refusal of the server's priority and fairness: the request was not looked at."""

    retry_after = ""


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    """What an answer of 400 and more says.

    A disruption budget refuses with 429, too, as a `Status` that names its causes: that concerns one pod.
    """
    error = ApiError.from_body(response.status, body)
    retry_after = response.headers.get("Retry-After", "")
    if response.status != _TOO_MANY_REQUESTS or not retry_after or error.details.get("causes"):
        return error
    throttled = _Throttled(error.status, error.reason, error.message, error.details)
    throttled.retry_after = retry_after
    return throttled


async def _read(response: aiohttp.ClientResponse, asked: str) -> bytes:
    """The body of an answer. Raises AnswerTooLarge."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MOST_ANSWER_BYTES:
            response.close()
            raise AnswerTooLarge(f"{asked}: the answer is longer than {MOST_ANSWER_BYTES // 2**20} MiB")
    return bytes(body)


def _check_credentials(command: str, configuration: Configuration) -> None:
    """The library has logged why a command gave none, and would go on without."""
    if command and not configuration.api_key.get("BearerToken") and not configuration.cert_file:
        raise ConfigException(f"the kubeconfig's command {command} gave no credentials; it says why above")


def _check_proxy(proxy: str | None) -> None:
    scheme = urlsplit(proxy or "").scheme
    if proxy and scheme not in ("http", "https"):
        raise ConfigException(f"the proxy is one for {scheme}, and none but HTTP proxies can be used")


def _problem(error: Exception) -> str:
    """Why there is no answer; the address of a proxy may hold its credentials."""
    return _CREDENTIALS.sub("//", str(error)) or type(error).__name__


def _watched_socket(address: Any) -> socket.socket:
    """A socket on which a peer that is gone is noticed though it never said goodbye."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # each system has its own
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _ssl_context(configuration: Configuration) -> Any:

    if not configuration.verify_ssl:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    return context
