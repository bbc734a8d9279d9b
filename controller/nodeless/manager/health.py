"""Health, readiness and metrics over HTTP, on ports of their own.

`/healthz` is answered by the event loop that does all the work: an answer proves that it turns, and a
loop that stalls gives none in the probe's time. A part that fails ends the process, so there is nothing
else to ask. `/readyz` fails until the settings are watched, the webhook serves with its certificate, and, on
the replica that leads, every kind has been listed once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from aiohttp import web

from nodeless.manager.profiling import LONGEST_PROFILE, add_profiles
from nodeless.operator.metrics import Metrics
from nodeless.webhook.connections import Listener, within
from nodeless.webhook.limits import Patience

#: Connections to one of these ports at once: a kubelet and a few scrapers keep a handful.
MOST_CONNECTIONS = 64
#: Seconds that an application may take for an answer, beside what clients have for the rest.
_LONGEST_ANSWER = web.AppKey("longest_answer", float)
#: For what is being answered when the process ends.
_GRACE_SECONDS = 5.0


class PortTakenError(Exception):
    """A port that the controller needs is in use."""


def health_application(ready: Callable[[], str | None]) -> web.Application:
    """`ready` says what is wrong, or None."""

    async def healthz(request: web.Request) -> web.Response:
        known = request.match_info.get("check", "healthz") in ("healthz", "event-loop")
        return web.Response(text="ok\n" if known else "no such check\n", status=200 if known else 404)

    async def readyz(_request: web.Request) -> web.Response:
        problem = ready()
        return web.Response(text=f"{problem or 'ok'}\n", status=503 if problem else 200)

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/healthz/{check}", healthz)
    application.router.add_get("/readyz", readyz)
    return application


def metrics_application(metrics: Metrics, *, profiling: bool = False) -> web.Application:
    """`/metrics` in Prometheus' text format; with `profiling`, also what the process is busy with."""

    async def show(_request: web.Request) -> web.Response:
        # Thousands of series take a while: in a thread, so that nothing else waits for them.
        body = await asyncio.to_thread(metrics.render)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    application = web.Application()
    application.router.add_get("/metrics", show)
    if profiling:
        add_profiles(application)
        application[_LONGEST_ANSWER] = LONGEST_PROFILE
    return application


class Port:
    """A port that is served without TLS, within the bounds that the webhook has (docs/limits.md)."""

    def __init__(self, runner: web.AppRunner, listener: Listener) -> None:
        self._runner = runner
        self._listener = listener

    async def cleanup(self) -> None:
        """Answer what was asked, then close."""
        await self._listener.stop()
        await self._runner.cleanup()
        await self._listener.abort()


async def serve(
    application: web.Application, host: str, port: int, purpose: str, patience: Patience | None = None
) -> Port:
    """Start serving. Raises PortTakenError."""
    patience = patience or Patience()
    patience = replace(patience, request=patience.request + application.get(_LONGEST_ANSWER, 0.0))
    listener = Listener(None, patience, MOST_CONNECTIONS)
    application.middlewares.insert(0, within(listener))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=_GRACE_SECONDS)
    await runner.setup()
    server = runner.server
    if server is None:
        raise RuntimeError("the runner has no server after its setup")
    try:
        listener.start(server, host, port)
    except OSError as error:
        await runner.cleanup()
        raise PortTakenError(
            f"cannot serve {purpose} on {host}:{port}: {error.strerror}; hint: free the port or set another"
        ) from error
    return Port(runner, listener)
