"""TCP ports on loopback: a free one that stays free, or a clear line when the wanted one is taken."""

from __future__ import annotations

import errno
import random
import socket
from collections import deque

#: Below the range that Linux takes client ports from (32768 on): a client that tries again and
#: again to reach a server that is down could otherwise be given the server's own port.
_RANGE = range(16000, 32000)
#: Sockets that are bound and do not listen: no other process is given their ports, and a server that
#: sets SO_REUSEADDR, as Go's, asyncio's and werkzeug's do, may still listen there. Those of the last
#: servers are enough: a port needs it only until its server listens.
_RESERVED: deque[socket.socket] = deque(maxlen=64)


class PortTaken(RuntimeError):
    """Something else listens on the wanted port.

    Attributes:
        port: Its number.
    """

    def __init__(self, port: int, wanted_by: str) -> None:
        self.port = port
        super().__init__(
            f"{wanted_by} cannot listen on 127.0.0.1:{port}: the port is taken; "
            f"hint: choose another one, or stop what listens there (ss -ltnp 'sport = :{port}')"
        )


def free_port(wanted_by: str = "a server") -> int:
    """A port on 127.0.0.1 that nobody else is given before its server listens, chosen by chance."""
    for port in random.sample(_RANGE, 100):
        listener = socket.socket()
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _RESERVED.append(listener)
        return port
    raise RuntimeError(f"{wanted_by}: 100 ports tried on 127.0.0.1, all taken")


def require_free(port: int, wanted_by: str) -> int:
    """`port`, when it is free.

    Args:
        port: TCP port on 127.0.0.1.
        wanted_by: Subject of the message, e.g. "kube-apiserver".

    Raises:
        PortTaken: It is not.
    """
    with socket.socket() as listener:
        # As servers do: connections of a former server that linger are no obstacle.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortTaken(port, wanted_by) from error
    return port
