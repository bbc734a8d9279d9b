"""The HTTPS server behind the webhook configurations. Every replica runs one.

A request that makes no sense gets an answer that says so; one beyond a bound of `limits` a refusal that names
the bound; a fault of our own a refusal that names it, a stack trace in the log, and the server goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

import structlog
from aiohttp import web

from nodeless.api.bounds import DocumentTooLargeError, check_json
from nodeless.api.validation_context import ValidationContext
from nodeless.model.labels import AWS_GROUP, CORE_GROUP
from nodeless.webhook.access import Json
from nodeless.webhook.certificates import Certificates
from nodeless.webhook.config_maps import SettingsCheck
from nodeless.webhook.connections import Listener, within
from nodeless.webhook.limits import (
    BOUNDS,
    LARGEST_BODY,
    SMALL_BODY,
    SMALL_VALUES,
    BusyError,
    Patience,
    Places,
)
from nodeless.webhook.review import (
    UnreadableReviewError,
    read_request,
    refuse,
    refuse_unread,
    review_config_map,
    review_default,
    review_validate,
)

_GRACE_SECONDS = 5.0

Review = Callable[[Json], Json]
ContextSource = Callable[[], ValidationContext]
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
        context_source: ContextSource | None = None,
        watcher: ReviewWatcher | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.port = port
        self._host = host
        self._certificates = certificates
        patience = patience or Patience()
        self._listener = Listener(certificates.context, patience)
        app = application(check_settings, context_source, advise_on_settings, watcher, patience)
        app.middlewares.insert(0, within(self._listener))
        # Nothing is unpacked: a few bytes can hold gigabytes, and API servers send plain JSON.
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=_GRACE_SECONDS, auto_decompress=False
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
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner has no server after its setup")
        try:
            self.port = self._listener.start(server, self._host, self.port)
        except OSError as error:
            await self._runner.cleanup()
            raise WebhookPortTakenError(
                f"cannot serve the webhook on {self._host}:{self.port}: {error.strerror}; "
                "hint: free the port or set WEBHOOK_PORT"
            ) from error

    async def stop(self) -> None:
        """Answer what was asked, then close. Clients that do not say goodbye are not waited for."""
        await self._listener.stop()
        await self._listener.finish(_GRACE_SECONDS)
        await self._runner.cleanup()
        await self._listener.abort()


def application(
    check_settings: SettingsCheck | None = None,
    context_source: ContextSource | None = None,
    advise_on_settings: SettingsCheck | None = None,
    watcher: ReviewWatcher | None = None,
    patience: Patience | None = None,
) -> web.Application:
    """The paths that are served; any other is a mistake in a webhook configuration."""

    def validated(request: Json) -> Json:
        if context_source is not None:
            try:
                return review_validate(request, context_source())
            except Exception:
                # Warnings are a courtesy: whatever is wrong with them, the verdict does not wait for it.
                structlog.get_logger().bind(logger="webhook").exception("cannot look around")
        return review_validate(request)

    middlewares = [_watched_by(watcher)] if watcher is not None else []
    app = web.Application(client_max_size=LARGEST_BODY, middlewares=middlewares)
    places, patience = Places(), patience or Patience()
    reviews: dict[str, Review] = {}
    for group in (CORE_GROUP, AWS_GROUP):
        reviews |= {f"/default/{group}": review_default, f"/validate/{group}": validated}
    reviews[f"/validate/config.{CORE_GROUP}"] = lambda request: review_config_map(
        request, check_settings, advise_on_settings
    )
    for path, review in reviews.items():
        app.router.add_post(path, _handler(review, places, patience))
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
        with watcher(path) as report_status:
            answer = await handler(request)
            report_status(answer.status)
            return answer

    return watch


def _handler(
    review: Review, places: Places, patience: Patience
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    log = structlog.get_logger().bind(logger="webhook")

    async def handle(request: web.Request) -> web.Response:
        if (fault := _fault_of_head(request)) is not None:
            return fault
        try:
            async with places.body(request.content_length):
                async with asyncio.timeout(patience.body):
                    body = await request.read()
                if _is_small(body):
                    return _answer(body, request.path)
                async with places.thread:
                    if request.transport is None:  # nobody waits for the answer any more
                        return web.Response(status=499)
                    return await asyncio.to_thread(_answer, body, request.path)
        except TimeoutError:
            return web.Response(status=408, text=f"no whole body came within {patience.body:g} s\n")
        except BusyError:
            again = {"Retry-After": "1"}
            return web.Response(status=503, headers=again, text="too many large reviews at once\n")

    def _answer(body: bytes, path: str) -> web.Response:
        try:
            check_json(body, BOUNDS)
            asked = read_request(body)
        except DocumentTooLargeError as error:
            log.warning(f"{path} was asked about something too large: {error}")
            return _refused_unread(body, f"the object is too large to be checked: {error}")
        except UnreadableReviewError as error:
            log.warning(f"{path} was asked something unreadable: {error}")
            return web.Response(status=400, text=f"{error}\n")
        try:
            answer = review(asked)
        except Exception as error:
            log.exception(f"{path} failed", uid=asked["uid"])
            answer = refuse(asked, f"the check itself failed: {type(error).__name__}: {error}", code=500)
        return web.json_response(answer)

    return handle


def _is_small(body: bytes) -> bool:
    try:
        return len(body) <= SMALL_BODY and check_json(body, BOUNDS) <= SMALL_VALUES
    except DocumentTooLargeError:
        return True  # refused at once


def _fault_of_head(request: web.Request) -> web.Response | None:
    if request.content_type != "application/json":
        return web.Response(status=415, text="the content type must be application/json\n")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        return web.Response(status=415, text="the body must be plain: no Content-Encoding is read\n")
    if (request.content_length or 0) > LARGEST_BODY:
        text = f"the body has {request.content_length} bytes; at most {LARGEST_BODY} are read\n"
        return web.Response(status=413, text=text)
    return None


def _refused_unread(body: bytes, message: str) -> web.Response:
    try:
        return web.json_response(refuse_unread(body, message))
    except UnreadableReviewError as error:
        return web.Response(status=400, text=f"{error}\n")


async def _unknown_path(request: web.Request) -> web.Response:
    return web.Response(status=400, text=f"{request.method} {request.path} is not served here\n")
