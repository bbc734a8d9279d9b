"""A wire between a replica and the API server that can be cut: TCP forwarded by threads."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from localenv.control_plane import ControlPlane
from tests.rights import as_the_controller


class Link:
    """Forwards connections to the API server, and writes the controller's kubeconfig that leads there."""

    def __init__(self, plane: ControlPlane, namespace: str, directory: Path) -> None:
        target = urlsplit(plane.endpoint)
        self._target = (target.hostname or "127.0.0.1", target.port or 443)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._whole = True
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        port = self._listener.getsockname()[1]
        self.kubeconfig = directory / "link.kubeconfig"
        self.kubeconfig.touch(mode=0o600)
        there = as_the_controller(plane, namespace).read_text()
        self.kubeconfig.write_text(there.replace(plane.endpoint, f"https://127.0.0.1:{port}"))
        threading.Thread(target=self._accept, name="link", daemon=True).start()

    def drop(self) -> None:
        """End every connection; new ones are let through."""
        with self._lock:
            ending, self._open = self._open, set()
        for each in ending:
            # `close` alone would wait for the thread that reads.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def cut(self) -> None:
        """Let nothing through any more."""
        self._whole = False
        self.drop()

    def mend(self) -> None:
        """Let new connections through again."""
        self._whole = True

    def close(self) -> None:
        """End for good."""
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._whole:
                near.close()
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with self._lock:
            self._open -= {source, sink}
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
