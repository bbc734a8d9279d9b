"""Health, readiness and metrics over HTTP, on ports of their own.

`/healthz` is answered by the event loop that does all the work: an answer proves that it turns, and a
loop that stalls gives none in the probe's time. A part that fails ends the process, so there is nothing
else to ask. `/readyz` fails until the settings are watched, the webhook serves with its certificate, and, on
the replica that leads, every kind has been listed once.
"""

import asyncio
from collections.abc import Callable

from aiohttp import web

from nodeless.app.metrics import Metrics
from nodeless.app.profiling import add_profiles


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
    return application


async def serve(application: web.Application, host: str, port: int, purpose: str) -> web.AppRunner:
    """Start serving. Raises PortTakenError."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise PortTakenError(
            f"cannot serve {purpose} on {host}:{port}: {error.strerror}; hint: free the port or set another"
        ) from error
    return runner
