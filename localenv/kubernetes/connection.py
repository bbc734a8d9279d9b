"""HTTPS to one API server: who we are, one request, and what its refusal says.

It knows nothing of kinds and paths. The environment's proxy settings are not looked at (urllib3's pools and
aiohttp's sessions do not by themselves): these servers listen on loopback.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml


@dataclass(frozen=True, slots=True)
class Cause:
    """One fault of a refused object.

    Attributes:
        field: Path of the field, empty where the server names none.
        reason: Such as "FieldValueInvalid" or "DisruptionBudget".
        message: The sentence for people.
    """

    field: str
    reason: str
    message: str


class ApiError(RuntimeError):
    """The API server refused a request.

    Attributes:
        status: HTTP code.
        reason: Kubernetes' word for it, such as "NotFound", "AlreadyExists", "Invalid".
        message: What the server says.
        causes: Every fault it names.
        method: HTTP method of the request.
        path: Its path.
    """

    def __init__(self, method: str, path: str, status: int, body: Any) -> None:
        answer = body if isinstance(body, dict) else {}
        details = answer.get("details") or {}
        self.method, self.path, self.status = method, path, status
        self.reason = str(answer.get("reason") or "")
        self.message = str(answer.get("message") or body or "no message")
        self.causes = tuple(
            Cause(str(cause.get("field", "")), str(cause.get("reason", "")), str(cause.get("message", "")))
            for cause in details.get("causes") or ()
        )
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 429) or self.status >= 500


class ApiUnreachable(ConnectionError):
    """No answer came from the API server."""

    def __init__(self, endpoint: str, method: str, path: str, cause: Exception) -> None:
        super().__init__(
            f"{endpoint} does not answer {method} {path}: {cause}; hint: is the control plane running?"
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said to one request.

    Attributes:
        status: HTTP code.
        content: The decoded JSON document, or the text where it is not JSON.
        warnings: What kubectl prints beside it, from deprecations and admission webhooks.
    """

    status: int
    content: Any
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client shows the API server: a certificate with its key (PEM), a token, or nothing."""

    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None

    def headers(self, accept: str, content_type: str | None = None) -> dict[str, str]:
        """The headers of a request; `content_type` is that of its body, if it has one."""
        headers = {"Accept": accept, "User-Agent": "nodeless-local"}
        # A file is read for each request, for its token is renewed while we run.
        token = self.token if self.token_file is None else self.token_file.read_text().strip()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if content_type is not None:
            headers["Content-Type"] = content_type
        return headers


class Connection:
    """Requests to one API server under one identity; may be used by several threads."""

    def __init__(self, endpoint: str, authority: bytes, identity: Identity) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.authority = authority
        self._identity = identity
        self._pool = urllib3.PoolManager(
            maxsize=16, ssl_context=tls_context(authority, identity), retries=False, cert_reqs="CERT_REQUIRED"
        )

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Send one request.

        Args:
            method: HTTP method.
            path: Path below the endpoint, with its leading slash.
            options: As for `exchange`.

        Returns:
            The decoded JSON answer, or the text where the answer is not JSON.

        Raises:
            ApiError: The server refused.
            ApiUnreachable: No answer.
        """
        answer = self.exchange(method, path, **options)
        if answer.status >= 400:
            raise ApiError(method, path, answer.status, answer.content)
        return answer.content

    def exchange(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json, */*",
        timeout: float = 60.0,
    ) -> Answer:
        """Send one request; a refusal is an answer like any other.

        Args:
            method: HTTP method.
            path: Path below the endpoint, with its leading slash.
            body: A JSON document, or bytes that are sent as they are.
            query: Parameters; those that are None are left out.
            content_type: Of the body.
            accept: Which form of the answer is wanted.
            timeout: Seconds for the whole answer to begin.

        Raises:
            ApiUnreachable: No answer.
        """
        given = parameters(query)
        url = f"{self.endpoint}{path}" + (f"?{urlencode(given)}" if given else "")
        headers = self._identity.headers(accept, None if body is None else content_type)
        data = encode_body(body)
        send = partial(self._pool.request, method, url, body=data, headers=headers, timeout=timeout)
        try:
            try:
                answer = send()
            except urllib3.exceptions.ProtocolError:
                # The API server closes connections that were idle for 90 seconds: maybe this one, just now.
                if method != "GET":
                    raise
                answer = send()
        except urllib3.exceptions.HTTPError as error:
            raise ApiUnreachable(self.endpoint, method, path, error) from error
        content = decode_answer(answer.data, answer.headers.get("Content-Type", ""))
        warnings = tuple(_warning_text(each) for each in answer.headers.getlist("Warning"))
        return Answer(answer.status, content, warnings)

    def with_identity(self, identity: Identity) -> Connection:
        """The same server, seen as someone else."""
        return Connection(self.endpoint, self.authority, identity)

    def close(self) -> None:
        self._pool.clear()


def read_kubeconfig(file: Path, context: str | None = None) -> tuple[str, bytes, Identity]:
    """The server's URL, its authority (PEM) and who we are: inline data or files, `token` or `tokenFile`.

    Raises:
        ValueError: The file names a context, cluster or user that it does not hold, or no authority.
    """
    document = yaml.safe_load(file.read_text())
    chosen = _entry(file, document, "context", context or document.get("current-context"))
    cluster = _entry(file, document, "cluster", chosen.get("cluster"))
    user = _entry(file, document, "user", chosen.get("user"))
    authority = _content(file, cluster, "certificate-authority")
    if authority is None:
        raise ValueError(f"{file}: cluster {chosen.get('cluster')!r} has no certificate-authority")
    token_file = user.get("tokenFile")
    identity = Identity(
        certificate=_content(file, user, "client-certificate"),
        key=_content(file, user, "client-key"),
        token=user.get("token"),
        token_file=file.parent / token_file if token_file else None,
    )
    return cluster["server"], authority, identity


def kubeconfig(
    endpoint: str, authority: bytes, user: Mapping[str, str], namespace: str = ""
) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user and one context.

    Args:
        endpoint: URL of the API server.
        authority: PEM of the certificate authority.
        user: The user's entry: `client-certificate-data` and `client-key-data`, or `token`, or `tokenFile`.
        namespace: What the context names for requests that name none; empty: nothing.
    """
    name = "nodeless-local"
    cluster = {"server": endpoint, "certificate-authority-data": base64.b64encode(authority).decode()}
    context = {"cluster": name, "user": name} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": dict(user)}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }


def _entry(file: Path, document: Any, kind: str, name: str | None) -> dict[str, Any]:
    for one in document.get(f"{kind}s") or ():
        if one.get("name") == name:
            return dict(one.get(kind) or {})
    raise ValueError(f"{file}: there is no {kind} {name!r}")


def _content(file: Path, entry: Mapping[str, Any], name: str) -> bytes | None:
    inline = entry.get(f"{name}-data")
    if inline:
        return base64.b64decode(inline)
    path = entry.get(name)
    return (file.parent / path).read_bytes() if path else None


def tls_context(authority: bytes, identity: Identity) -> ssl.SSLContext:
    """What verifies the server, and shows it the identity's certificate where there is one."""
    context = ssl.create_default_context(cadata=authority.decode())
    if identity.certificate is not None and identity.key is not None:
        # The ssl module reads a client's certificate from a file only.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(identity.certificate + b"\n" + identity.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def parameters(query: Mapping[str, Any] | None) -> dict[str, str]:
    """The parameters of a query as texts; those that are None are left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (query or {}).items()
        if value is not None
    }


def encode_body(body: Any) -> bytes | None:
    """A request's body: a document as JSON, bytes as they are."""
    return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


def decode_answer(data: bytes, content_type: str) -> Any:
    """An answer's document, or the text where the answer is not JSON."""
    kind = content_type.partition(";")[0].strip()
    is_json = kind == "application/json" or kind.endswith("+json")
    return json.loads(data) if is_json else data.decode(errors="replace")


def _warning_text(header: str) -> str:
    """The text of `299 - "text"` (RFC 7234, section 5.5)."""
    quoted = header.partition('"')[2].rpartition('"')[0]
    return re.sub(r"\\(.)", r"\1", quoted)
