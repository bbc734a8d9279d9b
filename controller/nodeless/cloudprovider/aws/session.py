"""boto3 clients and the threads that their calls wait in. The only module that makes clients.

One session, one client a service: EC2's service model alone takes tens of MiB. Clients
that are seldom needed (`pricing`, `ssm`, `eks`) are borrowed and dropped. Credentials
and endpoints come from boto3's ordinary chain (environment, web identity) alone.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from nodeless import __version__
from nodeless.cloudprovider.aws.answers import UnreadableAnswerError, check_answer
from nodeless.cloudprovider.aws.errors import UNREADABLE, translate
from nodeless.cloudprovider.aws.throttling import Throttling
from nodeless.cloudprovider.aws.times import read_time

T = TypeVar("T")

#: Threads, so concurrent calls to AWS; a burst of launches beyond it waits its turn.
MAX_WORKERS = 16
_ATTEMPTS = 4
_CONNECT_SECONDS = 3.0
_READ_SECONDS = 30.0


#: How long calls under way may take when everything ends.
_CLOSE_SECONDS = 3.0


CallObserver = Callable[[str, str, float, str], None]
"""Told of each call: service, operation, seconds, and the code of an error (empty when there was none)."""
#: Told for an answer that cannot be read, in place of an error's code.
_UNREADABLE = "UnreadableAnswer"
_REFUSED = 300
_STARTED = "nodeless_started"


class AwsSession:
    """Clients by service name, made when first used; safe to use from any thread.

    `assert_allowed` is called before each request, a retry too, in the thread that is about to send it; what
    it raises comes to the caller in place of an answer.
    """

    def __init__(
        self,
        region: str = "",
        on_call: CallObserver | None = None,
        assert_allowed: Callable[[], None] | None = None,
    ) -> None:
        self._on_call = on_call
        self._assert_allowed = assert_allowed
        core = botocore.session.get_session()
        core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=read_time)
        # Of every client that the session makes, also of those that fetch credentials.
        core.get_component("event_emitter").register("after-call", check_answer)
        self._session = boto3.Session(region_name=region or None, botocore_session=core)
        self._clients: dict[tuple[str, bool], Any] = {}
        self._throttling = Throttling()
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(MAX_WORKERS, thread_name_prefix="aws")
        self._closed = False

    @property
    def region(self) -> str:
        """The region of all calls but those of the Pricing API."""
        return self._session.region_name or ""

    def client(self, service: str, *, retries: bool = True) -> Any:
        """The kept client of a service; another one for calls that are made once, whatever the answer."""
        key = (service, retries)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._make(service, None, _ATTEMPTS if retries else 1)
            return self._clients[key]

    @contextmanager
    def borrow_client(self, service: str, region: str | None = None) -> Iterator[Any]:
        """A client that is let go afterwards, with the memory that its service model takes."""
        with self._lock:
            client = self._make(service, region)
        try:
            yield client
        finally:
            client.close()

    def _make(self, service: str, region: str | None, attempts: int = _ATTEMPTS) -> Any:
        config = Config(
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=MAX_WORKERS,
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            user_agent_extra=f"nodeless/{__version__}",
        )
        try:
            client = self._session.client(cast("Any", service), region_name=region, config=config)
        except BotoCoreError as error:
            raise translate(error, service, "CreateClient", "") from error
        self._throttling.watch(client)
        if self._assert_allowed is not None:
            _fence(client, self._assert_allowed)
        if self._on_call is not None:
            _observe(client, service, self._on_call)
        return client

    async def run(self, function: Callable[[], T]) -> T:
        """Run a blocking function in a worker thread. What comes after `close` is cancelled."""
        if self._closed:
            raise asyncio.CancelledError
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    async def run_detached(self, function: Callable[[], T]) -> T:
        """Run a function that blocks for long in a thread of its own, for which nothing waits at the end."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(cast("T", result))
            else:
                future.set_exception(error)

        def work() -> None:
            result, failure = None, None
            try:
                result = function()
            except Exception as error:  # handed to whoever waits
                failure = error
            # The loop may have ended meanwhile: then nobody waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, failure)

        threading.Thread(target=work, name="aws-detached", daemon=True).start()
        return await future

    async def call(
        self, service: str, method: str, request: Mapping[str, Any], *, retries: bool = True
    ) -> dict[str, Any]:
        """One call of a kept client, e.g. `call("ec2", "create_fleet", {...})`.

        Raises:
            nodeless.cloudprovider.CloudError: One of its kinds, as `errors.translate` tells them apart.
        """
        return await self.run(lambda: invoke(self.client(service, retries=retries), method, request))

    async def pages(self, service: str, method: str, request: Mapping[str, Any], member: str) -> list[Any]:
        """All pages' entries of a paged call of a kept client. Raises as `call`."""
        return await self.run(lambda: list(each_entry(self.client(service), method, request, member)))

    async def close(self) -> None:
        """End the threads and close the connections; a call under way is waited for, not for long.

        A client that is closed under a call leaves that call's connection open.
        """
        self._closed = True
        ending = asyncio.to_thread(self._executor.shutdown, wait=True, cancel_futures=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await ending
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


def _fence(client: Any, assert_allowed: Callable[[], None]) -> None:
    """Have a client send nothing that is not allowed at that very moment."""

    def about_to_send(**_: Any) -> None:
        assert_allowed()

    client.meta.events.register_first("before-send", about_to_send)


def _observe(client: Any, service: str, on_call: CallObserver) -> None:
    """Have every call of a client told when it ends, with its retries, from whatever thread it is made."""

    def begin(context: dict[str, Any], **_: Any) -> None:
        context[_STARTED] = time.perf_counter()

    def end(operation: str, context: dict[str, Any], code: str) -> None:
        on_call(service, operation, time.perf_counter() - context.get(_STARTED, time.perf_counter()), code)

    def answered(model: Any, parsed: Any, context: dict[str, Any], **fields: Any) -> None:
        code = str(parsed.get("Error", {}).get("Code", "")) if isinstance(parsed, Mapping) else ""
        status = fields["http_response"].status_code
        if not code and status >= _REFUSED:
            code = f"HTTP {status}"
        try:
            check_answer(model=model, parsed=parsed, context=context, **fields)
        except UnreadableAnswerError:
            code = _UNREADABLE
            raise
        finally:
            end(model.name, context, code)

    def failed(event_name: str, exception: Exception, context: dict[str, Any], **_: Any) -> None:
        # This event brings no model; its name ends with the operation's.
        end(event_name.rpartition(".")[2], context, type(exception).__name__)

    client.meta.events.register("before-call", begin)
    # It judges the answer itself: one that cannot be read is an error, and ends the event.
    client.meta.events.register_first("after-call", answered)
    client.meta.events.register("after-call-error", failed)


def invoke(client: Any, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """A call with its errors translated; blocks."""
    try:
        answer: dict[str, Any] = getattr(client, method)(**request)
    except (BotoCoreError, ClientError, *UNREADABLE) as error:
        raise _translate(error, client, method) from error
    return answer


def each_entry(client: Any, method: str, request: Mapping[str, Any], member: str) -> Iterator[Any]:
    """The entries of all pages, one page in memory at a time; blocks."""
    try:
        for page in client.get_paginator(method).paginate(**request):
            yield from page.get(member, ())
    except (BotoCoreError, ClientError, *UNREADABLE) as error:
        raise _translate(error, client, method) from error


def _translate(error: Exception, client: Any, method: str) -> Exception:
    operation = "".join(word.capitalize() for word in method.split("_"))
    return translate(error, client.meta.service_model.service_name, operation, client.meta.endpoint_url)
