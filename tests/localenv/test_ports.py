"""A free port stays free until the server for which it was chosen listens."""

import random
import socket
from itertools import islice

import pytest

from localenv import ports


def is_free(port: int) -> bool:
    """Servers of other tests, and connections that linger, have ports of the same range."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture
def two_ports(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The only ports to choose from."""
    chosen = list(islice(filter(is_free, random.sample(range(16000, 32000), 100)), 2))
    monkeypatch.setattr(ports, "_RANGE", chosen)
    monkeypatch.setattr(random, "sample", lambda population, k: list(population))
    return set(chosen)


def test_a_port_is_given_once(two_ports: set[int]) -> None:
    assert {ports.free_port(), ports.free_port()} == two_ports
    with pytest.raises(RuntimeError, match="Prometheus: 100 ports tried"):
        ports.free_port("Prometheus")


def test_a_server_listens_on_the_port_that_it_was_given_and_again_after_an_end() -> None:
    port = ports.free_port()
    for _ in range(2):
        with (
            socket.create_server(("127.0.0.1", port)),
            socket.create_connection(("127.0.0.1", port)),
        ):
            pass


def test_nobody_answers_before_the_server_listens() -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ports.free_port()))
