"""The HTTPS server behind the webhook configurations. Every replica runs one.

A request that makes no sense gets an answer that says so; a fault of our own gets a
refusal that names it, a stack trace in the log, and the server goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

import structlog
from aiohttp import web

from nodeless.admission.access import Json
from nodeless.admission.certificates import Certificates
from nodeless.admission.config_maps import SettingsCheck
from nodeless.admission.review import (
    UnreadableReviewError,
    read_request,
    refuse,
    review_config_map,
    review_default,
    review_validate,
)
from nodeless.api.surroundings import Surroundings
from nodeless.model.labels import AWS_GROUP, CORE_GROUP

#: A review holds two objects of at most 1.5 MiB each (etcd's limit), and a little around them.
_LARGEST_BODY = 8 * 1024 * 1024
#: A review of this size takes milliseconds. It is answered where it arrives: a thread's start and end would
#: cost more, above all while another thread computes. What is larger must not hold up the probes.
_ANSWERED_AT_ONCE = 32 * 1024
_GRACE_SECONDS = 5.0

Review = Callable[[Json], Json]
LookAround = Callable[[], Surroundings]
"""Gives what is known of types and pools at once: nothing is fetched while a user waits."""
ReviewWatcher = Callable[[str], AbstractContextManager[Callable[[int], None]]]
"""Entered with the path of each request; what it gives is told the status of the answer."""


class WebhookPortTakenError(OSError):
    """The port that the webhook server needs is in use."""


class AdmissionServer:
    """Serves from the start to the end of an `async with` block.

    By the time that the block begins, the certificate is in use and the webhook configurations trust it.

    Attributes:
        port: The port it listens on; a free one is chosen when 0 was asked for.
    """

    def __init__(
        self,
        host: str,
        port: int,
        certificates: Certificates,
        *,
        check_settings: SettingsCheck | None = None,
        advise_on_settings: SettingsCheck | None = None,
        look_around: LookAround | None = None,
        watcher: ReviewWatcher | None = None,
    ) -> None:
        self.port = port
        self._host = host
        self._certificates = certificates
        self._runner = web.AppRunner(
            application(check_settings, look_around, advise_on_settings, watcher),
            access_log=None,
            shutdown_timeout=_GRACE_SECONDS,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Get the certificate and listen. Raises WebhookPortTakenError."""
        await self._certificates.prepare()
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port, ssl_context=self._certificates.context)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise WebhookPortTakenError(
                f"cannot serve the webhook on {self._host}:{self.port}: {error.strerror}; "
                "hint: free the port or set WEBHOOK_PORT"
            ) from error
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Answer what was asked, then close. Clients that do not say goodbye are not waited for."""
        server = self._runner.server
        transports = [connection.transport for connection in server.connections] if server else []
        await self._runner.cleanup()
        for transport in transports:
            if transport is not None:
                transport.abort()
        await asyncio.sleep(0)  # lets the loop close what was aborted


def application(
    check_settings: SettingsCheck | None = None,
    look_around: LookAround | None = None,
    advise_on_settings: SettingsCheck | None = None,
    watcher: ReviewWatcher | None = None,
) -> web.Application:
    """The paths that are served; any other is a mistake in a webhook configuration."""

    def validated(request: Json) -> Json:
        if look_around is not None:
            try:
                return review_validate(request, look_around())
            except Exception:
                # Warnings are a courtesy: whatever is wrong with them, the verdict does not wait for it.
                structlog.get_logger().bind(logger="webhook").exception("cannot look around")
        return review_validate(request)

    middlewares = [_watched_by(watcher)] if watcher is not None else []
    app = web.Application(client_max_size=_LARGEST_BODY, middlewares=middlewares)
    for group in (CORE_GROUP, AWS_GROUP):
        app.router.add_post(f"/default/{group}", _handler(review_default))
        app.router.add_post(f"/validate/{group}", _handler(validated))
    app.router.add_post(
        f"/validate/config.{CORE_GROUP}",
        _handler(lambda request: review_config_map(request, check_settings, advise_on_settings)),
    )
    app.router.add_route("*", "/{anything:.*}", _unknown_path)
    return app


def _watched_by(watcher: ReviewWatcher) -> Any:
    @web.middleware
    async def watch(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        # Paths that are not served are one: nobody may add to what is counted by asking.
        served = not isinstance(request.match_info.route.resource, web.DynamicResource)
        path = request.path if served else "unknown"
        with watcher(path) as told:
            answer = await handler(request)
            told(answer.status)
            return answer

    return watch


def _handler(review: Review) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    log = structlog.get_logger().bind(logger="webhook")

    async def handle(request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return web.Response(status=415, text="the content type must be application/json\n")
        body = await request.read()
        try:
            asked = read_request(body)
        except UnreadableReviewError as error:
            log.warning(f"{request.path} was asked something unreadable: {error}")
            return web.Response(status=400, text=f"{error}\n")
        try:
            at_once = len(body) <= _ANSWERED_AT_ONCE
            answer = review(asked) if at_once else await asyncio.to_thread(review, asked)
        except Exception as error:
            log.exception(f"{request.path} failed", uid=asked["uid"])
            answer = refuse(asked, f"the check itself failed: {type(error).__name__}: {error}", code=500)
        return web.json_response(answer)

    return handle


async def _unknown_path(request: web.Request) -> web.Response:
    return web.Response(status=400, text=f"{request.method} {request.path} is not served here\n")
