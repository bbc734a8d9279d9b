"""Asynchronous access to the API server: JSON in, JSON out, and endless retries where only the level counts.

aiohttp with the kubeconfig's client certificate: the cheapest way per write that was measured, and writes are
all a kubelet does. Watching is `reflector`'s.
"""

import asyncio
import base64
import contextlib
import json
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import yaml

Document = dict[str, Any]
T = TypeVar("T")

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

_CONCURRENT_WRITES = 32
_FIRST_RETRY_SECONDS = 0.1
_LAST_RETRY_SECONDS = 2.0


class ApiError(Exception):
    """The API server refused a request.

    Attributes:
        status: HTTP code.
        reason: `reason` of the Status object, "" if the body was none.
    """

    def __init__(self, method: str, path: str, status: int, body: bytes) -> None:
        self.status = status
        self.reason = ""
        message = body.decode(errors="replace")[:500]
        with contextlib.suppress(ValueError, AttributeError):
            document = json.loads(body)
            self.reason = document.get("reason") or ""
            message = document.get("message") or message
        super().__init__(f"{method} {path}: HTTP {status} {self.reason}: {message}")

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 429) or self.status >= 500


class ApiClient:
    """One session with the API server named by a kubeconfig."""

    def __init__(self, server: str, certificate_authority: str, tls: ssl.SSLContext) -> None:
        self.server = server
        self.certificate_authority = certificate_authority
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._writes = asyncio.Semaphore(_CONCURRENT_WRITES)

    @classmethod
    def from_kubeconfig(cls, path: Path) -> "ApiClient":
        """Read server, CA and client certificate of the current context.

        Raises:
            ValueError: if the file names no such context, or a user without a client certificate.
        """
        config = yaml.safe_load(path.read_text())
        context = _named(config, "contexts", "context", config.get("current-context"), path)
        cluster = _named(config, "clusters", "cluster", context["cluster"], path)
        user = _named(config, "users", "user", context["user"], path)
        authority = _material(cluster, "certificate-authority", path)
        tls = ssl.create_default_context(cadata=authority.decode())
        with tempfile.TemporaryDirectory() as directory:
            certificate, key = Path(directory, "crt"), Path(directory, "key")
            certificate.write_bytes(_material(user, "client-certificate", path))
            key.touch(mode=0o600)
            key.write_bytes(_material(user, "client-key", path))
            tls.load_cert_chain(certificate, key)
        return cls(cluster["server"].rstrip("/"), authority.decode(), tls)

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session, made on first use (inside the event loop)."""
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
            self._session = aiohttp.ClientSession(
                connector=connector,
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
        body: Document | None = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Document:
        """Send one request and return the answer.

        Raises:
            ApiError: if the answer is no 2xx.
            aiohttp.ClientError, TimeoutError: if there is none.
        """
        data = None if body is None else json.dumps(body).encode()
        async with (
            self._writes,
            self.session.request(
                method,
                self.server + path,
                data=data,
                params=dict(query or {}),
                headers={"Content-Type": content_type, "Accept": "application/json"},
            ) as response,
        ):
            answer = await response.read()
            if response.status >= 300:
                raise ApiError(method, path, response.status, answer)
            result: Document = json.loads(answer) if answer else {}
            return result

    async def get(self, path: str, **query: str) -> Document:
        return await self.request("GET", path, query=query)

    async def create(self, path: str, body: Document, **query: str) -> Document:
        return await self.request("POST", path, body, query=query)

    async def patch(self, path: str, body: Document, content_type: str = STRATEGIC) -> Document:
        return await self.request("PATCH", path, body, content_type=content_type)

    async def apply(self, path: str, body: Document, manager: str) -> Document:
        """Apply on the server, taking over conflicting fields."""
        query = {"fieldManager": manager, "force": "true"}
        return await self.request("PATCH", path, body, content_type=APPLY, query=query)

    async def delete(self, path: str, body: Document | None = None) -> None:
        await self.request("DELETE", path, body or {})


async def persist(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until the API server answers it, with back-off; what it refuses for good is raised.

    Raises:
        ApiError: for an answer that repeating does not change.
    """
    pause = _FIRST_RETRY_SECONDS
    while True:
        try:
            return await call()
        except ApiError as error:
            if not error.passing:
                raise
        except (aiohttp.ClientError, TimeoutError, OSError):
            pass  # the API server is away: whoever stopped it knows; the level is written when it is back
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


def _named(config: Document, group: str, kind: str, name: str | None, path: Path) -> Document:
    for entry in config.get(group) or []:
        if entry.get("name") == name:
            found: Document = entry[kind]
            return found
    raise ValueError(f"{path}: {group} has no entry {name!r}; hint: check current-context")


def _material(entry: Document, name: str, path: Path) -> bytes:
    if data := entry.get(f"{name}-data"):
        return base64.b64decode(str(data))
    if file := entry.get(name):
        return (path.parent / str(file)).read_bytes()
    raise ValueError(f"{path}: {name} is missing; hint: give a kubeconfig with a client certificate")
