"""What one client of the webhook can take from the others: connections, memory, time: all within bounds."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given, settings
from hypothesis import strategies as some

from bench import admission_memory
from nodeless.api.bounds import DocumentBounds, DocumentTooLargeError, check_json
from nodeless.webhook import AdmissionServer, pki
from nodeless.webhook.connections import Listener
from nodeless.webhook.limits import (
    BOUNDS,
    LARGE_BODIES,
    LARGEST_BODY,
    SMALL_BODY,
    WAITING,
    BusyError,
    Patience,
    Places,
)
from nodeless.webhook.review import SHOWN_FAULTS, refuse_unread, review_validate
from nodeless.webhook.server import application
from tests.api.manifests import provisioner
from tests.api.test_properties import JSON
from tests.webhook.reviews import review

PATH = "/validate/karpenter.sh"
NAME = "karpenter.test.svc"
PLAIN = {"Content-Type": "application/json"}
IMPATIENT = Patience(handshake=0.3, head=0.3, body=0.3, request=2, idle=0.3)
HONEST = json.dumps(review(provisioner())).encode()
HEAD = f"POST {PATH} HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n".encode()


class OwnCertificate:
    """A certificate that needs no cluster."""

    def __init__(self, folder: Path) -> None:
        material = pki.make([NAME], time.time())
        file = folder / "both.pem"
        file.write_bytes(material.certificate + material.key)
        self.bundle = material.bundle
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(file)

    async def prepare(self) -> None:
        pass


@pytest.fixture
def certificate(tmp_path: Path) -> OwnCertificate:
    return OwnCertificate(tmp_path)


@asynccontextmanager
async def serving(certificate: OwnCertificate, patience: Patience) -> AsyncIterator[AdmissionServer]:
    async with AdmissionServer("127.0.0.1", 0, certificate, patience=patience) as server:  # type: ignore[arg-type]
        yield server


@contextmanager
def connected(server: AdmissionServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as plain:
        yield plain


@contextmanager
def secure(server: AdmissionServer, certificate: OwnCertificate) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cadata=certificate.bundle.decode())
    with connected(server) as plain, context.wrap_socket(plain, server_hostname=NAME) as wrapped:
        yield wrapped


def until_closed(wire: socket.socket) -> bytes:
    """What comes until the server has closed; a server that never does ends this with a TimeoutError."""
    received = b""
    try:
        while piece := wire.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    except ssl.SSLError as error:  # cut off without a farewell; a time-out of the socket is no such error
        assert "EOF" in str(error)
    return received


def request(wire: socket.socket, body: bytes = HONEST) -> bytes:
    """Ask, and read the answer's head and the beginning of its body."""
    wire.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return wire.recv(65536)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"POST /validate", id="half-a-line"),
        pytest.param(HEAD, id="half-a-head"),
        pytest.param(HEAD + b"Content-Length: 90000\r\n\r\n{", id="half-a-body"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", id="half-a-chunk"),
        pytest.param(HEAD + b"Content-Length: 2\r\n\r\n{}", id="an-answer-and-nothing-more"),
        pytest.param(HEAD + b"Content-Length: 2\r\n\r\n{}" + HEAD, id="an-answer-and-half-a-head"),
    ],
)
def test_a_client_that_says_no_more_is_let_go(certificate: OwnCertificate, said: bytes) -> None:
    def client(server: AdmissionServer) -> None:
        with secure(server, certificate) as wire:
            wire.sendall(said)
            until_closed(wire)

    async def scenario() -> None:
        async with serving(certificate, IMPATIENT) as server:
            await asyncio.to_thread(client, server)

    asyncio.run(scenario())


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_client_that_shakes_no_hands_is_let_go(certificate: OwnCertificate, said: bytes) -> None:
    def client(server: AdmissionServer) -> None:
        with connected(server) as wire:
            wire.sendall(said)
            until_closed(wire)

    async def scenario() -> None:
        async with serving(certificate, IMPATIENT) as server:
            await asyncio.to_thread(client, server)

    asyncio.run(scenario())


