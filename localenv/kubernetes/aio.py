"""`AsyncKubernetesApi`: the client that is awaited, and endless retries where only the level counts.

aiohttp is the cheapest way per write that was measured, and writes are all a kubelet does. Watching is
`reflector`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from localenv.kubernetes.connection import (
    ApiError,
    ApiUnreachable,
    Identity,
    decode_answer,
    encode_body,
    parameters,
    read_kubeconfig,
    tls_context,
)
from localenv.kubernetes.verbs import Object, Verbs

T = TypeVar("T")

_CONCURRENT_REQUESTS = 32
_FIRST_RETRY_SECONDS = 0.1
_LAST_RETRY_SECONDS = 2.0
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


class AsyncKubernetesApi(Verbs[Awaitable[Object]]):
    """A client of one API server under one identity, for one event loop.

    Attributes:
        endpoint: URL of the API server.
        authority: What its certificate is verified with, PEM.
    """

    def __init__(self, endpoint: str, authority: bytes, identity: Identity) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.authority = authority
        self._identity = identity
        self._session: aiohttp.ClientSession | None = None
        self._requests = asyncio.Semaphore(_CONCURRENT_REQUESTS)

    @classmethod
    def from_kubeconfig(cls, file: Path) -> AsyncKubernetesApi:
        """The client of a kubeconfig's current context. Raises ValueError when something is missing."""
        return cls(*read_kubeconfig(file))

    @property
    def _open(self) -> aiohttp.ClientSession:
        """The HTTP session, made on first use (inside the event loop)."""
        if self._session is None:
            tls = tls_context(self.authority, self._identity)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=tls, limit=0),
                read_bufsize=4 * 2**20,
                timeout=aiohttp.ClientTimeout(total=30),
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """Send one request. Raises ApiError for a refusal, ApiUnreachable when there is no answer."""
        headers = self._identity.headers("application/json", None if body is None else content_type)
        url, data = self.endpoint + path, encode_body(body)
        try:
            async with (
                self._requests,
                self._open.request(
                    method, url, data=data, params=parameters(query), headers=headers
                ) as response,
            ):
                answer = await response.read()
        except _NO_ANSWER as error:
            raise ApiUnreachable(self.endpoint, method, path, error) from error
        content = decode_answer(answer, response.headers.get("Content-Type", ""))
        if response.status >= 400:
            raise ApiError(method, path, response.status, content)
        return content if isinstance(content, dict) else {}

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, Any], *, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch that may be silent for so many seconds. Errors as for `request`."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence)
        headers = self._identity.headers("application/json")
        try:
            async with self._open.get(
                self.endpoint + path, params=parameters(query), headers=headers, timeout=timeout
            ) as response:
                if response.status >= 400:
                    content = decode_answer(await response.read(), response.headers.get("Content-Type", ""))
                    raise ApiError("GET", path, response.status, content)
                yield aiter(response.content)
        except _NO_ANSWER as error:
            raise ApiUnreachable(self.endpoint, "GET", path, error) from error


async def persist(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until the API server answers it, with back-off; what it refuses for good is raised.

    Raises:
        ApiError: For an answer that repeating does not change.
    """
    pause = _FIRST_RETRY_SECONDS
    while True:
        try:
            return await call()
        except ApiError as error:
            if not error.is_transient:
                raise
        except ApiUnreachable:
            pass  # whoever stopped the API server knows; the level is written when it is back
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LAST_RETRY_SECONDS)


async def ignoring(call: Awaitable[T], *statuses: int) -> T | None:
    """Await a request; these HTTP codes mean that the wanted level holds already."""
    try:
        return await call
    except ApiError as error:
        if error.status not in statuses:
            raise
        return None
