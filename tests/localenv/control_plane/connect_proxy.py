"""An HTTP CONNECT proxy on a unix socket: every target is one local port, and it remembers the targets."""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from pathlib import Path


class ConnectProxy(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Tunnel)
        self.backend: tuple[str, int] | None = None
        self.targets: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()
        Path(str(self.server_address)).unlink(missing_ok=True)


class _Tunnel(socketserver.StreamRequestHandler):
    server: ConnectProxy

    def handle(self) -> None:
        request = self.rfile.readline().decode().split()
        while self.rfile.readline().strip():
            pass
        assert request[0] == "CONNECT"
        self.server.targets.append(request[1])
        assert self.server.backend is not None
        with socket.create_connection(self.server.backend) as backend:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_copy, args=(backend, self.connection), daemon=True)
            back.start()
            _copy(self.connection, backend)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Carry bytes one way until one of both ends closes."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