def test_no_number_of_silent_clients_keeps_another_out(certificate: OwnCertificate) -> None:
    most = 5

    async def scenario() -> None:
        listener = Listener(certificate.context, Patience(), most)
        runner = await prepared(listener)
        port = listener.start(runner.server, "127.0.0.1", 0)
        context = ssl.create_default_context(cadata=certificate.bundle.decode())
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * most)]
        idle = [
            await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAME)
            for _ in range(2 * most)
        ]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAME)
        writer.write(HEAD + f"Content-Length: {len(HONEST)}\r\n\r\n".encode() + HONEST)
        assert b" 200 " in await reader.readline()
        assert len(listener) <= most
        await listener.stop()
        await runner.cleanup()
        await listener.abort()
        for _, other in (*silent, *idle, (reader, writer)):
            other.transport.abort()
        assert len(listener) == 0

    asyncio.run(scenario())


def test_who_had_begun_to_ask_before_the_end_is_answered_and_who_says_no_more_holds_up_nothing(
    certificate: OwnCertificate,
) -> None:
    context = ssl.create_default_context(cadata=certificate.bundle.decode())
    half = HEAD + f"Content-Length: {len(HONEST)}\r\n\r\n".encode()

    async def scenario() -> None:
        async with serving(certificate, IMPATIENT) as server:
            asking, writing = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context, server_hostname=NAME
            )
            idle, kept = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context, server_hostname=NAME
            )
            silent, unsaid = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context, server_hostname=NAME
            )
            for writer in (writing, unsaid):
                writer.write(half + HONEST[:40])
            ending = asyncio.create_task(server.stop())
            for _ in range(100):  # the end has begun, and a second copy of our words is not there yet
                await asyncio.sleep(0)
            assert not ending.done()
            writing.write(HONEST[40:])
            assert b" 200 " in await asking.readline()
            await ending
            assert b" 408 " in await silent.readline()
            assert await idle.read() == b""
            for writer in (writing, unsaid, kept):
                writer.transport.abort()

    asyncio.run(scenario())


