"""The server process: a threaded WSGI server on loopback around the gateway.

Each request has its own thread, so that a long poll of a queue holds up nobody.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

from werkzeug.serving import BaseWSGIServer, make_server

from localenv.aws.gateway import Gateway
from localenv.aws.handlers import ALL
from localenv.aws.keys import ACCESS_KEY, SECRET_KEY
from localenv.aws.moto_internals import MotoServer, RequestHandler
from localenv.aws.state import LocalState


class _QuietHandler(RequestHandler):
    """Logs errors only: the recorded calls tell the rest."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        """Say nothing: clients go away, and the `unreachable` fault drops them."""


def make(port: int, region: str) -> BaseWSGIServer:
    """A server that is bound and answers once `serve_forever` runs.

    Raises:
        SystemExit: The port is taken.
    """
    gateway = Gateway(LocalState(region), MotoServer(ACCESS_KEY, SECRET_KEY), ALL)
    return make_server("127.0.0.1", port, gateway, threaded=True, request_handler=_QuietHandler)


def serve(port: int, region: str) -> None:
    """Serve until SIGTERM or SIGINT."""
    server = make(port, region)

    def stop(*_: object) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    server.serve_forever()
