"""A connection to a server that closes what was idle for long, as kube-apiserver does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from localenv.kubernetes.connection import ApiUnreachable, Connection, Identity

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"kind":"x"}'


class Forgetful:
    """Hears each request; closes the first connection without a word, and answers on the others."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.heard: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                self.heard.append(client.recv(65536).decode().split()[0])
                if len(self.heard) > 1:
                    client.sendall(ANSWER)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def forgetful() -> Iterator[Forgetful]:
    server = Forgetful()
    yield server
    server.close()


def test_what_only_reads_is_asked_for_once_more(forgetful: Forgetful) -> None:
    connection = Connection(forgetful.endpoint, b"", Identity())

    assert connection.request("GET", "/api") == {"kind": "x"}
    assert forgetful.heard == ["GET", "GET"]


def test_what_writes_is_not_sent_twice(forgetful: Forgetful) -> None:
    connection = Connection(forgetful.endpoint, b"", Identity())

    with pytest.raises(ApiUnreachable, match="does not answer POST /api"):
        connection.request("POST", "/api", body={"kind": "x"})
    assert forgetful.heard == ["POST"]