async def prepared(listener: Listener) -> Any:
    app = application()

    @web.middleware
    async def at_work(
        asked: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        with listener.at_work(asked.protocol):
            return await handler(asked)

    app.middlewares.insert(0, at_work)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    return runner


def test_connections_of_an_api_server_outlive_silent_ones_and_their_own_rest(
    certificate: OwnCertificate,
) -> None:
    def client(server: AdmissionServer) -> None:
        with secure(server, certificate) as kept:
            assert b" 200 " in request(kept)
            with connected(server) as silent:
                until_closed(silent)
            assert b" 200 " in request(kept)

    async def scenario() -> None:
        patience = Patience(handshake=0.3, head=0.3, body=0.3, request=2, idle=60)
        async with serving(certificate, patience) as server:
            await asyncio.to_thread(client, server)

    asyncio.run(scenario())


def test_the_places_for_large_bodies_are_few_and_so_is_who_waits_for_one() -> None:
    async def scenario() -> None:
        places, taken, over = Places(), asyncio.Semaphore(0), asyncio.Event()

        async def hold(size: int | None) -> None:
            async with places.body(size):
                taken.release()
                await over.wait()

        async with asyncio.TaskGroup() as group:
            for size in (None, SMALL_BODY + 1) * ((LARGE_BODIES + WAITING) // 2):
                group.create_task(hold(size))
            for _ in range(LARGE_BODIES):
                await taken.acquire()
            with pytest.raises(BusyError):
                await hold(LARGEST_BODY)
            group.create_task(hold(SMALL_BODY))
            await taken.acquire()
            assert taken.locked()
            over.set()
        await hold(LARGEST_BODY)

    asyncio.run(scenario())


def test_large_bodies_that_never_come_do_not_keep_others_out(certificate: OwnCertificate) -> None:
    async def scenario() -> None:
        async with serving(certificate, Patience(body=0.1)) as server:
            context = ssl.create_default_context(cadata=certificate.bundle.decode())

            async def ask(said: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", server.port, ssl=context, server_hostname=NAME
                )
                writer.write(said)
                return reader, writer

            never = HEAD + f"Content-Length: {LARGEST_BODY}\r\n\r\n{{".encode()
            held = [await ask(never) for _ in range(LARGE_BODIES + 3)]
            large = json.dumps(review(provisioner(annotations={"note": "x" * 100_000}))).encode()
            honest = await ask(HEAD + f"Content-Length: {len(large)}\r\n\r\n".encode() + large)
            assert b" 200 " in await honest[0].readline()
            lines = await asyncio.gather(*(reader.readline() for reader, _ in held))
            assert all(b" 408 " in line for line in lines)
            for _, writer in (*held, honest):
                writer.transport.abort()

    asyncio.run(scenario())


def answered(body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    async def scenario() -> tuple[int, str]:
        async with TestClient(TestServer(application())) as client:
            response = await client.post(PATH, data=io.BytesIO(body), headers=headers)
            return response.status, await response.text()

    return asyncio.run(scenario())


def test_nothing_is_unpacked() -> None:
    for coding in ("gzip", "deflate", "br", "zstd", "gzip, gzip"):
        status, text = answered(zlib.compress(HONEST), {**PLAIN, "Content-Encoding": coding})
        assert (status, "Content-Encoding" in text) in ((415, True), (400, False))
    assert answered(HONEST, {**PLAIN, "Content-Encoding": "identity"})[0] == 200


def test_a_body_that_says_it_is_too_long_is_not_waited_for(certificate: OwnCertificate) -> None:
    def client(server: AdmissionServer) -> None:
        with secure(server, certificate) as wire:
            wire.sendall(HEAD + f"Content-Length: {LARGEST_BODY + 1}\r\n\r\n{{".encode())
            assert b" 413 " in wire.recv(100)

    async def scenario() -> None:
        async with serving(certificate, Patience()) as server:
            await asyncio.to_thread(client, server)

    asyncio.run(scenario())


def faulty(number: int) -> dict[str, Any]:
    return provisioner(requirements=[{"key": "example.com/a", "operator": "?"} for _ in range(number)])


@pytest.mark.parametrize("number", [1, SHOWN_FAULTS, SHOWN_FAULTS + 1, 300, 999, 1001, 20_000])
def test_a_refusal_names_fifty_faults_and_how_many_more(number: int) -> None:
    response = review_validate(review(faulty(number))["request"])["response"]

    message, causes = response["status"]["message"], response["status"]["details"]["causes"]
    faults = [line for line in message.splitlines() if "operator" in line]
    # A fault of form or two, each is told as a rule's as well.
    assert len(causes) == min(number, SHOWN_FAULTS) == len(faults)
    assert "spec.requirements[0].operator" in message
    if number <= SHOWN_FAULTS:
        assert "more" not in message.splitlines()[-1].split()
    elif number < 1000:
        assert f"... and {number - SHOWN_FAULTS} more" in message
    else:
        assert f"... and at least {1000 - SHOWN_FAULTS} more" in message


@pytest.mark.parametrize(
    "manifest",
    [
        provisioner(name="n" * 2**20),
        provisioner(labels={"k" * 2**20: "v"}),
        provisioner(labels={"1" * 2**20: "v"}),
        provisioner(labels={"k": "v" * 2**20}),
        provisioner(requirements="x" * 2**20),
        provisioner(
            requirements=[{"key": "k" * 2**20, "operator": "o" * 2**20, "values": ["v" * 2**20] * 2}]
        ),
        {**provisioner(), "kind": "k" * 2**20},
        {**provisioner(), "u" * 2**20: "v" * 2**20},
    ],
    ids=["name", "key", "digits", "value", "requirements", "requirement", "kind", "member"],
)
def test_an_answer_is_short_whatever_was_asked(manifest: dict[str, Any]) -> None:
    response = review_validate(review(manifest)["request"])["response"]

    assert not response["allowed"]
    assert len(json.dumps(response)) < SMALL_BODY


@pytest.mark.large
@pytest.mark.parametrize("name", ["invalid requirements", "integer labels"])
def test_the_dearest_requests_leave_most_of_the_containers_memory(name: str) -> None:
    peak = admission_memory.ask(name, dict(admission_memory.bodies())[name])

    assert peak.status == 200
    assert peak.answered < 64 * 1024
    assert peak.mib < 400


def test_the_largest_object_that_can_be_stored_is_served() -> None:
    body = admission_memory.largest_object()
    assert len(body) > 3 * 1024 * 1024

    response = review_validate(json.loads(body)["request"])["response"]

    assert check_json(body, BOUNDS) < BOUNDS.values
    assert response["allowed"]


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({}, False),
        ({"operation": "DELETE"}, True),
        ({"subResource": "status"}, True),
        ({"object": {"metadata": {"deletionTimestamp": "2023-05-01T12:00:00Z"}}}, True),
        ({"object": {"metadata": {"deletionTimestamp": None}}}, False),
        ({"object": None}, False),
    ],
)
def test_what_is_too_large_is_refused_unless_it_has_to_go(changes: dict[str, Any], allowed: bool) -> None:
    deep = json.dumps(review(provisioner(provider="@"), "UPDATE"))
    document = json.loads(deep)
    document["request"] |= changes
    for nested in ("[" * 500 + "]" * 500, "[" + "1," * BOUNDS.values + "1]"):
        document["request"]["oldObject"] = "@"
        body = json.dumps(document).replace('"@"', nested).encode()
        with pytest.raises(DocumentTooLargeError) as too_large:
            check_json(body, BOUNDS)
        response = refuse_unread(body, str(too_large.value))["response"]
        assert (response["allowed"], response["uid"]) == (allowed, document["request"]["uid"])
        status, text = answered(body, PLAIN)
        assert (status, json.loads(text)["response"]["allowed"]) == (200, allowed)


def counted(value: Any) -> tuple[int, int]:
    """Values and depth of a parsed document."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        return 1, 0
    found = [counted(each) for each in inner]
    return 1 + sum(values for values, _ in found), 1 + max((depth for _, depth in found), default=0)


@settings(deadline=None)
@given(JSON, some.booleans())
def test_values_are_counted_as_a_parser_would(document: Any, ascii_only: bool) -> None:
    values, depth = counted(document)
    text = json.dumps(document, ensure_ascii=ascii_only).encode(errors="surrogatepass")

    # An empty list or object has a beginning and nothing in it: one too many is counted for each.
    assert values <= check_json(text, DocumentBounds(10**9, depth)) <= 2 * values
    with pytest.raises(DocumentTooLargeError):
        check_json(text, DocumentBounds(values - 1, depth))
    if depth:
        with pytest.raises(DocumentTooLargeError):
            check_json(text, DocumentBounds(10**9, depth - 1))


@settings(deadline=None)
@given(some.binary(max_size=300))
def test_any_bytes_can_be_counted(text: bytes) -> None:
    assert check_json(text, DocumentBounds(10**9, 10**9)) >= 1


@pytest.mark.parametrize(
    "text", [b'"' + b"\\" * 4_000_000, b'\\"' * 2_000_000, b'"\\"' * 1_500_000, b'""' * 2_000_000]
)
def test_counting_takes_no_longer_for_quotes(text: bytes) -> None:
    """It would not end if anything were read twice."""
    assert check_json(text, BOUNDS) == 1
