"""Connections to our ports: how many there may be, and how long each may do nothing.

A server that waits for what a client has begun to say can be filled by clients that say nothing more: an
accepted socket without a handshake, a handshake without a request, half of a head, half of a body, an answer
that nobody takes. Each of these has a deadline here. When all places are taken, whoever holds most of them
loses the oldest one that is not at work, so that one peer cannot keep the API server out.
"""

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import cast

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from nodeless.webhook.limits import Patience

#: Open at once, of all peers. An API server keeps a handful.
MOST_CONNECTIONS = 256
_BACKLOG = 128
_BREATH_SECONDS = 0.1
_TURNS = 5


class _Connection(asyncio.Protocol):
    """One accepted socket: hands everything to the protocol within, and watches the clock."""

    def __init__(self, peer: str, patience: Patience, lost: Callable[["_Connection"], None]) -> None:
        self.peer = peer
        self.at_work = False
        self.inner: asyncio.Protocol | None = None
        self.task: asyncio.Task[None] | None = None
        self._patience = patience
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        elif self.task is not None:
            self.task.cancel()

    def wait(self, seconds: float) -> None:
        """Be gone after this time, unless something else is said by then."""
        self.rest()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.abort)

    def rest(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.wait(self._patience.head)
        if self.inner is not None:
            self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self.at_work:
            self.wait(self._patience.head)
        if self.inner is not None:
            self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received() if self.inner is not None else None

    def pause_writing(self) -> None:
        if self.inner is not None:
            self.inner.pause_writing()

    def resume_writing(self) -> None:
        if self.inner is not None:
            self.inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.rest()
        self._lost(self)
        if self.inner is not None:
            self.inner.connection_lost(error)
        self.inner = None


def within(listener: "Listener") -> Middleware:
    """Tells a listener which of its connections are at work."""

    @web.middleware
    async def bounded(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        with listener.at_work(request.protocol):
            return await handler(request)

    return bounded


class Listener:
    """Accepts connections for a protocol, within bounds."""

    def __init__(
        self, context: ssl.SSLContext | None, patience: Patience, most: int = MOST_CONNECTIONS
    ) -> None:
        """Without a context the connections are not encrypted."""
        self._context = context
        self._patience = patience
        self._most = most
        #: In the order of their arrival.
        self._open: dict[_Connection, None] = {}
        self._of: dict[object, _Connection] = {}
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()
        self._log = structlog.get_logger().bind(logger="connections")

    def __len__(self) -> int:
        return len(self._open)

    def start(self, protocol: Callable[[], asyncio.Protocol], host: str, port: int) -> int:
        """Listen; gives the port. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # An address of its own for each family: "::" takes both, where the machine has both.
        both = host == "::" and socket.has_dualstack_ipv6()
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)
        listening.setblocking(False)
        self._socket = listening
        self._accepting = asyncio.create_task(self._accept(listening, protocol), name="connections")
        return int(listening.getsockname()[1])

    async def stop(self) -> None:
        """Take no more connections; those that are open stay so."""
        if self._accepting is not None:
            self._accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._accepting
        if self._socket is not None:
            self._socket.close()

    async def finish(self, seconds: float) -> None:
        """Wait until what was asked is answered, at most so long.

        A server of aiohttp that is told to end reads nothing more: half of a body would never be whole.
        """
        for _ in range(_TURNS):  # what has come and was not looked at yet
            await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(connection.at_work for connection in self._open):
                    self._answered.clear()
                    await self._answered.wait()

    async def abort(self) -> None:
        """Close what is still open, at once."""
        tasks = [connection.task for connection in self._open if connection.task is not None]
        for connection in list(self._open):
            connection.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(_TURNS):  # the loop closes what was aborted, TLS first and then its socket
            await asyncio.sleep(0)

    @contextmanager
    def at_work(self, protocol: object) -> Iterator[None]:
        """While a request of this protocol is answered."""
        connection = self._of.get(protocol)
        if connection is None:
            yield
            return
        connection.at_work = True
        connection.wait(self._patience.request)
        try:
            yield
        finally:
            connection.at_work = False
            self._answered.set()
            if protocol in self._of:
                connection.wait(self._patience.idle)

    async def _accept(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError as error:  # out of files, or a peer that was gone at once
                self._log.warning(f"cannot accept a connection: {error.strerror or error}")
                await asyncio.sleep(_BREATH_SECONDS)
                continue
            if len(self._open) >= self._most and not self._make_room():
                accepted.close()
                continue
            connection = _Connection(str(peer[0]), self._patience, self._forget)
            self._open[connection] = None
            connection.task = asyncio.create_task(self._begin(connection, accepted, protocol))

    def _make_room(self) -> bool:
        """Whether a connection of the peer that holds most has been closed."""
        idle = [connection for connection in self._open if not connection.at_work]
        if not idle:
            return False
        held = Counter(connection.peer for connection in self._open)
        victim = max(idle, key=lambda connection: held[connection.peer])  # the first of equals: the oldest
        self._forget(victim)
        victim.abort()
        return True

    async def _begin(
        self, connection: _Connection, accepted: socket.socket, protocol: Callable[[], asyncio.Protocol]
    ) -> None:
        """The handshake; from then on the loop calls the connection itself."""

        def make_connection() -> _Connection:
            connection.inner = protocol()
            self._of[connection.inner] = connection
            return connection

        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                make_connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._patience.handshake if self._context is not None else None,
            )
        except OSError:  # it speaks no TLS, or does not trust us, or is gone; `ssl.SSLError` is one
            self._forget(connection)
        except asyncio.CancelledError:
            self._forget(connection)
            raise
        finally:
            connection.task = None

    def _forget(self, connection: _Connection) -> None:
        self._open.pop(connection, None)
        if connection.inner is not None:
            self._of.pop(connection.inner, None)
