"""The two addresses that `pulumi package add` asks, on this machine: a code host and get.pulumi.com.

Clients find them as they find any host behind a corporate proxy: `HTTPS_PROXY` leads to a proxy here, which
hands `github.com` and `get.pulumi.com` to a server with a certificate for these names, and every other host
(the package index) to the real one. So what is typed is what users type. Repositories are served by git
itself (`git http-backend`); in place of plugins of cloud providers there are programs that end at once, as
adding a package downloads these and starts none.
"""

from __future__ import annotations

import io
import os
import re
import socket
import ssl
import subprocess
import tarfile
import threading
from collections import deque
from contextlib import ExitStack, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self, cast
from urllib.parse import urlsplit

from localenv.certificates import CertificateAuthority

CODE, PLUGINS = "github.com", "get.pulumi.com"
_HERE = (CODE, PLUGINS)
_CHUNK = 1 << 16


class CodeHost:
    """Serves until it is left.

    Attributes:
        repositories: Folder with `OWNER/NAME.git`, each as `https://github.com/OWNER/NAME` is read.
        asked: The hosts that clients asked for, in order.
        read: The paths that were asked of the code host, in order.
    """

    def __init__(self, folder: Path) -> None:
        """Make keys and folders below `folder`; nothing is served yet."""
        self.repositories = folder / "repositories"
        self.repositories.mkdir(parents=True)
        self.asked: deque[str] = deque()
        self.read: deque[str] = deque()
        authority = CertificateAuthority(folder / "keys", "nodeless-code-host")
        files = authority.write("server", authority.server(CODE, _HERE))
        self._bundle = folder / "authorities.pem"
        self._bundle.write_bytes(_known_authorities() + authority.certificate)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*files)
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _GitServer, self)
        self._server.socket = self._context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._proxy = _Server(("127.0.0.1", 0), _Proxy, self)
        for server in (self._server, self._proxy):
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            self._closing.callback(thread.join)
            self._closing.callback(server.server_close)
            self._closing.callback(server.shutdown)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def environment(self) -> dict[str, str]:
        """What a program's environment has so that it comes here."""
        address = f"http://127.0.0.1:{self._proxy.server_address[1]}"
        return {
            "HTTPS_PROXY": address,
            "https_proxy": address,
            "NO_PROXY": "",
            "no_proxy": "",
            "SSL_CERT_FILE": str(self._bundle),
            # A token of the reader's own is for the real host.
            "GITHUB_TOKEN": "",
        }

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to where `host` is, for the proxy.

        Raises:
            OSError: There is none to be had.
        """
        self.asked.append(host)
        if host in _HERE:
            return socket.create_connection(cast(tuple[str, int], self._server.server_address))
        beyond = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
        if not beyond:
            return socket.create_connection((host, port), timeout=60)
        parts = urlsplit(beyond)
        made = socket.create_connection((parts.hostname or "", parts.port or 80), timeout=60)
        made.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            byte = made.recv(1)
            if not byte:
                break
            answer += byte
        first = answer.partition(b"\r\n")[0].decode(errors="replace")
        if " 200 " not in f"{first} ":
            made.close()
            raise OSError(f"the proxy before this one does not lead to {host}: {first}")
        return made


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], host: CodeHost
    ) -> None:
        self.host = host
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    @property
    def host(self) -> CodeHost:
        return cast(_Server, self.server).host

    def log_message(self, *_: object) -> None:
        pass


class _Proxy(_Handler):
    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        try:
            beyond = self.host.connect(host, int(port))
        except OSError as error:
            self.send_error(HTTPStatus.BAD_GATEWAY, str(error))
            return
        with beyond:
            beyond.settimeout(None)
            self.send_response(HTTPStatus.OK)
            self.end_headers()
            back = threading.Thread(target=_pass_on, args=(beyond, self.connection), daemon=True)
            back.start()
            _pass_on(self.connection, beyond)
            back.join()
        self.close_connection = True


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class _GitServer(_Handler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        plugin = re.fullmatch(r"/releases/plugins/(pulumi-resource-[a-z-]+)-v[^/]+\.tar\.gz", self.path)
        if self.headers.get("Host") == PLUGINS and plugin:
            self._answer(HTTPStatus.OK, {"Content-Type": "application/gzip"}, _archive(plugin[1]))
        else:
            self._git(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._git(body)

    def _git(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        self.host.read.append(path)
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.host.repositories),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            },
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        status = HTTPStatus(int(headers.pop("Status", "200").split()[0]))
        self._answer(status, headers, content)

    def _answer(self, status: HTTPStatus, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _archive(program: str) -> bytes:
    """A plugin as it is downloaded, with a program in it that ends at once."""
    packed, text = io.BytesIO(), b"#!/bin/sh\n"
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(program)
        entry.mode, entry.size = 0o755, len(text)
        archive.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


def _known_authorities() -> bytes:
    """The certificates that this machine trusts, PEM."""
    given = os.environ.get("SSL_CERT_FILE")
    paths = ssl.get_default_verify_paths()
    for candidate in (given, paths.cafile, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/cert.pem"):
        if candidate and Path(candidate).is_file():
            return Path(candidate).read_bytes() + b"\n"
    return b""
