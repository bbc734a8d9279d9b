"""The way from the API server into the cluster: HTTP CONNECT on a unix socket, to services and pods.

kube-apiserver's egress selector speaks HTTPConnect here as it does to konnectivity; this side plays
kube-proxy too: a service's address becomes one of its ready endpoints (EndpointSlices), an endpoint's address
its place on this machine (`addresses.local_address`). Bytes pass as they are; TLS is between the API server
and the pod. Services and slices are read at each connection: the API server keeps its connections, so there
are few.
"""

import asyncio
import logging
import random
from pathlib import Path
from typing import Any

from localenv.kubelets.addresses import local_address
from localenv.kubelets.registry import Tasks
from localenv.kubernetes import ApiError, ApiUnreachable
from localenv.kubernetes.aio import AsyncKubernetesApi

log = logging.getLogger(__name__)

_CONNECT_SECONDS = 5.0
_HEAD_LIMIT = 16384
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


class ProxyError(Exception):
    """A connection cannot be made.

    Attributes:
        status: HTTP answer to CONNECT.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def service_port(services: list[dict[str, Any]], ip: str, port: int) -> tuple[str, str, str] | None:
    """Return (namespace, service, port's name) behind a cluster address; None if the address is no service's.

    Raises:
        ProxyError: if the service has no such port.
    """
    for service in services:
        spec = service["spec"]
        if ip not in (spec.get("clusterIPs") or [spec.get("clusterIP")]):
            continue
        metadata = service["metadata"]
        for each in spec.get("ports") or []:
            if each["port"] == port:
                return metadata["namespace"], metadata["name"], each.get("name") or ""
        raise ProxyError(503, f"service {metadata['namespace']}/{metadata['name']} has no port {port}")
    return None


def ready_endpoints(slices: list[dict[str, Any]], port_name: str) -> list[tuple[str, int]]:
    """Return addresses and ports of the ready endpoints of a service's port."""
    found = []
    for each in slices:
        ports = [port["port"] for port in each.get("ports") or [] if (port.get("name") or "") == port_name]
        for endpoint in each.get("endpoints") or []:
            if (endpoint.get("conditions") or {}).get("ready", True):
                found += [(address, port) for address in endpoint["addresses"] for port in ports if port]
    return found


class ServiceProxy:
    """The listener on the unix socket."""

    def __init__(self, api: AsyncKubernetesApi, socket: Path) -> None:
        self._api = api
        self._socket = socket
        self._server: asyncio.Server | None = None
        self._tasks = Tasks()

    async def start(self) -> None:
        """Listen; a socket left behind by an earlier process is replaced."""
        self._socket.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._accept, str(self._socket), limit=_HEAD_LIMIT)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._socket.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.info("proxy: connection ended: %r", error)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        target = ""
        try:
            target = _target(head)
            backend_reader, backend_writer = await self._connect(target)
        except (ProxyError, ApiError, ApiUnreachable) as error:
            log.warning("proxy: CONNECT %s: %s", target, error)
            status = error.status if isinstance(error, ProxyError) else 503
            text = str(error).encode()
            writer.write(
                b"HTTP/1.1 %d Service Unavailable\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
                % (status, len(text), text)
            )
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
        try:
            await asyncio.gather(_pipe(reader, backend_writer), _pipe(backend_reader, writer))
        finally:
            backend_writer.close()

    async def _connect(self, target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        refused: list[str] = []
        for ip, port in await self._backends(target):
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await asyncio.open_connection(local_address(ip), port)
            except OSError as error:
                refused.append(f"{ip}:{port}: {error}")
        raise ProxyError(503, f"no endpoint of {target} answers: {'; '.join(refused)}")

    async def _backends(self, target: str) -> list[tuple[str, int]]:
        ip, _, port = target.rpartition(":")
        services = (await self._api.get("/api/v1/services"))["items"]
        found = service_port(services, ip, int(port))
        if found is None:
            return [(ip, int(port))]
        namespace, name, port_name = found
        selector = f"kubernetes.io/service-name={name}"
        slices = (await self._api.get(_SLICES.format(namespace), labelSelector=selector))["items"]
        endpoints = ready_endpoints(slices, port_name)
        if not endpoints:
            raise ProxyError(503, f"service {namespace}/{name} has no ready endpoint")
        random.shuffle(endpoints)
        return endpoints


def _target(head: bytes) -> str:
    words = head.split(b"\r\n", 1)[0].decode(errors="replace").split()
    if len(words) != 3 or words[0] != "CONNECT" or not words[1].rpartition(":")[2].isdecimal():
        raise ProxyError(400, f"not a CONNECT request: {head[:80]!r}")
    return words[1]


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()
